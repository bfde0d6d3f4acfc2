// What is wrong with a loop, told alike by eager and by traced ones.
#pragma once
#include "stet/core/flat_loop.h"

namespace stet {

/// UserError: carried value `number` was `before` when a turn began, and is `after` in the end.
[[noreturn]] void throw_state_changes(const FlatLoop& loop, std::size_t number, const Tensor& before,
                                      const Tensor& after);
/// The same unless both have one dtype and rank.
void ensure_same_form(const FlatLoop& loop, std::size_t number, const Tensor& before, const Tensor& after);
/// A condition as a bool scalar; UserError if it has another number of elements than one.
Tensor loop_condition(const char* name, const Tensor& condition, Where where);

}  // namespace stet
