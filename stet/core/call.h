// The one door: every op goes through call().
#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include "stet/core/in.h"
#include "stet/core/tensor.h"
#include "stet/ir/op.h"

namespace stet {

/// Runs an op on its operands: infers the result type and runs the op's program, compiled on first use. A Problem of
/// the op becomes a UserError with its name, operands, their types and the caller's line.
Tensor call(const OpDef& op, std::span<const In> operands, AttributesView attributes = {});
inline Tensor call(const OpDef& op, std::initializer_list<In> operands, AttributesView attributes = {}) {
  return call(op, std::span<const In>(operands.begin(), operands.size()), attributes);
}
/// The same of a row with several results: all of them, in the row's order.
std::vector<Tensor> call_all(const OpDef& op, std::initializer_list<In> operands, AttributesView attributes = {});
/// The same into places of the caller's, as many as the row has results.
void call_into(const OpDef& op, std::span<const In> operands, AttributesView attributes, std::span<Tensor> results);
/// An expression over operands of exactly its operand types, broadcast: maps that have no row, such as derivatives.
Tensor call_map(Expr body, std::span<const In> operands);

/// The operand as a tensor: a number, and a tensor made from one, becomes a scalar of `dtype` (Problem when it is out
/// of range).
Tensor as_tensor(const In& operand, DType dtype);

/// While it lives, errors of this thread name the public function `name` and its caller's line, whatever ops it uses.
/// The outermost frame counts; of `words` for indices that an op refuses, the innermost ones. Both outlive all traces.
class Frame {
 public:
  Frame(const char* name, Where where, const IndexWords* words = nullptr);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  bool outermost_;
  const IndexWords* words_before_;
};
/// The open frames as nodes remember them, and the outermost one's line; nobody, and unknown, without one.
Caller frame_caller();
const char* frame_name();
Where frame_where();

/// A Problem as the UserError it becomes: op, operands with types, line, advice.
[[noreturn]] void throw_user_error(const char* op, std::span<const char* const> names, std::span<const In> operands,
                                   const Problem& problem, Where where);
/// A Problem of a traced function's program as the UserError it becomes: the text that the op's eager call has, then
/// the function and the line that called it.
[[noreturn]] void throw_run_error(const std::string& function, const Problem& problem, Where called);

}  // namespace stet
