// RowKernel: maps and reductions over the rows of one space, a row at a time; what code generators compile.
//
// Meaning. For every position of the outer loops, which is a row, the stages in order. A stage
//   computes its scalars, once for the row, each from those before it,
//   walks the row from its first element to its last: at every element it combines the bodies of its reductions, and
//   stores its lines, having loaded what it needs of the element before.
// What a walk stores may be read back by later stages, and by lines of the stage that store over it. Lines that nobody
// else needs go to scratch: memory of one row for each thread, which lies in the cache.
//
// The values that expressions use are numbered: operands first, then for every stage its scalars and its reductions.
// Loop i is outer loop i; the loop after the last outer one runs along the row.
//
// As a Kernel, it lists its Dims as numbers of a launch, and equal keys share machine code. The order in which a row is
// combined follows from its length alone.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stet/ir/kernel.h"

namespace stet {

struct RowKernel {
  struct Scalar {
    Expr value;
    std::optional<Access> to;  // where it is stored, if it is
  };
  struct Reduction {
    Combine combine = Combine::sum;
    Expr body;  // in the accumulator's type; the value has this type, or is an i64 position
    DType dtype() const;
  };
  struct Line {
    Expr value;
    Access to;
  };
  struct Stage {
    std::vector<Scalar> scalars;
    std::vector<Reduction> reductions;
    std::vector<Line> lines;
    bool walks() const { return !reductions.empty() || !lines.empty(); }
  };

  std::string name;  // for people
  std::vector<Dim> outer;
  Dim length = 0;
  std::vector<Access> operands;  // a stride for every outer loop, then one along the row; no guards, no indirections
  std::vector<Stage> stages;
  std::vector<DType> scratch;  // the last buffers: a row each
  int buffer_count = 0;        // with scratch

  int first_scratch() const { return buffer_count - static_cast<int>(scratch.size()); }
  /// The number of a stage's first scalar.
  int first_value(std::size_t stage) const;
  /// It changes along the row.
  static bool moves(const Access& access);
  /// Every access, operands first.
  std::vector<const Access*> accesses() const;
  /// Every expression.
  std::vector<Expr> bodies() const;

  std::vector<Dim> numbers() const;
  std::string key() const;
  std::string str() const;
};

/// Merges neighbouring outer loops that every access walks as one, and drops those of size 1, as long as one is left.
RowKernel collapse_loops(const RowKernel&);
void verify(const RowKernel&);

}  // namespace stet
