// The rows of random numbers: maps of a position and a counter.
#include "stet/base/inside.h"
#include "stet/compiler/lower.h"
#include "stet/ir/graph.h"
#include "stet/ops/random_words.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/table.h"

namespace stet {

namespace {

constexpr const char* operand_names[] = {"seed", "counter", "first", "second"};
constexpr const char* bits_names[] = {"seed", "counter"};

Expr low_word(Expr x) { return scalar::logical_and(x, constant(std::int64_t{0xFFFFFFFF}, DType::i64)); }
Expr high_word(Expr x) { return scalar::shift_right(x, 32); }

constexpr std::uint32_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57, weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;

}  // namespace

std::array<Expr, 4> philox(Expr counter, Expr key, int block) {
  Expr zero = constant(std::int64_t{0}, DType::i64);
  std::array<Expr, 4> x = {low_word(counter), high_word(counter), constant(std::int64_t{block}, DType::i64), zero};
  Expr k0 = low_word(key), k1 = high_word(key);
  for (int round = 0; round < 10; ++round) {
    // Products of 32-bit words are exact in 64 bits, whatever their sign bit says.
    Expr p0 = x[0] * std::int64_t{multiplier_0}, p1 = x[2] * std::int64_t{multiplier_1};
    x = {scalar::logical_xor(scalar::logical_xor(high_word(p1), x[1]), k0), low_word(p1),
         scalar::logical_xor(scalar::logical_xor(high_word(p0), x[3]), k1), low_word(p0)};
    k0 = low_word(k0 + std::int64_t{weyl_0});
    k1 = low_word(k1 + std::int64_t{weyl_1});
  }
  return x;
}

std::array<std::uint32_t, 4> philox_words(std::uint64_t counter, std::uint64_t key, std::uint32_t purpose) {
  std::array<std::uint32_t, 4> x = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0,
                                    purpose};
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    std::uint64_t p0 = std::uint64_t{x[0]} * multiplier_0, p1 = std::uint64_t{x[2]} * multiplier_1;
    x = {static_cast<std::uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += weyl_0;
    k1 += weyl_1;
  }
  return x;
}

Expr unit_interval(const std::array<Expr, 4>& words, int first, DType type) {
  auto at = static_cast<std::size_t>(first);
  if (type == DType::f64) {
    Expr bits = scalar::logical_or(scalar::shift_left(scalar::shift_right(words[at], 5), 26),
                                   scalar::shift_right(words[at + 1], 6));
    return scalar::cast(bits, DType::f64) * 0x1p-53;
  }
  return scalar::cast(scalar::shift_right(words[at], 8), DType::f32) * 0x1p-24;
}

Expr polynomial(Expr x, std::span<const double> coefficients) {
  Expr sum = constant(coefficients.back(), x.dtype());
  for (std::size_t i = coefficients.size() - 1; i-- > 0;)
    sum = scalar::fma(sum, x, constant(coefficients[i], x.dtype()));
  return sum;
}

std::array<Expr, 2> normal_pair(Expr u, Expr v) {
  // Taylor's series up to 1/8 of a turn: the first left out is below a quarter of a last place of 1. They are in units
  // of radians, and v in turns: what is rounded to quarters is exact.
  constexpr double sine[] = {1,
                             -1. / 6,
                             1. / 120,
                             -1. / 5040,
                             1. / 362880,
                             -1. / 39916800,
                             1. / 6227020800,
                             -1. / 1307674368000,
                             1. / 355687428096000};
  constexpr double cosine[] = {1,
                               -1. / 2,
                               1. / 24,
                               -1. / 720,
                               1. / 40320,
                               -1. / 3628800,
                               1. / 479001600,
                               -1. / 87178291200,
                               1. / 20922789888000};
  const std::size_t terms = u.dtype() == DType::f64 ? 9 : 5;
  Expr radius = scalar::sqrt(scalar::log(1 - u) * -2);
  Expr quarters = v * 4, quarter = scalar::round(quarters);
  Expr angle = (quarters - quarter) * 1.5707963267948966, squared = angle * angle;
  Expr s = angle * polynomial(squared, std::span(sine).first(terms));
  Expr c = polynomial(squared, std::span(cosine).first(terms));
  Expr first = scalar::equal(quarter, 1), half = scalar::equal(quarter, 2), third = scalar::equal(quarter, 3);
  Expr odd = scalar::logical_or(first, third);
  Expr across = scalar::select(odd, s, c), up = scalar::select(odd, c, s);
  Expr left = scalar::select(scalar::logical_or(first, half), -radius, radius);
  Expr down = scalar::select(scalar::logical_or(half, third), -radius, radius);
  return {left * across, down * up};
}

namespace {

std::array<Expr, 4> words_here() { return philox(operand(1, DType::i64) + loop_index(0), operand(0, DType::i64)); }

/// minval + u * (maxval - minval), kept below maxval where rounding would reach it.
Expr uniform_body(DType dtype) {
  DType type = compute_type(dtype);
  Expr low = operand(2, type), high = operand(3, type);
  Expr value = low + unit_interval(words_here(), 0, type) * (high - low);
  value = scalar::select(value < high, value, low);
  Expr rounded = scalar::cast(value, dtype);
  // f16 and bf16 may round up to maxval.
  return dtype == type ? rounded
                       : scalar::select(scalar::cast(rounded, type) < high, rounded, scalar::cast(low, dtype));
}

/// low + (64 random bits scaled to the range), by the high half of a product.
Expr randint_body(DType dtype) {
  std::array<Expr, 4> words = words_here();
  Expr low = operand(2, DType::i64), count = operand(3, DType::i64) - low;
  // (word * count) >> 32 for a 32-bit word; ranges beyond 32 bits take 63 bits modulo the range.
  Expr narrow = high_word(words[0] * count);
  Expr bits = scalar::logical_or(scalar::shift_left(words[0], 32), words[1]);
  Expr wide = scalar::modulo(scalar::shift_right(bits, 1), count);
  // From 2^63 on the count looks negative. 64 bits modulo it is at most one subtraction; with the sign bit turned over,
  // signed comparison is the unsigned one.
  Expr sign = constant(INT64_MIN, DType::i64);
  Expr fits = scalar::logical_xor(bits, sign) < scalar::logical_xor(count, sign);
  Expr widest = scalar::select(fits, bits, bits - count);
  Expr offset = scalar::select(count < 0, widest, scalar::select(count < std::int64_t{1} << 31, narrow, wide));
  return scalar::cast(low + offset, dtype);
}

Expr bits_body(DType dtype) {
  std::array<Expr, 4> words = words_here();
  return scalar::cast(scalar::logical_or(scalar::shift_left(words[0], 32), words[1]), dtype);
}

void infer_random(InferCall& call, bool integers) {
  const auto& attributes = call.attributes<RandomAttributes>();
  call.require(integers ? is_integer(attributes.dtype) : is_floating(attributes.dtype),
               text("random numbers of ", attributes.dtype, " do not exist here"),
               integers ? "choose an integer dtype" : "choose a floating dtype, or randint");
  for (int i = 0; i < call.input_count(); ++i) {
    DType wanted = i < 2 || integers ? DType::i64 : compute_type(attributes.dtype);
    call.require(call.dtype(i) == wanted && call.rank(i) == 0,
                 text("operand ", i, " is ", call.in(i).str(), ", not a scalar of ", wanted));
  }
  call.check_sizes(attributes.shape);
  call.result(attributes.dtype, Shape(std::span<const Dim>(attributes.shape)));
}

/// The node's scalar operands, then `further` numbers; its result from element `first` on, in one flat loop.
Kernel flat_kernel(LowerCall& call, Expr body, const Dim& extent, const Dim& first) {
  Kernel kernel;
  kernel.name = call.node().op->name;
  kernel.body = std::move(body);
  kernel.loops = {{extent, false}};
  for (int i = 0; i < static_cast<int>(call.node().inputs.size()); ++i)
    kernel.operands.push_back(LowerCall::access(call.place(i), call.in(i).dtype, {}, 1));
  Place to = call.result();
  kernel.result = {.source = Access::memory,
                   .dtype = call.out().dtype,
                   .buffer = to.buffer,
                   .address = {to.layout.offset + first, {1}},
                   .guards = {},
                   .indirections = {}};
  return kernel;
}

/// An element's number is its position in row-major order.
void lower_random(LowerCall& call, Expr body) {
  call.kernel(flat_kernel(call, std::move(body), call.out().shape.element_count(), 0));
}

/// mean + deviation * each normal number that a counter gives: four, in f64 two.
std::vector<Expr> normal_bodies(DType dtype, const std::array<Expr, 4>& words) {
  DType type = compute_type(dtype);
  std::vector<Expr> out;
  for (int word = 0; word < 4; word += type == DType::f64 ? 4 : 2) {
    Expr u = unit_interval(words, word, type), v = unit_interval(words, word + (type == DType::f64 ? 2 : 1), type);
    for (const Expr& z : normal_pair(u, v)) out.push_back(scalar::cast(operand(2, type) + operand(3, type) * z, dtype));
  }
  return out;
}

/// With k numbers from a counter and n elements: number j of counter i is element j * (n / k) + i, so that all stores
/// are contiguous. The last n % k elements are the first numbers of the counters that follow.
void lower_normal(LowerCall& call) {
  const DType dtype = call.out().dtype;
  std::vector<Expr> bodies = normal_bodies(dtype, words_here());
  const auto each = static_cast<std::int64_t>(bodies.size());
  const Dim count = call.out().shape.element_count(), counters = count / each;
  Kernel most = flat_kernel(call, bodies[0], counters, 0);
  // A kernel's results lie in buffers of their own.
  std::vector<Place> parts;
  for (std::int64_t j = 1; j < each; ++j) {
    parts.push_back(call.temporary(dtype, {counters}));
    Access to = most.result;
    to.buffer = parts.back().buffer;
    to.address.offset = parts.back().layout.offset;
    most.further.push_back({bodies[static_cast<std::size_t>(j)], to});
  }
  call.kernel(std::move(most));
  for (std::int64_t j = 1; j < each; ++j) {
    const Place& part = parts[static_cast<std::size_t>(j - 1)];
    Kernel copy = flat_kernel(call, operand(0, dtype), counters, counters * j);
    copy.operands = {copy.result};
    copy.operands[0].buffer = part.buffer;
    copy.operands[0].address.offset = part.layout.offset;
    call.kernel(std::move(copy));
  }
  Expr counter = operand(1, DType::i64) + operand(4, DType::i64) + loop_index(0);
  Expr body = normal_bodies(dtype, philox(counter, operand(0, DType::i64)))[0];
  Kernel rest = flat_kernel(call, body, count - counters * each, counters * each);
  rest.operands.push_back({.source = Access::number,
                           .dtype = DType::i64,
                           .buffer = 0,
                           .address = {counters, {0}},
                           .guards = {},
                           .indirections = {}});
  call.kernel(std::move(rest));
}

/// Seed and counter, then the parameters.
void samples_of_random(SampleList& list) {
  list.growing(Grows::everything)
      .add({{{}, 1000}, {{}, 1000000}, {{}}, {{}}}, RandomAttributes{{3, 40}, DType::f32})
      .add({{{}, 1000}, {{}, 1000000}, {{}}, {{}}}, RandomAttributes{{}, DType::f32})
      .add({{{}, 1000}, {{}, 1000000}, {{}}, {{}}}, RandomAttributes{{0, 4}, DType::f32});
}
void errors_of_random(ErrorList& list) {
  RandomAttributes attributes{{3}, DType::f32};
  list.add("operand 3 is f64[], not a scalar of f32",
           {{DType::i64, {}}, {DType::i64, {}}, {DType::f32, {}}, {DType::f64, {}}}, attributes)
      .add("operand 1 is i64[2], not a scalar of i64",
           {{DType::i64, {}}, {DType::i64, {2}}, {DType::f32, {}}, {DType::f32, {}}}, attributes);
}
void samples_of_normal(SampleList& list) {
  samples_of_random(list.rounded(Rounding::functions));
  list.add({{{}, 1000}, {{}, 1000000}, {{}}, {{}}}, RandomAttributes{{7, 9}, DType::f32});
}
void samples_of_randint(SampleList& list) {
  list.growing(Grows::everything)
      .add({{{}, 1000}, {{}, 1000000}, {{}, 1}, {{}, 1000}}, RandomAttributes{{3, 40}, DType::i64})
      .add({{{}, 1000}, {{}, 1000000}, {{}, 1}, {{}, 1000}}, RandomAttributes{{}, DType::i64});
}
void samples_of_bits(SampleList& list) {
  list.growing(Grows::everything)
      .add({{{}, 1000}, {{}, 1000000}}, RandomAttributes{{3, 40}, DType::i64})
      .add({{{}, 1000}, {{}, 1000000}}, RandomAttributes{{}, DType::i64});
}

}  // namespace

constinit const AttributeCodec random_codec = attribute_codec<RandomAttributes>;

constinit const OpDef uniform_row{.name = "uniform",
                                  .kind = Kind::random,
                                  .summary = "Uniform random numbers.",
                                  .operands = operand_names,
                                  .infer = [](InferCall& c) { infer_random(c, false); },
                                  .lower = [](LowerCall& c) { lower_random(c, uniform_body(c.out().dtype)); },
                                  .samples = samples_of_random,
                                  .errors = errors_of_random};
constinit const OpDef normal_row{.name = "normal",
                                 .kind = Kind::random,
                                 .summary = "Normal random numbers.",
                                 .operands = operand_names,
                                 .infer = [](InferCall& c) { infer_random(c, false); },
                                 .lower = lower_normal,
                                 .samples = samples_of_normal,
                                 .errors = errors_of_random};
constinit const OpDef randint_row{.name = "randint",
                                  .kind = Kind::random,
                                  .summary = "Uniform random integers.",
                                  .operands = operand_names,
                                  .infer = [](InferCall& c) { infer_random(c, true); },
                                  .lower = [](LowerCall& c) { lower_random(c, randint_body(c.out().dtype)); },
                                  .samples = samples_of_randint};
constinit const OpDef random_bits_row{.name = "random_bits",
                                      .kind = Kind::random,
                                      .summary = "Random bits, as integers.",
                                      .operands = bits_names,
                                      .infer = [](InferCall& c) { infer_random(c, true); },
                                      .lower = [](LowerCall& c) { lower_random(c, bits_body(c.out().dtype)); },
                                      .samples = samples_of_bits};

}  // namespace stet
