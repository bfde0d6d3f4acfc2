// A random program is data: statements over typed values, in blocks. It is run over stet's public interface (that is
// the user's code), evaluated by an independent interpreter, printed as C++ and made smaller when it fails.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stet/base/dtype.h"

namespace stet::random_programs {

/// A size, by the part it plays: what is equal for every set of sizes has the same number.
struct Role {
  enum Kind { base, constant, sum, product, late } kind = constant;
  std::int64_t a = 0, b = 0;  // base: its number; constant: the size; sum and product: two roles
};

struct ValueType {
  DType dtype = DType::f32;
  std::vector<int> shape;  // roles
  bool operator==(const ValueType&) const = default;
};

/// Where a size comes from when code needs it: a constant, or an axis of a value that is in sight.
struct SizeSource {
  int value = -1;  // -1: constant
  int axis = 0;
  std::int64_t constant = 0;
};

struct Statement;
struct Block {
  std::vector<Statement> statements;
  std::vector<int> results;          // value ids
  std::vector<int> parameters = {};  // value ids: what a turn of a loop is handed
};

/// How a loop goes. Its inputs are the first carried values and the sequences; a turn's parameters are the carried
/// values, elements of the sequences and, where it is counted, its number; a turn's results are the next carried values
/// and elements of what is stacked.
struct Turns {
  enum Kind {
    number,     // for_loop(count, …)
    size,       // for_loop(sizes[0], …)
    value,      // for_loop(tensor(sizes[0]), …)
    condition,  // while_loop: as long as blocks[1] gives true, at most `count` turns
    scan,
    map,
  } kind = number;
  std::size_t carried = 0, sequences = 0;
  bool reverse = false;
  std::int64_t checkpoint_every = 0, count = 0;
  std::vector<bool> bounded = {};  // by carried value: a turn leaves its tanh
  bool counted() const { return kind == number || kind == size || kind == value; }
};

struct Statement {
  enum Kind {
    op,        // outputs[0] = name(inputs; numbers, sizes)
    read,      // outputs[0] = variables[which].read()
    assign,    // variables[which].assign / assign_add / assign_sub (numbers[0]) (inputs[0]); outputs[0] the new value
    decide,    // if (inputs[0]) blocks[0] else blocks[1]; outputs[i] = the results of the side
    scope,     // outputs = scope(blocks[0])
    cond,      // outputs = cond(inputs[0], blocks[0], blocks[1])
    layer,     // outputs[0] = layers[which](inputs[0])
    call,      // outputs = functions[which](inputs)
    tape,      // { GradientTape tape(persistent = numbers[0]); blocks[0] } outputs = its results
    watch,     // tape `which` watches inputs[0]
    gradient,  // outputs = tape[which].gradient(inputs[0], the other inputs and variables numbers[…])
    fail,      // throw std::domain_error
    loop,      // outputs = the last carried values and what is stacked by turns of blocks[0]
  } kind = op;
  std::string name;
  int which = 0;
  std::vector<int> inputs, outputs;
  std::vector<std::int64_t> numbers;
  std::vector<double> reals;
  std::vector<SizeSource> sizes;
  std::vector<Block> blocks;
  Turns turns = {};
};

struct Constant {
  ValueType type;
  std::uint64_t seed = 0;  // of its elements
};
struct State {
  ValueType type;
  std::uint64_t seed = 0;
  bool trainable = true;
  bool argument = false;  // handed in rather than captured
};
/// A function of its own: a custom layer's call or an inner Function.
struct Routine {
  std::vector<int> parameters;  // value ids
  Block body;
};
struct LayerPart {
  enum Kind { custom, dense, dropout } kind = custom;
  Routine routine;  // of a custom layer
  std::int64_t units = 0;
};

struct Program {
  std::uint64_t seed = 0;
  DType real = DType::f32;  // the floating type of the program
  std::vector<Role> roles;
  std::vector<ValueType> values;  // by value id
  std::vector<int> arguments;     // value ids
  std::vector<std::uint64_t> argument_seeds;
  std::vector<Constant> captured;
  std::vector<int> captured_values;  // their value ids
  std::vector<State> variables;
  std::vector<LayerPart> layers;
  std::vector<Routine> functions;
  Block body;
  std::vector<std::vector<std::int64_t>> size_sets;  // base sizes of every call
  bool facts = false;                                // host code asks about sizes: more than one trace may be right

  std::int64_t size_of(int role, const std::vector<std::int64_t>& base) const;
  std::vector<std::int64_t> sizes_of(const ValueType& type, const std::vector<std::int64_t>& base) const;
  bool is_late(int role) const;
  /// What stands for the gradient by what the target does not depend on. On one side of a branch only, or if a loop
  /// takes no turn, that is undefined eagerly and 0 traced: where there are branches or loops both are 0.
  double undefined_gradient() const;
};

/// As C++ that a person can read and try.
std::string text_of(const Program& program);
int statement_count(const Program& program);

/// What a random program may contain.
struct Features {
  bool decisions = true, scopes = true, conds = true, layers = true, functions = true, tapes = true, variables = true,
       draws = true, captures = true, throws = true, late = true, facts = true, updates = true, audits = true,
       inferred = true;
  bool loops = true;
};

Program generate(std::uint64_t seed, const Features& features);

/// The elements of an argument, constant or Variable: small numbers, the same for the same seed.
std::vector<double> elements_of(const ValueType& type, std::int64_t count, std::uint64_t seed);

}  // namespace stet::random_programs
