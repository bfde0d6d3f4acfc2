#include "stet/core/host_function.h"

#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/host_code_run.h"
#include "stet/core/tensor_node.h"
#include "stet/core/variable_overlay.h"

namespace stet {

Shape HostFunction::argument_shape(Trace& trace, const Tensor& tensor, std::size_t number, const std::string& symbol,
                                   const Settings& settings, std::map<std::string, Dim>& named) const {
  Shape shape;
  const TensorNode& node = *tensor.node();
  auto size_of_axis = [&](int axis) {
    int next = trace.symbols().symbol_count();
    return settings.sizes ? (*settings.sizes)[static_cast<std::size_t>(next)] : node.sizes[axis];
  };
  for (int axis = 0; axis < node.rank; ++axis) {
    std::string dim_name = text(symbol, "_", axis);
    if (!options_.signature.empty()) {
      const DimSpec& dim = options_.signature[number].shape.dims[static_cast<std::size_t>(axis)];
      if (dim.size) {
        shape.push_back(*dim.size);
        continue;
      }
      if (!dim.name.empty()) {
        auto known = named.find(dim.name);
        if (known == named.end())
          known = named.emplace(dim.name, trace.symbols().symbol(dim.name, size_of_axis(axis))).first;
        shape.push_back(known->second);
        continue;
      }
    }
    shape.push_back(trace.symbols().symbol(dim_name, size_of_axis(axis)));
  }
  return shape;
}

Dim HostFunction::argument_size(Trace& trace, const Dim& given, const std::string& symbol,
                                const Settings& settings) const {
  auto next = static_cast<std::size_t>(trace.symbols().symbol_count());
  return trace.symbols().symbol(symbol, settings.sizes ? (*settings.sizes)[next] : given.constant());
}

int HostFunction::add_arguments(Trace& trace, const Leaves& given, const std::vector<int>& owners,
                                const Settings& settings, Leaves& traced) const {
  std::map<std::string, Dim> named;
  std::map<int, int> leaves_of;  // by argument
  for (int owner : owners) ++leaves_of[owner];
  int inputs = 0;
  std::size_t tensors = 0;  // as the signature counts them
  for (std::size_t i = 0; i < traced.size(); ++i) {
    if (traced[i].kind == Leaf::size) {
      traced[i].length = argument_size(trace, given[i].length, arguments_.in(owners[i], given[i].path), settings);
      trace.add_argument({DType::bool_, {traced[i].length}});
      ++inputs;
    }
    if (traced[i].kind != Leaf::tensor) continue;
    const std::size_t number = tensors++;
    const Tensor& tensor = given[i].value;
    if (!tensor.defined()) continue;
    std::string symbol = arguments_.in(owners[i]);
    if (leaves_of[owners[i]] > 1) symbol += text("_", inputs);
    traced[i].value =
        trace.add_argument({tensor.dtype(), argument_shape(trace, tensor, number, symbol, settings, named)});
    if (tensor.node()->weak) creation::as_number(traced[i].value);
    ++inputs;
  }
  return inputs;
}

TracedRun HostFunction::run(const Leaves& given, const std::vector<int>& owners, const Settings& settings) const {
  TracedRun out;
  Trace trace(name_, settings.yes_first);
  trace.may_create = settings.created != nullptr;
  trace.is_audit = settings.audit;
  OpenTrace open(trace);
  Leaves traced = given;
  const int tensors = add_arguments(trace, given, owners, settings, traced);
  out.arguments = static_cast<std::size_t>(tensors);
  out.argument_symbols = trace.symbols().symbol_count();
  if (!options_.signature.empty()) trace.symbols().declare_unknown();
  Leaves results = trace.run_scope([&] { return body(traced); }, where);
  if (settings.created) *settings.created = trace.created.size();
  out.apart = trace.apart;
  for (Leaf& leaf : results) {
    if (leaf.kind == Leaf::size) {
      leaf.undefined = leaf.length.is_constant();
      if (leaf.undefined) continue;
      trace.graph.results.push_back(trace.lift(trace.size_value(leaf.length, DType::i64, where), where));
      leaf.length = 0;
    }
    if (leaf.kind == Leaf::tensor) {
      leaf.undefined = !leaf.value.defined();
      if (leaf.undefined) continue;
      trace.graph.results.push_back(trace.lift(leaf.value, where));
      leaf.weak = leaf.value.node()->weak;
      leaf.value = Tensor();
    }
  }
  for (std::uint64_t id : trace.variable_order()) {
    TracedVariable& variable = trace.variable(id);
    out.used.push_back(variable.variable);
    if (!variable.written) continue;
    int input = trace.graph.node(variable.initial).attributes.as<InputAttributes>().number;
    trace.graph.updates.push_back({input, static_cast<int>(trace.graph.results.size())});
    trace.graph.results.push_back(variable.current);
    out.written.push_back(variable.variable);
  }
  out.hidden = std::move(trace.hidden);
  out.result_form = std::move(results);
  out.graph = trace.finished();
  traced.clear();
  out.left_behind = trace.left_behind();
  return out;
}

TracedRun HostFunction::traced(const Leaves& leaves, const std::vector<int>& owners, Where call_where) const {
  // What a trace does to Variables outside of the program (drawing first values, say) counts only if it succeeds.
  VariableOverlay tentative;
  std::size_t created = 0;
  TracedRun first = run(leaves, owners, {.created = &created});
  // A run that made Variables was for building: the one that counts finds them made, as every later call does.
  if (created > 0) {
    MutedPrint muted;
    first = run(leaves, owners, {});
  }
  {
    MutedPrint muted;
    VariableOverlay dropped;
    std::vector<std::int64_t> sizes = other_sizes(first);
    TracedRun second = run(leaves, owners, {.sizes = &sizes, .yes_first = false});
    if (std::optional<RunDifference> found = difference_between(first, second))
      refuse(first, *found, leaves, owners, call_where);
  }
  tentative.commit();
  return first;
}

TracedRun HostFunction::looked_at(const Leaves& leaves, const std::vector<int>& owners) const {
  MutedPrint muted;
  VariableOverlay tentative;
  std::size_t created = 0;
  TracedRun out = run(leaves, owners, {.created = &created});
  tentative.commit();
  return out;
}

void HostFunction::refuse(const TracedRun& first, const RunDifference& found, const Leaves& leaves,
                          const std::vector<int>& owners, Where call_where) const {
  // Which of the things that were changed makes the difference? Nothing, if the code differs by itself.
  auto differs = [&](const Settings& settings) -> std::optional<RunDifference> {
    try {
      return difference_between(first, run(leaves, owners, settings));
    } catch (const std::exception&) {
      return found;
    }
  };
  auto failure = [&](const std::string& how, const RunDifference& at, const std::string& advice) {
    return TraceError(error_text(
        text("tracing '", name_, "' ", how, at_line(at.where, "; they part at "), ": ", at.first, ", then ", at.second),
        call_where, advice));
  };
  if (std::optional<RunDifference> by_itself = differs({}))
    throw failure(
        "twice gave two different programs", *by_itself,
        "what host code computes (random numbers, clocks, counters) is frozen into the trace: pass it as an argument, "
        "use stet::random, or a Variable");
  if (std::optional<RunDifference> by_order = differs({.yes_first = false}))
    throw failure(
        "with the sides of an if (tensor) in the other order gave two different programs", *by_order,
        "host code keeps something from one side of a decision (a number, a flag, a list): both sides are run while "
        "tracing; return it as a Tensor from the function, layer or stet::scope that decides");
  throw failure(
      "with other sizes gave two different programs", found,
      "host code looks at sizes in a way that the trace does not see: use x.dim(i) as a Dim in ops, or int(x.dim(i)), "
      "which makes the size a fact of the trace");
}

std::optional<RunDifference> HostFunction::changed_since(const TracedRun& known, const Leaves& leaves,
                                                         const std::vector<int>& owners, bool turned) const {
  MutedPrint muted;
  VariableOverlay dropped;
  // With the sizes that it was traced with: others may obey its facts and raise questions that it did not have.
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < known.argument_symbols; ++i) sizes.push_back(known.graph.scope->symbol_hint(i).value_or(0));
  try {
    return difference_between(known, run(leaves, owners, {.sizes = &sizes, .yes_first = !turned, .audit = true}));
  } catch (const std::exception& error) {
    std::string text = error.what();
    return RunDifference{"no exception", "an exception: " + text.substr(0, text.find('\n')), {}};
  }
}

}  // namespace stet
