// Kernel: a loop nest over Dims with affine accesses and an Expr body; what code generators compile.
//
// Meaning. For every position of the kept loops:
//   accumulator = combine over all positions of the reduced loops of body(operands…, loop indices)
//   store epilogue(accumulator, epilogue operands…) at the result's position
// With no reduced loop the body's value itself is the accumulator: a map. A map may store further values of the same
// operands, each at a place of its own; at every position it loads all it needs before it stores. The last loop is the
// one that is vectorised; kept loops before the first reduced one are what is cut into chunks for threads.
//
// All Dims of a kernel are numbers at launch: the kernel lists each distinct one once (`numbers()`), and two kernels
// whose structure agrees up to those numbers have the same key and share machine code.
#pragma once
#include <string>
#include <vector>

#include "stet/ir/op.h"

namespace stet {

struct Loop {
  Dim extent;
  bool reduced = false;
};

/// offset + sum(strides[i] * index of loop i)
struct Affine {
  Dim offset = 0;
  std::vector<Dim> strides;
};

/// The access reads 0 where the position is outside [0, extent): the padding of a convolution.
struct Guard {
  Affine position;
  Dim extent;
};

/// The address moves by stride * (value of body operand `operand`), which must lie in [0, extent): a gather. A value
/// outside is check number `check`.
struct Indirection {
  int operand = 0;
  Dim stride = 1, extent = 0;
  int check = 0;
};

struct Access {
  enum Source : std::uint8_t { memory, number } source = memory;
  DType dtype = DType::f32;
  int buffer = 0;  // memory: which of the launch's buffers
  Affine address;  // memory: in elements; number: offset is the value, an i64 cast to dtype
  std::vector<Guard> guards;
  std::vector<Indirection> indirections;
};

/// A further value of a map.
struct FurtherResult {
  Expr body;
  Access to;
};

struct Kernel {
  std::string name;  // for people
  std::vector<Loop> loops;
  std::vector<Access> operands;
  Expr body;
  Combine combine = Combine::none;
  Expr epilogue;  // undefined: the accumulator; else operand 0 is the accumulator, operand i+1 epilogue_operands[i]
  std::vector<Access> epilogue_operands;
  Access result;
  std::vector<FurtherResult> further;  // only of a map that does not accumulate
  bool accumulate = false;             // add to what is in memory instead of storing (scatter); only with combine none
  int buffer_count = 0;

  bool has_reduction() const { return combine != Combine::none; }
  /// The body and those of further results.
  std::vector<Expr> bodies() const;
  /// The result and further ones.
  std::vector<const Access*> results() const;
  /// Every distinct Dim but the constants 0, 1 and -1, in the order of first use: extents, strides, offsets.
  std::vector<Dim> numbers() const;
  /// Canonical text: equal for kernels that can share code.
  std::string key() const;
  /// For people: loops, accesses and body.
  std::string str() const;
};

/// Merges neighbouring loops that every access walks as one; drops loops of size 1. Keeps the meaning and the order.
Kernel collapse_loops(const Kernel&);
void verify(const Kernel&);

}  // namespace stet
