// Random numbers. Element i of a call is a function of (seed, counter + i) alone: Philox 4x32 with 10 rounds, written
// as an Expr, so it vectorises and gives the same numbers whatever the threads do. No pass fuses it with its users:
// what is drawn is in memory once.
//
// Philox: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#include <mutex>

#include "stet/base/inside.h"
#include "stet/compiler/lower.h"
#include "stet/core/call.h"
#include "stet/core/trace.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/random_stream.h"
#include "stet/ops/samples.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
namespace random {

/// Restarts the process's generator.
STET_API void seed(std::uint64_t value);

struct UniformOptions {
  double minval = 0, maxval = 1;
  DType dtype = DType::f32;
};
struct NormalOptions {
  double mean = 0, stddev = 1;
  DType dtype = DType::f32;
};
struct RandintOptions {
  DType dtype = DType::i64;
};
/// Uniform in [minval, maxval).
STET_API Tensor uniform(const Shape& shape, UniformOptions options = {}, Where where = Where::here());
STET_API Tensor normal(const Shape& shape, NormalOptions options = {}, Where where = Where::here());
/// Uniform integers in [low, high).
STET_API Tensor randint(const Shape& shape, std::int64_t low, std::int64_t high, RandintOptions options = {},
                        Where where = Where::here());

/// The name of a stream of random numbers: the same two numbers give the same stream.
using StreamSeed = std::array<std::int64_t, 2>;
/// Functions of their arguments alone: they neither use nor move the process's generator.
STET_API Tensor stateless_uniform(const Shape& shape, StreamSeed stream, UniformOptions options = {},
                                  Where where = Where::here());
STET_API Tensor stateless_normal(const Shape& shape, StreamSeed stream, NormalOptions options = {},
                                 Where where = Where::here());
/// A stream for the first value of a Variable: (the seed, how many were handed out since it was set). Weights made in
/// the same order are the same, whatever else was drawn in between, eagerly or traced.
STET_API StreamSeed next_initial_stream();

}  // namespace random
#endif

namespace {

constexpr const char* operand_names[] = {"seed", "counter", "first", "second"};

struct RandomAttributes {
  std::vector<Dim> shape;
  DType dtype = DType::f32;
  STET_ATTRIBUTES(shape, dtype)
};

Expr low_word(Expr x) { return scalar::logical_and(x, constant(std::int64_t{0xFFFFFFFF}, DType::i64)); }
Expr high_word(Expr x) { return scalar::shift_right(x, 32); }

/// The four words (as i64 values below 2^32) for a 64-bit counter and a 64-bit key.
std::array<Expr, 4> philox(Expr counter, Expr key) {
  constexpr std::int64_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
  constexpr std::int64_t weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;
  Expr zero = constant(std::int64_t{0}, DType::i64);
  std::array<Expr, 4> x = {low_word(counter), high_word(counter), zero, zero};
  Expr k0 = low_word(key), k1 = high_word(key);
  for (int round = 0; round < 10; ++round) {
    // Products of 32-bit words are exact in 64 bits, whatever their sign bit says.
    Expr p0 = x[0] * multiplier_0, p1 = x[2] * multiplier_1;
    x = {scalar::logical_xor(scalar::logical_xor(high_word(p1), x[1]), k0), low_word(p1),
         scalar::logical_xor(scalar::logical_xor(high_word(p0), x[3]), k1), low_word(p0)};
    k0 = low_word(k0 + weyl_0);
    k1 = low_word(k1 + weyl_1);
  }
  return x;
}

/// Uniform in [0, 1): the top bits of a word, as many as the type has.
Expr unit_interval(const std::array<Expr, 4>& words, int first, DType type) {
  auto at = static_cast<std::size_t>(first);
  if (type == DType::f64) {
    Expr bits = scalar::logical_or(scalar::shift_left(scalar::shift_right(words[at], 5), 26),
                                   scalar::shift_right(words[at + 1], 6));
    return scalar::cast(bits, DType::f64) * 0x1p-53;
  }
  return scalar::cast(scalar::shift_right(words[at], 8), DType::f32) * 0x1p-24;
}

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

/// Box and Muller: sqrt(-2 log(1 - u)) cos(2 pi v).
Expr normal_body(DType dtype) {
  DType type = compute_type(dtype);
  std::array<Expr, 4> words = words_here();
  Expr u = unit_interval(words, 0, type), v = unit_interval(words, 2, type);
  Expr radius = scalar::sqrt(scalar::log(1 - u) * -2);
  Expr value = operand(2, type) + operand(3, type) * (radius * scalar::cos(v * 6.283185307179586476925));
  return scalar::cast(value, dtype);
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

void infer_random(InferCall& call, bool integers) {
  const auto& attributes = call.attributes<RandomAttributes>();
  call.require(integers ? is_integer(attributes.dtype) : is_floating(attributes.dtype),
               text("random numbers of ", attributes.dtype, " do not exist here"),
               integers ? "choose an integer dtype" : "choose a floating dtype, or randint");
  call.check_sizes(attributes.shape);
  call.result(attributes.dtype, Shape(std::span<const Dim>(attributes.shape)));
}

void lower_random(LowerCall& call, Expr body) {
  // One flat loop: an element's number is its position in row-major order.
  Kernel kernel;
  kernel.name = call.node().op->name;
  kernel.body = body;
  kernel.loops = {{call.out().shape.element_count(), false}};
  for (int i = 0; i < 4; ++i) kernel.operands.push_back(LowerCall::access(call.place(i), call.in(i).dtype, {}, 1));
  Place to = call.result();
  kernel.result = {.source = Access::memory,
                   .dtype = call.out().dtype,
                   .buffer = to.buffer,
                   .address = {to.layout.offset, {1}},
                   .guards = {},
                   .indirections = {}};
  call.kernel(std::move(kernel));
}

/// Seed and counter, then the parameters.
void samples_of_random(SampleList& list) {
  list.growing(Grows::everything)
      .add({{{}, 1000}, {{}, 1000000}, {{}}, {{}}}, RandomAttributes{{3, 40}, DType::f32})
      .add({{{}, 1000}, {{}, 1000000}, {{}}, {{}}}, RandomAttributes{{}, DType::f32})
      .add({{{}, 1000}, {{}, 1000000}, {{}}, {{}}}, RandomAttributes{{0, 4}, DType::f32});
}
void samples_of_normal(SampleList& list) { samples_of_random(list.rounded(Rounding::functions)); }
void samples_of_randint(SampleList& list) {
  list.growing(Grows::everything)
      .add({{{}, 1000}, {{}, 1000000}, {{}, 1}, {{}, 1000}}, RandomAttributes{{3, 40}, DType::i64})
      .add({{{}, 1000}, {{}, 1000000}, {{}, 1}, {{}, 1000}}, RandomAttributes{{}, DType::i64});
}

// --- the process's generator

/// The state (seed, counter) of all random ops, a Variable like any other: what a traced function draws is drawn anew
/// at every call.
const Variable& generator() {
  static const Variable* const one =
      new Variable(zeros({2}, DType::i64), {.trainable = false, .name = "random_generator"});
  return *one;
}

/// One draw at a time: two threads must not get the same numbers.
std::mutex& generator_guard() {
  static std::mutex* const guard = new std::mutex;
  return *guard;
}

/// Takes `count` numbers: the state before. The Variable's own addition is atomic, also beside compiled functions.
Tensor advance(const Dim& count, Where where) {
  std::lock_guard lock(generator_guard());
  Tensor step = multiply(In(tensor({std::int64_t{0}, std::int64_t{1}}), where), In(count, where));
  return subtract(In(generator().assign_add(In(step, where), where), where), In(step, where));
}

/// Gives back what a failed draw took, unless others were drawn meanwhile. A trace that fails gives back by itself.
void give_back(const Tensor& before, const Dim& count, Where where) {
  if (current_trace()) return;
  std::lock_guard lock(generator_guard());
  std::vector<std::int64_t> now = generator().read(where).to_vector<std::int64_t>(),
                            then = before.to_vector<std::int64_t>();
  if (now[0] == then[0] && now[1] == then[1] + count.value(where)) generator().assign(before, where);
}

Tensor draw(const OpDef& row, const char* name, const Shape& shape, DType dtype, In first, In second, Where where) {
  Frame frame(name, where);
  RandomAttributes attributes{{shape.begin(), shape.end()}, dtype};
  Tensor state = advance(shape.element_count(), where);
  try {
    return call(row, {In(state[0], where), In(state[1], where), first, second}, view_of(attributes));
  } catch (...) {
    give_back(state, shape.element_count(), where);
    throw;
  }
}

/// A parameter in the type that the row computes in.
Tensor parameter(double value, DType dtype) {
  return compute_type(floating_type(dtype)) == DType::f64 ? Tensor(value) : Tensor(static_cast<float>(value));
}

[[noreturn]] void refuse(const char* name, const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(text(name, ": ", what), where, advice));
}

}  // namespace

constinit const OpDef uniform_row{.name = "uniform",
                                  .kind = Kind::random,
                                  .summary = "Uniform random numbers.",
                                  .operands = operand_names,
                                  .infer = [](InferCall& c) { infer_random(c, false); },
                                  .lower = [](LowerCall& c) { lower_random(c, uniform_body(c.out().dtype)); },
                                  .samples = samples_of_random};
constinit const OpDef normal_row{.name = "normal",
                                 .kind = Kind::random,
                                 .summary = "Normal random numbers.",
                                 .operands = operand_names,
                                 .infer = [](InferCall& c) { infer_random(c, false); },
                                 .lower = [](LowerCall& c) { lower_random(c, normal_body(c.out().dtype)); },
                                 .samples = samples_of_normal};
constinit const OpDef randint_row{.name = "randint",
                                  .kind = Kind::random,
                                  .summary = "Uniform random integers.",
                                  .operands = operand_names,
                                  .infer = [](InferCall& c) { infer_random(c, true); },
                                  .lower = [](LowerCall& c) { lower_random(c, randint_body(c.out().dtype)); },
                                  .samples = samples_of_randint};

namespace {

/// What next_initial_stream() counts. Beside the generator, under its lock.
struct InitialStreams {
  std::int64_t seed = 0, given = 0;
};
InitialStreams& initial_streams() {
  static InitialStreams one;
  return one;
}

/// One key for a pair: every bit of both reaches every bit (the finalizer of SplitMix64).
std::int64_t mixed(random::StreamSeed stream) {
  auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  };
  return static_cast<std::int64_t>(
      mix(mix(static_cast<std::uint64_t>(stream[0]) + 0x9E3779B97F4A7C15u) + static_cast<std::uint64_t>(stream[1])));
}

Tensor draw_stateless(const OpDef& row, const char* name, const Shape& shape, random::StreamSeed stream, DType dtype,
                      double first, double second, Where where) {
  Frame frame(name, where);
  RandomAttributes attributes{{shape.begin(), shape.end()}, dtype};
  return call(row,
              {In(Tensor(mixed(stream)), where), In(Tensor(std::int64_t{0}), where), In(parameter(first, dtype), where),
               In(parameter(second, dtype), where)},
              view_of(attributes));
}

void check_uniform(const char* name, const random::UniformOptions& options, Where where) {
  if (!(options.minval <= options.maxval))
    refuse(name, text("minval ", options.minval, " is not below maxval ", options.maxval), where, "swap them");
}
void check_normal(const char* name, const random::NormalOptions& options, Where where) {
  if (!(options.stddev >= 0))
    refuse(name, text("stddev ", options.stddev, " is not 0 or more"), where, "a spread is not negative");
}

}  // namespace

RandomStream::RandomStream() : state_(std::make_unique<VariableState>()) {
  const VariableState& of = state_of(generator());
  state_->id = of.id;
  state_->name = of.name;
  state_->trainable = of.trainable;
  state_->dtype = of.dtype;
  state_->shape = of.shape;
}
RandomStream::~RandomStream() = default;
RandomStream::RandomStream(RandomStream&&) noexcept = default;

RandomStream::Use::Use(RandomStream& stream, std::uint64_t seed) : generator_(state_of(generator()), *stream.state_) {
  stream.state_->value = tensor({static_cast<std::int64_t>(seed), std::int64_t{0}});
}

namespace random {

void seed(std::uint64_t value) {
  if (const Trace* trace = current_trace())
    throw TraceError(error_text(
        text("random::seed: '", trace->function(), "' is being traced, and its calls would not seed anew"), {},
        "seed before the call; for numbers that are the same in every call use random::stateless_uniform or "
        "stateless_normal"));
  std::lock_guard lock(generator_guard());
  initial_streams() = {static_cast<std::int64_t>(value), 0};
  generator().assign(tensor({static_cast<std::int64_t>(value), std::int64_t{0}}));
}

Tensor uniform(const Shape& shape, UniformOptions options, Where where) {
  check_uniform("random::uniform", options, where);
  return draw(uniform_row, "random::uniform", shape, options.dtype, In(parameter(options.minval, options.dtype), where),
              In(parameter(options.maxval, options.dtype), where), where);
}

Tensor normal(const Shape& shape, NormalOptions options, Where where) {
  check_normal("random::normal", options, where);
  return draw(normal_row, "random::normal", shape, options.dtype, In(parameter(options.mean, options.dtype), where),
              In(parameter(options.stddev, options.dtype), where), where);
}

Tensor randint(const Shape& shape, std::int64_t low, std::int64_t high, RandintOptions options, Where where) {
  if (low >= high) refuse("random::randint", text("low ", low, " is not below high ", high), where, "high is excluded");
  if (is_integer(options.dtype) && (low < row(options.dtype).lowest || high - 1 > row(options.dtype).highest))
    refuse("random::randint", text(low, " to ", high, " does not fit into ", options.dtype), where,
           "choose a wider dtype");
  return draw(randint_row, "random::randint", shape, options.dtype, In(Tensor(low), where), In(Tensor(high), where),
              where);
}

Tensor stateless_uniform(const Shape& shape, StreamSeed stream, UniformOptions options, Where where) {
  check_uniform("random::stateless_uniform", options, where);
  return draw_stateless(uniform_row, "random::stateless_uniform", shape, stream, options.dtype, options.minval,
                        options.maxval, where);
}

Tensor stateless_normal(const Shape& shape, StreamSeed stream, NormalOptions options, Where where) {
  check_normal("random::stateless_normal", options, where);
  return draw_stateless(normal_row, "random::stateless_normal", shape, stream, options.dtype, options.mean,
                        options.stddev, where);
}

StreamSeed next_initial_stream() {
  std::lock_guard lock(generator_guard());
  InitialStreams& streams = initial_streams();
  return {streams.seed, streams.given++};
}

}  // namespace random

}  // namespace stet
