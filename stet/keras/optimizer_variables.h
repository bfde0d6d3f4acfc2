// The Variables of an optimizer in the order in which Keras stores them. Not a public header.
#pragma once
#include <vector>

#include "stet/keras/optimizer.h"

namespace stet::keras {

/// What Keras stores as vars/0, vars/1, … of an optimizer that trains these variables, in their order. Slots that do
/// not exist yet are made, so that a fresh optimizer can be loaded into. Shapes are Keras's; types may be wider: i64
/// where Keras counts in int32, f64 where it computes single numbers in float32. Assigning needs a cast.
///
/// What Keras stores and never reads (Adafactor's products of rows and columns) has Variables that nobody else knows:
/// zeros, and what is assigned to them is let go. Of a LossScaleOptimizer, its own come first, then those of the inner
/// one; Keras stores the latter once more by themselves, as inner_optimizer/vars: wrapped() gives that one.
///
/// Of an optimizer of your own: the step count, the learning rate unless it is a schedule, averages and sums of all
/// variables, then its slots in the order in which they were made; those that update_step() makes are there after the
/// first step.
std::vector<Variable> variables_in_keras_order(const Optimizer& optimizer, const std::vector<Variable>& trainable,
                                               Where where = Where::here());

}  // namespace stet::keras
