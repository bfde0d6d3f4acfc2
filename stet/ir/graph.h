// Graph: what a traced function computes.
//
// A graph is a list of nodes in program order; a node's number is the number of its value (SSA). Inputs of a node have
// smaller numbers. A node with several results yields a tuple, from which `part(i)` nodes select; all other values are
// tensors. Bodies of control flow are closed child graphs: everything they use is an explicit input.
//
// Meaning: values are immutable tensors, dense in row-major order unless an input node says otherwise. Node kinds:
//   structure   input(number), constant(bytes), part(i), size(dim), alias (another name for input 0, see below)
//   map         attributes: MapAttributes. result[i…] = body(operand_k[axis_map_k(i…)]…, i…)
//   maps        attributes: MapsAttributes. A tuple of maps over one list of operands and one iteration space
//   branch      attributes: BranchAttributes. The results of one child graph, chosen by input 0
//   loop        attributes: LoopAttributes. What a child graph gives in the end, run again and again
//   rows        attributes: RowsAttributes. What a child graph gives, which passes do not look into any more
//   others      as their row in ops/ says
// Sizes are Dims over the graph's symbol scope. Facts about symbols were substituted when the graph was made; `checks`
// are conditions on sizes that are tested when sizes are known. `updates` say which results are the next value of state
// that came in as an input: nothing changes in the graph's meaning, but the program may write the one over the other.
//
// Passes never edit a graph: they return a new one.
#pragma once
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "stet/ir/layout.h"
#include "stet/ir/op.h"

namespace stet {

using ValueId = int;

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs = {};
  Attributes attributes = {};
  std::vector<ValueType> results = {};  // one, or several for a tuple
  const char* label = "";               // of a map: the row or rows it came from
  Where where = {};
  Caller caller = {};
  /// The part of the program that it was recorded in, "sequential/dense", for people who look at the graph; null: none.
  std::shared_ptr<const std::string> name_scope = {};
  /// The ops that fusion made it of, in the order of the program; null: it is the one that it says it is.
  std::shared_ptr<const std::vector<const char*>> made_of = {};
  /// Why fusion did not put it together with what reads it; null where it did, or did not try.
  const char* apart = nullptr;

  const ValueType& type() const { return results.front(); }
};

/// Result number `result` is the next value of the state that input number `input` holds. An input and a result are in
/// one update at most.
struct Update {
  int input = 0;
  int result = 0;
};

class Graph {
 public:
  /// The scope of the graph's symbols, kept alive by it; null when all sizes are constant.
  std::shared_ptr<SymbolScope> scope;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;  // input nodes, in argument order
  std::vector<ValueId> results;
  std::vector<Update> updates;
  std::vector<InferCall::Check> checks;
  /// A run of the graph ends in this exception, with its text; it has no results then. Only child graphs do.
  std::exception_ptr raises;
  std::string raised_text;

  const Node& node(ValueId id) const { return nodes[static_cast<std::size_t>(id)]; }
  const ValueType& type(ValueId id) const { return node(id).type(); }

  ValueId add(Node node);
  ValueId add_input(ValueType type, std::vector<Dim> strides = {});
  /// A tensor of these bytes, row-major. At most 16 elements; larger ones are inputs.
  ValueId add_constant(ValueType type, std::string bytes);
  /// Applies a row: instantiates a map's body, infers types. What the door's tracing path and tests build graphs with.
  ValueId add_call(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {}, Where where = {});
  /// The results of a node: itself, or a part() for each value of a tuple.
  std::vector<ValueId> add_parts(ValueId tuple);

  /// One line per node: "%2 = add f32[s0,10] (%0, %1) body=x0 + x1".
  std::string str() const;
};

/// Every symbol of the graph replaced, in types, attributes and checks: how facts learned late reach early nodes.
Graph substitute(const Graph&, std::span<const Dim> replacements);
Graph map_dims(const Graph&, const std::function<Dim(const Dim&)>&);
/// Every alias replaced by what it stands for, in children too.
Graph without_aliases(const Graph&);
/// What people call a node: of a map the row that it came from, of others their row.
const char* label_of(const Node&);
/// The ops that it is made of, by these names: one or more.
std::vector<const char*> ops_of(const Node&);
/// A node that is made of these, one after the other.
void note_made_of(Node&, std::vector<const char*> ops);
/// Running the node matters even if nobody uses its results: its row says so, or it is a branch or a loop that may
/// raise.
bool has_effect(const Node&);
/// Who uses each value: node numbers, with the graph's results as user -1.
std::vector<std::vector<int>> users(const Graph&);
/// Order, types, attributes, closedness; InternalError naming the node and `after`.
void verify(const Graph&, const char* after);

struct InputAttributes {
  int number = 0;
  std::vector<Dim> strides;  // empty: dense
  STET_ATTRIBUTES(number, strides)
};
struct ConstantAttributes {
  std::string bytes;
  STET_ATTRIBUTES(bytes)
};
struct PartAttributes {
  int number = 0;
  STET_ATTRIBUTES(number)
};
/// A size as a value: an i64 scalar. It must be a value of `dtype`, which it is used as: checked in every call.
struct SizeAttributes {
  Dim size = 0;
  DType dtype = DType::i64;
  STET_ATTRIBUTES(size, dtype)
};
/// A check that was stated outside of any op (see CheckCarrier): each "{}" in the texts stands for one of `sizes`.
struct NeedAttributes {
  Dim left = 0;
  Relation relation = Relation::equal;
  Dim right = 0;
  std::string asker, what, problem, advice;
  std::vector<Dim> sizes;
  STET_ATTRIBUTES(left, relation, right, asker, what, problem, advice, sizes)
};
/// A map: the body's operands are the node's inputs; loop i of the body is axis i of the result.
struct MapAttributes {
  Expr body;
  std::vector<AxisMap> axes;  // per input
  STET_ATTRIBUTES(body, axes)
};
/// Several maps over the same operands and of one shape: what merging makes of maps that read the same memory.
struct MapsAttributes {
  std::vector<Expr> bodies;   // per result
  std::vector<AxisMap> axes;  // per input
  STET_ATTRIBUTES(bodies, axes)
};
/// A reduction of a map over `axes` of its iteration space (the shape that `operand_axes` broadcast to): the body is
/// combined along them; the node's inputs are the body's operands. Result dtype is the row's.
struct ReduceAttributes {
  std::vector<int> axes;  // sorted, of the iteration space
  bool keepdims = false;
  Expr body;                          // undefined: operand 0, cast to the accumulator's type
  std::vector<AxisMap> operand_axes;  // empty: input 0 as it is
  Shape space;                        // the iteration space when operand_axes is not empty
  STET_ATTRIBUTES(axes, keepdims, body, operand_axes, space)
};

/// A running combination along an axis, as the row says.
struct ScanAttributes {
  int axis = 0;            // from 0
  bool exclusive = false;  // without the element itself
  bool reverse = false;    // from the last element to the first
  STET_ATTRIBUTES(axis, exclusive, reverse)
};

/// A matrix product [batch…, m, k] x [batch…, k, n] of inputs 0 and 1, and an epilogue on each element: operand 0 is
/// the product as the accumulator has it, operand i the node's input i + 1.
struct ContractAttributes {
  bool transpose_left = false, transpose_right = false;
  Expr epilogue;                       // undefined: the product in the result's type
  std::vector<AxisMap> epilogue_axes;  // per further input, over the result's axes
  STET_ATTRIBUTES(transpose_left, transpose_right, epilogue, epilogue_axes)
};

/// Input 0, a bool scalar, chooses the child graph; the other inputs are the inputs of both. The results are the
/// chosen graph's. A child that raises has none, and then the other's types count.
struct BranchAttributes {
  GraphPointer yes, no;
  STET_ATTRIBUTES(yes, no)
};

/// A child graph that is run in turns. The node's inputs are [the count,] carried…, sequences…, captured…; its results
/// are carried…, stacked…. A turn takes the carried values as the last one left them and one element along the first
/// axis of every sequence; what it gives beside the next carried values is an element of a stacked result, at the
/// turn's place along its first axis.
struct LoopAttributes {
  enum Count : std::uint8_t {
    by_size,       // `turns` turns
    by_value,      // as many as input 0, an i64 scalar, says; none if it is negative
    by_condition,  // as long as `condition` gives true before a turn
  };
  /// carried…, elements…, the turn's place (an i64 scalar), captured… -> carried…, elements of stacked results…
  GraphPointer body;
  GraphPointer condition;  // by_condition, else null: the same inputs -> a bool scalar
  Count count = by_size;
  /// Turns. Where they are not counted by a size: a late symbol if results are stacked, else 0.
  Dim turns = 0;
  int carried = 0, sequences = 0;
  bool reverse = false;    // places run from the last to the first
  bool recompute = false;  // the gradient keeps what a turn begins with, and runs it again for the rest
  STET_ATTRIBUTES(body, condition, count, turns, carried, sequences, reverse, recompute)
  /// Loops of one origin over the same inputs do the same turns; one may stack more results than another. -1: of none.
  int origin = -1;

  int first_carried() const { return count == by_value ? 1 : 0; }
  int first_sequence() const { return first_carried() + carried; }
  int first_captured() const { return first_sequence() + sequences; }
  /// Among the inputs of the children.
  int turn_input() const { return carried + sequences; }
};

/// A child graph of maps and reductions over the rows of one space: the last axes from `outer` on. Its reductions are
/// along all of them; its values are of the space's shape or one for each row. What fusion makes; the meaning is the
/// child's.
struct RowsAttributes {
  GraphPointer child;
  Shape space;
  int outer = 0;
  STET_ATTRIBUTES(child, space, outer)
};

/// An input of a child graph in the making: what stands for it until the child is closed.
struct ParameterAttributes {
  int number = 0;
  DType dtype = DType::f32;
  Shape shape;
  STET_ATTRIBUTES(number, dtype, shape)
};

/// Another value with the elements of input 0: values tell apart what tapes tell apart. A program knows none of them
/// (without_aliases); a trace that is replayed under a tape does.
struct AliasAttributes {
  enum Kind : std::uint8_t {
    identity,  // gradients pass
    stop,      // gradients do not
    read,      // what a Variable holds, read: gradients end here, and are the Variable's
    attached,  // of a Variable that was written and read on one side of a branch: gradients go to input 1, a reading
  };           // of the Variable outside of the branch, and not into input 0
  Kind kind = identity;
  std::uint64_t variable = 0;  // read: its number
  bool trainable = false;      // read: tapes follow it
  STET_ATTRIBUTES(kind, variable, trainable)
};

/// The rows of kind structure, and the rows of maps that have no row of their own (derivatives, fused chains).
extern const OpDef input_row, constant_row, part_row, size_row, need_row, alias_row, parameter_row, map_row, maps_row;
/// The one row of kind branch.
extern const OpDef cond_row;
/// The one row of kind loop.
extern const OpDef loop_row;
/// The one row of kind rows.
extern const OpDef rows_row;

/// The child graphs of a branch or a loop, all that it has: levels of their own, which passes rewrite.
std::vector<GraphPointer> children(const Node&);
/// The node with its children replaced.
Node with_children(Node, const std::function<Graph(const Graph&)>& replace);

}  // namespace stet
