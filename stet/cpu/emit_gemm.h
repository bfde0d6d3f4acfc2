// The inner kernels of GEMM, as requests for code. Sizes and strides are run-time arguments; a kernel's key is layout,
// dtype, tile and epilogue. What calls them, in which blocks and on which threads, is stet/cpu/gemm.cpp.
//
// There is no blocking of K: a tile's accumulators run through all of K in registers, so an element of the result is
// one chain of fused multiply-adds in the order of k, whichever tile, block or thread computes it; the epilogue sees
// the finished sum and no partial sum is ever stored. A tile reads 280 bytes for 24 vector FMAs (6x64 f32), which L2
// delivers without a stall.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/cpu/jit.h"
#include "stet/ir/expr.h"
#include "stet/ir/specs.h"

namespace stet::cpu {

/// The shape of a register tile: up to `rows` x (`vectors` x `lanes`) accumulators.
struct GemmTile {
  int rows;
  int vectors;
  int lanes;
  int columns() const { return vectors * lanes; }
};
/// Vectors side by side in the tile that most work is done with, where there are 32 vector registers: 6 x 64 f32. Wide
/// rather than high: it reads whole stretches of the right matrix and has fewer variants (numbers of rows) to compile
/// than 14 x 32. With 28 sums of 32 registers LLVM's allocator falls over its feet; with 24 it never spills (tested).
inline constexpr int panel_vectors = 4;
/// Whether the CPU has the registers for such tiles; otherwise tiles of 2 vectors do most of the work.
bool gemm_wide_tiles();
/// The tile with so many vectors side by side: 1 to 4; or 8 and 16 for results of few rows, where the right matrix is
/// read once and should be read in long stretches.
GemmTile gemm_tile(DType dtype, int vectors);

/// An operand of the epilogue, at the block's first element.
struct GemmOperandArguments {
  const void* data;
  std::int64_t stride;  // elements between rows, of a full operand
};

/// What the kernels below are called with. Strides are in elements. `operands` as many as the epilogue has.
struct GemmBlockArguments {
  const void* left;
  std::int64_t left_stride;
  const void* right;
  std::int64_t right_stride;
  void* result;
  std::int64_t result_stride;
  std::int64_t rows, columns, depth;
  GemmOperandArguments operands[];
};
using GemmBlockFunction = void (*)(const GemmBlockArguments*);

/// result[rows, columns] = epilogue(left · right) for any number of rows and a depth of 1 or more. Columns are as many
/// as the tile has; of the last vector of a tile of up to `panel_vectors`, some may be missing, but not all. `right` is
/// [depth, columns]; `left` is [rows, depth], or [depth, rows] where `transpose_left`.
CodeRequest gemm_tile_request(DType dtype, bool transpose_left, GemmTile tile, const Epilogue& epilogue);

/// result = epilogue(left · rightᵀ) without copying `right`, [columns, depth]: sums along vectors of k, for few rows
/// (any number is right) and any number of columns.
CodeRequest gemm_dot_request(DType dtype, const Epilogue& epilogue);

/// result[depth, columns] = rightᵀ for `right` [columns, depth]. Both sizes of the result are padded with zeros to a
/// multiple of the lanes: result_stride is at least the padded columns. Uses right, result, columns and depth.
CodeRequest gemm_transpose_request(DType dtype);

/// result[depth, columns] = right[depth, columns], padded with zeros to `panel_vectors` vectors of columns.
CodeRequest gemm_copy_request(DType dtype);

/// result[rows, columns] = epilogue(left[rows, columns]), for sums that a library has made.
CodeRequest gemm_epilogue_request(DType dtype, const Epilogue& epilogue);

}  // namespace stet::cpu
