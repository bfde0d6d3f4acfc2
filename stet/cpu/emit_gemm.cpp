#include "stet/cpu/emit_gemm.h"

#include <algorithm>
#include <cstddef>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/emit_expr.h"

namespace stet::cpu {
namespace {

/// Above this many nodes an epilogue is emitted once, as a loop over a tile put aside, instead of once per accumulator
/// of every variant: compile time against 5 % of a short tile's run time.
constexpr int most_inline_nodes = 8;

struct VectorUnit {
  int bytes;
  int registers;
};
VectorUnit vector_unit() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return {64, 32};
  if (__builtin_cpu_supports("avx2")) return {32, 16};
  return {16, 16};
}

std::string epilogue_key(const Epilogue& epilogue) {
  if (!epilogue.expression.defined()) return "store";
  std::string out = epilogue.expression.str(true);
  for (EpilogueOperand operand : epilogue.operands) out += "crfs"[static_cast<int>(operand)];
  return out;
}

/// The code common to all kernels of one request: arguments, masks, epilogue.
class GemmEmitter {
 public:
  GemmEmitter(LlvmBuilder& b, DType dtype, int lanes, const Epilogue& epilogue)
      : b_(b), dtype_(dtype), lanes_(lanes), epilogue_(epilogue) {
    b_.begin_function(entry_name, LLVMVoidTypeInContext(b_.context()), {b_.pointer()});
    b_.add_parameter_attribute(b_.function(), 0, "noalias");
    left_ = argument_pointer(offsetof(GemmBlockArguments, left));
    left_stride_ = argument(offsetof(GemmBlockArguments, left_stride));
    right_ = argument_pointer(offsetof(GemmBlockArguments, right));
    right_stride_ = argument(offsetof(GemmBlockArguments, right_stride));
    result_ = argument_pointer(offsetof(GemmBlockArguments, result));
    result_stride_ = argument(offsetof(GemmBlockArguments, result_stride));
    rows_ = argument(offsetof(GemmBlockArguments, rows));
    columns_ = argument(offsetof(GemmBlockArguments, columns));
    depth_ = argument(offsetof(GemmBlockArguments, depth));
    if (epilogue_.expression.defined()) collect_operands();
  }
  void end() { LLVMBuildRetVoid(b_.raw()); }

  Type element() const { return b_.storage(dtype_); }
  Type vector() const { return b_.vector(element(), lanes_); }
  DType result_dtype() const { return epilogue_.expression.defined() ? epilogue_.expression.dtype() : dtype_; }
  Value at(DType dtype, Value base, Value index) { return b_.element_pointer(b_.storage(dtype), base, index); }
  Value bytes(Value elements) { return b_.multiply(elements, b_.index(size_of(dtype_))); }
  Value byte_pointer(Value base, Value offset) { return b_.element_pointer(b_.integer(8), base, offset); }

  /// Epilogue and store of lanes [column, column + lanes_) of row `row` where the mask is set (null: of all). `row` and
  /// `column` count from the block's first element; `result_row` is where the row begins.
  void finish(Value sum, Value row, Value result_row, Value column, Value mask) {
    Value out = sum;
    if (epilogue_.expression.defined()) {
      auto operand = [&](int number) { return number == 0 ? sum : operand_value(number, row, column, mask); };
      auto no_loop = [](int) -> Value { throw InternalError("an epilogue has no loop index"); };
      out = to_storage(b_, result_dtype(), emit_expr(b_, epilogue_.expression, lanes_, operand, no_loop));
    }
    Value place = at(result_dtype(), result_row, column);
    if (mask)
      b_.masked_store(out, place, mask, size_of(result_dtype()));
    else
      b_.store(out, place, size_of(result_dtype()));
  }
  Value result_row(Value row) { return at(result_dtype(), result_, b_.multiply(row, result_stride_)); }

 protected:
  Value argument_at(std::size_t offset, Type type) {
    Value place = byte_pointer(b_.parameter(0), b_.index(static_cast<std::int64_t>(offset)));
    return b_.load(type, place, 8);
  }
  Value argument(std::size_t offset) { return argument_at(offset, b_.index()); }
  Value argument_pointer(std::size_t offset) { return argument_at(offset, b_.pointer()); }

  LlvmBuilder& b_;
  DType dtype_;
  int lanes_;
  const Epilogue& epilogue_;
  Value left_, left_stride_, right_, right_stride_, result_, result_stride_, rows_, columns_, depth_;

 private:
  struct Operand {
    DType dtype;
    Value data, stride;
  };

  void collect_operands() {
    operands_.resize(epilogue_.operands.size());
    for (Expr node : topological(epilogue_.expression)) {
      if (!node.is(Primitive::operand) || node->number == 0) continue;
      std::size_t i = static_cast<std::size_t>(node->number - 1);
      std::size_t offset = offsetof(GemmBlockArguments, operands) + i * sizeof(GemmOperandArguments);
      operands_.at(i) = {node.dtype(), argument_pointer(offset + offsetof(GemmOperandArguments, data)),
                         argument(offset + offsetof(GemmOperandArguments, stride))};
    }
  }

  Value operand_value(int number, Value row, Value column, Value mask) {
    const Operand& operand = operands_.at(static_cast<std::size_t>(number - 1));
    Type storage = b_.storage(operand.dtype);
    int align = size_of(operand.dtype);
    EpilogueOperand kind = epilogue_.operands[static_cast<std::size_t>(number - 1)];
    if (kind == EpilogueOperand::scalar || kind == EpilogueOperand::per_row) {
      Value index = kind == EpilogueOperand::scalar ? b_.index(0) : row;
      return b_.splat(from_storage(b_, operand.dtype, b_.load(storage, at(operand.dtype, operand.data, index), align)),
                      lanes_);
    }
    Value index = kind == EpilogueOperand::per_column ? column : b_.add(b_.multiply(row, operand.stride), column);
    Value place = at(operand.dtype, operand.data, index);
    Type type = b_.vector(storage, lanes_);
    return from_storage(b_, operand.dtype,
                        mask ? b_.masked_load(type, place, mask, align) : b_.load(type, place, align));
  }

  std::vector<Operand> operands_;
};

/// The tile kernel. Rows are cut into the fewest tiles, of sizes that differ by at most one, so that no tile is so low
/// that the right matrix costs more than the arithmetic; each number of rows has its own loop over k.
class TileEmitter : public GemmEmitter {
 public:
  TileEmitter(LlvmBuilder& b, DType dtype, bool transpose_left, GemmTile tile, const Epilogue& epilogue)
      : GemmEmitter(b, dtype, tile.lanes, epilogue), transpose_left_(transpose_left), tile_(tile) {}

  void emit() {
    deferred_ = epilogue_.expression.defined() && epilogue_.expression.size() > most_inline_nodes;
    if (deferred_) {
      Type type = LLVMArrayType2(vector(), static_cast<std::uint64_t>(tile_.rows * tile_.vectors));
      put_aside_ = LLVMBuildAlloca(b_.raw(), type, "tile");
      LLVMSetAlignment(put_aside_, 64);
    }
    left_bytes_ = bytes(left_stride_);
    twice_left_bytes_ = b_.add(left_bytes_, left_bytes_);
    right_bytes_ = bytes(right_stride_);
    if (tile_.vectors <= panel_vectors)
      last_mask_ = b_.mask_below(b_.subtract(columns_, b_.index((tile_.vectors - 1) * lanes_)), lanes_);
    Value most = b_.index(tile_.rows);
    Value tiles = LLVMBuildUDiv(b_.raw(), b_.add(rows_, b_.index(tile_.rows - 1)), most, "");
    // With no rows there is no tile; the divisor must still not be 0.
    Value divisor = b_.select(b_.compare(LLVMIntEQ, tiles, b_.index(0)), b_.index(1), tiles);
    Value low = LLVMBuildUDiv(b_.raw(), rows_, divisor, "");
    Value higher = b_.subtract(rows_, b_.multiply(low, tiles));  // so many tiles have one row more
    Value first[] = {b_.index(0), left_};
    b_.loop(b_.index(0), tiles, b_.index(1), first, [&](Value tile, std::span<const Value> carried) {
      Value extra = b_.select(b_.compare(LLVMIntSLT, tile, higher), b_.index(1), b_.index(0));
      Value rows = b_.add(low, extra);
      emit_variants(rows, carried[0], carried[1]);
      Value step = transpose_left_ ? bytes(rows) : b_.multiply(rows, left_bytes_);
      return std::vector<Value>{b_.add(carried[0], rows), byte_pointer(carried[1], step)};
    });
    end();
  }

 private:
  void emit_variants(Value rows, Value first_row, Value left) {
    BasicBlock from = b_.current(), after = b_.block("after_tile");
    std::vector<BasicBlock> variants;
    for (int count = 1; count <= tile_.rows; ++count) {
      variants.push_back(b_.block("rows"));
      b_.position(variants.back());
      emit_rows(count, first_row, left);
      b_.branch(after);
    }
    b_.position(from);
    Value choice = LLVMBuildSwitch(b_.raw(), rows, variants.back(), static_cast<unsigned>(tile_.rows));
    for (int count = 1; count < tile_.rows; ++count)
      LLVMAddCase(choice, b_.index(count), variants[static_cast<std::size_t>(count - 1)]);
    b_.position(after);
    if (deferred_) finish_put_aside(rows, first_row);
  }

  /// Row i of a group of three is one address expression away from the group's pointer: few pointers to keep.
  static constexpr int group = 3;

  void emit_rows(int count, Value first_row, Value left) {
    std::size_t sums = static_cast<std::size_t>(count * tile_.vectors);
    std::vector<Value> initial(sums, b_.zero(vector()));
    initial.push_back(right_);
    if (transpose_left_) {
      initial.push_back(left);
    } else {
      for (int i = 0; i < count; i += group)
        initial.push_back(byte_pointer(left, b_.multiply(left_bytes_, b_.index(i))));
    }
    std::vector<Value> done = through_depth(count, sums, initial);
    for (int number = 0; deferred_ && number < static_cast<int>(sums); ++number)
      b_.store(done[static_cast<std::size_t>(number)], b_.element_pointer(vector(), put_aside_, b_.index(number)), 64);
    for (int i = 0; !deferred_ && i < count; ++i) {
      Value row = b_.add(first_row, b_.index(i)), place = result_row(row);
      for (int v = 0; v < tile_.vectors; ++v)
        finish(done[static_cast<std::size_t>(i * tile_.vectors + v)], row, place, b_.index(v * lanes_), mask_of(v));
    }
  }

  /// A loop without a way around it, as the depth is at least 1: half the values to merge, a tenth less to compile.
  std::vector<Value> through_depth(int count, std::size_t sums, std::span<const Value> initial) {
    BasicBlock before = b_.current(), inside = b_.block("k"), after = b_.block("summed");
    b_.branch(inside);
    b_.position(inside);
    std::vector<Value> carried;
    Value left_over = LLVMBuildPhi(b_.raw(), b_.index(), "");
    for (Value value : initial) carried.push_back(LLVMBuildPhi(b_.raw(), LlvmBuilder::type_of(value), ""));
    std::vector<Value> next = one_k(count, sums, carried);
    Value next_left_over = b_.subtract(left_over, b_.index(1));
    auto incoming = [&](Value phi, Value first, Value later) {
      Value values[] = {first, later};
      BasicBlock blocks[] = {before, inside};
      LLVMAddIncoming(phi, values, blocks, 2);
    };
    incoming(left_over, depth_, next_left_over);
    for (std::size_t i = 0; i < next.size(); ++i) incoming(carried[i], initial[i], next[i]);
    b_.branch_if(b_.compare(LLVMIntNE, next_left_over, b_.index(0)), inside, after);
    b_.position(after);
    return next;
  }

  std::vector<Value> one_k(int count, std::size_t sums, std::span<const Value> carried) {
    std::vector<Value> next(carried.begin(), carried.end());
    auto right_vector = [&](int v) {
      Value place = at(dtype_, carried[sums], b_.index(v * lanes_));
      Value mask = mask_of(v);
      return mask ? b_.masked_load(vector(), place, mask, size_of(dtype_)) : b_.load(vector(), place, size_of(dtype_));
    };
    auto left_splat = [&](int i) {
      Value place;
      if (transpose_left_) {
        place = at(dtype_, carried[sums + 1], b_.index(i));
      } else {
        place = carried[sums + 1 + static_cast<std::size_t>(i / group)];
        if (i % group > 0) place = byte_pointer(place, i % group == 1 ? left_bytes_ : twice_left_bytes_);
      }
      return b_.splat(b_.load(element(), place, size_of(dtype_)), lanes_);
    };
    auto multiply_add = [&](int i, int v, Value left, Value right) {
      std::size_t number = static_cast<std::size_t>(i * tile_.vectors + v);
      next[number] = b_.fma(left, right, carried[number]);
    };
    // The side with fewer vectors is held, the other comes one by one: what fits the registers depends on it.
    std::vector<Value> held;
    if (tile_.vectors <= panel_vectors) {
      for (int v = 0; v < tile_.vectors; ++v) held.push_back(right_vector(v));
      for (int i = 0; i < count; ++i) {
        Value left = left_splat(i);
        for (int v = 0; v < tile_.vectors; ++v) multiply_add(i, v, left, held[static_cast<std::size_t>(v)]);
      }
    } else {
      for (int i = 0; i < count; ++i) held.push_back(left_splat(i));
      for (int v = 0; v < tile_.vectors; ++v) {
        Value right = right_vector(v);
        for (int i = 0; i < count; ++i) multiply_add(i, v, held[static_cast<std::size_t>(i)], right);
      }
    }
    next[sums] = byte_pointer(carried[sums], right_bytes_);
    for (std::size_t p = sums + 1; p < next.size(); ++p)
      next[p] = byte_pointer(carried[p], transpose_left_ ? left_bytes_ : b_.index(size_of(dtype_)));
    return next;
  }

  void finish_put_aside(Value rows, Value first_row) {
    b_.loop(b_.index(0), rows, b_.index(1), [&](Value i) {
      Value row = b_.add(first_row, i), place = result_row(row);
      for (int v = 0; v < tile_.vectors; ++v) {
        Value number = b_.add(b_.multiply(i, b_.index(tile_.vectors)), b_.index(v));
        Value sum = b_.load(vector(), b_.element_pointer(vector(), put_aside_, number), 64);
        finish(sum, row, place, b_.index(v * lanes_), mask_of(v));
      }
    });
  }

  /// Only the last vector of a narrow tile may be cut off; null: all lanes count.
  Value mask_of(int v) const { return v == tile_.vectors - 1 ? last_mask_ : nullptr; }

  bool transpose_left_;
  GemmTile tile_;
  bool deferred_ = false;
  Value put_aside_ = nullptr, left_bytes_ = nullptr, twice_left_bytes_ = nullptr, right_bytes_ = nullptr;
  Value last_mask_ = nullptr;
};

/// Sums along k in the lanes of the accumulators: four rows by four columns, or one row by four columns with four
/// accumulators each. Few columns at a time, since each is a stream of its own to the memory.
class DotEmitter : public GemmEmitter {
 public:
  using GemmEmitter::GemmEmitter;

  void emit() {
    b_.loop(b_.index(0), columns_, b_.index(side_), [&](Value column) {
      right_rows_.clear();
      // Columns past the last read the last one again: the store leaves them out.
      for (int c = 0; c < side_; ++c) {
        Value number = b_.minimum(b_.add(column, b_.index(c)), b_.subtract(columns_, b_.index(1)));
        right_rows_.push_back(at(dtype_, right_, b_.multiply(number, right_stride_)));
      }
      Value mask = b_.mask_below(b_.minimum(b_.subtract(columns_, column), b_.index(side_)), lanes_);
      Value whole = b_.bit_and(rows_, b_.index(-side_));
      b_.loop(b_.index(0), whole, b_.index(side_), [&](Value row) { emit_rows(side_, 1, row, column, mask); });
      b_.loop(whole, rows_, b_.index(1), [&](Value row) { emit_rows(1, side_, row, column, mask); });
    });
    end();
  }

 private:
  const int side_ = std::min(4, lanes_);  // sums are added up across lanes: no more columns than lanes

  void emit_rows(int rows, int unrolled, Value first_row, Value column, Value mask) {
    std::vector<Value> left_rows;
    for (int r = 0; r < rows; ++r)
      left_rows.push_back(at(dtype_, left_, b_.multiply(b_.add(first_row, b_.index(r)), left_stride_)));
    // Sums of step u are at [u * rows * side_, …).
    std::vector<Value> sums(static_cast<std::size_t>(unrolled * rows * side_), b_.zero(vector()));
    int group = rows * side_;
    Value full = b_.bit_and(depth_, b_.index(-lanes_)), done = b_.index(0);
    if (unrolled > 1) {
      Value long_steps = b_.bit_and(depth_, b_.index(-lanes_ * unrolled));
      sums = b_.loop(done, long_steps, b_.index(lanes_ * unrolled), sums, [&](Value k, std::span<const Value> carried) {
        std::vector<Value> next(carried.begin(), carried.end());
        for (int u = 0; u < unrolled; ++u)
          step(left_rows, b_.add(k, b_.index(u * lanes_)), nullptr,
               std::span(next).subspan(static_cast<std::size_t>(u * group)));
        return next;
      });
      for (std::size_t i = static_cast<std::size_t>(group); i < sums.size(); ++i)
        sums[i % static_cast<std::size_t>(group)] = b_.fadd(sums[i % static_cast<std::size_t>(group)], sums[i]);
      sums.resize(static_cast<std::size_t>(group));
      done = long_steps;
    }
    sums = b_.loop(done, full, b_.index(lanes_), sums, [&](Value k, std::span<const Value> carried) {
      std::vector<Value> next(carried.begin(), carried.end());
      step(left_rows, k, nullptr, next);
      return next;
    });
    step(left_rows, full, b_.mask_below(b_.subtract(depth_, full), lanes_), sums);
    for (int r = 0; r < rows; ++r) {
      auto begin = sums.begin() + r * side_;
      Value row = b_.add(first_row, b_.index(r));
      finish(added_crosswise({begin, begin + side_}), row, result_row(row), column, mask);
    }
  }

  Value load_at(Value row, Value k, Value mask) {
    Value place = at(dtype_, row, k);
    return mask ? b_.masked_load(vector(), place, mask, size_of(dtype_)) : b_.load(vector(), place, size_of(dtype_));
  }
  void step(std::span<const Value> left_rows, Value k, Value mask, std::span<Value> sums) {
    std::vector<Value> right;
    for (Value row : right_rows_) right.push_back(load_at(row, k, mask));
    for (std::size_t r = 0; r < left_rows.size(); ++r) {
      Value left = load_at(left_rows[r], k, mask);
      for (std::size_t c = 0; c < right.size(); ++c)
        sums[r * right.size() + c] = b_.fma(left, right[c], sums[r * right.size() + c]);
    }
  }

  /// Lane l of the result is the sum of all lanes of vectors[l], for l below their number.
  Value added_crosswise(std::vector<Value> vectors) {
    for (int bit = 1; bit < lanes_; bit *= 2) {
      bool pairs = vectors.size() > 1;  // of one vector, the halves are added
      std::vector<int> same, other;
      for (int lane = 0; lane < lanes_; ++lane) {
        int from = pairs && (lane & bit) ? lanes_ : 0;
        same.push_back(from + lane);
        other.push_back(from + (lane ^ bit));
      }
      std::vector<Value> next;
      for (std::size_t i = 0; i < vectors.size(); i += 2) {
        Value a = vectors[i], c = pairs ? vectors[i + 1] : a;
        next.push_back(b_.fadd(pairs ? b_.shuffle(a, c, same) : a, b_.shuffle(a, c, other)));
      }
      vectors = std::move(next);
    }
    return vectors[0];
  }

  std::vector<Value> right_rows_;
};

/// Squares of lanes x lanes elements, transposed in registers.
class TransposeEmitter : public GemmEmitter {
 public:
  using GemmEmitter::GemmEmitter;

  void emit() {
    b_.loop(b_.index(0), columns_, b_.index(lanes_), [&](Value column) {
      std::vector<Value> right_rows, inside;
      for (int c = 0; c < lanes_; ++c) {
        Value number = b_.add(column, b_.index(c));
        inside.push_back(b_.splat(b_.compare(LLVMIntSLT, number, columns_), lanes_));
        Value bounded = b_.minimum(number, b_.subtract(columns_, b_.index(1)));
        right_rows.push_back(at(dtype_, right_, b_.multiply(bounded, right_stride_)));
      }
      b_.loop(b_.index(0), depth_, b_.index(lanes_), [&](Value k) {
        Value mask = b_.mask_below(b_.subtract(depth_, k), lanes_);
        std::vector<Value> square;
        for (Value row : right_rows) b_.prefetch(at(dtype_, row, b_.add(k, b_.index(4 * lanes_))));
        for (std::size_t c = 0; c < right_rows.size(); ++c)
          square.push_back(
              b_.masked_load(vector(), at(dtype_, right_rows[c], k), b_.bit_and(mask, inside[c]), size_of(dtype_)));
        square = transposed(std::move(square));
        for (int t = 0; t < lanes_; ++t) {
          Value row = b_.multiply(b_.add(k, b_.index(t)), result_stride_);
          b_.store(square[static_cast<std::size_t>(t)], at(dtype_, result_, b_.add(row, column)), size_of(dtype_));
        }
      });
    });
    end();
  }

 private:
  /// Exchanges, for every bit of the numbers, the vectors' and the lanes' bit.
  std::vector<Value> transposed(std::vector<Value> vectors) {
    for (int bit = 1; bit < lanes_; bit *= 2) {
      std::vector<int> low, high;
      for (int lane = 0; lane < lanes_; ++lane) {
        low.push_back((lane & bit) ? lanes_ + (lane ^ bit) : lane);
        high.push_back((lane & bit) ? lanes_ + lane : (lane ^ bit));
      }
      for (int i = 0; i < lanes_; ++i) {
        if (i & bit) continue;
        Value& a = vectors[static_cast<std::size_t>(i)];
        Value& c = vectors[static_cast<std::size_t>(i | bit)];
        Value first = b_.shuffle(a, c, low);
        c = b_.shuffle(a, c, high);
        a = first;
      }
    }
    return vectors;
  }
};

class CopyEmitter : public GemmEmitter {
 public:
  using GemmEmitter::GemmEmitter;

  void emit(int vectors) {
    std::vector<Value> masks;
    for (int v = 0; v < vectors; ++v)
      masks.push_back(b_.mask_below(b_.subtract(columns_, b_.index(v * lanes_)), lanes_));
    b_.loop(b_.index(0), depth_, b_.index(1), [&](Value k) {
      Value from = at(dtype_, right_, b_.multiply(k, right_stride_));
      Value to = at(dtype_, result_, b_.multiply(k, result_stride_));
      // Rows lie far apart: the hardware does not foresee the next one.
      Value ahead = at(dtype_, right_, b_.multiply(b_.add(k, b_.index(8)), right_stride_));
      for (int v = 0; v < vectors; ++v) {
        Value lane = b_.index(v * lanes_);
        b_.prefetch(at(dtype_, ahead, lane));
        Value loaded =
            b_.masked_load(vector(), at(dtype_, from, lane), masks[static_cast<std::size_t>(v)], size_of(dtype_));
        b_.store(loaded, at(dtype_, to, lane), size_of(dtype_));
      }
    });
    end();
  }
};

class PassEmitter : public GemmEmitter {
 public:
  using GemmEmitter::GemmEmitter;

  void emit() {
    b_.loop(b_.index(0), rows_, b_.index(1), [&](Value row) {
      Value from = at(dtype_, left_, b_.multiply(row, left_stride_)), to = result_row(row);
      b_.loop(b_.index(0), columns_, b_.index(lanes_), [&](Value column) {
        Value mask = b_.mask_below(b_.subtract(columns_, column), lanes_);
        Value sum = b_.masked_load(vector(), at(dtype_, from, column), mask, size_of(dtype_));
        finish(sum, row, to, column, mask);
      });
    });
    end();
  }
};

int lanes_of(DType dtype) { return vector_unit().bytes / size_of(dtype); }

}  // namespace

bool gemm_wide_tiles() { return vector_unit().registers == 32; }

GemmTile gemm_tile(DType dtype, int vectors) {
  // Sums, the vectors of one side and one of the other, and one to spare: 6 x 4 of 32 registers, 6 x 2 of 16.
  int registers = vector_unit().registers;
  int rows = 6;
  while (rows > 1 && rows * vectors + std::min(rows, vectors) + 2 > registers) --rows;
  return {rows, vectors, lanes_of(dtype)};
}

CodeRequest gemm_tile_request(DType dtype, bool transpose_left, GemmTile tile, const Epilogue& epilogue) {
  return {text("gemm tile ", dtype, " ", tile.rows, "x", tile.vectors, "x", tile.lanes,
               transpose_left ? " columns " : " rows ", epilogue_key(epilogue)),
          [=](LlvmBuilder& b) { TileEmitter(b, dtype, transpose_left, tile, epilogue).emit(); }};
}

CodeRequest gemm_dot_request(DType dtype, const Epilogue& epilogue) {
  return {text("gemm dot ", dtype, " ", lanes_of(dtype), " ", epilogue_key(epilogue)),
          [=](LlvmBuilder& b) { DotEmitter(b, dtype, lanes_of(dtype), epilogue).emit(); }};
}

CodeRequest gemm_transpose_request(DType dtype) {
  return {text("gemm transpose ", dtype, " ", lanes_of(dtype)), [=](LlvmBuilder& b) {
            Epilogue none;
            TransposeEmitter(b, dtype, lanes_of(dtype), none).emit();
          }};
}

CodeRequest gemm_copy_request(DType dtype) {
  return {text("gemm copy ", dtype, " ", lanes_of(dtype)), [=](LlvmBuilder& b) {
            Epilogue none;
            CopyEmitter(b, dtype, lanes_of(dtype), none).emit(panel_vectors);
          }};
}

CodeRequest gemm_epilogue_request(DType dtype, const Epilogue& epilogue) {
  return {text("gemm epilogue ", dtype, " ", lanes_of(dtype), " ", epilogue_key(epilogue)),
          [=](LlvmBuilder& b) { PassEmitter(b, dtype, lanes_of(dtype), epilogue).emit(); }};
}

}  // namespace stet::cpu
