#include "stet/core/call.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/base/short_array.h"
#include "stet/base/text.h"
#include "stet/core/eager.h"
#include "stet/core/gradient.h"
#include "stet/core/scope.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/ir/graph.h"
#include "stet/ir/layout.h"

namespace stet {
namespace {

// --- the user's line

struct OpenFrame {
  const char* name = nullptr;
  const IndexWords* words = nullptr;
  Where where;
};
// initial-exec: one load instead of a call, on every op's way. It is small, which fits the room kept for opened
// libraries.
[[gnu::tls_model("initial-exec")]] constinit thread_local OpenFrame this_thread_frame;
OpenFrame& open_frame() { return this_thread_frame; }

Where line_of(std::span<const In> operands) {
  if (open_frame().name) return open_frame().where;
  for (const In& operand : operands)
    if (operand.where().known()) return operand.where();
  return {};
}

// --- numbers

/// The type that a number of type `number` takes beside operands of `type`.
DType number_type(DType type, DType number) {
  if (is_floating(number)) return is_floating(type) ? type : DType::f32;
  return type == DType::bool_ && number != DType::bool_ ? DType::i32 : type;
}

std::string range_advice(DType dtype) {
  return text("allowed are ", row(dtype).lowest, " to ", row(dtype).highest, "; cast the tensor to a wider type");
}

Operand number_operand(const In& number, DType dtype) {
  Operand out;
  out.dtype = dtype;
  if (number.kind() == In::Kind::real) {
    double value = number.real();
    convert_element(DType::f64, &value, dtype, &out.bits);
    double back = 0;
    convert_element(dtype, &out.bits, DType::f64, &back);
    if (std::isfinite(value) && !std::isfinite(back))
      throw Problem(text("the number ", value, " is out of range for ", dtype), "use a wider dtype");
    return out;
  }
  if (number.beyond_i64())
    throw Problem(text("the number ", static_cast<std::uint64_t>(number.integer()), " is out of range for i64"),
                  "use a number below 2^63");
  std::int64_t value = number.kind() == In::Kind::size ? number.size().value(number.where()) : number.integer();
  if (!is_floating(dtype) && (value < row(dtype).lowest || value > row(dtype).highest))
    throw Problem(text("the number ", value, " is out of range for ", dtype), range_advice(dtype));
  convert_element(DType::i64, &value, dtype, &out.bits);
  return out;
}

Tensor scalar_tensor(const Operand& number) { return creation::copied(number.dtype, &number.bits, 1, Shape(), {}); }

// Numbers are C++ numbers, and tensors made from them (TensorNode::weak). In a map both take the type of the tensors
// beside them; among themselves their own types promote, and the result is a number again.

/// Numbers among the operands take the type of the others.
bool adapts_numbers(const OpDef& op) { return op.kind == Kind::map && op.body; }
/// The condition of a selection has nothing to say about the type of what is selected.
std::size_t first_typed(const OpDef& op) { return op.dtypes.result == DTypeRule::selected ? 1 : 0; }

/// What the operands that are not numbers promote to; none if all are numbers.
std::optional<DType> tensor_type(const OpDef& op, std::span<const Operand> operands) {
  std::optional<DType> type;
  for (std::size_t i = first_typed(op); i < operands.size(); ++i)
    if (const TensorNode* node = operands[i].tensor; node && !node->weak)
      type = type ? promote(*type, node->dtype) : node->dtype;
  return type;
}

/// The types that C++ numbers take: in a map beside tensors theirs, elsewhere their own.
void type_numbers(const OpDef& op, std::span<const In> given, std::span<Operand> out, std::optional<DType> type) {
  std::size_t first = first_typed(op);
  DType alone = DType::bool_;
  for (std::size_t i = first; !type && i < given.size(); ++i)
    alone = promote(alone, out[i].tensor ? out[i].tensor->dtype : given[i].dtype());
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].kind() == In::Kind::tensor) continue;
    bool own = !adapts_numbers(op) || i < first;
    out[i].dtype = own ? given[i].dtype() : type ? number_type(*type, given[i].dtype()) : alone;
  }
}

/// A tensor that is a number, in another type.
Tensor number_as(const In& number, DType dtype, const char* op) {
  const TensorNode& node = *number.tensor().node();
  if (!node.traced && !node.device()) {
    double real = 0;
    std::int64_t integer = 0;
    bool floating = is_floating(node.dtype);
    convert_element(node.dtype, node.data, DType::f64, &real);
    convert_element(node.dtype, node.data, DType::i64, &integer);
    Operand checked = number_operand(floating ? In(real, number.where()) : In(integer, number.where()), dtype);
    if (!tapes_open()) return scalar_tensor(checked);
  }
  In given(number.tensor(), number.where());
  bool narrows = !is_floating(dtype) && !is_floating(node.dtype) && size_of(dtype) < size_of(node.dtype);
  if (!node.traced || !narrows) return core_ops.cast(given, dtype);
  // An argument, whose value is known when the program runs: what is an error eagerly is a side that raises.
  const std::string problem = text(op_text(frame_caller(), op), ": a number is out of range for ", dtype);
  return scope(
      [&] {
        Expr n = scalar::cast(operand(0, node.dtype), DType::i64);
        In operands[] = {given};
        if (call_map(scalar::logical_and(constant(row(dtype).lowest, DType::i64) <= n,
                                         n <= constant(row(dtype).highest, DType::i64)),
                     operands))
          return core_ops.cast(given, dtype);
        throw UserError(error_text(problem, number.where(), range_advice(dtype)));
      },
      number.where());
}

/// The operands with all numbers that are tensors in the type they take beside `type`; empty if they have it already.
std::vector<Tensor> adapted_numbers(const OpDef& op, std::span<const In> given, std::span<const Operand> operands,
                                    DType type) {
  std::vector<Tensor> out;
  for (std::size_t i = first_typed(op); i < given.size(); ++i) {
    const TensorNode* node = operands[i].tensor;
    if (!node || !node->weak || node->dtype == number_type(type, node->dtype)) continue;
    out.resize(given.size());
    out[i] = number_as(given[i], number_type(type, node->dtype), op.name);
  }
  return out;
}

/// The result of an op on numbers alone is a number.
Tensor number_if(const OpDef& op, Tensor out) {
  bool keeps = op.dtypes.result != DTypeRule::fixed && op.dtypes.result != DTypeRule::compared;
  return keeps && out.node()->rank == 0 ? creation::as_number(std::move(out)) : out;
}

/// The operands, with those that are defined instead of them. They must outlive the result, which refers to them.
std::vector<In> with(std::span<const In> given, const std::vector<Tensor>& instead) {
  std::vector<In> out(given.begin(), given.end());
  for (std::size_t i = 0; i < given.size(); ++i)
    if (instead[i].defined()) out[i] = In(instead[i], given[i].where());
  return out;
}

/// Operands as tensors, for those who remember them.
std::vector<Tensor> tensors_of(std::span<const In> given, std::span<const Operand> operands) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < given.size(); ++i)
    out.push_back(operands[i].tensor ? given[i].tensor() : scalar_tensor(operands[i]));
  return out;
}

// --- devices

/// Of operands some of which lie on a device: that device, and copies of the numbers among the others, moved there, by
/// operand; none if there was nothing to move.
std::vector<Tensor> moved_numbers(std::span<const In> given, Device** device) {
  auto place = [](const In& operand) { return operand.kind() == In::Kind::tensor ? operand.tensor().node() : nullptr; };
  for (const In& operand : given)
    if (const TensorNode* node = place(operand); node && node->device()) *device = node->device();
  std::vector<Tensor> moved;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TensorNode* node = place(given[i]);
    if (!node || node->device() == *device) continue;
    if (node->device() || node->rank > 0)
      throw Problem(text("one operand lies on ", (*device)->name(), " and another on ",
                         node->device() ? node->device()->name() : Device::host().name()),
                    "move them to one device first");
    moved.resize(given.size());
    moved[i] = on_device(given[i].tensor(), **device);
  }
  return moved;
}

// --- views

Tensor run_view(const OpDef& op, const Operand& operand, AttributesView attributes, Where where) {
  const TensorNode& node = *operand.tensor;
  ValueType types[] = {operand.value_type()};
  InferCall infer(op.name, types, attributes, where);
  op.infer(infer);
  std::vector<std::int64_t> sizes = infer.results()[0].shape.sizes();
  Layout layout;
  for (int axis = 0; axis < node.rank; ++axis) layout.strides.push_back(node.strides[axis]);
  std::optional<Layout> view = op.view({types[0].shape, layout, infer.results()[0].shape, attributes});
  if (!view) {
    // Not a view of this memory, but of a dense copy of it.
    Tensor whole = view_tensor(node, node.size_span(), node.stride_span(), 0).contiguous(where);
    Operand dense;
    dense.tensor = whole.node();
    return run_view(op, dense, attributes, where);
  }
  std::vector<std::int64_t> strides;
  for (const Dim& stride : view->strides) {
    strides.push_back(stride.constant());
    // Memory is walked forwards only: a reversed axis is copied.
    if (stride.constant() < 0) {
      Tensor out;
      run_eager(op, {&operand, 1}, attributes, where, {&out, 1}, device_of(node.buffer));
      return out;
    }
  }
  return view_tensor(node, sizes, strides, view->offset.constant());
}

// --- tracing

/// The op as a node of the open trace.
void record(Trace& trace, const OpDef& op, std::span<const In> given, std::span<const Operand> operands,
            AttributesView attributes, std::span<Tensor> results) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].kind() == In::Kind::tensor)
      inputs.push_back(given[i].tensor());
    else if (given[i].kind() == In::Kind::size && !given[i].size().is_constant())
      inputs.push_back(trace.size_value(given[i].size(), operands[i].dtype, line_of(given)));
    else {
      Operand number = number_operand(given[i], operands[i].dtype);
      inputs.push_back(trace.number_value(number.dtype, &number.bits));
    }
  }
  trace.record(op, inputs, attributes, line_of(given), results);
  if (tapes_open()) tell_tapes(op, inputs, attributes, {results.begin(), results.end()});
}

}  // namespace

Frame::Frame(const char* name, Where where, const IndexWords* words)
    : outermost_(open_frame().name == nullptr), words_before_(open_frame().words) {
  if (outermost_) open_frame() = {name, words, where};
  if (words) open_frame().words = words;
}
Frame::~Frame() {
  if (outermost_)
    open_frame() = {};
  else
    open_frame().words = words_before_;
}
const char* frame_name() { return open_frame().name; }
Caller frame_caller() { return {open_frame().name, open_frame().words}; }
Where frame_where() { return open_frame().where; }

namespace {

/// "f32[2,3]", "undefined", "number 2".
std::string described(const In& operand) {
  switch (operand.kind()) {
    case In::Kind::tensor:
      return operand.tensor().defined() ? type_text(operand.tensor()) : "undefined";
    case In::Kind::size:
      return text("number ", size_text(operand.size()));
    case In::Kind::integer:
      return text("number ", operand.integer());
    default:
      return text("number ", operand.real());
  }
}

}  // namespace

void throw_user_error(const char* op, std::span<const char* const> names, std::span<const In> operands,
                      const Problem& problem, Where where) {
  std::string what = text(op_text(frame_caller(), op), ": ", problem.text());
  std::vector<std::string> list;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::string label = i < names.size() ? names[i] : operands.size() == 1 ? "x" : text("x", i);
    list.push_back(text(label, " ", described(operands[i])));
  }
  if (!list.empty()) what += text("\n  with ", joined(list, ", "));
  throw UserError(error_text(what, where, problem.advice()));
}

void throw_run_error(const std::string& function, const Problem& problem, Where called) {
  if (problem.op().empty()) throw UserError(error_text(text(function, ": ", problem.text()), called, problem.advice()));
  const bool known = problem.where().known();
  std::string what = text(problem.op(), ": ", problem.text(), "\n  ", known ? at_line(problem.where(), "at ") : "",
                          known ? ", " : "", "in '", function, "'", at_line(called, " called at "));
  throw UserError(error_text(what, {}, problem.advice()));
}

Tensor call(const OpDef& op, std::span<const In> given, AttributesView attributes) {
  Tensor out;
  call_into(op, given, attributes, {&out, 1});
  return out;
}

std::vector<Tensor> call_all(const OpDef& op, std::initializer_list<In> given, AttributesView attributes) {
  std::vector<Tensor> out(op.result_count());
  call_into(op, {given.begin(), given.size()}, attributes, out);
  return out;
}

void call_into(const OpDef& op, std::span<const In> given, AttributesView attributes, std::span<Tensor> results) {
  if (results.size() != op.result_count())
    throw InternalError(text(op.name, " has ", op.result_count(), " results, not ", results.size()));
  ShortArray<Operand, 8> storage(given.size());
  std::span<Operand> operands(storage.data(), given.size());
  bool weak = false;
  try {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].kind() != In::Kind::tensor) continue;
      const Tensor& tensor = given[i].tensor();
      if (!tensor.defined()) throw Problem("an operand is an undefined tensor", advice_for_undefined(tensor));
      operands[i].tensor = tensor.node();
      weak = weak || tensor.node()->weak;
    }
    std::optional<DType> type = tensor_type(op, operands);
    if (weak && type && adapts_numbers(op))
      if (std::vector<Tensor> adapted = adapted_numbers(op, given, operands, *type); !adapted.empty())
        return call_into(op, with(given, adapted), attributes, results);
    type_numbers(op, given, operands, type);
    bool numbers = !type && adapts_numbers(op);
    if (Trace* trace = current_trace()) {
      record(*trace, op, given, operands, attributes, results);
      if (numbers) results[0] = number_if(op, std::move(results[0]));
      return;
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].kind() != In::Kind::tensor)
        operands[i] = number_operand(given[i], operands[i].dtype);
      else if (operands[i].tensor->traced)
        concrete_node(given[i].tensor(), op.name, line_of(given));  // throws: it has leaked
    }
    Device* device = nullptr;
    if (std::any_of(operands.begin(), operands.end(), [](const Operand& o) { return o.tensor && o.tensor->device(); }))
      if (std::vector<Tensor> moved = moved_numbers(given, &device); !moved.empty())
        return call_into(op, with(given, moved), attributes, results);
    // Eagerly sizes are numbers: those of a trace that this interrupts (InitScope) are read, and pinned by that.
    Attributes read;
    if (attributes.type && attributes.type->is_symbolic(attributes.data)) {
      read = Attributes(attributes).map_dims([&](const Dim& dim) { return Dim(dim.value(line_of(given))); });
      attributes = read.view();
    }
    bool view = op.view && operands[0].tensor;
    if (view)
      results[0] = run_view(op, operands[0], attributes, line_of(given));
    else
      run_eager(op, operands, attributes, line_of(given), results, device ? *device : Device::host());
    if (tapes_open()) tell_tapes(op, tensors_of(given, operands), attributes, {results.begin(), results.end()});
    if (numbers) results[0] = number_if(op, std::move(results[0]));
  } catch (const IndexProblem& problem) {
    if (!open_frame().words) throw_user_error(op.name, op.operands, given, problem, line_of(given));
    // In the words of the function that the user called, who knows nothing of the ops it is made of.
    IndexProblem in_words = problem.in(*open_frame().words);
    throw UserError(error_text(text(open_frame().name, ": ", in_words.text()), line_of(given), in_words.advice()));
  } catch (const Problem& problem) {
    throw_user_error(op.name, op.operands, given, problem, line_of(given));
  }
}

Tensor as_tensor(const In& operand, DType dtype) {
  // A size of a trace is one of its values, not a number that the trace would be bound to.
  if (operand.kind() == In::Kind::size && !operand.size().is_constant())
    if (Trace* trace = current_trace()) return trace->size_value(operand.size(), dtype, operand.where());
  if (operand.kind() != In::Kind::tensor) return scalar_tensor(number_operand(operand, dtype));
  const Tensor& tensor = operand.tensor();
  return tensor.defined() && tensor.node()->weak ? number_as(operand, dtype, "cast") : tensor;
}

Tensor call_map(Expr body, std::span<const In> operands) {
  MapAttributes attributes{body, {}};
  return call(map_row, operands, view_of(attributes));
}

}  // namespace stet
