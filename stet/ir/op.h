// OpDef: the row of an op. One table of rows drives callables, inference, lowering, gradients, documentation and tests.
//
// A row is a constant: nothing registers itself at start-up. Passes ask a row's kind, never its name.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/base/error.h"
#include "stet/base/shape.h"
#include "stet/ir/attributes.h"
#include "stet/ir/expr.h"

namespace stet {

enum class Kind : std::uint8_t {
  structure,  // graph input, constant, part of a tuple
  map,        // one Expr applied at every position; operands broadcast
  reduce,     // a map combined along axes
  layout,     // elements move, none is computed
  index,      // positions come from values
  contract,   // matrix products
  window,     // convolutions
  scan,       // running combinations along an axis
  sort,       // order along an axis
  random,     // a map of the position and a counter
  late,       // the result's size depends on values
  branch,     // one of two child graphs, chosen by a value
  loop,       // a child graph, run again and again
  linalg,     // matrices factorised and solved with
  rows,       // a child graph over the rows of one space, a row at a time
};
const char* name(Kind);

/// The public function that called an op, if it is one of ours that is made of several.
struct Caller {
  const char* name = nullptr;         // "softmax"
  const IndexWords* words = nullptr;  // in which it speaks of indices
};
/// What messages call the op: "softmax: max", or "max" when it was called by itself.
std::string op_text(const Caller&, const char* op);

struct ValueType {
  DType dtype = DType::f32;
  Shape shape;
  std::string str() const { return text(dtype, shape); }  // "f32[2,3]"
};
bool identical(const ValueType&, const ValueType&);

class GradientCall;  // core/gradient.h: a row's gradient calls ops
class BatchCall;     // core/batch.h: a row for many examples at once
class LowerCall;     // compiler/lower.h: from a node to steps
class SampleList;    // ops/samples.h: inputs to test a row with
class ErrorList;     // ops/samples.h: wrong calls and their messages
struct Layout;       // ir/layout.h: strides and offset
class ViewCall;      // ir/layout.h: one layout as another

/// What `infer` is given and fills in: the result type of a call, or a Problem.
class InferCall {
 public:
  InferCall(const char* op, std::span<const ValueType> inputs, AttributesView attributes, Where where)
      : op_(op), inputs_(inputs), attributes_(attributes), where_(where) {}

  int input_count() const { return static_cast<int>(inputs_.size()); }
  const ValueType& in(int number) const { return inputs_[static_cast<std::size_t>(number)]; }
  const Shape& shape(int number) const { return in(number).shape; }
  DType dtype(int number) const { return in(number).dtype; }
  int rank(int number) const { return shape(number).rank(); }
  template <class T>
  const T& attributes() const {
    return *static_cast<const T*>(attributes_.data);
  }

  void result(DType dtype, Shape shape) { results_.push_back({dtype, std::move(shape)}); }
  /// Sizes that must agree; a fact while tracing, Problem when they do not.
  void require_equal(const Dim& a, const Dim& b, const std::string& what, const std::string& advice = {});
  /// A condition on sizes that is not a fact: tested by every call with its sizes, Problem when it fails.
  void check(const Dim& left, Relation relation, const Dim& right, const SizedText& problem,
             const SizedText& advice = {});
  /// Whether the relation holds for all sizes, by form: then nobody needs to write the text of a check.
  static bool always(const Dim& left, Relation relation, const Dim& right);
  /// Sizes of a result: none is negative.
  void check_sizes(std::span<const Dim> sizes);
  void require(bool condition, const std::string& problem, const std::string& advice = {}) const {
    if (!condition) throw Problem(problem, advice);
  }
  Where where() const { return where_; }
  Reason reason(std::string what) const { return {op_, std::move(what), where_}; }
  /// A size known only when the op has run.
  Dim late(const char* name, const Dim& upper_bound);

  using Check = SizeCheck;
  std::vector<ValueType>& results() { return results_; }
  std::vector<Check>& checks() { return checks_; }
  /// The scope that late symbols are made in; null on the eager path's first look, where they become 0.
  SymbolScope* scope = nullptr;

 private:
  const char* op_;
  std::span<const ValueType> inputs_;
  AttributesView attributes_;
  Where where_;
  std::vector<ValueType> results_;
  std::vector<Check> checks_;
};

/// How a map's operands and result get their types.
struct DTypeRule {
  enum Result : std::uint8_t {
    promoted,  // operands promote; the result is that type
    floating,  // … then integers and bool give f32
    compared,  // operands promote; the result is bool
    selected,  // operand 0 is bool, the others promote
    logical,   // operands promote; no floating types
    fixed,     // the body says (cast)
  };
  Result result = promoted;
  bool accepts_bool = true;
  bool widens = true;  // f16 and bf16 compute in f32; not where the body looks at their bits
};

/// Where a map's inputs are drawn from in tests.
struct Domain {
  double low, high;
  bool without_zero = false;  // keep away from 0: a kink or a pole
};

enum class Combine : std::uint8_t { none, sum, product, maximum, minimum, argmax, argmin };
const char* name(Combine);

struct OpDef {
  const char* name;
  Kind kind;
  const char* summary;
  /// Operand names, for messages and documentation: {"a", "b"}.
  std::span<const char* const> operands = {};
  /// Result names of a row with several: {"values", "positions"}. Its nodes are tuples; callers get all of them.
  std::span<const char* const> results = {};
  void (*infer)(InferCall&) = nullptr;
  void (*lower)(LowerCall&) = nullptr;
  void (*gradient)(GradientCall&) = nullptr;
  void (*samples)(SampleList&) = nullptr;
  void (*errors)(ErrorList&) = nullptr;
  /// layout: the result as strides over the operand's memory, if it can be one (no copy).
  std::optional<Layout> (*view)(const ViewCall&) = nullptr;
  /// The op for many examples at once, where that does not follow from the kind. It may leave some calls alone: their
  /// examples are done one after the other.
  void (*batch)(BatchCall&) = nullptr;

  // kind map
  std::uint8_t arity = 0;
  Expr (*body)(const Expr* operands) = nullptr;
  DTypeRule dtypes = {};
  Domain domain = {0, 0};

  // kind reduce
  Combine combine = Combine::none;
  /// The accumulator's type for an operand's type.
  DType (*accumulator)(DType) = nullptr;
  bool divides_by_count = false;  // mean

  // kind scan: how two neighbours are combined, in the accumulator's type, and what changes nothing
  Expr (*combine_scanned)(Expr so_far, Expr next) = nullptr;
  Expr (*identity)(DType) = nullptr;

  /// Its running is seen outside of the program: it runs where it stands, once, whether its results are used or not.
  bool has_effect = false;

  std::size_t result_count() const { return results.empty() ? 1 : results.size(); }
};

/// A row's body for given operand types: operands cast to what the row computes in, the result cast to its type; f16
/// and bf16 compute in f32. Problem if the row does not take the types.
struct MapInstance {
  Expr body;  // over operands of exactly the given types
  DType result;
};
MapInstance instantiate(const OpDef& row, std::span<const DType> operands);
/// The type operands are computed in, before the compute_type widening.
DType operand_type(const OpDef& row, std::span<const DType> operands);

}  // namespace stet
