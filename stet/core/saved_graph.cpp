#include "stet/core/saved_graph.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/kept_where.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/base/version.h"
#include "stet/core/custom_gradient.h"
#include "stet/core/host_code_run.h"
#include "stet/core/saved_rows.h"

namespace stet {
namespace {

/// In files by name: numbers of primitives may change from version to version.
constexpr const char* primitive_names[] = {
    "operand",    "index",       "constant",   "add",    "subtract",    "multiply",     "divide",      "modulo",
    "minimum",    "maximum",     "power",      "negate", "absolute",    "floor",        "ceil",        "round",
    "sqrt",       "exp",         "log",        "sin",    "cos",         "tanh",         "erf",         "erfc",
    "exp2",       "expm1",       "log2",       "log10",  "erfinv",      "log_gamma",    "digamma",     "atan2",
    "fma",        "less",        "less_equal", "equal",  "logical_and", "logical_or",   "logical_xor", "logical_not",
    "shift_left", "shift_right", "select",     "cast",   "bitcast",     "select_rarely"};
static_assert(std::size(primitive_names) == static_cast<std::size_t>(Primitive::select_rarely) + 1);

constexpr std::size_t most_expressions = 1 << 14;  // in one body: real ones have some hundreds
constexpr int deepest_expression = 1 << 10;
constexpr int most_operands = 1 << 12;  // of a node
constexpr std::int64_t most_constant_elements = 16;

const char* const advice_for_code =
    "a file holds ops alone: compute it with ops, or outside of the function, and pass it as an argument";

bool is_ordinary(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == '+' || c == ' ' || c == ':';
}

std::string last_part(const char* path) {
  std::string_view whole(path);
  return std::string(whole.substr(whole.find_last_of("/\\") + 1));
}

/// The nodes of a graph that a file has: not those of ways back that went into child graphs, nor those that only carry
/// checks, which the graph has itself.
std::vector<bool> left_out(const Graph& graph) {
  std::vector<bool> gone;
  for (const Node& node : graph.nodes) gone.push_back(is_void(node, gone));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].op == &need_row) gone[i] = true;
  return gone;
}

}  // namespace

const char* kept_word(const std::string& word) {
  static constexpr std::size_t most = 20000, longest = 100;
  struct Known {
    Lock guard;
    std::unordered_set<std::string> words;
  };
  static Known* const known = new Known;  // never destroyed: see thread_end.h
  if (word.empty() || word.size() > longest || !std::all_of(word.begin(), word.end(), is_ordinary)) return "";
  std::lock_guard lock(known->guard);
  if (known->words.size() >= most && !known->words.contains(word)) return "";
  known->words.insert(word);
  return kept(word.c_str());
}

std::size_t SavedNames::number(const std::string& name) {
  auto [found, added] = numbers_.emplace(name, names_.size());
  if (added) names_.push_back(name);
  return found->second;
}

void SavedNames::write(SavedWriter& to) const {
  to.u32(names_.size());
  for (const std::string& name : names_) to.text(name);
}

void write_check(SavedWriter& to, const SizeCheck& check) {
  to.size(check.fact.left);
  to.u8(static_cast<std::uint8_t>(check.fact.relation));
  to.size(check.fact.right);
  to.text(check.fact.reason.asker);
  to.text(check.fact.reason.what);
  to.text(last_part(check.fact.reason.where.file));
  to.u32(static_cast<std::uint64_t>(std::max(check.fact.reason.where.line, 0)));
  to.text(check.problem);
  to.text(check.advice);
  to.u32(check.sizes.size());
  for (const Dim& size : check.sizes) to.size(size);
  to.text(check.op);
  to.text(last_part(check.where.file));
  to.u32(static_cast<std::uint64_t>(std::max(check.where.line, 0)));
}

SizeCheck read_check(SavedReader& from) {
  Dim left = from.size("left side");
  const std::uint8_t relation = from.u8("relation");
  if (relation > static_cast<std::uint8_t>(Relation::less_equal))
    from.fail(text("there is no relation ", int{relation}));
  Dim right = from.size("right side");
  auto place = [&] {
    const char* file = kept_word(from.text("file"));
    const std::uint32_t line = from.u32("line");
    return Where{file, static_cast<int>(line & 0x7fffffff)};
  };
  Reason reason;
  reason.asker = kept_word(from.text("asker"));
  reason.what = from.text("what");
  reason.where = place();
  const std::string problem = from.text("problem"), advice = from.text("advice");
  std::vector<Dim> sizes;
  for (std::size_t i = from.count(1, "sizes"); i > 0; --i) sizes.push_back(from.size("size of a message"));
  SizeCheck out(Fact{std::move(left), static_cast<Relation>(relation), std::move(right), std::move(reason)}, problem,
                advice);
  out.sizes = std::move(sizes);
  out.op = from.text("op");
  out.where = place();
  return out;
}

// --- writing

void GraphWriter::write_place(Where place) {
  to.u32(sources.number(place.known() ? last_part(place.file) : std::string()));
  to.u32(static_cast<std::uint64_t>(std::max(place.line, 0)));
}

void GraphWriter::write(const Graph& graph, int depth) {
  const std::vector<bool> gone = left_out(graph);
  std::vector<ValueId> now(graph.nodes.size(), -1);
  std::size_t kept_nodes = 0;
  for (std::size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) now[i] = static_cast<ValueId>(kept_nodes++);
  to.u32(kept_nodes);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (gone[i]) continue;
    Node node = graph.nodes[i];
    for (ValueId& input : node.inputs) input = now[static_cast<std::size_t>(input)];
    write_node(node, graph, depth);
  }
  auto list = [&](const std::vector<ValueId>& ids) {
    to.u32(ids.size());
    for (ValueId id : ids) to.u32(static_cast<std::uint64_t>(now[static_cast<std::size_t>(id)]));
  };
  list(graph.inputs);
  to.u8(graph.raises != nullptr);
  if (graph.raises)
    to.text(graph.raised_text);
  else
    list(graph.results);
  to.u32(graph.checks.size());
  for (const SizeCheck& check : graph.checks) write_check(to, check);
}

void GraphWriter::write_node(const Node& node, const Graph&, int depth) {
  to.u32(ops.number(node.op->name));
  to.u32(node.inputs.size());
  for (ValueId input : node.inputs) to.u32(static_cast<std::uint64_t>(input));
  to.u32(node.results.size());
  for (const ValueType& type : node.results) {
    to.dtype(type.dtype);
    to.shape(type.shape);
  }
  to.text(node.label);
  write_place(node.where);
  to.text(node.caller.name ? node.caller.name : "");
  to.u8(node.caller.words != nullptr);
  if (const IndexWords* words = node.caller.words) {
    for (const char* word : {words->index, words->place, words->among, words->advice}) to.text(word ? word : "");
    to.u8(words->from_end);
  }
  write_attributes(node, depth);
}

void GraphWriter::write_attributes(const Node& node, int depth) {
  if (node.op == &input_row) return;
  if (node.op == &constant_row) return to.text(node.attributes.as<ConstantAttributes>().bytes);
  if (node.op == &part_row) return to.u32(static_cast<std::uint64_t>(node.attributes.as<PartAttributes>().number));
  if (node.op == &size_row) {
    to.size(node.attributes.as<SizeAttributes>().size);
    return to.dtype(node.attributes.as<SizeAttributes>().dtype);
  }
  if (node.op == &alias_row) {
    const auto& alias = node.attributes.as<AliasAttributes>();
    to.u8(alias.kind);
    to.u8(alias.trainable);
    if (alias.kind != AliasAttributes::read) return;
    auto variable = variables.find(alias.variable);
    if (variable == variables.end()) throw InternalError("export: a reading of a Variable that is no input");
    return to.u32(variable->second);
  }
  if (node.op == &map_row) {
    const Expr& body = node.attributes.as<MapAttributes>().body;
    std::vector<Expr> order;
    std::unordered_map<const ExprNode*, std::size_t> numbers;
    // Arguments first, and what is stated of derivatives: ids ascend in the order of making.
    std::vector<Expr> open{body};
    while (!open.empty()) {
      Expr e = open.back();
      open.pop_back();
      if (!e.defined() || !numbers.emplace(&*e, 0).second) continue;
      order.push_back(e);
      for (const Expr& argument : e->arguments) open.push_back(argument);
      open.push_back(e->derivative);
    }
    std::sort(order.begin(), order.end(), [](const Expr& a, const Expr& b) { return a->id < b->id; });
    for (std::size_t i = 0; i < order.size(); ++i) numbers[&*order[i]] = i;
    to.u32(order.size());
    for (const Expr& e : order) {
      to.u32(ops.number(primitive_names[static_cast<std::size_t>(e->primitive)]));
      to.dtype(e->dtype);
      to.u8(e->custom_derivative);
      if (e.is(Primitive::constant)) to.u64(e->bits);
      if (e.is(Primitive::operand) || e.is(Primitive::index)) to.u32(static_cast<std::uint64_t>(e->number));
      if (e->custom_derivative) {
        for (const Expr* part : {&e->arguments[0], &e->arguments[1], &e->derivative}) to.u32(numbers.at(&**part));
      } else {
        to.u8(e->argument_count);
        for (int i = 0; i < e->argument_count; ++i) to.u32(numbers.at(&*e->arguments[i]));
      }
    }
    return to.u32(numbers.at(&*body));
  }
  if (node.op == &cond_row) {
    const auto& branch = node.attributes.as<BranchAttributes>();
    write(*branch.yes, depth + 1);
    return write(*branch.no, depth + 1);
  }
  if (node.op == &loop_row) {
    const auto& loop = node.attributes.as<LoopAttributes>();
    to.u8(loop.count);
    to.size(loop.turns);
    to.u32(static_cast<std::uint64_t>(loop.carried));
    to.u32(static_cast<std::uint64_t>(loop.sequences));
    to.u8(loop.reverse);
    to.u8(loop.recompute);
    write(*loop.body, depth + 1);
    if (loop.condition) write(*loop.condition, depth + 1);
    return;
  }
  if (node.op == &custom_gradient_row) {
    const auto& custom = node.attributes.as<CustomGradientNode>();
    to.u32(custom.values);
    to.u32(custom.arguments);
    to.u32(custom.gradient_of.size());
    for (int argument : custom.gradient_of) to.u32(static_cast<std::uint64_t>(argument));
    return write(*custom.backward, depth + 1);
  }
  if (node.op->has_effect) {
    const std::optional<SavedEffect> effect = saved_effect(*node.attributes.as<HostCodeAttributes>().code);
    if (!effect)
      throw UserError(error_text(text("export_function: '", function, "' has a ", node.op->name, at_line(node.where),
                                      ", which runs code of this program"),
                                 where, advice_for_code));
    to.u8(effect->asserts);
    to.text(effect->message);
    to.u32(effect->texts.size());
    for (const std::string& one : effect->texts) to.text(one);
    return write_place(effect->where);
  }
  const SavedRow* saved = find_saved_row(node.op->name);
  if (!saved || saved->row != node.op)
    throw UserError(error_text(text("export_function: '", function, "' has an op '", node.op->name, "'",
                                    at_line(node.where), " that a file cannot hold"),
                               where, advice_for_code));
  const AttributeType* type = node.attributes.view().type;
  if (type != (saved->attributes ? saved->attributes->type : nullptr))
    throw InternalError(text("export: attributes of '", node.op->name, "' are not those of its row"));
  if (saved->attributes) saved->attributes->write(to, node.attributes.view().data);
}

// --- reading

void GraphReader::ensure(bool condition, const Node& node, const char* rule) const {
  if (!condition) from.fail(text("a node '", node.op->name, "' breaks the rule: ", rule));
}

Where GraphReader::read_place() {
  const std::size_t source = from.below(sources.size(), "source");
  const std::uint32_t line = from.u32("line");
  const char* file = kept_word(sources[source]);
  return *file ? Where{file, static_cast<int>(line & 0x7fffffff)} : Where{};
}

Caller GraphReader::read_caller() {
  Caller out;
  const char* name = kept_word(from.text("name of a caller"));
  const bool with_words = from.boolean("words of a caller");
  if (*name) out.name = name;
  if (!with_words) return out;
  std::string words[4];
  for (std::string& word : words) word = from.text("words of a caller");
  const bool from_end = from.boolean("words of a caller");
  // A few functions have words: those of one text are one.
  struct Known {
    Lock guard;
    std::vector<std::unique_ptr<const IndexWords>> words;
  };
  static Known* const known = new Known;  // never destroyed: see thread_end.h
  constexpr std::size_t most = 1000, longest = 200;
  for (const std::string& word : words)
    if (word.size() > longest) return out;
  std::lock_guard lock(known->guard);
  for (const std::unique_ptr<const IndexWords>& one : known->words)
    if (one->index == words[0] && one->place == words[1] && one->among == words[2] && one->advice == words[3] &&
        one->from_end == from_end) {
      out.words = one.get();
      return out;
    }
  if (known->words.size() >= most) return out;
  known->words.push_back(std::make_unique<const IndexWords>(IndexWords{
      kept(words[0].c_str()), kept(words[1].c_str()), kept(words[2].c_str()), kept(words[3].c_str()), from_end}));
  out.words = known->words.back().get();
  return out;
}

Graph GraphReader::read(int depth) {
  if (depth > limits.depth)
    from.fail(text("graphs stand inside of each other more than ", limits.depth, " deep"),
              "raise .limits.max_depth if you trust the file");
  Graph graph;
  graph.scope = scope;
  const std::size_t nodes = from.count(16, "nodes");
  if (nodes > limits.nodes)
    from.fail(text("there are more nodes than the limit"), "raise .limits.max_nodes if you trust the file");
  limits.nodes -= nodes;
  for (std::size_t i = 0; i < nodes; ++i) graph.nodes.push_back(read_node(graph, depth));
  auto list = [&](const char* what) {
    std::vector<ValueId> ids;
    for (std::size_t i = from.count(4, what); i > 0; --i) ids.push_back(static_cast<ValueId>(from.below(nodes, what)));
    return ids;
  };
  graph.inputs = list("inputs");
  std::size_t input_nodes = 0;
  for (const Node& node : graph.nodes) input_nodes += node.op == &input_row;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    Node& node = graph.nodes[static_cast<std::size_t>(graph.inputs[i])];
    if (node.op != &input_row || node.attributes) from.fail("an input is no input, or there twice");
    node.attributes = Attributes(view_of(InputAttributes{static_cast<int>(i), {}}));
  }
  if (input_nodes != graph.inputs.size()) from.fail("an input has no number");
  if (from.boolean("raises")) {
    if (depth == 0) from.fail("a whole function cannot end in an error");
    graph.raised_text = from.text("text of an error");
    graph.raises = std::make_exception_ptr(UserError(graph.raised_text));
  } else {
    graph.results = list("results");
    for (ValueId id : graph.results)
      if (graph.node(id).results.size() != 1) from.fail("a result is a tuple");
  }
  for (std::size_t i = from.count(20, "checks"); i > 0; --i) graph.checks.push_back(read_check(from));
  return graph;
}

GraphPointer GraphReader::read_child(int depth) { return std::make_shared<const Graph>(read(depth + 1)); }

Node GraphReader::read_node(const Graph& graph, int depth) {
  Node node;
  const std::string& op = ops[from.below(ops.size(), "op")];
  const std::size_t inputs = from.count(4, "operands");
  if (inputs > most_operands) from.fail(text("a node has ", inputs, " operands"));
  for (std::size_t i = 0; i < inputs; ++i)
    node.inputs.push_back(static_cast<ValueId>(from.below(graph.nodes.size(), "operand")));
  const std::size_t results = from.count(5, "results");
  if (results == 0 || results > most_operands) from.fail(text("a node has ", results, " results"));
  for (std::size_t r = 0; r < results; ++r) {
    const DType dtype = from.dtype("dtype");
    node.results.push_back({dtype, from.shape("shape")});
  }
  node.label = kept_word(from.text("label"));
  node.where = read_place();
  node.caller = read_caller();
  read_row(node, op, graph, depth);
  for (ValueId input : node.inputs)
    ensure(node.op == &part_row || graph.node(input).results.size() == 1, node, "only part() reads a tuple");
  return node;
}

void GraphReader::read_row(Node& node, const std::string& op, const Graph& graph, int depth) {
  static constexpr const OpDef* structure[] = {&input_row, &constant_row, &part_row,           &size_row,
                                               &alias_row, &map_row,      &cond_row,           &loop_row,
                                               &print_row, &assert_row,   &custom_gradient_row};
  for (const OpDef* row : structure)
    if (op == row->name) node.op = row;
  const SavedRow* saved = node.op ? nullptr : find_saved_row(op);
  if (saved) node.op = saved->row;
  if (!node.op)
    from.fail(text("there is no op '", op.substr(0, 60), "' here: the file was written by stet ", writer, ", this is ",
                   STET_VERSION),
              "load it with the version that wrote it, or a newer one");
  const std::size_t inputs = node.inputs.size();
  if (node.op == &input_row) {
    ensure(inputs == 0 && node.results.size() == 1, node, "an input has no operands");
  } else if (node.op == &constant_row) {
    ensure(inputs == 0 && node.results.size() == 1 && Inside::is_constant(node.type().shape), node,
           "a constant has a type and no operands");
    std::int64_t count = 1;
    for (const Dim& size : node.type().shape) {
      ensure(size.constant() >= 0 && size.constant() <= most_constant_elements, node, "a constant is small");
      count *= size.constant();
      ensure(count <= most_constant_elements, node, "a constant is small");
    }
    ConstantAttributes constant{from.text("bytes")};
    ensure(constant.bytes.size() == static_cast<std::size_t>(count * size_of(node.type().dtype)), node,
           "a constant has as many bytes as its type");
    node.attributes = Attributes(view_of(constant));
  } else if (node.op == &part_row) {
    ensure(inputs == 1 && node.results.size() == 1, node, "part() has one operand");
    const Node& tuple = graph.node(node.inputs[0]);
    ensure(tuple.results.size() > 1, node, "part() is of a tuple");
    PartAttributes part{static_cast<int>(from.below(tuple.results.size(), "part"))};
    node.attributes = Attributes(view_of(part));
  } else if (node.op == &size_row) {
    ensure(inputs == 0 && node.results.size() == 1, node, "a size has no operands");
    SizeAttributes size{from.size("size")};
    size.dtype = from.dtype("dtype of a size");
    node.attributes = Attributes(view_of(size));
  } else if (node.op == &alias_row) {
    read_alias(node);
  } else if (node.op == &map_row) {
    read_map(node, graph);
  } else if (node.op == &cond_row) {
    read_branch(node, graph, depth);
  } else if (node.op == &loop_row) {
    read_loop(node, graph, depth);
  } else if (node.op == &custom_gradient_row) {
    read_custom_gradient(node, depth);
  } else if (node.op->has_effect) {
    read_effect(node, graph);
  } else {
    ensure(saved->any_number ? inputs >= 1 : inputs == saved->row->operands.size(), node,
           "it has as many operands as its row");
    ensure(node.results.size() == saved->row->result_count(), node, "it has as many results as its row");
    if (saved->attributes) node.attributes = saved->attributes->read(from);
  }
}

void GraphReader::read_alias(Node& node) {
  const std::uint8_t kind = from.u8("kind of an alias");
  ensure(kind <= AliasAttributes::attached, node, "there are four kinds of aliases");
  AliasAttributes alias{static_cast<AliasAttributes::Kind>(kind), 0, from.boolean("trainable")};
  if (alias.kind == AliasAttributes::read) alias.variable = variables[from.below(variables.size(), "Variable")];
  ensure(node.inputs.size() == (alias.kind == AliasAttributes::attached ? 2 : 1) && node.results.size() == 1, node,
         "it has as many operands as its kind");
  node.attributes = Attributes(view_of(alias));
}

Expr GraphReader::read_expr(const Node& node, const Graph& graph) {
  const std::size_t count = from.count(8, "expressions");
  if (count == 0 || count > most_expressions) from.fail(text("a body has ", count, " expressions"));
  std::vector<Expr> made;
  std::vector<int> depths;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = ops[from.below(ops.size(), "primitive")];
    const auto* found = std::find_if(std::begin(primitive_names), std::end(primitive_names),
                                     [&](const char* known) { return name == known; });
    if (found == std::end(primitive_names))
      from.fail(text("there is no primitive '", name.substr(0, 60), "' here: the file was written by stet ", writer,
                     ", this is ", STET_VERSION),
                "load it with the version that wrote it, or a newer one");
    const auto primitive = static_cast<Primitive>(found - std::begin(primitive_names));
    const DType dtype = from.dtype("dtype");
    const bool custom = from.boolean("derivative");
    int depth = 0;
    auto part = [&] {
      const std::size_t at = from.below(i, "expression");
      depth = std::max(depth, depths[at] + 1);
      return made[at];
    };
    Expr e;
    try {
      if (custom) {
        ensure(primitive == Primitive::cast, node, "a stated derivative is of a cast");
        Expr value = part(), operand = part(), derivative = part();
        e = scalar::with_derivative(value, operand, derivative);
      } else if (primitive == Primitive::constant) {
        e = constant_bits(from.u64("bits"), dtype);
        ensure(from.u8("arguments") == 0, node, "a constant has no arguments");
      } else if (primitive == Primitive::operand) {
        const std::size_t number = from.below(node.inputs.size(), "operand of a body");
        ensure(graph.type(node.inputs[number]).dtype == dtype, node, "an operand of its input's type");
        e = operand(static_cast<int>(number), dtype);
        ensure(from.u8("arguments") == 0, node, "an operand has no arguments");
      } else if (primitive == Primitive::index) {
        const std::size_t loop = from.below(static_cast<std::size_t>(node.type().shape.rank()), "axis of a body");
        ensure(dtype == DType::i64, node, "an index is i64");
        e = loop_index(static_cast<int>(loop));
        ensure(from.u8("arguments") == 0, node, "an index has no arguments");
      } else {
        const std::uint8_t arguments = from.u8("arguments");
        ensure(arguments <= 3, node, "an expression has up to three arguments");
        std::vector<Expr> parts;
        for (int a = 0; a < arguments; ++a) parts.push_back(part());
        e = make(primitive, parts, dtype);
      }
    } catch (const InternalError& error) {
      from.fail(text("an expression cannot be: ", error.what()));
    }
    ensure(depth <= deepest_expression, node, "a body is not that deep");
    made.push_back(std::move(e));
    depths.push_back(depth);
  }
  return made[from.below(count, "expression")];
}

void GraphReader::read_map(Node& node, const Graph& graph) {
  ensure(node.results.size() == 1, node, "a map has one result");
  for (ValueId input : node.inputs) ensure(graph.node(input).results.size() == 1, node, "only part() reads a tuple");
  MapAttributes map{read_expr(node, graph), {}};
  ensure(map.body.dtype() == node.type().dtype, node, "the body's type is the result's");
  node.attributes = Attributes(view_of(map));
}

void GraphReader::read_branch(Node& node, const Graph& graph, int depth) {
  BranchAttributes branch;
  branch.yes = read_child(depth);
  branch.no = read_child(depth);
  ensure(!node.inputs.empty() && graph.type(node.inputs[0]).dtype == DType::bool_ &&
             graph.type(node.inputs[0]).shape.rank() == 0,
         node, "a branch is chosen by a bool scalar");
  for (const GraphPointer& child : {branch.yes, branch.no}) {
    ensure(child->inputs.size() + 1 == node.inputs.size(), node, "a branch's inputs are its children's");
    ensure(child->raises || child->results.size() == node.results.size(), node, "its results are its children's");
  }
  node.attributes = Attributes(view_of(branch));
}

void GraphReader::read_loop(Node& node, const Graph& graph, int depth) {
  LoopAttributes loop;
  const std::uint8_t count = from.u8("count of a loop");
  ensure(count <= LoopAttributes::by_condition, node, "a loop is counted in three ways");
  loop.count = static_cast<LoopAttributes::Count>(count);
  loop.turns = from.size("turns");
  loop.carried = static_cast<int>(from.below(node.inputs.size() + 1, "carried values"));
  loop.sequences = static_cast<int>(from.below(node.inputs.size() + 1, "sequences"));
  loop.reverse = from.boolean("reverse");
  loop.recompute = from.boolean("recompute");
  loop.body = read_child(depth);
  if (loop.count == LoopAttributes::by_condition) loop.condition = read_child(depth);
  const std::size_t inputs = node.inputs.size(), first = static_cast<std::size_t>(loop.first_carried());
  ensure(inputs >= static_cast<std::size_t>(loop.first_captured()), node, "a loop has its inputs");
  ensure(!loop.condition || loop.sequences == 0, node, "a loop with a condition has no sequences");
  if (loop.count == LoopAttributes::by_value)
    ensure(graph.type(node.inputs[0]).dtype == DType::i64 && graph.type(node.inputs[0]).shape.rank() == 0, node,
           "a loop is counted by an i64 scalar");
  for (int i = loop.first_sequence(); i < loop.first_captured(); ++i)
    ensure(graph.type(node.inputs[static_cast<std::size_t>(i)]).shape.rank() > 0, node,
           "a sequence has an element for every turn");
  for (const GraphPointer& child : {loop.body, loop.condition})
    ensure(!child || child->inputs.size() == inputs - first + 1, node, "a loop's inputs are its children's");
  ensure(node.results.size() >= static_cast<std::size_t>(loop.carried), node, "a loop gives what it carries");
  ensure(loop.body->raises || loop.body->results.size() == node.results.size(), node, "its results are its body's");
  ensure(!loop.condition || loop.condition->raises || loop.condition->results.size() == 1, node,
         "a condition gives one value");
  node.attributes = Attributes(view_of(loop));
}

void GraphReader::read_custom_gradient(Node& node, int depth) {
  CustomGradientNode custom;
  custom.values = from.below(node.inputs.size() + 1, "values");
  custom.arguments = from.below(node.inputs.size() - custom.values + 1, "arguments");
  for (std::size_t i = from.count(4, "gradients"); i > 0; --i)
    custom.gradient_of.push_back(static_cast<int>(from.below(custom.arguments, "argument")));
  custom.backward = read_child(depth);
  ensure(custom.values >= 1 && node.results.size() == custom.values, node, "it has a result for every value");
  ensure(!custom.backward->raises && custom.backward->results.size() == custom.gradient_of.size() &&
             custom.backward->inputs.size() == node.inputs.size() - custom.arguments,
         node, "its way back takes the gradients of its values, and what it uses");
  node.attributes = attributes_of(custom);
}

void GraphReader::read_effect(Node& node, const Graph& graph) {
  SavedEffect effect;
  effect.asserts = from.boolean("asserts");
  effect.message = from.text("message");
  for (std::size_t i = from.count(4, "texts"); i > 0; --i) effect.texts.push_back(from.text("text"));
  effect.where = read_place();
  const std::size_t conditions = effect.asserts ? 1 : 0;
  ensure(effect.asserts == (node.op == &assert_row), node, "it does what its row says");
  ensure(node.inputs.size() >= conditions && effect.texts.size() == node.inputs.size() - conditions + 1, node,
         "there are texts before, between and after the values");
  if (effect.asserts) ensure(graph.type(node.inputs[0]).dtype == DType::bool_, node, "an assertion is about a bool");
  ensure(node.results.size() == 1, node, "it gives nothing");
  HostCodeAttributes host{effect_of(std::move(effect)), {}, {}};
  node.attributes = Attributes(view_of(host));
}

}  // namespace stet
