#include "stet/keras/schedule.h"

#include <cmath>
#include <numbers>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
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
}

InverseTimeDecay::InverseTimeDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                                   InverseTimeDecayOptions options, Where where)
    : Schedule([=](const Tensor& step) {
        Tensor part = step / decay_steps;
        return initial_learning_rate / (1 + decay_rate * (options.staircase ? floor(part) : part));
      }) {
  positive(decay_steps, "InverseTimeDecay", "decay_steps", where);
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
}

}  // namespace stet::keras::schedules
