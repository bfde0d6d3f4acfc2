// Random programs out of the table of ops: being in the table is enough. A statement is a row with one of its samples;
// each operand is drawn as the sample says, or made of an earlier value by ops that give it the sample's shape, type
// and kind of elements. A program is data: it is run over and over, printed, and made smaller when it fails.
#pragma once
#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/ops/op_harness.h"

namespace stet::table_programs {

using op_test::Sizes;
using op_test::Values;
using Tensors = std::vector<Tensor>;

/// Every program is called at two sizes.
constexpr std::size_t call_count = 2;
using Form = std::array<Sizes, call_count>;

/// How an earlier value gets the shape of an operand.
enum class Path : std::uint8_t {
  direct,      // it has it
  reshaped,    // as many elements
  repeated,    // along axes of size 1
  transposed,  // the same sizes in another order
  reduced,     // with some axes fewer
  cut,         // its first elements along each axis
  padded,      // up to the size of each axis
  picked,      // single elements of it by position
  whole,       // one number of all of it, repeated
};
constexpr int path_count = 9;

/// How the elements become what the operand must hold, besides the change of type.
enum class Fit : std::uint8_t {
  none,
  squashed,  // by tanh
  into,      // smoothly into the interval from low to high
  modulo,    // integers: the remainder by `high`, `low` added
  factors,   // close to 1
  marks,     // 0 or 1
  matrices,  // a little of it added to what was drawn
  definite,  // the same, symmetrically
  ordered,   // sorted along the last axis
  blended,   // half of it and half of what was drawn
};

struct Operand {
  // What is drawn: an argument of the program, used if there is no source or the way from it needs a shape.
  DType dtype = DType::f32;
  Form form;
  SampleInput sample;            // its draw; the sizes are those of `form`
  std::optional<Domain> domain;  // of a map's operands, instead
  int stream = 0;                // of its elements
  bool special = false;          // some elements are NaN, infinite, subnormal or -0; the ends of integers
  // What it is made of.
  int source = -1;  // the number of a value; -1: it is the argument
  Path path = Path::direct;
  std::vector<int> axes = {};  // transposed: the order; reduced: which
  bool tame = false;           // what is not finite replaced, and clipped, before it is made to fit
  Fit fit = Fit::none;
  double low = 0, high = 0;

  bool has_argument() const;
};

/// Where a size in the attributes comes from while tracing.
struct AttributeSize {
  enum From { constant, operand, argument } from = constant;
  int number = 0, axis = 0;  // operand: which, and its axis; argument: the axis of the statement's carrier
};

struct Statement {
  const OpDef* row = nullptr;
  std::array<Attributes, call_count> attributes;
  std::vector<AttributeSize> sizes;  // one per Dim of the attributes
  Rounding rounding = Rounding::exact;
  std::vector<Operand> operands;
  int first = 0;          // the number of its first result
  bool detached = false;  // the row has no gradient
};

/// A value: what a statement gives.
struct ValueInfo {
  DType dtype = DType::f32;
  Form form;
  bool late = false;   // sizes that depend on values
  bool finite = true;  // in both calls
  double largest = 0;  // magnitude of what is finite
  double low = 0, high = 0;
};

struct Program {
  std::uint64_t seed = 0;
  std::vector<Statement> statements;
  std::vector<ValueInfo> values;
  std::vector<int> results;   // numbers of values
  bool views = false;         // some arguments are not contiguous
  bool large = false;         // too large for the reference device, which is slow
  bool larger_first = false;  // traced at the second sizes
};

/// Noise of a few units in the last place on every operand and result: what rounding differently may do.
struct Noise {
  explicit Noise(std::uint64_t seed) : random(seed) {}
  std::mt19937_64 random;
  Tensor on(const Tensor& value);
};

/// Grows a program in which each of the rows is used. Errors of what must run are exceptions.
Program generate(std::uint64_t seed, const std::vector<const OpDef*>& forced);

/// The program as text that a person can try.
std::string text_of(const Program& program);

Tensors arguments_of(const Program& program, std::size_t call);
/// Those of one statement.
void append_arguments(const Program& program, const Statement& statement, std::size_t call, Tensors& out);

/// The operand out of the value that it is made of, or what was drawn for it.
Tensor operand_of(const Operand& operand, const Tensor& source, const Tensor& argument, bool late, Noise* noise);
/// The results of a statement's row; sizes of attributes come from operands and from the carrier.
Tensors run_statement(const Statement& statement, const Tensors& operands, const Tensor& carrier);

/// The program as host code, run eagerly or traced: the values by their number.
class Machine {
 public:
  explicit Machine(const Program& program, Noise* noise = nullptr)
      : values(program.values.size()), program_(program), noise_(noise) {}
  /// Statements begin to end - 1; `arguments` are all of the program's.
  void run(std::size_t begin, std::size_t end, const Tensors& arguments);

  Tensors values;
  std::vector<Tensors> operands;  // of each statement, as its row got them
  Tensors carriers;

 private:
  const Program& program_;
  Noise* noise_;
};

}  // namespace stet::table_programs
