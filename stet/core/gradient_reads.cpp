#include "stet/core/gradient_reads.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/thread_end.h"
#include "stet/core/called_graph.h"
#include "stet/core/custom_gradient.h"
#include "stet/core/gradient.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/ir/graph.h"

namespace stet {
namespace {

bool floating(const Tensor& tensor) { return is_floating(tensor.dtype()); }

GradientReads reads_of_map(const MapDerivatives& map, std::span<const Tensor> inputs, const std::vector<bool>& wanted) {
  GradientReads out{std::vector<bool>(inputs.size(), false), {false}};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const MapDerivatives::Slope& slope = map.slopes[i];
    if (!wanted[i] || !slope.value.defined()) continue;
    for (std::size_t k = 0; k < inputs.size(); ++k) out.inputs[k] = out.inputs[k] || slope.reads[k];
    out.outputs[0] = out.outputs[0] || slope.reads[inputs.size()];
  }
  return out;
}

GradientReads everything(std::size_t inputs, std::size_t outputs) {
  return {std::vector<bool>(inputs, true), std::vector<bool>(outputs, true)};
}

/// The gradient, run in a trace of its own on values that do not exist: which of them it uses.
class Probe {
 public:
  Probe(const OpDef& op, std::span<const Tensor> inputs, const AttributesView& attributes,
        std::span<const Tensor> outputs, const std::vector<bool>& wanted)
      : op_(op), attributes_(attributes), trace_("gradient") {
    OpenTrace open(trace_);
    for (const Tensor& input : inputs) inputs_.push_back(argument(input));
    for (const Tensor& output : outputs) outputs_.push_back(argument(output));
    trace_.run_scope(
        [&] {
          run(wanted);
          return Leaves{};
        },
        {});
    graph_ = trace_.finished();
    used_ = users(graph_);
  }

  GradientReads reads() const {
    GradientReads out;
    for (std::size_t i = 0; i < inputs_.size(); ++i) out.inputs.push_back(floating(inputs_[i]) && is_used(i));
    for (std::size_t r = 0; r < outputs_.size(); ++r)
      out.outputs.push_back(floating(outputs_[r]) && is_used(inputs_.size() + r));
    return out;
  }
  /// Positions too, which say what a row chose.
  bool reads_results() const {
    for (std::size_t r = 0; r < outputs_.size(); ++r)
      if (is_used(inputs_.size() + r)) return true;
    return false;
  }

 private:
  bool is_used(std::size_t number) const { return !used_[static_cast<std::size_t>(graph_.inputs[number])].empty(); }

  Tensor argument(const Tensor& tensor) {
    const TensorNode& node = *tensor.node();
    Shape shape;
    for (int axis = 0; axis < node.rank; ++axis) shape.push_back(trace_.symbols().symbol({}, node.sizes[axis]));
    return trace_.add_argument({node.dtype, shape});
  }

  void run(const std::vector<bool>& wanted) {
    std::vector<Tensor> ds;
    for (const Tensor& output : outputs_)
      ds.push_back(floating(output) ? trace_.add_argument({output.dtype(), output.shape()}) : Tensor());
    GradientCall call(op_, inputs_, attributes_, outputs_, std::move(ds), wanted);
    op_.gradient(call);
    for (const Tensor& gradient : call.results())
      if (gradient.defined()) trace_.graph.results.push_back(trace_.lift(gradient, {}));
    for (const auto& [number, block] : call.blocks()) trace_.graph.results.push_back(trace_.lift(block.d, {}));
  }

  const OpDef& op_;
  AttributesView attributes_;
  Trace trace_;
  std::vector<Tensor> inputs_, outputs_;
  Graph graph_;
  std::vector<std::vector<int>> used_;
};

/// Rows of these kinds compute sums of products of their operands' elements, if their gradients read nothing else.
bool may_be_linear(Kind kind) {
  return kind == Kind::layout || kind == Kind::reduce || kind == Kind::index || kind == Kind::contract ||
         kind == Kind::window || kind == Kind::scan;
}

GradientReads reads_of_row(const OpDef& op, std::span<const Tensor> inputs, const AttributesView& attributes,
                           std::span<const Tensor> outputs, const std::vector<bool>& wanted) {
  GradientReads out;
  try {
    Probe probe(op, inputs, attributes, outputs, wanted);
    out = probe.reads();
    if (!may_be_linear(op.kind) || probe.reads_results()) return out;
    out.together = std::find(out.inputs.begin(), out.inputs.end(), true) == out.inputs.end();
    out.multilinear = true;
    for (std::size_t i = 0; out.multilinear && !out.together && i < inputs.size(); ++i) {
      if (!wanted[i] || !floating(inputs[i])) continue;
      std::vector<bool> alone(inputs.size(), false);
      alone[i] = true;
      out.multilinear = !Probe(op, inputs, attributes, outputs, alone).reads().inputs[i];
    }
    return out;
  } catch (const Error&) {
    return everything(inputs.size(), outputs.size());  // it has no gradient, and says so when it is asked for
  }
}

struct RowKey {
  const OpDef* op;
  Attributes attributes;  // with sizes taken out
  std::string form;       // dtypes and ranks, and what is wanted
  bool operator==(const RowKey& other) const {
    return op == other.op && form == other.form && attributes == other.attributes;
  }
};
struct RowKeyHash {
  std::size_t operator()(const RowKey& key) const {
    return attribute::mix(attribute::mix(reinterpret_cast<std::size_t>(key.op), key.attributes.hash()),
                          std::hash<std::string>()(key.form));
  }
};
struct KnownRows {
  std::unordered_map<RowKey, std::shared_ptr<const GradientReads>, RowKeyHash> known;
};
constexpr std::size_t most_known_rows = 4096;
constinit thread_local KnownRows* this_thread_rows = nullptr;

std::string form_of(std::span<const Tensor> tensors) {
  std::string out;
  for (const Tensor& tensor : tensors) {
    out += static_cast<char>(tensor.dtype());
    out += static_cast<char>(tensor.node()->rank);
  }
  return out + '/';
}

}  // namespace

std::shared_ptr<const GradientReads> gradient_reads(const OpDef& op, std::span<const Tensor> inputs,
                                                    const AttributesView& attributes, std::span<const Tensor> outputs,
                                                    const std::vector<bool>& wanted) {
  if (auto called = reads_of_called_graph(op, attributes)) return called;
  if (&op == &alias_row || &op == &called_gradient_row)  // the function that is called holds what it needs
    return std::make_shared<const GradientReads>(
        GradientReads{std::vector<bool>(inputs.size(), false), std::vector<bool>(outputs.size(), false)});
  if (op.kind != Kind::map && (!op.gradient || op.kind == Kind::structure || op.kind == Kind::branch))
    return std::make_shared<const GradientReads>(everything(inputs.size(), outputs.size()));
  const bool by_body = op.kind == Kind::map && (!op.gradient || op.gradient == map_gradient);
  KnownRows& rows = this_thread_rows ? *this_thread_rows : make_for_this_thread(this_thread_rows);
  RowKey key{&op, Attributes(attributes).map_dims([](const Dim&) { return Dim(0); }), form_of(inputs)};
  if (!by_body) key.form += form_of(outputs);
  for (bool one : wanted) key.form += one ? '1' : '0';
  if (auto found = rows.known.find(key); found != rows.known.end()) return found->second;
  GradientReads made = by_body ? reads_of_map(*map_derivatives(op, inputs, attributes), inputs, wanted)
                               : reads_of_row(op, inputs, attributes, outputs, wanted);
  if (rows.known.size() >= most_known_rows) rows.known.clear();
  return rows.known.emplace(std::move(key), std::make_shared<const GradientReads>(std::move(made))).first->second;
}

}  // namespace stet
