// Learning rates: a number, or a schedule, which is a function of the number of steps made.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/in.h"
#include "stet/core/tensor.h"
#include "stet/keras/recipe.h"

namespace stet::keras {

/// What an optimizer takes as its learning rate: a number, which becomes a Variable; or a schedule, one of
/// keras::schedules or a callable of your own from the step count (i64, the first step is 0) to a rate. A schedule is
/// computed inside the step, so that a traced step is traced once.
class LearningRate : public Recorded {
 public:
  using Rule = std::function<Tensor(const Tensor& step)>;

  template <inside::Number T>
  LearningRate(T rate) : rate_(static_cast<double>(rate)) {}
  template <class F>
  requires(!inside::Number<std::remove_cvref_t<F>> && !std::is_same_v<std::remove_cvref_t<F>, LearningRate> &&
           std::is_invocable_r_v<Tensor, F, const Tensor&>) LearningRate(F schedule)
      : Recorded(recorded(schedule)), schedule_(std::move(schedule)) {}

  bool is_schedule() const { return schedule_ != nullptr; }
  double rate() const { return rate_; }
  const Rule& schedule() const { return schedule_; }

 private:
  template <class F>
  static Recorded recorded(const F& schedule) {
    if constexpr (std::is_convertible_v<const F*, const Recorded*>)
      return schedule;
    else
      return {};
  }
  double rate_ = 0;
  Rule schedule_;
};

namespace schedules {

/// A schedule of Keras's. `schedule(step)` is the rate after so many steps, f64.
class STET_API Schedule : public Recorded {
 public:
  Tensor operator()(In step) const;

 protected:
  using Rule = std::function<Tensor(const Tensor& step)>;  // of the step, f64
  explicit Schedule(Rule rule) : rule_(std::move(rule)) {}

 private:
  Rule rule_;
};

struct ExponentialDecayOptions {
  bool staircase = false;  // whole powers only
};
/// rate * decay_rate^(step / decay_steps).
class STET_API ExponentialDecay : public Schedule {
 public:
  ExponentialDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   ExponentialDecayOptions options = {}, Where where = Where::here());
};

/// values[0] up to and including step boundaries[0], then values[1] up to boundaries[1], …; the last one from there on.
class STET_API PiecewiseConstantDecay : public Schedule {
 public:
  PiecewiseConstantDecay(std::vector<double> boundaries, std::vector<double> values, Where where = Where::here());
};

struct PolynomialDecayOptions {
  double end_learning_rate = 0.0001;
  double power = 1;
  bool cycle = false;  // starts again, each time with a longer way to the end
};
/// From the initial to the end rate in decay_steps: (initial - end) * (1 - step / decay_steps)^power + end.
class STET_API PolynomialDecay : public Schedule {
 public:
  PolynomialDecay(double initial_learning_rate, double decay_steps, PolynomialDecayOptions options = {},
                  Where where = Where::here());
};

struct InverseTimeDecayOptions {
  bool staircase = false;
};
/// rate / (1 + decay_rate * step / decay_steps).
class STET_API InverseTimeDecay : public Schedule {
 public:
  InverseTimeDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   InverseTimeDecayOptions options = {}, Where where = Where::here());
};

struct CosineDecayOptions {
  double alpha = 0;                          // what is left at the end, as a part of the rate
  std::optional<double> warmup_target = {};  // the rate rises to it from the initial one, and decays from it
  double warmup_steps = 0;
};
/// Half a cosine wave down from the rate to alpha * rate in decay_steps; before that, perhaps a straight way up.
class STET_API CosineDecay : public Schedule {
 public:
  CosineDecay(double initial_learning_rate, double decay_steps, CosineDecayOptions options = {},
              Where where = Where::here());
};

struct CosineDecayRestartsOptions {
  double t_mul = 2;  // each period is so many times as long as the one before
  double m_mul = 1;  // and starts from so many times its rate
  double alpha = 0;
};
/// Half a cosine wave, over and over.
class STET_API CosineDecayRestarts : public Schedule {
 public:
  CosineDecayRestarts(double initial_learning_rate, double first_decay_steps, CosineDecayRestartsOptions options = {},
                      Where where = Where::here());
};

}  // namespace schedules
}  // namespace stet::keras
