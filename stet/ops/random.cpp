// Where random numbers come from: generators, streams, and the counters that a call takes. The rows are in
// random_rows.cpp, what is made of them in random_distributions.cpp and random_gamma.cpp.
//
// Element i of a draw is a function of (seed, counter + i) and of the draw's size alone: Philox 4x32 with 10 rounds,
// written as an Expr, so it vectorises and gives the same numbers whatever the threads do. How many counters a call
// takes follows from sizes alone. No pass fuses a draw with its users: what is drawn is in memory once.
//
// Philox: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "stet/base/inside.h"
#include "stet/core/tensor_node.h"
#include "stet/ops/random_stream.h"
#include "stet/ops/random_words.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- random numbers

class Reservation;

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
/// Of draws whose parameters are numbers or tensors.
struct DrawOptions {
  std::optional<DType> dtype = {};  // floating; by default that of the tensors among the parameters, f32 without
};
struct RandintOptions {
  DType dtype = DType::i64;
};
struct BernoulliOptions {
  DType dtype = DType::bool_;
};
struct CountOptions {
  DType dtype = DType::i64;
};
struct CategoricalOptions {
  std::optional<Dim> samples = {};  // choices for each of the distributions, along a new last axis
  bool probabilities = false;       // the operand is not logits: probabilities, or what is proportional to them
  DType dtype = DType::i64;
};
struct ShuffleOptions {
  int axis = 0;
};
struct ChoiceOptions {
  bool replace = true;
  Tensor p = {};  // proportional to the probabilities of slices, [size of the axis]; without, all are as likely
  int axis = 0;
};

/// The name of a stream of random numbers: the same two numbers give the same stream.
using StreamSeed = std::array<std::int64_t, 2>;

/// What can be drawn. Parameters are numbers, or tensors that broadcast to `shape`; a number out of range is a
/// UserError, and where a tensor's element is, the result is NaN. f32 and f64 are computed in their type, f16 and bf16
/// in f32 and rounded once. Gradients go through a draw to its floating parameters (docs/random.md).
class STET_API Source {
 public:
  /// Uniform in [minval, maxval).
  /// Names: numpy.random.Generator.uniform, tf.random.uniform, jax.random.uniform
  /// Example: random::stateless_uniform({3}, {1, 2})
  Tensor uniform(const Shape& shape, UniformOptions options = {}, Where where = Where::here()) const;
  /// Uniform in [low, high), each a number or a tensor that broadcasts to `shape`; NaN where low is above high.
  /// Example: random::stateless_uniform({2}, {1, 2}, 0.f, tensor({1.f, 100.f}))
  Tensor uniform(const Shape& shape, In low, In high, DrawOptions options = {}, Where where = Where::here()) const;
  /// Normal with this mean and standard deviation.
  /// Names: numpy.random.Generator.normal, tf.random.normal, jax.random.normal, torch.normal
  /// Example: random::stateless_normal({3}, {1, 2}, {.mean = 10})
  Tensor normal(const Shape& shape, NormalOptions options = {}, Where where = Where::here()) const;
  /// Mean and standard deviation are numbers or tensors; NaN where `stddev` is negative.
  /// Example: random::stateless_normal({2}, {1, 2}, tensor({0.f, 100.f}), 1.f)
  Tensor normal(const Shape& shape, In mean, In stddev, DrawOptions options = {}, Where where = Where::here()) const;
  /// Normal numbers less than two standard deviations from the mean: those further away are drawn again, as Keras does.
  /// Names: tf.random.truncated_normal, keras.random.truncated_normal
  /// Example: random::stateless_truncated_normal({3}, {1, 2})
  Tensor truncated_normal(const Shape& shape, NormalOptions options = {}, Where where = Where::here()) const;
  /// Mean and standard deviation are numbers or tensors; NaN where `stddev` is negative.
  /// Example: random::stateless_truncated_normal({2}, {1, 2}, tensor({0.f, 100.f}), 1.f)
  Tensor truncated_normal(const Shape& shape, In mean, In stddev, DrawOptions options = {},
                          Where where = Where::here()) const;
  /// Uniform integers in [low, high).
  /// Names: numpy.random.Generator.integers, jax.random.randint, torch.randint
  /// Example: random::stateless_randint({6}, {1, 2}, 1, 7)
  Tensor randint(const Shape& shape, std::int64_t low, std::int64_t high, RandintOptions options = {},
                 Where where = Where::here()) const;
  /// Integers of which every bit is random.
  /// Names: jax.random.bits
  /// Example: random::stateless_bits({3}, {1, 2}, {.dtype = u8})
  Tensor bits(const Shape& shape, RandintOptions options = {}, Where where = Where::here()) const;
  /// True (1 in other types) with probability `p`; outside of 0 to 1 it is NaN, which as bool or integer is false.
  /// Names: jax.random.bernoulli, torch.bernoulli, keras.random.binomial
  /// Example: random::stateless_bernoulli({4}, {1, 2}, 0.5)
  Tensor bernoulli(const Shape& shape, In p, BernoulliOptions options = {}, Where where = Where::here()) const;
  /// Classes, chosen with probability softmax(logits) along the last axis (the largest of logits with Gumbel noise).
  /// [...] of logits [..., classes]; with `samples`, [..., samples].
  /// Names: tf.random.categorical, jax.random.categorical, keras.random.categorical
  /// Example: random::stateless_categorical(log(tensor({0.1f, 0.2f, 0.7f})), {1, 2}, {.samples = 8})
  Tensor categorical(In logits, const CategoricalOptions& options = {}, Where where = Where::here()) const;
  /// location - scale log(-log(u)) of uniform u: what the largest of many numbers tends to.
  /// Names: numpy.random.Generator.gumbel, jax.random.gumbel
  /// Example: random::stateless_gumbel({3}, {1, 2}, 0, 1)
  Tensor gumbel(const Shape& shape, In location, In scale, DrawOptions options = {}, Where where = Where::here()) const;
  /// Waiting times with density rate exp(-rate x).
  /// Names: numpy.random.Generator.exponential, jax.random.exponential
  /// Example: random::stateless_exponential({3}, {1, 2}, 2)
  Tensor exponential(const Shape& shape, In rate, DrawOptions options = {}, Where where = Where::here()) const;
  /// With density exp(-|x - location| / scale) / (2 scale).
  /// Names: numpy.random.Generator.laplace, jax.random.laplace
  /// Example: random::stateless_laplace({3}, {1, 2}, 0, 1)
  Tensor laplace(const Shape& shape, In location, In scale, DrawOptions options = {},
                 Where where = Where::here()) const;
  /// With the distribution function sigmoid((x - location) / scale).
  /// Names: numpy.random.Generator.logistic, jax.random.logistic
  /// Example: random::stateless_logistic({3}, {1, 2}, 0, 1)
  Tensor logistic(const Shape& shape, In location, In scale, DrawOptions options = {},
                  Where where = Where::here()) const;
  /// With density proportional to x^(alpha - 1) exp(-x). Below what the type holds it is 0: for alpha 0.001, mostly.
  /// Names: numpy.random.Generator.gamma, tf.random.gamma, jax.random.gamma, keras.random.gamma
  /// Example: random::stateless_gamma({3}, {1, 2}, 2)
  Tensor gamma(const Shape& shape, In alpha, DrawOptions options = {}, Where where = Where::here()) const;
  /// gamma(alpha) divided by the rate `beta`.
  /// Example: random::stateless_gamma({3}, {1, 2}, 2, 10)
  Tensor gamma(const Shape& shape, In alpha, In beta, DrawOptions options = {}, Where where = Where::here()) const;
  /// With density proportional to x^(a - 1) (1 - x)^(b - 1).
  /// Names: numpy.random.Generator.beta, jax.random.beta, keras.random.beta
  /// Example: random::stateless_beta({3}, {1, 2}, 2, 2)
  Tensor beta(const Shape& shape, In a, In b, DrawOptions options = {}, Where where = Where::here()) const;
  /// Vectors along the last axis that sum to 1, with density proportional to the product of x^(alpha - 1).
  /// Names: numpy.random.Generator.dirichlet, jax.random.dirichlet
  /// Example: random::stateless_dirichlet({3}, {1, 2}, 2)
  Tensor dirichlet(const Shape& shape, In alpha, DrawOptions options = {}, Where where = Where::here()) const;
  /// The sum of `freedom` squares of standard normal numbers; any positive freedom.
  /// Names: numpy.random.Generator.chisquare, jax.random.chisquare
  /// Example: random::stateless_chi2({3}, {1, 2}, 4)
  Tensor chi2(const Shape& shape, In freedom, DrawOptions options = {}, Where where = Where::here()) const;
  /// A normal number over the root of chi2(freedom) / freedom.
  /// Names: numpy.random.Generator.standard_t, jax.random.t
  /// Example: random::stateless_student_t({3}, {1, 2}, 4)
  Tensor student_t(const Shape& shape, In freedom, DrawOptions options = {}, Where where = Where::here()) const;
  /// Counts with mean `rate`. Where it is negative or NaN: NaN, in an integer type -1.
  /// Names: numpy.random.Generator.poisson, tf.random.poisson, jax.random.poisson, torch.poisson
  /// Example: random::stateless_poisson({6}, {1, 2}, 3)
  Tensor poisson(const Shape& shape, In rate, CountOptions options = {}, Where where = Where::here()) const;
  /// How often each class came up in `trials` choices with probabilities proportional to `p` [..., classes].
  /// Names: numpy.random.Generator.multinomial, jax.random.multinomial
  /// Example: random::stateless_multinomial(100, {1, 2}, tensor({0.1f, 0.2f, 0.7f}))
  Tensor multinomial(const Dim& trials, In p, CountOptions options = {}, Where where = Where::here()) const;
  /// 0, 1, … count - 1 in an order that is as likely as any other.
  /// Names: numpy.random.Generator.permutation, jax.random.permutation, torch.randperm
  /// Example: random::stateless_permutation(6, {3, 1})
  Tensor permutation(const Dim& count, Where where = Where::here()) const;
  /// Slices along an axis in another order.
  /// Names: tf.random.shuffle, keras.random.shuffle, jax.random.permutation
  /// Example: random::stateless_shuffle(tensor({10, 20, 30, 40}), {3, 1})
  Tensor shuffle(In x, ShuffleOptions options = {}, Where where = Where::here()) const;
  /// `count` slices of x along an axis; without `replace` none twice, and no more than there are.
  /// Names: numpy.random.Generator.choice, jax.random.choice
  /// Example: random::stateless_choice(tensor({10, 20, 30, 40}), {1, 2}, 2, {.replace = false})
  Tensor choice(In x, const Dim& count, const ChoiceOptions& options = {}, Where where = Where::here()) const;

 protected:
  explicit Source(Variable state) : state_(std::move(state)) {}
  explicit Source(StreamSeed stream) : stream_(stream) {}
  Variable state_;  // undefined: every draw begins at the stream's first number

 private:
  friend class stet::Reservation;
  StreamSeed stream_ = {};
};

/// Random numbers that follow from a seed. What it has drawn is a Variable: traced functions draw anew at every call.
/// Copies share it.
class STET_API Generator : public Source {
 public:
  explicit Generator(std::uint64_t seed, Where where = Where::here());
  /// {seed, counter}: i64[2]. A generator that is given the state of another goes on as that one would.
  Tensor state(Where where = Where::here()) const { return state_.read(where); }
  void restore(In state) const { state_.assign(state, state.where()); }
  const Variable& variable() const { return state_; }
  /// Generators of independent streams, others at every call. Not in traced code.
  std::vector<Generator> split(int count, Where where = Where::here()) const;

 private:
  friend STET_API const Generator& default_generator();
  explicit Generator(Variable state) : Source(std::move(state)) {}
};
/// The process's generator, which random::uniform and the other functions draw from.
STET_API const Generator& default_generator();

/// A source without state: what it draws is a function of the stream and the call's arguments alone, the same at every
/// call. Two different draws from one stream are not independent.
class STET_API Stream : public Source {
 public:
  explicit Stream(StreamSeed stream) : Source(stream) {}
};
/// Names of independent streams, as jax.random.split makes keys: a function of its arguments alone.
/// Example: tensor(random::split({1, 2}, 2))
STET_API std::vector<StreamSeed> split(StreamSeed stream, int count);
/// A stream for the first value of a Variable: (the seed, how many were handed out since it was set). Weights made in
/// the same order are the same, whatever else was drawn in between, eagerly or traced.
STET_API StreamSeed next_initial_stream();

// The process's generator draws. What each gives is said at Source.

inline Tensor uniform(const Shape& shape, UniformOptions options = {}, Where where = Where::here()) {
  return default_generator().uniform(shape, options, where);
}
inline Tensor uniform(const Shape& shape, In low, In high, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().uniform(shape, low, high, options, where);
}
inline Tensor normal(const Shape& shape, NormalOptions options = {}, Where where = Where::here()) {
  return default_generator().normal(shape, options, where);
}
inline Tensor normal(const Shape& shape, In mean, In stddev, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().normal(shape, mean, stddev, options, where);
}
inline Tensor truncated_normal(const Shape& shape, NormalOptions options = {}, Where where = Where::here()) {
  return default_generator().truncated_normal(shape, options, where);
}
inline Tensor truncated_normal(const Shape& shape, In mean, In stddev, DrawOptions options = {},
                               Where where = Where::here()) {
  return default_generator().truncated_normal(shape, mean, stddev, options, where);
}
inline Tensor randint(const Shape& shape, std::int64_t low, std::int64_t high, RandintOptions options = {},
                      Where where = Where::here()) {
  return default_generator().randint(shape, low, high, options, where);
}
inline Tensor bits(const Shape& shape, RandintOptions options = {}, Where where = Where::here()) {
  return default_generator().bits(shape, options, where);
}
inline Tensor bernoulli(const Shape& shape, In p, BernoulliOptions options = {}, Where where = Where::here()) {
  return default_generator().bernoulli(shape, p, options, where);
}
inline Tensor categorical(In logits, const CategoricalOptions& options = {}, Where where = Where::here()) {
  return default_generator().categorical(logits, options, where);
}
inline Tensor gumbel(const Shape& shape, In location, In scale, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().gumbel(shape, location, scale, options, where);
}
inline Tensor exponential(const Shape& shape, In rate, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().exponential(shape, rate, options, where);
}
inline Tensor laplace(const Shape& shape, In location, In scale, DrawOptions options = {},
                      Where where = Where::here()) {
  return default_generator().laplace(shape, location, scale, options, where);
}
inline Tensor logistic(const Shape& shape, In location, In scale, DrawOptions options = {},
                       Where where = Where::here()) {
  return default_generator().logistic(shape, location, scale, options, where);
}
inline Tensor gamma(const Shape& shape, In alpha, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().gamma(shape, alpha, options, where);
}
inline Tensor gamma(const Shape& shape, In alpha, In beta, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().gamma(shape, alpha, beta, options, where);
}
inline Tensor beta(const Shape& shape, In a, In b, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().beta(shape, a, b, options, where);
}
inline Tensor dirichlet(const Shape& shape, In alpha, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().dirichlet(shape, alpha, options, where);
}
inline Tensor chi2(const Shape& shape, In freedom, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().chi2(shape, freedom, options, where);
}
inline Tensor student_t(const Shape& shape, In freedom, DrawOptions options = {}, Where where = Where::here()) {
  return default_generator().student_t(shape, freedom, options, where);
}
inline Tensor poisson(const Shape& shape, In rate, CountOptions options = {}, Where where = Where::here()) {
  return default_generator().poisson(shape, rate, options, where);
}
inline Tensor multinomial(const Dim& trials, In p, CountOptions options = {}, Where where = Where::here()) {
  return default_generator().multinomial(trials, p, options, where);
}
inline Tensor permutation(const Dim& count, Where where = Where::here()) {
  return default_generator().permutation(count, where);
}
inline Tensor shuffle(In x, ShuffleOptions options = {}, Where where = Where::here()) {
  return default_generator().shuffle(x, options, where);
}
inline Tensor choice(In x, const Dim& count, const ChoiceOptions& options = {}, Where where = Where::here()) {
  return default_generator().choice(x, count, options, where);
}

// Functions of their arguments alone: they neither use nor move the process's generator.

inline Tensor stateless_uniform(const Shape& shape, StreamSeed stream, UniformOptions options = {},
                                Where where = Where::here()) {
  return Stream(stream).uniform(shape, options, where);
}
inline Tensor stateless_uniform(const Shape& shape, StreamSeed stream, In low, In high, DrawOptions options = {},
                                Where where = Where::here()) {
  return Stream(stream).uniform(shape, low, high, options, where);
}
inline Tensor stateless_normal(const Shape& shape, StreamSeed stream, NormalOptions options = {},
                               Where where = Where::here()) {
  return Stream(stream).normal(shape, options, where);
}
inline Tensor stateless_normal(const Shape& shape, StreamSeed stream, In mean, In stddev, DrawOptions options = {},
                               Where where = Where::here()) {
  return Stream(stream).normal(shape, mean, stddev, options, where);
}
inline Tensor stateless_truncated_normal(const Shape& shape, StreamSeed stream, NormalOptions options = {},
                                         Where where = Where::here()) {
  return Stream(stream).truncated_normal(shape, options, where);
}
inline Tensor stateless_truncated_normal(const Shape& shape, StreamSeed stream, In mean, In stddev,
                                         DrawOptions options = {}, Where where = Where::here()) {
  return Stream(stream).truncated_normal(shape, mean, stddev, options, where);
}
inline Tensor stateless_randint(const Shape& shape, StreamSeed stream, std::int64_t low, std::int64_t high,
                                RandintOptions options = {}, Where where = Where::here()) {
  return Stream(stream).randint(shape, low, high, options, where);
}
inline Tensor stateless_bits(const Shape& shape, StreamSeed stream, RandintOptions options = {},
                             Where where = Where::here()) {
  return Stream(stream).bits(shape, options, where);
}
inline Tensor stateless_bernoulli(const Shape& shape, StreamSeed stream, In p, BernoulliOptions options = {},
                                  Where where = Where::here()) {
  return Stream(stream).bernoulli(shape, p, options, where);
}
inline Tensor stateless_categorical(In logits, StreamSeed stream, const CategoricalOptions& options = {},
                                    Where where = Where::here()) {
  return Stream(stream).categorical(logits, options, where);
}
inline Tensor stateless_gumbel(const Shape& shape, StreamSeed stream, In location, In scale, DrawOptions options = {},
                               Where where = Where::here()) {
  return Stream(stream).gumbel(shape, location, scale, options, where);
}
inline Tensor stateless_exponential(const Shape& shape, StreamSeed stream, In rate, DrawOptions options = {},
                                    Where where = Where::here()) {
  return Stream(stream).exponential(shape, rate, options, where);
}
inline Tensor stateless_laplace(const Shape& shape, StreamSeed stream, In location, In scale, DrawOptions options = {},
                                Where where = Where::here()) {
  return Stream(stream).laplace(shape, location, scale, options, where);
}
inline Tensor stateless_logistic(const Shape& shape, StreamSeed stream, In location, In scale, DrawOptions options = {},
                                 Where where = Where::here()) {
  return Stream(stream).logistic(shape, location, scale, options, where);
}
inline Tensor stateless_gamma(const Shape& shape, StreamSeed stream, In alpha, DrawOptions options = {},
                              Where where = Where::here()) {
  return Stream(stream).gamma(shape, alpha, options, where);
}
inline Tensor stateless_gamma(const Shape& shape, StreamSeed stream, In alpha, In beta, DrawOptions options = {},
                              Where where = Where::here()) {
  return Stream(stream).gamma(shape, alpha, beta, options, where);
}
inline Tensor stateless_beta(const Shape& shape, StreamSeed stream, In a, In b, DrawOptions options = {},
                             Where where = Where::here()) {
  return Stream(stream).beta(shape, a, b, options, where);
}
inline Tensor stateless_dirichlet(const Shape& shape, StreamSeed stream, In alpha, DrawOptions options = {},
                                  Where where = Where::here()) {
  return Stream(stream).dirichlet(shape, alpha, options, where);
}
inline Tensor stateless_chi2(const Shape& shape, StreamSeed stream, In freedom, DrawOptions options = {},
                             Where where = Where::here()) {
  return Stream(stream).chi2(shape, freedom, options, where);
}
inline Tensor stateless_student_t(const Shape& shape, StreamSeed stream, In freedom, DrawOptions options = {},
                                  Where where = Where::here()) {
  return Stream(stream).student_t(shape, freedom, options, where);
}
inline Tensor stateless_poisson(const Shape& shape, StreamSeed stream, In rate, CountOptions options = {},
                                Where where = Where::here()) {
  return Stream(stream).poisson(shape, rate, options, where);
}
inline Tensor stateless_multinomial(const Dim& trials, StreamSeed stream, In p, CountOptions options = {},
                                    Where where = Where::here()) {
  return Stream(stream).multinomial(trials, p, options, where);
}
inline Tensor stateless_permutation(const Dim& count, StreamSeed stream, Where where = Where::here()) {
  return Stream(stream).permutation(count, where);
}
inline Tensor stateless_shuffle(In x, StreamSeed stream, ShuffleOptions options = {}, Where where = Where::here()) {
  return Stream(stream).shuffle(x, options, where);
}
inline Tensor stateless_choice(In x, StreamSeed stream, const Dim& count, const ChoiceOptions& options = {},
                               Where where = Where::here()) {
  return Stream(stream).choice(x, count, options, where);
}
}  // namespace random
#endif

namespace {

/// One draw at a time: two threads must not get the same numbers.
std::mutex& generator_guard() {
  static std::mutex* const guard = new std::mutex;
  return *guard;
}

Tensor fresh_state(std::uint64_t seed) { return tensor({static_cast<std::int64_t>(seed), std::int64_t{0}}); }

/// A Variable that is a generator's state.
Variable generator_state(std::uint64_t seed, const char* name, Where where) {
  Variable out(fresh_state(seed), {.trainable = false, .name = name}, where);
  state_of(out).generator = true;
  return out;
}

/// What next_initial_stream() counts. Beside the generator, under its lock.
struct InitialStreams {
  std::int64_t seed = 0, given = 0;
};
InitialStreams& initial_streams() {
  static InitialStreams one;
  return one;
}

/// One key for a pair: every bit of both reaches every bit (the finalizer of SplitMix64).
std::uint64_t mixed(random::StreamSeed stream) {
  auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  };
  return mix(mix(static_cast<std::uint64_t>(stream[0]) + 0x9E3779B97F4A7C15u) + static_cast<std::uint64_t>(stream[1]));
}

/// Philox's words for new keys are never those of draws.
constexpr std::uint32_t for_keys = 1;

std::uint64_t joined(std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; }

void refuse_negative(int count, Where where) {
  if (count < 0) refuse("random::split", text(count, " generators cannot be made"), where, "0 or more can");
}

}  // namespace

// --- what draws share

Reservation::Reservation(const random::Source& from, const Dim& count, Where where)
    : state_(from.state_), count_(count), where_(where), exceptions_(std::uncaught_exceptions()) {
  if (!state_.defined()) {
    seed_ = Tensor(static_cast<std::int64_t>(mixed(from.stream_)));
    counter_ = Tensor(std::int64_t{0});
    return;
  }
  // The state before. The Variable's own addition is atomic, also beside compiled functions.
  std::lock_guard lock(generator_guard());
  Tensor step = multiply(In(tensor({std::int64_t{0}, std::int64_t{1}}), where), In(count_, where));
  before_ = subtract(In(state_.assign_add(In(step, where), where), where), In(step, where));
  seed_ = before_[0];
  counter_ = before_[1];
}

/// Unless others were drawn meanwhile. A trace that fails gives back by itself.
Reservation::~Reservation() {
  if (std::uncaught_exceptions() == exceptions_ || !before_.defined() || current_trace()) return;
  try {
    std::lock_guard lock(generator_guard());
    std::vector<std::int64_t> now = state_.read(where_).to_vector<std::int64_t>(),
                              then = before_.to_vector<std::int64_t>();
    if (now[0] == then[0] && now[1] == then[1] + count_.value(where_)) state_.assign(before_, where_);
  } catch (const std::exception&) {
    // The draw's own error is on its way; the numbers are lost.
  }
}

Tensor Reservation::draw(const OpDef& row, const Shape& shape, std::initializer_list<In> parameters,
                         AttributesView attributes) {
  Tensor counter = begun_ ? add(In(counter_, where_), In(used_, where_)) : counter_;
  skip(shape.element_count());
  std::vector<In> operands = {In(seed_, where_), In(counter, where_)};
  operands.insert(operands.end(), parameters.begin(), parameters.end());
  return call(row, operands, attributes);
}

Tensor Reservation::uniform(const Shape& shape, DType type) {
  RandomAttributes attributes{{shape.begin(), shape.end()}, type};
  Tensor low = scalar_of(0, type), high = scalar_of(1, type);
  return draw(uniform_row, shape, {In(low, where_), In(high, where_)}, view_of(attributes));
}

Tensor Reservation::normal(const Shape& shape, DType type) {
  RandomAttributes attributes{{shape.begin(), shape.end()}, type};
  Tensor mean = scalar_of(0, type), deviation = scalar_of(1, type);
  return draw(normal_row, shape, {In(mean, where_), In(deviation, where_)}, view_of(attributes));
}

Tensor Reservation::bits(const Shape& shape) {
  RandomAttributes attributes{{shape.begin(), shape.end()}, DType::i64};
  return draw(random_bits_row, shape, {}, view_of(attributes));
}

void refuse(const char* name, const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(text(name, ": ", what), where, advice));
}

void check_number(const char* name, const char* parameter, const In& value, double low, double high, bool open,
                  Where where) {
  if (!value.is_number()) return;
  double number = value.kind() == In::Kind::real ? value.real() : static_cast<double>(value.integer());
  if (number >= low && number <= high && !(open && number == low)) return;
  std::string range = std::isfinite(high) ? text(low, " to ", high)
                      : open              ? text("above ", low)
                                          : text(low, " or more");
  refuse(name, text(parameter, " ", number, " is not ", std::isfinite(high) ? "in " : "", range), where,
         "tensors are not looked at: where an element is out of range, the result is NaN");
}

DType drawn_type(const char* name, std::optional<DType> option, std::initializer_list<In> parameters, Where where) {
  if (option) {
    if (!is_floating(*option))
      refuse(name, text("random numbers of ", *option, " do not exist here"), where, "choose a floating dtype");
    return *option;
  }
  std::optional<DType> found;
  for (const In& parameter : parameters) {
    if (parameter.kind() != In::Kind::tensor || !parameter.tensor().defined()) continue;
    const TensorNode& node = *parameter.tensor().node();
    if (node.weak || !is_floating(node.dtype)) continue;
    found = found ? promote(*found, node.dtype) : node.dtype;
  }
  return found.value_or(DType::f32);
}

Tensor fitted(const In& parameter, DType type, const Shape& shape) {
  Tensor typed = cast(parameter, type);
  return typed.rank() == 0 ? typed : broadcast_to(In(typed, parameter.where()), shape);
}

// --- generators that stand in for others

struct RandomStream::State : StandIns {
  VariableState& instead_of(VariableState& generator) override {
    if (generator.id > newest && !generator.made_in_trace) return generator;
    for (const std::unique_ptr<One>& one : all)
      if (one->state.id == generator.id) {
        if (!std::exchange(one->seeded, true)) one->state.value = first_value(generator);
        return one->state;
      }
    auto one = std::make_unique<One>();
    one->state.id = generator.id;
    one->state.name = generator.name;
    one->state.trainable = generator.trainable;
    one->state.dtype = generator.dtype;
    one->state.shape = generator.shape;
    one->state.value = first_value(generator);
    return all.emplace_back(std::move(one))->state;
  }
  Tensor first_value(VariableState& generator) const {
    if (&generator == &state_of(random::default_generator().variable())) return fresh_state(seeds.process);
    HeldVariables::refuse(generator, "random", {});
    std::shared_lock lock(generator.guard);
    const std::int64_t own_seed = reinterpret_cast<const std::int64_t*>(generator.value.node()->data)[0];
    return fresh_state(mixed({static_cast<std::int64_t>(seeds.others), own_seed}));
  }

  struct One {
    VariableState state;
    bool seeded = true;  // in the Use of now
  };
  std::vector<std::unique_ptr<One>> all;
  StreamSeeds seeds;
  std::uint64_t newest = 0;
};

RandomStream::RandomStream() : state_(std::make_unique<State>()) {}
RandomStream::~RandomStream() = default;
RandomStream::RandomStream(RandomStream&&) noexcept = default;

RandomStream::Use::Use(RandomStream& stream, StreamSeeds seeds, std::uint64_t newest)
    : before_(std::exchange(StandIns::current, stream.state_.get())) {
  State& state = *stream.state_;
  state.seeds = seeds;
  state.newest = newest;
  for (const std::unique_ptr<State::One>& one : state.all) one->seeded = false;
}
RandomStream::Use::~Use() { StandIns::current = before_; }

namespace random {

const Generator& default_generator() {
  static const Generator* const one = new Generator(generator_state(0, "random_generator", Where::here()));
  return *one;
}

void seed(std::uint64_t value) {
  if (const Trace* trace = current_trace())
    throw TraceError(error_text(
        text("random::seed: '", trace->function(), "' is being traced, and its calls would not seed anew"), {},
        "seed before the call; for numbers that are the same in every call use random::stateless_uniform or "
        "stateless_normal"));
  std::lock_guard lock(generator_guard());
  initial_streams() = {static_cast<std::int64_t>(value), 0};
  default_generator().variable().assign(fresh_state(value));
}

StreamSeed next_initial_stream() {
  std::lock_guard lock(generator_guard());
  InitialStreams& streams = initial_streams();
  return {streams.seed, streams.given++};
}

Generator::Generator(std::uint64_t seed, Where where) : Source(generator_state(seed, "generator", where)) {}

std::vector<Generator> Generator::split(int count, Where where) const {
  refuse_negative(count, where);
  if (const Trace* trace = current_trace())
    throw TraceError(error_text(
        text("Generator::split: '", trace->function(), "' is being traced, and its calls would not split anew"), where,
        "split before the call, and use the generators in it"));
  Tensor before;
  {
    std::lock_guard lock(generator_guard());
    Tensor step = tensor({std::int64_t{0}, std::int64_t{count}});
    before = subtract(In(state_.assign_add(In(step, where), where), where), In(step, where));
  }
  std::vector<std::int64_t> state = before.to_vector<std::int64_t>();
  std::vector<Generator> out;
  for (int i = 0; i < count; ++i) {
    auto words = philox_words(static_cast<std::uint64_t>(state[1]) + static_cast<std::uint64_t>(i),
                              static_cast<std::uint64_t>(state[0]), for_keys);
    out.push_back(Generator(joined(words[0], words[1]), where));
  }
  return out;
}

std::vector<StreamSeed> split(StreamSeed stream, int count) {
  refuse_negative(count, {});
  std::vector<StreamSeed> out;
  for (int i = 0; i < count; ++i) {
    auto words = philox_words(static_cast<std::uint64_t>(i), mixed(stream), for_keys);
    out.push_back(
        {static_cast<std::int64_t>(joined(words[0], words[1])), static_cast<std::int64_t>(joined(words[2], words[3]))});
  }
  return out;
}

}  // namespace random

}  // namespace stet
