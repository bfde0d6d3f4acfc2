#include "stet/report/graph_def.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/function_state.h"
#include "stet/report/event.h"

// The messages, as protocol buffers (tensorflow/core/framework/graph.proto, node_def.proto and attr_value.proto):
//
//   GraphDef  { repeated NodeDef node = 1; }
//   NodeDef   { string name = 1; string op = 2; repeated string input = 3; map<string, AttrValue> attr = 5; }
//   AttrValue { ListValue list = 1 | bytes s = 2 | DataType type = 6; }    ListValue { repeated TensorShapeProto shape
//   = 7; }

namespace stet::reporting {
namespace {

/// Names of nodes: TensorFlow's characters, each name once.
class Names {
 public:
  std::string made(const std::string& scope, const std::string& name) {
    std::string clean;
    for (char c : text(scope, "/", name)) {
      if (!is_ordinary(c)) c = '_';
      // No part is empty, and none begins with what TensorFlow gives a meaning of its own.
      const bool begins = clean.empty() || clean.back() == '/';
      if (!begins || (c != '/' && c != '_' && c != '-')) clean += c;
    }
    if (clean.ends_with('/')) clean.pop_back();
    if (clean.empty()) clean = "unnamed";
    std::string out = clean;
    for (int& number = used_[clean]; !taken_.insert(out).second;) out = text(clean, "_", ++number);
    return out;
  }

 private:
  static bool is_ordinary(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-' || c == '/';
  }
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> used_;  // numbers behind a name
};

void put_attribute(Proto& node, std::string_view name, const Proto& value) {
  node.message(5, Proto().bytes(1, name).message(2, value));
}
void put_text(Proto& node, std::string_view name, const std::string& value) {
  constexpr std::size_t longest = 1000;
  if (!value.empty()) put_attribute(node, name, Proto().bytes(2, value.substr(0, longest)));
}
void put_types(Proto& node, const std::vector<ValueType>& types) {
  Proto shapes;
  std::vector<std::string> words;
  for (const ValueType& type : types) {
    Proto shape;
    for (const Dim& size : type.shape)
      shape.message(
          2, size.is_constant() ? Proto().integer(1, size.constant()) : Proto().integer(1, -1).bytes(2, text(size)));
    shapes.message(7, shape);
    words.push_back(type.str());
  }
  put_attribute(node, "_output_shapes", Proto().message(1, shapes));
  if (!types.empty()) put_attribute(node, "T", Proto().integer(6, tensorflow_type(types[0].dtype)));
  put_text(node, "type", joined(words, ", "));
}

/// What a value is called where it is used: "sequential/dense/matmul", "sequential/lstm/loop:1".
using References = std::vector<std::string>;

class GraphDef {
 public:
  std::string node(const std::string& scope, const std::string& name, const std::string& op, const References& inputs,
                   const std::vector<ValueType>& types, Where where = {}, const std::string& body = {}) {
    const std::string made = names_.made(scope, name);
    Proto out;
    out.bytes(1, made).bytes(2, op);
    for (const std::string& input : inputs) out.bytes(3, input);
    put_types(out, types);
    put_text(out, "at", where.known() ? at_line(where, "") : std::string());
    put_text(out, "body", body);
    graph_.message(1, out);
    return made;
  }

  /// The nodes of a graph, whose inputs are these values; the values of its results. Nodes that were recorded in
  /// `recorded_in` are put into `box`: a child graph is inside of its node.
  References level(const Graph& graph, const References& inputs, const std::string& recorded_in = {},
                   const std::string& box = {}) {
    References values(graph.nodes.size());
    std::map<std::pair<ValueId, std::string>, std::string> constants;
    // A number stands where it is used, in every part that does.
    auto used_in = [&](ValueId id, const std::string& place) {
      const Node& node = graph.node(id);
      if (node.op != &constant_row) return values[static_cast<std::size_t>(id)];
      std::string& made = constants[{id, place}];
      if (made.empty()) made = this->node(place, "const", "Const", {}, node.results);
      return made;
    };
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (node.op == &input_row) {
        values[i] = inputs[static_cast<std::size_t>(node.attributes.as<InputAttributes>().number)];
      } else if (node.op == &part_row) {
        const int number = node.attributes.as<PartAttributes>().number;
        const std::string& whole = values[static_cast<std::size_t>(node.inputs[0])];
        values[i] = number == 0 ? whole : text(whole, ":", number);
      } else if (node.op != &constant_row) {
        const std::string place = place_of(node, recorded_in, box);
        References given;
        for (ValueId input : node.inputs) given.push_back(used_in(input, place));
        values[i] = computed(node, std::move(given), place);
      }
    }
    References results;
    for (ValueId id : graph.results) results.push_back(used_in(id, box));
    if (graph.raises) results.push_back(this->node(box, "raises", "Raise", {}, {}, {}, graph.raised_text));
    return results;
  }

  std::string str() && { return std::move(graph_).str(); }

 private:
  static std::string joined_path(const std::string& a, const std::string& b) {
    return a.empty() ? b : b.empty() ? a : text(a, "/", b);
  }
  static std::string recorded_scope(const Node& node) { return node.name_scope ? *node.name_scope : std::string(); }
  static std::string place_of(const Node& node, const std::string& recorded_in, const std::string& box) {
    std::string scope = recorded_scope(node);
    if (!recorded_in.empty() && (scope == recorded_in || scope.starts_with(recorded_in + "/")))
      scope = scope == recorded_in ? std::string() : scope.substr(recorded_in.size() + 1);
    const std::string place = joined_path(box, scope);
    // A public function that is made of several ops is a box of its own, unless it is a scope itself, as classes are:
    // layers and metrics.
    const std::string_view caller = node.caller.name ? node.caller.name : "";
    const bool is_class = !caller.empty() && caller[0] >= 'A' && caller[0] <= 'Z';
    const bool says_more = !caller.empty() && !is_class && caller != "gradient" && caller != "apply_gradients" &&
                           caller != "loss" && caller != name_of(node);
    return says_more ? joined_path(place, std::string(caller)) : place;
  }
  static std::string name_of(const Node& node) {
    return *node.label && node.op->kind == Kind::map ? node.label : node.op->name;
  }

  std::string computed(const Node& node, References given, const std::string& place) {
    const std::string name = name_of(node);
    if (node.op->kind == Kind::branch || node.op->kind == Kind::loop) return with_children(node, given, place, name);
    const bool is_map = node.op->kind == Kind::map && node.op != &maps_row;
    return this->node(place, name, node.op->name, given, node.results, node.where,
                      is_map ? node.attributes.as<MapAttributes>().body.str() : std::string());
  }

  /// A box for the node, with a box for every child graph; what it gives depends on what they give.
  std::string with_children(const Node& node, const References& given, const std::string& place,
                            const std::string& name) {
    const std::string box = names_.made(place, name);
    const std::string recorded_in = recorded_scope(node);
    References from;
    auto child = [&](const GraphPointer& graph, const char* side, const References& inputs) {
      if (!graph) return;
      for (std::string& result : level(*graph, inputs, recorded_in, text(box, "/", side)))
        from.push_back(std::move(result));
    };
    if (node.op->kind == Kind::branch) {
      const auto& branch = node.attributes.as<BranchAttributes>();
      from.push_back(given.at(0));
      const References inputs(given.begin() + 1, given.end());
      child(branch.yes, "yes", inputs);
      child(branch.no, "no", inputs);
    } else {
      const auto& loop = node.attributes.as<LoopAttributes>();
      References inputs(given.begin() + loop.first_carried(), given.end());
      if (loop.first_carried() > 0) from.push_back(given.at(0));
      inputs.insert(inputs.begin() + loop.turn_input(),
                    this->node(box, "turn", "Turn", {}, {ValueType{DType::i64, Shape()}}));
      child(loop.condition, "condition", inputs);
      child(loop.body, "body", inputs);
    }
    return this->node(box, "results", node.op->name, from, node.results, node.where);
  }

  Proto graph_;
  Names names_;
};

std::string argument_name(const FunctionBase::State& state, const Entry& entry, std::size_t input) {
  // Which argument a tensor came in is known where every argument is one leaf.
  std::size_t tensors = 0;
  for (std::size_t leaf = 0; leaf < entry.key.size() && entry.key.size() == state.arity; ++leaf) {
    const LeafKey& key = entry.key[leaf];
    const bool comes_in = key.kind == Leaf::size || (key.kind == Leaf::tensor && key.rank != no_tensor_rank);
    if (comes_in && tensors++ == input && leaf < state.arguments.names.size()) return state.arguments.names[leaf];
  }
  return text("argument_", input);
}

/// Where a Variable is shown: by its name, "dense/kernel", and in the part "model/dense" if it is used there.
std::string place_of_variable(const Graph& graph, ValueId input, const std::string& name) {
  const std::size_t slash = name.rfind('/');
  if (slash == std::string::npos) return {};
  const std::string part = name.substr(0, slash), below = "/" + part;
  for (const Node& node : graph.nodes)
    if (node.name_scope && (*node.name_scope == part || node.name_scope->ends_with(below)) &&
        std::find(node.inputs.begin(), node.inputs.end(), input) != node.inputs.end())
      return *node.name_scope;
  return part;
}

std::string last_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string graph_def_of(const FunctionBase& function, int trace, const char* call, Where where) {
  const auto state = std::static_pointer_cast<FunctionBase::State>(function.body());
  const std::vector<std::shared_ptr<Entry>> entries = state->cache.known();
  if (trace < 0 || static_cast<std::size_t>(trace) >= entries.size())
    throw UserError(
        error_text(text(call, ": there is no trace ", trace, " of '", state->name, "'"), where,
                   entries.empty() ? "call the function before" : text("it has ", entries.size(), ", counted from 0")));
  const Entry& entry = *entries[static_cast<std::size_t>(trace)];
  const Graph graph = without_aliases(entry.graph);
  GraphDef out;
  References inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::vector<ValueType> type{graph.type(graph.inputs[i])};
    if (i < entry.arguments) {
      inputs.push_back(out.node({}, argument_name(*state, entry, i), "Placeholder", {}, type));
      continue;
    }
    const Variable& variable = entry.hidden[i - entry.arguments].variable;
    if (!variable.defined()) {
      inputs.push_back(out.node({}, "captured", "Captured", {}, type));
      continue;
    }
    const std::string name = variable.name().empty() ? "variable" : variable.name();
    inputs.push_back(out.node(place_of_variable(graph, graph.inputs[i], name), last_of(name), "Variable", {}, type));
  }
  const References results = out.level(graph, inputs);
  std::vector<int> update_of(results.size(), -1);
  for (const Update& update : graph.updates) update_of[static_cast<std::size_t>(update.result)] = update.input;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const ValueId id = graph.results[r];
    if (update_of[r] < 0) {
      out.node({}, text("result_", r), "Result", {results[r]}, {graph.type(id)});
      continue;
    }
    const std::string& variable = inputs[static_cast<std::size_t>(update_of[r])];
    const Node& maker = graph.node(id);
    out.node(maker.name_scope ? *maker.name_scope : std::string(), text("assign_", last_of(variable)), "Assign",
             {variable, results[r]}, {graph.type(id)}, maker.where);
  }
  return std::move(out).str();
}

}  // namespace stet::reporting
