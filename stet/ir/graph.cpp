#include "stet/ir/graph.h"

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/kept_where.h"

namespace stet {

constinit const OpDef input_row{.name = "input", .kind = Kind::structure, .summary = "An argument."};
constinit const OpDef constant_row{.name = "constant", .kind = Kind::structure, .summary = "Fixed values."};
constinit const OpDef part_row{.name = "part", .kind = Kind::structure, .summary = "One value of a tuple."};
constinit const OpDef size_row{
    .name = "size", .kind = Kind::structure, .summary = "A size as a value.", .infer = [](InferCall& call) {
      const auto& attributes = call.attributes<SizeAttributes>();
      if (!is_floating(attributes.dtype)) {
        SizedText problem = sized_text("the number ", attributes.size, " is out of range for ", attributes.dtype);
        std::string advice = text("allowed are ", row(attributes.dtype).lowest, " to ", row(attributes.dtype).highest,
                                  "; cast the tensor to a wider type");
        call.check(row(attributes.dtype).lowest, Relation::less_equal, attributes.size, problem, advice);
        call.check(attributes.size, Relation::less_equal, row(attributes.dtype).highest, problem, advice);
      }
      call.result(DType::i64, Shape());
    }};
constinit const OpDef need_row{
    .name = "need",
    .kind = Kind::structure,
    .summary = "A relation of sizes that must hold where this stands; nobody uses its value.",
    .infer = [](InferCall& call) {
      const auto& need = call.attributes<NeedAttributes>();
      SizedText problem(need.problem);
      problem.sizes = need.sizes;  // those of the advice follow
      call.scope->check(need.left, need.relation, need.right, {need.asker.c_str(), need.what, call.where()}, problem,
                        SizedText(need.advice));
      call.result(DType::i64, Shape());
    }};
constinit const OpDef alias_row{
    .name = "alias", .kind = Kind::structure, .summary = "Another name for a value.", .infer = [](InferCall& call) {
      call.result(call.dtype(0), call.shape(0));
    }};
constinit const OpDef map_row{.name = "map", .kind = Kind::map, .summary = "An expression at every position."};
constinit const OpDef cond_row{
    .name = "cond", .kind = Kind::branch, .summary = "One of two bodies, chosen by a value."};
constinit const OpDef loop_row{.name = "loop", .kind = Kind::loop, .summary = "A body, run again and again."};
constinit const OpDef rows_row{.name = "rows", .kind = Kind::rows, .summary = "Maps and reductions, row by row."};
constinit const OpDef parameter_row{.name = "parameter",
                                    .kind = Kind::structure,
                                    .summary = "What a turn of a loop begins with.",
                                    .infer = [](InferCall& call) {
                                      const auto& parameter = call.attributes<ParameterAttributes>();
                                      call.result(parameter.dtype, parameter.shape);
                                    }};
constinit const OpDef maps_row{.name = "maps", .kind = Kind::map, .summary = "Expressions at every position."};

ValueId Graph::add(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<ValueId>(nodes.size()) - 1;
}

ValueId Graph::add_input(ValueType type, std::vector<Dim> strides) {
  InputAttributes attributes{static_cast<int>(inputs.size()), std::move(strides)};
  ValueId id = add(
      {.op = &input_row, .inputs = {}, .attributes = Attributes(view_of(attributes)), .results = {std::move(type)}});
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_constant(ValueType type, std::string bytes) {
  ConstantAttributes attributes{std::move(bytes)};
  return add(
      {.op = &constant_row, .inputs = {}, .attributes = Attributes(view_of(attributes)), .results = {std::move(type)}});
}

namespace {

/// A map of the row's body for the inputs' types, or of the body that came as an attribute, over their broadcast.
Node map_node(const Graph& graph, const OpDef& row, std::vector<ValueId> inputs, const Attributes& given, Where where) {
  std::vector<DType> types;
  std::vector<Shape> shapes;
  for (ValueId id : inputs) {
    types.push_back(graph.type(id).dtype);
    shapes.push_back(graph.type(id).shape);
  }
  Expr body = row.body ? instantiate(row, types).body : given.as<MapAttributes>().body;
  Broadcast together = broadcast(shapes, {row.name, "broadcast", where});
  MapAttributes attributes{body, {together.operands.begin(), together.operands.end()}};
  return {.op = &map_row,
          .inputs = std::move(inputs),
          .attributes = Attributes(view_of(attributes)),
          .results = {{body.dtype(), together.result}},
          .label = row.name,
          .where = kept(where)};
}

/// The conditions that shape algebra left with the scope while a row was applied become the graph's: only those are
/// tested when sizes are known.
class ScopeChecks {
 public:
  explicit ScopeChecks(const SymbolScope* scope) : scope_(scope), before_(scope ? scope->checks().size() : 0) {}
  void move_to(std::vector<SizeCheck>& checks) const {
    if (!scope_) return;
    for (const SizeCheck& check : scope_->checks().subspan(before_)) checks.push_back(check);
  }

 private:
  const SymbolScope* scope_;
  std::size_t before_;
};

}  // namespace

namespace {

/// What every size that comes in by an attribute must be: of this graph, and without a division by 0.
void check_attributes(const Attributes& attributes, const SymbolScope& scope, Where where,
                      std::vector<SizeCheck>& checks) {
  if (!attributes.is_symbolic()) return;
  attributes.map_dims([&](const Dim& dim) {
    scope.refuse_foreign(dim, where);
    for (const Division& division : symbolic_divisions(dim))
      if (prove_by_form(division.divisor, Relation::not_equal, 0) != Proof::yes)
        checks.push_back(
            {{division.divisor, Relation::not_equal, 0, {"size", "division", where}}, division.by_zero, {}});
    return dim;
  });
}

}  // namespace

ValueId Graph::add_call(const OpDef& op, std::vector<ValueId> operands, Attributes attributes, Where where) {
  ScopeChecks recorded(scope.get());
  if (scope) check_attributes(attributes, *scope, where, checks);
  if (op.kind == Kind::map) {
    Node node = map_node(*this, op, std::move(operands), attributes, where);
    recorded.move_to(checks);
    return add(std::move(node));
  }
  if (&op == &part_row) {
    const Node& tuple = node(operands[0]);
    ValueType type = tuple.results[static_cast<std::size_t>(attributes.as<PartAttributes>().number)];
    return add({.op = &op,
                .inputs = std::move(operands),
                .attributes = std::move(attributes),
                .results = {std::move(type)},
                .where = tuple.where});
  }
  std::vector<ValueType> types;
  for (ValueId id : operands) types.push_back(type(id));
  InferCall call(op.name, types, attributes.view(), where);
  call.scope = scope.get();
  op.infer(call);
  for (SizeCheck& check : call.checks()) checks.push_back(std::move(check));
  recorded.move_to(checks);
  return add({.op = &op,
              .inputs = std::move(operands),
              .attributes = std::move(attributes),
              .results = std::move(call.results()),
              .label = op.name,
              .where = kept(where)});
}

std::vector<ValueId> Graph::add_parts(ValueId tuple) {
  std::size_t count = node(tuple).results.size();
  if (count == 1) return {tuple};
  std::vector<ValueId> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(add_call(part_row, {tuple}, Attributes(view_of(PartAttributes{static_cast<int>(i)}))));
  return out;
}

std::vector<const char*> ops_of(const Node& node) {
  return node.made_of ? *node.made_of : std::vector<const char*>{label_of(node)};
}

void note_made_of(Node& node, std::vector<const char*> ops) {
  node.made_of = std::make_shared<const std::vector<const char*>>(std::move(ops));
  node.apart = nullptr;
}

const char* label_of(const Node& node) {
  return *node.label && node.op->kind == Kind::map ? node.label : node.op->name;
}

std::string Graph::str() const {
  std::string out;
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    const Node& node = nodes[id];
    out += text("%", id, " = ", node.op ? node.op->name : "?");  // the verifier shows broken graphs too
    if (node.op == &map_row && *node.label) out += text("<", node.label, ">");
    if (node.op == &part_row) out += text("(", node.attributes.as<PartAttributes>().number, ")");
    for (const ValueType& type : node.results) out += text(" ", type);
    if (!node.inputs.empty()) {
      out += " (";
      for (std::size_t i = 0; i < node.inputs.size(); ++i) out += text(i ? ", %" : "%", node.inputs[i]);
      out += ")";
    }
    if (node.op == &constant_row)
      out += text(" ", node.attributes.as<ConstantAttributes>().bytes.size(), " bytes");
    else if (node.op != &part_row && node.attributes)
      out += text(" ", node.attributes);
    out += "\n";
  }
  if (raises) return out + text("raises ", raised_text, "\n");
  out += "results";
  for (ValueId id : results) out += text(" %", id);
  out += "\n";
  for (const Update& update : updates) out += text("result ", update.result, " updates input ", update.input, "\n");
  return out;
}

Graph substitute(const Graph& given, std::span<const Dim> replacements) {
  return map_dims(given, [&](const Dim& dim) { return dim.substitute(replacements); });
}

Graph map_dims(const Graph& given, const std::function<Dim(const Dim&)>& replace) {
  Graph graph = given;
  for (Node& node : graph.nodes) {
    node.attributes = node.attributes.map_dims(replace);
    for (ValueType& type : node.results) attribute::map_dims(type.shape, replace);
  }
  for (SizeCheck& check : graph.checks) {
    check.fact.left = replace(check.fact.left);
    check.fact.right = replace(check.fact.right);
    for (Dim& size : check.sizes) size = replace(size);
  }
  return graph;
}

Graph without_aliases(const Graph& given) {
  Graph graph = given;
  graph.nodes.clear();
  std::vector<ValueId> to;
  for (const Node& old : given.nodes) {
    if (old.op == &alias_row) {
      to.push_back(to[static_cast<std::size_t>(old.inputs[0])]);
      continue;
    }
    Node node = old;
    for (ValueId& input : node.inputs) input = to[static_cast<std::size_t>(input)];
    to.push_back(graph.add(with_children(std::move(node), without_aliases)));
  }
  for (ValueId& id : graph.inputs) id = to[static_cast<std::size_t>(id)];
  for (ValueId& id : graph.results) id = to[static_cast<std::size_t>(id)];
  return graph;
}

namespace attribute {

std::string str(const GraphPointer& graph) {
  if (!graph) return "none";
  std::string out = "{\n  ";
  for (char c : graph->str()) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out + "}";
}

void map_dims(GraphPointer& graph, const std::function<Dim(const Dim&)>& f) {
  if (graph) graph = std::make_shared<const Graph>(stet::map_dims(*graph, f));
}

}  // namespace attribute

std::vector<GraphPointer> children(const Node& node) {
  if (node.op->kind == Kind::branch) {
    const auto& branch = node.attributes.as<BranchAttributes>();
    return {branch.yes, branch.no};
  }
  if (node.op->kind != Kind::loop) return {};
  const auto& loop = node.attributes.as<LoopAttributes>();
  if (loop.condition) return {loop.body, loop.condition};
  return {loop.body};
}

Node with_children(Node node, const std::function<Graph(const Graph&)>& replace) {
  auto replaced = [&](GraphPointer& child) {
    if (child) child = std::make_shared<const Graph>(replace(*child));
  };
  if (node.op->kind == Kind::branch) {
    BranchAttributes branch = node.attributes.as<BranchAttributes>();
    replaced(branch.yes);
    replaced(branch.no);
    node.attributes = Attributes(view_of(branch));
  } else if (node.op->kind == Kind::loop) {
    LoopAttributes loop = node.attributes.as<LoopAttributes>();
    replaced(loop.body);
    replaced(loop.condition);
    node.attributes = Attributes(view_of(loop));
  }
  return node;
}

bool has_effect(const Node& node) {
  if (node.op->has_effect) return true;
  for (const GraphPointer& child : children(node)) {
    if (child->raises || !child->checks.empty()) return true;
    for (const Node& inner : child->nodes)
      if (has_effect(inner)) return true;
  }
  return false;
}

std::vector<std::vector<int>> users(const Graph& graph) {
  std::vector<std::vector<int>> out(graph.nodes.size());
  for (std::size_t id = 0; id < graph.nodes.size(); ++id)
    for (ValueId input : graph.nodes[id].inputs) out[static_cast<std::size_t>(input)].push_back(static_cast<int>(id));
  for (ValueId id : graph.results) out[static_cast<std::size_t>(id)].push_back(-1);
  return out;
}

namespace {

void verify_map(const Node& node, const Graph& graph, const std::function<void(bool, const char*)>& ensure) {
  bool several = node.op == &maps_row;
  const std::vector<AxisMap>& axes =
      several ? node.attributes.as<MapsAttributes>().axes : node.attributes.as<MapAttributes>().axes;
  std::vector<Expr> bodies;
  if (several)
    bodies = node.attributes.as<MapsAttributes>().bodies;
  else
    bodies.push_back(node.attributes.as<MapAttributes>().body);
  ensure(bodies.size() == node.results.size() && several == (bodies.size() > 1), "a body per result");
  ensure(axes.size() == node.inputs.size(), "as many axis maps as inputs");
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    ensure(axes[i].rank == node.type().shape.rank(), "an axis map of the result's rank");
    for (int axis = 0; axis < axes[i].rank; ++axis) {
      int from = axes[i].axes[static_cast<std::size_t>(axis)];
      ensure(from < graph.type(node.inputs[i]).shape.rank(), "an axis map within the operand's rank");
    }
  }
  for (std::size_t r = 0; r < bodies.size(); ++r) {
    ensure(bodies[r].defined(), "a map without a body");
    verify(bodies[r]);
    ensure(bodies[r].dtype() == node.results[r].dtype, "the body's type is not the result's");
    ensure(identical(node.results[r].shape, node.type().shape), "maps of one shape");
    ensure(bodies[r].operand_count() <= static_cast<int>(node.inputs.size()), "the body has more operands than inputs");
    for (Expr e : topological(bodies[r]))
      if (e.is(Primitive::operand))
        ensure(e.dtype() == graph.type(node.inputs[static_cast<std::size_t>(e->number)]).dtype,
               "an operand of its input's type");
  }
}

void verify_branch(const Node& node, const Graph& graph, const char* after,
                   const std::function<void(bool, const char*)>& ensure) {
  const auto& branch = node.attributes.as<BranchAttributes>();
  ensure(!node.inputs.empty() && identical(graph.type(node.inputs[0]), {DType::bool_, Shape()}),
         "a branch is chosen by a bool scalar");
  for (const GraphPointer& child : {branch.yes, branch.no}) {
    ensure(child != nullptr, "a branch has two children");
    verify(*child, after);
    ensure(child->inputs.size() + 1 == node.inputs.size(), "a branch's inputs are its children's");
    for (std::size_t i = 0; i < child->inputs.size(); ++i)
      ensure(identical(child->type(child->inputs[i]), graph.type(node.inputs[i + 1])), "with the same types");
    ensure(child->raises || child->results.size() == node.results.size(), "a branch's results are its children's");
  }
}

void verify_loop(const Node& node, const Graph& graph, const char* after,
                 const std::function<void(bool, const char*)>& ensure) {
  const auto& loop = node.attributes.as<LoopAttributes>();
  ensure(loop.body != nullptr && (loop.condition != nullptr) == (loop.count == LoopAttributes::by_condition),
         "a loop has a body, and a condition if it is counted by one");
  ensure(loop.carried >= 0 && loop.sequences >= 0 && static_cast<int>(node.inputs.size()) >= loop.first_captured(),
         "a loop has its inputs");
  if (loop.count == LoopAttributes::by_value)
    ensure(identical(graph.type(node.inputs[0]), {DType::i64, Shape()}), "a loop is counted by an i64 scalar");
  std::vector<ValueType> given;
  for (int i = loop.first_carried(); i < static_cast<int>(node.inputs.size()); ++i) {
    if (i == loop.first_captured()) given.push_back({DType::i64, Shape()});
    ValueType type = graph.type(node.inputs[static_cast<std::size_t>(i)]);
    if (i >= loop.first_sequence() && i < loop.first_captured()) {
      ensure(type.shape.rank() > 0, "a sequence has an element for every turn");
      type.shape = Shape(std::vector<Dim>(type.shape.begin() + 1, type.shape.end()));
    }
    given.push_back(std::move(type));
  }
  if (static_cast<int>(node.inputs.size()) == loop.first_captured()) given.push_back({DType::i64, Shape()});
  for (const GraphPointer& child : children(node)) {
    verify(*child, after);
    ensure(child->inputs.size() == given.size(), "a loop's inputs are its children's");
    for (std::size_t i = 0; i < given.size(); ++i)
      ensure(identical(child->type(child->inputs[i]), given[i]), "with the same types");
  }
  if (loop.condition)
    ensure(loop.condition->raises || (loop.condition->results.size() == 1 &&
                                      loop.condition->type(loop.condition->results[0]).dtype == DType::bool_),
           "a condition gives a bool");
  ensure(loop.body->raises || loop.body->results.size() == node.results.size(), "a loop's results are its body's");
  for (std::size_t r = 0; r < node.results.size() && !loop.body->raises; ++r) {
    const ValueType &inner = loop.body->type(loop.body->results[r]), &outer = node.results[r];
    bool stacked = static_cast<int>(r) >= loop.carried;
    ensure(inner.dtype == outer.dtype && inner.shape.rank() + stacked == outer.shape.rank(), "of the same types");
  }
}

void verify_rows(const Node& node, const Graph& graph, const char* after,
                 const std::function<void(bool, const char*)>& ensure) {
  const auto& rows = node.attributes.as<RowsAttributes>();
  ensure(rows.child != nullptr && rows.outer > 0 && rows.outer < rows.space.rank(), "rows have a child and a space");
  verify(*rows.child, after);
  ensure(rows.child->inputs.size() == node.inputs.size(), "the inputs of rows are their child's");
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    ensure(identical(rows.child->type(rows.child->inputs[i]), graph.type(node.inputs[i])), "with the same types");
  ensure(rows.child->results.size() == node.results.size(), "the results of rows are their child's");
  for (std::size_t r = 0; r < node.results.size(); ++r)
    ensure(identical(rows.child->type(rows.child->results[r]), node.results[r]), "of the same types");
}

void verify_updates(const Graph& graph, const char* after) {
  std::vector<bool> replaced(graph.inputs.size(), false), used(graph.results.size(), false);
  for (const Update& update : graph.updates) {
    auto input = static_cast<std::size_t>(update.input), result = static_cast<std::size_t>(update.result);
    bool exist = input < replaced.size() && result < used.size();
    if (exist) {
      const ValueType &old = graph.type(graph.inputs[input]), &next = graph.type(graph.results[result]);
      exist = !replaced[input] && !used[result] && old.dtype == next.dtype && old.shape.rank() == next.shape.rank();
      replaced[input] = used[result] = true;
    }
    if (!exist)
      throw InternalError(text("graph after ", after, ": result ", update.result, " cannot update input ", update.input,
                               "\n", graph.str()));
  }
}

}  // namespace

void verify(const Graph& graph, const char* after) {
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    auto ensure = [&](bool condition, const char* rule) {
      if (!condition)
        throw InternalError(text("graph after ", after, ": node %", id, " ", node.op ? node.op->name : "?",
                                 " breaks the rule: ", rule, "\n", graph.str()));
    };
    ensure(node.op != nullptr, "every node has a row");
    ensure(!node.results.empty(), "every node has a result");
    for (ValueId input : node.inputs) {
      ensure(input >= 0 && static_cast<std::size_t>(input) < id, "inputs come first");
      bool tuple = graph.node(input).results.size() > 1;
      ensure(!tuple || node.op == &part_row, "only part() reads a tuple");
    }
    if (node.op == &map_row || node.op == &maps_row) verify_map(node, graph, ensure);
    if (node.op == &part_row) {
      ensure(node.inputs.size() == 1, "part() has one input");
      const Node& tuple = graph.node(node.inputs[0]);
      int number = node.attributes.as<PartAttributes>().number;
      ensure(number >= 0 && number < static_cast<int>(tuple.results.size()), "part() is within its tuple");
      ensure(identical(node.type(), tuple.results[static_cast<std::size_t>(number)]), "part() has its type");
    }
    if (node.op->kind == Kind::branch) verify_branch(node, graph, after, ensure);
    if (node.op->kind == Kind::loop) verify_loop(node, graph, after, ensure);
    if (node.op->kind == Kind::rows) verify_rows(node, graph, after, ensure);
    if (node.op == &input_row) {
      int number = node.attributes.as<InputAttributes>().number;
      ensure(number >= 0 && number < static_cast<int>(graph.inputs.size()) &&
                 graph.inputs[static_cast<std::size_t>(number)] == static_cast<ValueId>(id),
             "inputs are listed");
    }
    if (node.op == &constant_row) {
      ensure(node.type().shape.is_constant(), "a constant has a constant shape");
      Dim bytes = node.type().shape.element_count() * size_of(node.type().dtype);
      ensure(static_cast<std::int64_t>(node.attributes.as<ConstantAttributes>().bytes.size()) == bytes.constant(),
             "a constant has the bytes of its type");
    }
  }
  auto exists = [&](ValueId id) { return id >= 0 && static_cast<std::size_t>(id) < graph.nodes.size(); };
  for (std::size_t number = 0; number < graph.inputs.size(); ++number)
    if (ValueId id = graph.inputs[number]; !exists(id) || graph.node(id).op != &input_row)
      throw InternalError(text("graph after ", after, ": argument ", number, " is %", id, ", which is no input node"));
  for (ValueId id : graph.results) {
    if (!exists(id)) throw InternalError(text("graph after ", after, ": result %", id, " does not exist"));
    if (graph.node(id).results.size() > 1)
      throw InternalError(text("graph after ", after, ": result %", id, " is a tuple"));
  }
  verify_updates(graph, after);
}

}  // namespace stet
