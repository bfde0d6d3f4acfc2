#include "stet/keras/schedule.h"

#include <cmath>
#include <numbers>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/keras/config.h"
#include "stet/ops/ops.h"

namespace stet::keras::schedules {
namespace {

/// A rate is one number: f64 costs nothing, and holds every step count.
double positive(double steps, const char* schedule, const char* option, Where where) {
  if (!(steps > 0)) throw UserError(error_text(text(schedule, ": ", option, " = ", steps), where, "it is more than 0"));
  return steps;
}

/// From 1 down to alpha while `part` goes from 0 to 1.
Tensor half_wave(const Tensor& part, double alpha) {
  return (1 - alpha) * (0.5 * (1 + cos(std::numbers::pi * part))) + alpha;
}

/// The period that a step is in, counted from 0, and how much of it has passed. `passed` counts first periods.
std::pair<Tensor, Tensor> period_of(const Tensor& passed, double growth) {
  if (growth == 1) {
    Tensor period = floor(passed);
    return {period, passed - period};
  }
  auto start_of = [&](const Tensor& period) { return (1 - pow(growth, period)) / (1 - growth); };
  Tensor period = floor(log(1 - passed * (1 - growth)) / std::log(growth));
  // Rounding of the logarithm may miss by one where a period starts.
  period = where(passed >= start_of(period + 1), period + 1, period);
  period = where(passed < start_of(period), period - 1, period);
  return {period, (passed - start_of(period)) / pow(growth, period)};
}

// --- recipes

/// A count of steps: a number of any kind here, as a rule a whole one.
Json steps_json(double steps) {
  if (std::floor(steps) != steps || std::abs(steps) >= 9e15) return steps;
  return static_cast<std::int64_t>(steps);
}
void steps_field(Fields& f, const char* name, double& steps) {
  if (f.reading())
    f(name, steps);
  else
    f.put(name, steps_json(steps));
}
void required_steps(Fields& f, const char* name, double& steps) {
  f.required(name);
  steps_field(f, name, steps);
}

/// Keras's schedules have names, which nothing here asks for; they are kept as they were read. `Own` has the class, its
/// arguments and the name that Keras gives it.
template <class Own>
struct ScheduleRecipe : Own {
  static constexpr const char* module = "keras.optimizers.schedules";
  std::string name = Own::own_name;
  void fields(Fields& f) {
    Own::own_fields(f);
    f("name", name);
  }
  Schedule make(Where where) const {
    Schedule made = Own::made(where);
    note_recipe(made, *this);
    return made;
  }
};

/// Of those that decay by a rate, in steps or not.
template <class Made, Literal name, class Options>
struct RateParts {
  static constexpr const char *class_name = name.text, *own_name = name.text;
  double initial_learning_rate = 0, decay_steps = 0, decay_rate = 0;
  Options options = {};
  void own_fields(Fields& f) {
    f.required("initial_learning_rate", initial_learning_rate);
    required_steps(f, "decay_steps", decay_steps);
    f.required("decay_rate", decay_rate);
    f("staircase", options.staircase);
  }
  Schedule made(Where where) const { return Made(initial_learning_rate, decay_steps, decay_rate, options, where); }
};
using ExponentialParts = RateParts<ExponentialDecay, "ExponentialDecay", ExponentialDecayOptions>;
using InverseTimeParts = RateParts<InverseTimeDecay, "InverseTimeDecay", InverseTimeDecayOptions>;
struct PiecewiseParts {
  static constexpr const char *class_name = "PiecewiseConstantDecay", *own_name = "PiecewiseConstant";
  std::vector<double> boundaries = {}, values = {};
  void own_fields(Fields& f) {
    if (f.reading()) {
      f("boundaries", boundaries);
    } else {
      Json::List list;
      for (double one : boundaries) list.push_back(steps_json(one));
      f.put("boundaries", std::move(list));
    }
    f("values", values);
  }
  Schedule made(Where where) const { return PiecewiseConstantDecay(boundaries, values, where); }
};
struct PolynomialParts {
  static constexpr const char *class_name = "PolynomialDecay", *own_name = "PolynomialDecay";
  double initial_learning_rate = 0, decay_steps = 0;
  PolynomialDecayOptions options = {};
  void own_fields(Fields& f) {
    f.required("initial_learning_rate", initial_learning_rate);
    required_steps(f, "decay_steps", decay_steps);
    f("end_learning_rate", options.end_learning_rate);
    f("power", options.power);
    f("cycle", options.cycle);
  }
  Schedule made(Where where) const { return PolynomialDecay(initial_learning_rate, decay_steps, options, where); }
};
struct CosineParts {
  static constexpr const char *class_name = "CosineDecay", *own_name = "CosineDecay";
  double initial_learning_rate = 0, decay_steps = 0;
  CosineDecayOptions options = {};
  void own_fields(Fields& f) {
    f.required("initial_learning_rate", initial_learning_rate);
    required_steps(f, "decay_steps", decay_steps);
    f("alpha", options.alpha);
    f("warmup_target", options.warmup_target);
    steps_field(f, "warmup_steps", options.warmup_steps);
  }
  Schedule made(Where where) const { return CosineDecay(initial_learning_rate, decay_steps, options, where); }
};
struct CosineRestartsParts {
  static constexpr const char *class_name = "CosineDecayRestarts", *own_name = "SGDRDecay";
  double initial_learning_rate = 0, first_decay_steps = 0;
  CosineDecayRestartsOptions options = {};
  void own_fields(Fields& f) {
    f.required("initial_learning_rate", initial_learning_rate);
    required_steps(f, "first_decay_steps", first_decay_steps);
    f("t_mul", options.t_mul);
    f("m_mul", options.m_mul);
    f("alpha", options.alpha);
  }
  Schedule made(Where where) const {
    return CosineDecayRestarts(initial_learning_rate, first_decay_steps, options, where);
  }
};
const SavableAll<ScheduleRecipe<ExponentialParts>, ScheduleRecipe<PiecewiseParts>, ScheduleRecipe<PolynomialParts>,
                 ScheduleRecipe<InverseTimeParts>, ScheduleRecipe<CosineParts>, ScheduleRecipe<CosineRestartsParts>>
    savable_schedules;

template <class Parts>
void note(Schedule& schedule, Parts parts) {
  note_recipe(schedule, ScheduleRecipe<Parts>{std::move(parts)});
}

}  // namespace

Tensor Schedule::operator()(In step) const {
  Frame frame("schedule", step.where());
  return rule_(cast(step, f64));
}

ExponentialDecay::ExponentialDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                                   ExponentialDecayOptions options, Where where)
    : Schedule([=](const Tensor& step) {
        Tensor part = step / decay_steps;
        return initial_learning_rate * pow(decay_rate, options.staircase ? floor(part) : part);
      }) {
  positive(decay_steps, "ExponentialDecay", "decay_steps", where);
  note(*this, ExponentialParts{initial_learning_rate, decay_steps, decay_rate, options});
}

PiecewiseConstantDecay::PiecewiseConstantDecay(std::vector<double> boundaries, std::vector<double> values, Where where)
    : Schedule([=](const Tensor& step) {
        Tensor rate = full({}, values.front(), f64);
        for (std::size_t i = 0; i < boundaries.size(); ++i)
          rate = stet::where(step > boundaries[i], values[i + 1], rate);
        return rate;
      }) {
  if (values.size() != boundaries.size() + 1)
    throw UserError(
        error_text(text("PiecewiseConstantDecay: ", boundaries.size(), " boundaries and ", values.size(), " values"),
                   where, "between and around the boundaries there is one value more than boundaries"));
  for (std::size_t i = 1; i < boundaries.size(); ++i)
    if (!(boundaries[i - 1] < boundaries[i]))
      throw UserError(error_text(text("PiecewiseConstantDecay: boundary ", boundaries[i], " after ", boundaries[i - 1]),
                                 where, "boundaries are step counts that rise"));
  note(*this, PiecewiseParts{boundaries, values});
}

PolynomialDecay::PolynomialDecay(double initial_learning_rate, double decay_steps, PolynomialDecayOptions options,
                                 Where where)
    : Schedule([=](const Tensor& step) {
        Tensor part = options.cycle ? step / (decay_steps * maximum(1., ceil(step / decay_steps)))
                                    : minimum(step, decay_steps) / decay_steps;
        return (initial_learning_rate - options.end_learning_rate) * pow(1 - part, options.power) +
               options.end_learning_rate;
      }) {
  positive(decay_steps, "PolynomialDecay", "decay_steps", where);
  note(*this, PolynomialParts{initial_learning_rate, decay_steps, options});
}

InverseTimeDecay::InverseTimeDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                                   InverseTimeDecayOptions options, Where where)
    : Schedule([=](const Tensor& step) {
        Tensor part = step / decay_steps;
        return initial_learning_rate / (1 + decay_rate * (options.staircase ? floor(part) : part));
      }) {
  positive(decay_steps, "InverseTimeDecay", "decay_steps", where);
  note(*this, InverseTimeParts{initial_learning_rate, decay_steps, decay_rate, options});
}

CosineDecay::CosineDecay(double initial_learning_rate, double decay_steps, CosineDecayOptions options, Where where)
    : Schedule([=](const Tensor& step) {
        if (!options.warmup_target)
          return initial_learning_rate * half_wave(minimum(step, decay_steps) / decay_steps, options.alpha);
        const double target = *options.warmup_target;
        Tensor decayed =
            target * half_wave(minimum(step - options.warmup_steps, decay_steps) / decay_steps, options.alpha);
        if (options.warmup_steps == 0) return decayed;
        Tensor rising = (target - initial_learning_rate) * (step / options.warmup_steps) + initial_learning_rate;
        return stet::where(step < options.warmup_steps, rising, decayed);
      }) {
  positive(decay_steps, "CosineDecay", "decay_steps", where);
  if (!(options.warmup_steps >= 0))
    throw UserError(error_text(text("CosineDecay: warmup_steps = ", options.warmup_steps), where, "it is 0 or more"));
  if (options.warmup_steps > 0 && !options.warmup_target)
    throw UserError(error_text(text("CosineDecay: warmup_steps = ", options.warmup_steps, " without a warmup_target"),
                               where, "say which rate the warmup rises to: {.warmup_target = 1e-3}"));
  note(*this, CosineParts{initial_learning_rate, decay_steps, options});
}

CosineDecayRestarts::CosineDecayRestarts(double initial_learning_rate, double first_decay_steps,
                                         CosineDecayRestartsOptions options, Where where)
    : Schedule([=](const Tensor& step) {
        auto [period, part] = period_of(step / first_decay_steps, options.t_mul);
        // As in Keras, m_mul shrinks the wave and not what alpha leaves.
        Tensor wave = 0.5 * pow(options.m_mul, period) * (1 + cos(std::numbers::pi * part));
        return initial_learning_rate * ((1 - options.alpha) * wave + options.alpha);
      }) {
  positive(first_decay_steps, "CosineDecayRestarts", "first_decay_steps", where);
  if (!(options.t_mul >= 1))
    throw UserError(error_text(text("CosineDecayRestarts: t_mul = ", options.t_mul), where,
                               "periods of the same length (1) or longer ones: with shorter ones time would end"));
  note(*this, CosineRestartsParts{initial_learning_rate, first_decay_steps, options});
}

}  // namespace stet::keras::schedules
