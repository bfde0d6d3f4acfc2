#include "stet/core/host_call.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "stet/base/dim_inside.h"
#include "stet/base/kept_where.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/compiler/lower_host_code.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/core/host_code_run.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"

namespace stet {
namespace {

void infer_results(InferCall& call) {
  const auto& host = call.attributes<HostCodeAttributes>();
  for (std::size_t i = 0; i < host.dtypes.size(); ++i) call.result(host.dtypes[i], host.shapes[i]);
  if (host.dtypes.empty()) call.result(DType::i64, Shape());  // a node has a result; this one says nothing
}

}  // namespace

constinit const OpDef print_row{.name = "print",
                                .kind = Kind::structure,
                                .summary = "Writes values to stdout.",
                                .infer = infer_results,
                                .lower = lower_host_code,
                                .has_effect = true};
constinit const OpDef assert_row{.name = "assert_that",
                                 .kind = Kind::structure,
                                 .summary = "Throws unless a condition holds.",
                                 .infer = infer_results,
                                 .lower = lower_host_code,
                                 .has_effect = true};

// --- running and recording

namespace {

HostValue value_of(const Tensor& dense) {
  const TensorNode& node = *dense.node();
  return {node.dtype, node.size_span(), node.data};
}

std::vector<Tensor> run_now(const HostCodeAttributes& host, std::span<const Tensor> inputs, const char* what,
                            Where where) {
  HiddenTapes hidden;
  std::vector<Tensor> dense, results;
  std::vector<HostValue> values;
  std::vector<HostPlace> places;
  for (const Tensor& input : inputs) {
    concrete_node(input, what, where);
    dense.push_back(on_host(input).contiguous(where));
  }
  for (const Tensor& input : dense) values.push_back(value_of(input));
  for (std::size_t i = 0; i < host.dtypes.size(); ++i) {
    std::vector<std::int64_t> sizes = host.shapes[i].sizes(where);
    std::int64_t bytes = Shape::of(sizes).element_count().constant() * size_of(host.dtypes[i]);
    results.push_back(dense_tensor(host.dtypes[i], sizes, Buffer::allocate(static_cast<std::size_t>(bytes))));
  }
  for (const Tensor& result : results)
    places.push_back({result.node()->dtype, result.node()->size_span(), result.node()->data});
  host.code->run(values, places);
  if (Device& device = device_of(inputs); !device.is_host())
    for (Tensor& result : results) result = on_device(result, device);
  return results;
}

}  // namespace

std::vector<Tensor> do_on_host(const OpDef& row, const HostCodeAttributes& host, std::span<const Tensor> inputs,
                               Where where) {
  std::vector<Tensor> results;
  if (Trace* trace = current_trace()) {
    results.resize(std::max<std::size_t>(host.dtypes.size(), 1));
    trace->record(row, inputs, view_of(host), where, results);
    results.resize(host.dtypes.size());
  } else {
    results = run_now(host, inputs, row.name, where);
  }
  if (!results.empty() && tapes_open()) tell_tapes(row, {inputs.begin(), inputs.end()}, view_of(host), results);
  return results;
}

void refuse_again(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (ValueId id : graph.results) needed[static_cast<std::size_t>(id)] = true;
  for (std::size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (!needed[id]) continue;
    for (ValueId input : node.inputs) needed[static_cast<std::size_t>(input)] = true;
    for (const GraphPointer& child : children(node)) refuse_again(*child);
    if (node.op->has_effect)
      throw NoGradient(error_text(
          text("gradient: ", node.op->name,
               " stands on one side of an if (tensor), or in a loop with checkpoints, which the gradient runs again"),
          node.where, text("call ", node.op->name, " before the decision or the loop, so that it runs once")));
  }
}

Graph without_effects(const Graph& given) {
  Graph out = given;
  out.nodes.clear();
  std::vector<ValueId> to;
  auto renamed = [&](ValueId id) {
    ValueId now = to[static_cast<std::size_t>(id)];
    if (now < 0) {
      ValueId from = id;
      while (given.node(from).op == &part_row) from = given.node(from).inputs[0];
      const Node& host = given.node(from);
      throw NoGradient(error_text(
          text("gradient: ", host.op->name, " stands in a loop inside of a loop, which the gradient runs again"),
          host.where, text("call ", host.op->name, " outside of the inner loop, so that it runs once")));
    }
    return now;
  };
  for (const Node& old : given.nodes) {
    to.push_back(-1);
    const bool is_part_of_effect = old.op == &part_row && to[static_cast<std::size_t>(old.inputs[0])] < 0;
    if (old.op->has_effect || is_part_of_effect) continue;
    Node node = with_children(old, without_effects);
    for (ValueId& input : node.inputs) input = renamed(input);
    to.back() = out.add(std::move(node));
  }
  for (ValueId& id : out.inputs) id = renamed(id);
  for (ValueId& id : out.results) id = renamed(id);
  return out;
}

namespace {

constinit thread_local bool is_muted = false;

/// Values between texts: text 0, value 0, text 1, …, and a last text.
class Format {
 public:
  Format() = default;
  explicit Format(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  const std::vector<std::string>& texts() const { return texts_; }
  void add(const PrintPart& part) {
    if (!first_) texts_.back() += ' ';
    first_ = false;
    for (const PrintPart::Piece& piece : part.pieces()) {
      if (piece.value.defined()) {
        values.push_back(piece.value);
        texts_.emplace_back();
      } else {
        texts_.back() += piece.text;
      }
    }
  }
  void end_line() { texts_.back() += '\n'; }
  /// The text for values of a run.
  std::string str(std::span<const HostValue> given) const {
    std::string out = texts_[0];
    for (std::size_t i = 0; i < given.size(); ++i) {
      std::size_t bytes = static_cast<std::size_t>(size_of(given[i].dtype));
      for (std::int64_t size : given[i].sizes) bytes *= static_cast<std::size_t>(size);
      // Borrowed: nobody keeps it.
      Buffer memory = Buffer::foreign(
          const_cast<void*>(given[i].data), bytes, [](void*) {}, nullptr);
      out += to_string(dense_tensor(given[i].dtype, given[i].sizes, std::move(memory)));
      out += texts_[i + 1];
    }
    return out;
  }
  /// As the text of a program names it: "loss {} at {}".
  std::string outline() const {
    std::string out = texts_[0];
    for (std::size_t i = 1; i < texts_.size(); ++i) out += "{}" + texts_[i];
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return text('"', out, '"');
  }
  bool operator==(const Format& other) const { return texts_ == other.texts_; }

  std::vector<Tensor> values;  // while it is made

 private:
  bool first_ = true;
  std::vector<std::string> texts_{""};
};

struct PrintListener {
  Lock guard;
  std::shared_ptr<const std::function<void(const std::string&)>> call;
};
PrintListener& print_listener() {
  static auto* const one = new PrintListener;  // never destroyed: see thread_end.h
  return *one;
}

class PrintCode : public HostCode {
 public:
  explicit PrintCode(Format format) : format_(std::move(format)) { format_.values.clear(); }
  void run(std::span<const HostValue> inputs, std::span<const HostPlace>) const override {
    if (is_muted) return;
    const std::string shown = format_.str(inputs);
    std::shared_ptr<const std::function<void(const std::string&)>> listener;
    {
      std::lock_guard lock(print_listener().guard);
      listener = print_listener().call;
    }
    if (listener) return (*listener)(shown);
    // Whole, and not through std::cout, which two threads must not use once a program has called
    // sync_with_stdio(false).
    std::fwrite(shown.data(), 1, shown.size(), stdout);
  }
  bool same_as(const HostCode& other) const override {
    const auto* print = dynamic_cast<const PrintCode*>(&other);
    return print && print->format_ == format_;
  }
  std::string str() const override { return text("print ", format_.outline()); }
  SavedEffect saved() const { return {.texts = format_.texts()}; }

 private:
  Format format_;
};

class AssertCode : public HostCode {
 public:
  AssertCode(std::string message, Format format, Where where)
      : message_(std::move(message)), format_(std::move(format)), where_(kept(where)) {
    format_.values.clear();
  }
  void run(std::span<const HostValue> inputs, std::span<const HostPlace>) const override {
    const HostValue& condition = inputs[0];
    const auto* holds = static_cast<const unsigned char*>(condition.data);
    std::int64_t count = 1, broken = 0, first = -1;
    for (std::int64_t size : condition.sizes) count *= size;
    for (std::int64_t i = 0; i < count; ++i) {
      if (holds[i]) continue;
      if (broken++ == 0) first = i;
    }
    if (broken == 0) return;
    std::string what = message_;
    if (!condition.sizes.empty())
      what +=
          text(": ", broken, " of ", count, " elements do not hold, the first at ", position(first, condition.sizes));
    if (inputs.size() > 1 || format_.str({}) != "") what += text("\n  values: ", format_.str(inputs.subspan(1)));
    Problem problem(std::move(what));
    problem.found_by("assert_that", where_);
    throw problem;
  }
  bool same_as(const HostCode& other) const override {
    const auto* assertion = dynamic_cast<const AssertCode*>(&other);
    return assertion && assertion->message_ == message_ && assertion->format_ == format_;
  }
  std::string str() const override { return text("assert_that \"", message_, "\""); }
  SavedEffect saved() const {
    return {.asserts = true, .message = message_, .texts = format_.texts(), .where = where_};
  }

 private:
  static std::string position(std::int64_t flat, std::span<const std::int64_t> sizes) {
    std::vector<std::int64_t> at(sizes.size());
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      at[axis] = flat % sizes[axis];
      flat /= sizes[axis];
    }
    return text(Shape::of(at));
  }

  std::string message_;
  Format format_;
  Where where_;
};

}  // namespace

std::optional<SavedEffect> saved_effect(const HostCode& code) {
  if (const auto* print = dynamic_cast<const PrintCode*>(&code)) return print->saved();
  if (const auto* assertion = dynamic_cast<const AssertCode*>(&code)) return assertion->saved();
  return std::nullopt;
}

HostCodePointer effect_of(SavedEffect saved) {
  if (!saved.asserts) return std::make_shared<PrintCode>(Format(std::move(saved.texts)));
  return std::make_shared<AssertCode>(std::move(saved.message), Format(std::move(saved.texts)), saved.where);
}

namespace {

/// Of a condition that host code knows: values that do not exist yet are named by their types.
std::string host_failure(const std::string& message, std::span<const PrintPart> values) {
  std::string out = text("assert_that: ", message);
  for (std::size_t i = 0; i < values.size(); ++i) {
    out += i == 0 ? "\n  values: " : " ";
    for (const PrintPart::Piece& piece : values[i].pieces())
      out += piece.value.defined() ? to_string(piece.value) : piece.text;
  }
  return out;
}

/// "f32[2,3]" of what a callback gave or declared.
std::string type_of(DType dtype, std::span<const std::int64_t> sizes) { return text(dtype, Shape::of(sizes)); }

class CallbackCode : public HostCode {
 public:
  CallbackCode(HostCallback callback, Where where) : callback_(std::move(callback)), where_(kept(where)) {}

  void run(std::span<const HostValue> inputs, std::span<const HostPlace> results) const override {
    std::vector<Tensor> arguments;
    for (const HostValue& input : inputs) {
      Shape shape = Shape::of(input.sizes);
      auto count = static_cast<std::size_t>(shape.element_count().constant());
      arguments.push_back(creation::copied(input.dtype, input.data, count, shape, where_));
    }
    std::vector<Tensor> given;
    {
      HiddenTapes hidden;
      given = callback_.run(arguments);
    }
    if (given.size() != results.size())
      throw problem(text("the callback gave ", given.size(), given.size() == 1 ? " tensor" : " tensors", ", declared ",
                         results.size() == 1 ? "is " : "are ", results.size()));
    for (std::size_t r = 0; r < results.size(); ++r) take(given[r], results[r], r);
  }
  bool same_as(const HostCode& other) const override {
    // What a callable holds cannot be compared; its type tells one lambda from another.
    const auto* call = dynamic_cast<const CallbackCode*>(&other);
    return call && *call->callback_.type == *callback_.type;
  }
  std::string str() const override { return text("host_call", at_line(where_)); }
  Where where() const { return where_; }

 private:
  Problem problem(std::string what) const {
    Problem out(std::move(what), "give what was declared (cast or reshape it), or declare what is given");
    out.found_by("host_call", where_);
    return out;
  }
  void take(const Tensor& given, const HostPlace& result, std::size_t number) const {
    const std::string declared = type_of(result.dtype, result.sizes);
    if (!given.defined()) throw problem(text("result ", number, " is undefined, declared as ", declared));
    const TensorNode& node = concrete_node(given, "host_call", where_);
    if (node.dtype != result.dtype || !std::ranges::equal(node.size_span(), result.sizes))
      throw problem(text("result ", number, " is ", type_of(node.dtype, node.size_span()), ", declared as ", declared));
    Tensor dense = on_host(given).contiguous();
    auto bytes = static_cast<std::size_t>(dense.node()->element_count() * size_of(node.dtype));
    if (bytes > 0) std::memcpy(result.data, dense.node()->data, bytes);
  }

  HostCallback callback_;
  Where where_;
};

void refuse_gradient(GradientCall& call) {
  const auto* code = dynamic_cast<const CallbackCode*>(call.attributes<HostCodeAttributes>().code.get());
  throw NoGradient(error_text(
      text("gradient: host_call has no gradient", code ? at_line(code->where(), "; it is called at ") : std::string()),
      frame_where(),
      "pass stop_gradient(x) where its result is to count as a constant, or wrap it in custom_gradient, which says "
      "what its gradient is"));
}

}  // namespace

constinit const OpDef host_call_row{.name = "host_call",
                                    .kind = Kind::structure,
                                    .summary = "Calls C++ code.",
                                    .infer = infer_results,
                                    .lower = lower_host_code,
                                    .gradient = refuse_gradient,
                                    .has_effect = true};

MutedPrint::MutedPrint(bool mutes) : before_(std::exchange(is_muted, is_muted || mutes)) {}
MutedPrint::~MutedPrint() { is_muted = before_; }

// --- what is printed

PrintPart::PrintPart(const char* text, Where where) : PrintPart(std::string_view(text ? text : "null"), where) {}
PrintPart::PrintPart(const std::string& text, Where where) : PrintPart(std::string_view(text), where) {}
PrintPart::PrintPart(std::string_view text, Where where) : where_(where) { pieces_.push_back({std::string(text), {}}); }
PrintPart::PrintPart(const Tensor& value, Where where) : tensor_(value), where_(where) {
  pieces_.push_back({value.defined() ? "" : to_string(value), value});
}
PrintPart::PrintPart(const Variable& value, Where where)
    : PrintPart(value.defined() ? value.read(where) : Tensor(), where) {}
PrintPart::PrintPart(const Scalar& value, Where where) : PrintPart(value.tensor(), where) {}
PrintPart::PrintPart(const Dim& size, Where where) : where_(where) { add_size(size); }
PrintPart::PrintPart(const Shape& shape, Where where) : where_(where) {
  pieces_.push_back({"[", {}});
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) pieces_.push_back({",", {}});
    add_size(shape[axis]);
  }
  pieces_.push_back({"]", {}});
}
PrintPart::PrintPart(DType dtype, Where where) : PrintPart(name(dtype), where) {}

std::string PrintPart::number_text(const Tensor& number) { return to_string(number); }

void PrintPart::add_size(const Dim& size) {
  if (size.is_constant())
    pieces_.push_back({text(size.constant()), {}});
  else
    pieces_.push_back({"", as_tensor(In(size, where_), DType::i64)});
}

void on_print(std::function<void(const std::string&)> listener) {
  auto next = listener ? std::make_shared<const std::function<void(const std::string&)>>(std::move(listener)) : nullptr;
  std::lock_guard lock(print_listener().guard);
  std::swap(print_listener().call, next);
}

namespace inside {

Tensor print_parts(std::span<const PrintPart> parts) {
  Format format;
  Tensor last;
  for (const PrintPart& part : parts) {
    format.add(part);
    if (part.tensor().defined()) last = part.tensor();
  }
  format.end_line();
  std::vector<Tensor> values = format.values;
  do_on_host(print_row, {std::make_shared<PrintCode>(std::move(format)), {}, {}}, values, kept(parts[0].where()));
  return last;
}

void assert_parts(const In& condition, const std::string& message, std::span<const PrintPart> values) {
  const Where where = kept(condition.where());
  Tensor checked = as_tensor(condition, condition.kind() == In::Kind::tensor ? DType::bool_ : condition.dtype());
  const TensorNode& node = defined_node(checked, "assert_that", where);
  if (node.dtype != DType::bool_)
    throw UserError(error_text(text("assert_that: the condition is ", node.dtype, node.shape(), ", not bool"), where,
                               "compare it: assert_that(x > 0, …)"));
  Format format;
  for (const PrintPart& part : values) format.add(part);
  std::vector<Tensor> inputs{checked};
  inputs.insert(inputs.end(), format.values.begin(), format.values.end());
  auto code = std::make_shared<AssertCode>(message, std::move(format), where);
  try {
    // What host code knows to be true needs no place in the program, and what is false is so for all calls.
    if (condition.kind() != In::Kind::tensor) {
      if (condition.integer() == 0) throw UserError(error_text(host_failure(message, values), where, {}));
      return;
    }
    do_on_host(assert_row, {std::move(code), {}, {}}, inputs, where);
  } catch (const Problem& problem) {
    throw UserError(error_text(text("assert_that: ", problem.text()), where, {}));
  }
}

std::vector<Tensor> call_host(HostCallback callback, const ResultSpecs& specs, std::span<const In> operands) {
  const Where where = kept(specs.where());
  auto count = static_cast<int>(specs.results().size());
  if (callback.gives >= 0 && callback.gives != count)
    throw UserError(
        error_text(text("host_call: the callback gives ", callback.gives, callback.gives == 1 ? " tensor" : " tensors",
                        ", declared ", count == 1 ? "is " : "are ", count),
                   where, "declare {dtype, shape} for each tensor that it gives"));
  HostCodeAttributes host;
  for (const ResultSpec& spec : specs.results()) {
    host.dtypes.push_back(spec.dtype);
    host.shapes.push_back(spec.shape);
  }
  std::vector<Tensor> inputs;
  for (const In& operand : operands) {
    inputs.push_back(operand.kind() == In::Kind::tensor ? operand.tensor() : as_tensor(operand, operand.dtype()));
    defined_node(inputs.back(), "host_call", where);
  }
  host.code = std::make_shared<CallbackCode>(std::move(callback), where);
  try {
    return do_on_host(host_call_row, host, inputs, where);
  } catch (const Problem& problem) {
    if (problem.op() != "host_call") throw;
    throw UserError(error_text(text("host_call: ", problem.text()), where, problem.advice()));
  }
}

}  // namespace inside
}  // namespace stet
