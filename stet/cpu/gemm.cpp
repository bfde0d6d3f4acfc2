#include "stet/cpu/gemm.h"

#include <dnnl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/cpu/openmp.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

using Count = std::int64_t;

// --- Thresholds, measured (docs/gemm.md): functions of sizes only.

/// Multiply-adds that are worth a chunk of their own, about 3 microseconds; below two of them nothing is cut.
constexpr double chunk_work = 150'000;
constexpr Count most_chunks = 64;
/// What storing an element costs, in multiply-adds: keeps products with a short k from being taken for small ones.
constexpr Count store_work = 16;
/// What reading an element of the right matrix costs: few rows are a matter of memory.
constexpr double read_work = 2;
/// Up to this many rows, a transposed right matrix is cheaper read along k than transposed.
constexpr Count most_dot_rows = 4;
/// From here on the right matrix (the left one, if transposed) no longer streams well in place.
constexpr double packed_bytes = 8 << 20;
constexpr Count least_packed_rows = 16, packed_block_rows = 256;
/// A panel above this is not made; the dot kernel does without.
constexpr Count most_panel_bytes = 16 << 20;
/// Packed panels of a transposed left matrix that serve all columns of a chunk, about 256 rows.
constexpr Count left_strip_panels = 4;
/// From here on the library is better at a transposed left matrix of many rows; at other layouts the two are level.
constexpr double library_work = 1 << 28;
constexpr Count least_library_rows = 512, least_library_size = 128;
/// The library's panels. It copies what it is given, so that they cost some hundredths of the time where few threads
/// run; larger ones are too few for many threads.
constexpr Count least_panel_rows = 64, least_panel_columns = 256, most_library_panels = 16;

constexpr Count round_up(Count value, Count step) { return (value + step - 1) / step * step; }
constexpr Count divide_up(Count value, Count by) { return (value + by - 1) / by; }

/// The time of one product in multiply-adds. A real number, since sizes come from users and integers overflow.
double work_of(Count m, Count n, Count k) {
  auto elements = static_cast<double>(m) * static_cast<double>(n);
  return elements * static_cast<double>(k + store_work) + static_cast<double>(n) * static_cast<double>(k) * read_work;
}

/// The code of one spec, by kind.
enum Piece { tile_1, tile_2, tile_3, tile_4, tile_8, tile_16, dot, transpose, copy, pass, piece_count };

constexpr int tile_vectors[] = {1, 2, 3, 4, 8, 16};

/// How a product of certain sizes is made.
struct Plan {
  GemmMethod method = GemmMethod::tile;
  bool pack_left = false;
  Piece widest = tile_4;
  Count panel_columns = 0, lanes = 0;  // of the widest tile
  double work = 0;

  /// The tile for the next columns when so many are left: the widest that is filled, and for the rest one that fits.
  Piece next_tile(Count columns) const {
    int piece = widest;
    while (piece > tile_4 && tile_vectors[piece] * lanes > columns) --piece;
    while (piece > tile_1 && tile_vectors[piece - 1] * lanes >= columns) --piece;
    return static_cast<Piece>(piece);
  }
};

/// What plans need to know of the CPU for a dtype; found out once per kernel, not per call.
struct Machine {
  explicit Machine(DType dtype) : lanes(gemm_tile(dtype, 1).lanes), wide(gemm_wide_tiles()) {}
  Count lanes;
  bool wide;
};

Plan make_plan(const GemmSpec& spec, const Machine& machine, Count m, Count n, Count k) {
  Plan plan;
  plan.work = work_of(m, n, k);
  if (k == 0) {
    plan.method = GemmMethod::epilogue_only;
    return plan;
  }
  if (spec.dtype == f32 && spec.transpose_left && plan.work >= library_work && m >= least_library_rows &&
      std::min(n, k) >= least_library_size) {
    plan.method = GemmMethod::library_panels;
    return plan;
  }
  Count bytes = size_of(spec.dtype);
  Count lanes = machine.lanes;
  bool huge_panel = k > most_panel_bytes / (64 * panel_vectors);
  double row_bytes = static_cast<double>(k * bytes);
  if (spec.transpose_right) {
    bool few_rows = m <= most_dot_rows && k >= lanes;
    plan.method = !spec.transpose_left && (few_rows || huge_panel) ? GemmMethod::dot : GemmMethod::packed_tile;
  } else if (!huge_panel && m >= least_packed_rows && row_bytes * static_cast<double>(n) >= packed_bytes) {
    plan.method = GemmMethod::packed_tile;
  }
  plan.pack_left = spec.transpose_left && !huge_panel && m > 3 && n >= least_packed_rows &&
                   row_bytes * static_cast<double>(m) >= packed_bytes;
  plan.widest = machine.wide ? tile_4 : tile_2;
  if (plan.method == GemmMethod::tile && m == 1) plan.widest = machine.wide ? tile_16 : tile_8;
  if (plan.method == GemmMethod::tile && (m == 2 || m == 3)) plan.widest = machine.wide ? tile_8 : tile_4;
  plan.lanes = lanes;
  plan.panel_columns = tile_vectors[plan.widest] * lanes;
  return plan;
}

// --- Memory for panels: one block per thread, kept.

class Scratch {
 public:
  ~Scratch() { std::free(data_); }
  /// At least so many bytes, aligned for vectors; null when there are none.
  char* reserve(std::size_t bytes) {
    if (bytes > bytes_) {
      std::free(data_);
      bytes_ = (bytes + 4095) / 4096 * 4096;
      data_ = std::aligned_alloc(64, bytes_);
      if (!data_) bytes_ = 0;
    }
    return static_cast<char*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Scratch* this_thread_scratch = nullptr;

Scratch& scratch() { return this_thread_scratch ? *this_thread_scratch : make_for_this_thread(this_thread_scratch); }

}  // namespace

struct GemmKernel::State {
  explicit State(GemmSpec given) : spec(std::move(given)), machine(spec.dtype) {
    result_dtype = spec.epilogue.expression.defined() ? spec.epilogue.expression.dtype() : spec.dtype;
    operand_bytes.assign(spec.epilogue.operands.size(), 0);
    if (spec.epilogue.expression.defined())
      for (Expr node : topological(spec.epilogue.expression))
        if (node.is(Primitive::operand) && node->number > 0)
          operand_bytes.at(static_cast<std::size_t>(node->number - 1)) = size_of(node.dtype());
  }

  CodeRequest request(Piece piece) const {
    switch (piece) {
      case dot:
        return gemm_dot_request(spec.dtype, spec.epilogue);
      case transpose:
        return gemm_transpose_request(spec.dtype);
      case copy:
        return gemm_copy_request(spec.dtype);
      case pass:
        return gemm_epilogue_request(spec.dtype, spec.epilogue);
      default:
        return gemm_tile_request(spec.dtype, spec.transpose_left, gemm_tile(spec.dtype, tile_vectors[piece]),
                                 spec.epilogue);
    }
  }
  GemmBlockFunction function(Piece piece) const {
    std::atomic<GemmBlockFunction>& slot = functions[piece];
    GemmBlockFunction loaded = slot.load(std::memory_order_acquire);
    if (loaded) [[likely]]
      return loaded;
    Code code = shared_code(request(piece));
    loaded = reinterpret_cast<GemmBlockFunction>(code.get());
    std::lock_guard lock(held_guard);
    held.push_back(std::move(code));
    slot.store(loaded, std::memory_order_release);
    return loaded;
  }
  std::vector<Piece> pieces(const Plan& plan, Count n) const {
    std::vector<Piece> out;
    if (plan.method == GemmMethod::library_panels) {
      if (spec.epilogue.expression.defined()) out.push_back(pass);
      return out;
    }
    if (plan.method == GemmMethod::dot) return {dot};
    if (plan.method == GemmMethod::epilogue_only) return {pass};
    if (n >= plan.panel_columns) out.push_back(plan.widest);
    for (Count left = n % plan.panel_columns; left > 0; left -= tile_vectors[out.back()] * plan.lanes)
      if (Piece next = plan.next_tile(left); out.empty() || out.back() != next) out.push_back(next);
    if (plan.method == GemmMethod::packed_tile) out.push_back(spec.transpose_right ? transpose : copy);
    if (plan.pack_left && !(plan.method == GemmMethod::packed_tile && !spec.transpose_right)) out.push_back(copy);
    return out;
  }

  GemmSpec spec;
  Machine machine;
  DType result_dtype;
  std::vector<int> operand_bytes;  // 0: not used by the expression
  mutable std::array<std::atomic<GemmBlockFunction>, piece_count> functions{};
  mutable Lock held_guard;
  mutable std::vector<Code> held;  // what `functions` points to
};

namespace {

void check_matrix(const char* what, const GemmMatrix& matrix, Count rows, Count columns, Count batch, Count outer) {
  if (rows <= 0 || columns <= 0 || batch <= 0 || outer <= 0) return;  // nothing is touched
  Count last = 0, whole = 0, before = 0;
  bool fits = matrix.leading >= columns && matrix.batch_stride >= 0 && matrix.outer_stride >= 0 &&
              !__builtin_mul_overflow(rows - 1, matrix.leading, &last) &&
              !__builtin_mul_overflow(batch - 1, matrix.batch_stride, &whole) &&
              !__builtin_mul_overflow(outer - 1, matrix.outer_stride, &before) &&
              !__builtin_add_overflow(whole, before, &whole) && !__builtin_add_overflow(whole, last, &whole) &&
              !__builtin_add_overflow(whole, columns, &whole) && whole <= matrix.extent;
  if (!fits) [[unlikely]]
    throw InternalError(text("gemm: ", what, " of ", rows, "x", columns, ", batch ", batch, ", outer ", outer,
                             ", does not fit: leading ", matrix.leading, ", batch stride ", matrix.batch_stride,
                             ", outer stride ", matrix.outer_stride, ", extent ", matrix.extent));
}

/// A call in progress: what every chunk needs to know.
class Call {
 public:
  Call(const GemmSpec& spec, const Machine& machine, const GemmArguments& arguments, std::span<const int> operand_bytes,
       DType result_dtype)
      : plan(make_plan(spec, machine, arguments.m, arguments.n, arguments.k)),
        spec_(spec),
        a_(arguments),
        operand_bytes_(operand_bytes),
        bytes_(size_of(spec.dtype)),
        result_bytes_(size_of(result_dtype)) {}

  void check() const {
    if (a_.m < 0 || a_.n < 0 || a_.k < 0 || a_.batch < 0 || a_.outer < 0)
      throw InternalError("gemm: a size is negative");
    if (a_.operands.size() != spec_.epilogue.operands.size())
      throw InternalError(
          text("gemm: ", a_.operands.size(), " operands given, ", spec_.epilogue.operands.size(), " expected"));
    check_matrix("left", a_.left, spec_.transpose_left ? a_.k : a_.m, spec_.transpose_left ? a_.m : a_.k, used_batch(),
                 a_.outer);
    check_matrix("right", a_.right, spec_.transpose_right ? a_.n : a_.k, spec_.transpose_right ? a_.k : a_.n,
                 used_batch(), a_.outer);
    check_matrix("result", a_.result, a_.m, a_.n, a_.batch, a_.outer);
    for (std::size_t i = 0; i < a_.operands.size(); ++i) check_operand(i);
  }

  std::atomic<bool> failed{false};
  const Plan plan;  // built in place: a copy costs 10 ns, in loads that wait for narrower stores
  std::array<GemmBlockFunction, piece_count> functions{};  // those that the plan needs
  GemmBlockFunction right_packer = nullptr, left_packer = nullptr;

  /// Rows and columns of one matrix of the batch.
  struct Block {
    Count batch, row, rows, column, columns;
  };
  void run_generated(const Block& block);
  void run_epilogue_only(const Block& block);
  void run_library(const Block& block);

 private:
  void run_packed(const Block& block);
  /// Calls body(tile, panel) for one panel of columns after the other.
  template <class Body>
  void for_each_panel(const Block& block, const Body& body) const {
    Block panel = block;
    for (Count end = block.column + block.columns; panel.column < end; panel.column += panel.columns) {
      Piece tile = plan.next_tile(end - panel.column);
      panel.columns = std::min(tile_vectors[tile] * plan.lanes, end - panel.column);
      body(tile, panel);
    }
  }

  /// Left and right are not touched when the result is empty.
  Count used_batch() const { return a_.m > 0 && a_.n > 0 ? a_.batch : 0; }

  void check_operand(std::size_t i) const {
    GemmMatrix operand = a_.operands[i];
    switch (spec_.epilogue.operands[i]) {
      case EpilogueOperand::full:
        return check_matrix("operand", operand, a_.m, a_.n, a_.batch, a_.outer);
      case EpilogueOperand::per_column:
        operand.leading = a_.n;
        return check_matrix("operand", operand, std::min<Count>(a_.m, 1), a_.n, a_.batch, a_.outer);
      case EpilogueOperand::per_row:
        operand.leading = a_.m;
        return check_matrix("operand", operand, std::min<Count>(a_.n, 1), a_.m, a_.batch, a_.outer);
      case EpilogueOperand::scalar:
        operand.leading = 1;
        return check_matrix("operand", operand, std::min<Count>(a_.n, 1), std::min<Count>(a_.m, 1), a_.batch, a_.outer);
    }
  }

  /// `batch` counts the matrices of all batches.
  const char* element(const GemmMatrix& matrix, Count bytes, Count batch, Count row, Count column) const {
    Count offset = row * matrix.leading + column;
    if (a_.outer == 1)
      offset += batch * matrix.batch_stride;
    else
      offset += batch / a_.batch * matrix.outer_stride + batch % a_.batch * matrix.batch_stride;
    return static_cast<const char*>(matrix.data) + offset * bytes;
  }
  const char* left_at(Count batch, Count row) const {
    return spec_.transpose_left ? element(a_.left, bytes_, batch, 0, row) : element(a_.left, bytes_, batch, row, 0);
  }
  const char* right_at(Count batch, Count column) const {
    return spec_.transpose_right ? element(a_.right, bytes_, batch, column, 0)
                                 : element(a_.right, bytes_, batch, 0, column);
  }
  char* result_at(Count batch, Count row, Count column) const {
    return const_cast<char*>(element(a_.result, result_bytes_, batch, row, column));
  }

  /// Calls a kernel for a block, with the operands' places filled in. Left and right are the caller's matter.
  void invoke(GemmBlockFunction function, const Block& block, const void* left, Count left_stride, const void* right,
              Count right_stride) const;

  const GemmSpec& spec_;
  const GemmArguments& a_;
  std::span<const int> operand_bytes_;
  Count bytes_, result_bytes_;
};

constexpr std::size_t most_operands = 32;

void Call::invoke(GemmBlockFunction function, const Block& block, const void* left, Count left_stride,
                  const void* right, Count right_stride) const {
  alignas(GemmBlockArguments) char memory[sizeof(GemmBlockArguments) + most_operands * sizeof(GemmOperandArguments)];
  auto* arguments = reinterpret_cast<GemmBlockArguments*>(memory);
  *arguments = {left,
                left_stride,
                right,
                right_stride,
                result_at(block.batch, block.row, block.column),
                a_.result.leading,
                block.rows,
                block.columns,
                a_.k};
  for (std::size_t i = 0; i < a_.operands.size(); ++i) {
    const GemmOperand& operand = a_.operands[i];
    EpilogueOperand kind = spec_.epilogue.operands[i];
    Count row = kind == EpilogueOperand::full ? block.row : 0;
    Count along = kind == EpilogueOperand::scalar ? 0 : kind == EpilogueOperand::per_row ? block.row : block.column;
    arguments->operands[i] = {element(operand, operand_bytes_[i], block.batch, row, along), operand.leading};
  }
  function(arguments);
}

void Call::run_generated(const Block& block) {
  if (plan.method == GemmMethod::dot) {
    invoke(functions[dot], block, left_at(block.batch, block.row), a_.left.leading, right_at(block.batch, block.column),
           a_.right.leading);
    return;
  }
  if (right_packer || left_packer) return run_packed(block);
  for_each_panel(block, [&](Piece tile, const Block& panel) {
    invoke(functions[tile], panel, left_at(block.batch, panel.row), a_.left.leading,
           right_at(block.batch, panel.column), a_.right.leading);
  });
}

void Call::run_packed(const Block& block) {
  // A panel as wide as the copying kernel makes it; of the left matrix, stored [k, m], as many rows as whole tiles fit.
  const Count packed_columns = panel_vectors * plan.lanes,
              panel_bytes = round_up(a_.k, plan.lanes) * packed_columns * bytes_;
  Count tile_rows = gemm_tile(spec_.dtype, tile_vectors[plan.widest]).rows;
  Count unit = left_packer ? packed_columns / tile_rows * tile_rows : block.rows;
  Count strip = left_packer ? left_strip_panels * unit : block.rows;
  char* right_panel =
      scratch().reserve(static_cast<std::size_t>(panel_bytes * (left_packer ? left_strip_panels + 1 : 1)));
  if (!right_panel) {
    failed = true;
    return;
  }
  char* left_panels = right_panel + panel_bytes;
  Count end = block.row + block.rows;
  for (Count first = block.row; first < end; first += strip) {
    Count last = std::min(first + strip, end);
    for (Count row = first; left_packer && row < last; row += unit) {
      GemmBlockArguments pack{nullptr,
                              0,
                              left_at(block.batch, row),
                              a_.left.leading,
                              left_panels + (row - first) / unit * panel_bytes,
                              packed_columns,
                              0,
                              std::min(unit, last - row),
                              a_.k};
      left_packer(&pack);
    }
    for_each_panel(block, [&](Piece tile, Block panel) {
      const char* right = right_at(block.batch, panel.column);
      if (right_packer) {
        GemmBlockArguments pack{nullptr,       0,   right, a_.right.leading, right_panel, packed_columns, 0,
                                panel.columns, a_.k};
        right_packer(&pack);
        right = right_panel;
      }
      for (panel.row = first; panel.row < last; panel.row += unit) {
        panel.rows = std::min(unit, last - panel.row);
        const char* left =
            left_packer ? left_panels + (panel.row - first) / unit * panel_bytes : left_at(block.batch, panel.row);
        invoke(functions[tile], panel, left, left_packer ? packed_columns : a_.left.leading, right,
               right_packer ? packed_columns : a_.right.leading);
      }
    });
  }
}

void Call::run_epilogue_only(const Block& block) {
  std::size_t bytes = static_cast<std::size_t>(block.columns * bytes_);
  char* zeros = scratch().reserve(bytes);
  if (!zeros) {
    failed = true;
    return;
  }
  std::memset(zeros, 0, bytes);
  invoke(functions[pass], block, zeros, 0, nullptr, 0);
}

void Call::run_library(const Block& block) {
  float* sums = reinterpret_cast<float*>(result_at(block.batch, block.row, block.column));
  Count stride = a_.result.leading;
  if (functions[pass]) {
    // Aside, not in the result: that may be of another type, or an operand itself.
    sums = reinterpret_cast<float*>(scratch().reserve(static_cast<std::size_t>(block.rows * block.columns * bytes_)));
    stride = block.columns;
    if (!sums) {
      failed = true;
      return;
    }
  }
  SingleOpenMpThread single;
  dnnl_status_t status = dnnl_sgemm(
      spec_.transpose_left ? 'T' : 'N', spec_.transpose_right ? 'T' : 'N', block.rows, block.columns, a_.k, 1,
      reinterpret_cast<const float*>(left_at(block.batch, block.row)), a_.left.leading,
      reinterpret_cast<const float*>(right_at(block.batch, block.column)), a_.right.leading, 0, sums, stride);
  if (status != dnnl_success) failed = true;
  if (functions[pass]) invoke(functions[pass], block, sums, stride, nullptr, 0);
}

/// Cuts each matrix of the batch into a grid of equal blocks.
struct Grid {
  Count row_blocks = 1, column_blocks = 1, rows = 0, columns = 0;

  static Grid of(Count m, Count n, Count row_unit, Count column_unit, Count row_blocks, Count column_blocks) {
    Grid grid;
    grid.rows = round_up(divide_up(m, row_blocks), row_unit);
    grid.columns = round_up(divide_up(n, column_blocks), column_unit);
    grid.row_blocks = divide_up(m, grid.rows);
    grid.column_blocks = divide_up(n, grid.columns);
    return grid;
  }
};

Grid cut_generated(const GemmSpec& spec, const Plan& plan, const GemmArguments& a, Count products) {
  double chunks = std::min(plan.work * static_cast<double>(products) / chunk_work, static_cast<double>(most_chunks));
  Count each = chunks < 2 ? 1 : divide_up(static_cast<Count>(chunks), products);
  if (each == 1) return {1, 1, a.m, a.n};
  Count row_unit = gemm_tile(spec.dtype, tile_vectors[plan.widest]).rows;
  Count column_unit = plan.method == GemmMethod::dot ? gemm_tile(spec.dtype, 1).lanes : plan.panel_columns;
  Count most_rows = divide_up(a.m, row_unit), most_columns = divide_up(a.n, column_unit);
  // A panel is packed again for every block of rows: these must then be high.
  if (plan.method == GemmMethod::packed_tile || plan.pack_left) most_rows = divide_up(a.m, packed_block_rows);
  bool columns_first = !plan.pack_left && (plan.method != GemmMethod::tile || a.n >= a.m);
  Count column_blocks = std::min(most_columns, columns_first ? each : divide_up(each, std::min(each, most_rows)));
  Count row_blocks = std::min(most_rows, divide_up(each, column_blocks));
  return Grid::of(a.m, a.n, row_unit, column_unit, row_blocks, column_blocks);
}

Grid cut_library(Count m, Count n) {
  Count row_blocks = 1, column_blocks = 1;
  while (row_blocks * column_blocks < most_library_panels) {
    Count rows = m / row_blocks / least_panel_rows, columns = n / column_blocks / least_panel_columns;
    if (std::max(rows, columns) < 2) break;
    (rows >= columns ? row_blocks : column_blocks) *= 2;
  }
  return Grid::of(m, n, 16, 64, row_blocks, column_blocks);
}

/// All blocks of all matrices of all batches; several small matrices make a chunk.
void run_chunks(Call& call, const Grid& grid, const GemmArguments& a, Count products) {
  auto run = [&](Count batch, Count row_block, Count column_block) {
    Count row = row_block * grid.rows, column = column_block * grid.columns;
    Call::Block block{batch, row, std::min(grid.rows, a.m - row), column, std::min(grid.columns, a.n - column)};
    switch (call.plan.method) {
      case GemmMethod::library_panels:
        return call.run_library(block);
      case GemmMethod::epilogue_only:
        return call.run_epilogue_only(block);
      default:
        return call.run_generated(block);
    }
  };
  Count each = grid.row_blocks * grid.column_blocks;
  if (call.plan.work * static_cast<double>(products) < 2 * chunk_work) {
    for (Count batch = 0; batch < products; ++batch) run(batch, 0, 0);
  } else if (each == 1) {
    Count together = divide_up(products, most_chunks);
    auto chunk = [&](Count number) {
      Count end = std::min(products, (number + 1) * together);
      for (Count batch = number * together; batch < end; ++batch) run(batch, 0, 0);
    };
    parallel_for(divide_up(products, together), chunk);
  } else {
    auto chunk = [&](Count number) {
      run(number / each, number % each / grid.column_blocks, number % grid.column_blocks);
    };
    parallel_for(each * products, chunk);
  }
}

}  // namespace

GemmKernel::GemmKernel(GemmSpec spec) {
  if (spec.dtype != f32 && spec.dtype != f64) throw InternalError(text("gemm of ", spec.dtype, " does not exist"));
  const Expr& expression = spec.epilogue.expression;
  if (spec.epilogue.operands.size() > most_operands) throw InternalError("gemm: too many operands in the epilogue");
  if (expression.defined() && expression.operand_count() > static_cast<int>(spec.epilogue.operands.size()) + 1)
    throw InternalError(text("gemm: the epilogue ", expression.str(), " has more operands than were described"));
  if (!expression.defined() && !spec.epilogue.operands.empty())
    throw InternalError("gemm: operands without an epilogue");
  if (expression.defined())
    for (Expr node : topological(expression))
      if (node.is(Primitive::operand) && node->number == 0 && node.dtype() != spec.dtype)
        throw InternalError(text("gemm: the sum is ", spec.dtype, ", the epilogue takes it for ", node.dtype()));
  state_ = std::make_shared<const State>(std::move(spec));
}
GemmKernel::~GemmKernel() = default;
GemmKernel::GemmKernel(const GemmKernel&) = default;
GemmKernel::GemmKernel(GemmKernel&&) noexcept = default;
GemmKernel& GemmKernel::operator=(const GemmKernel&) = default;
GemmKernel& GemmKernel::operator=(GemmKernel&&) noexcept = default;

const GemmSpec& GemmKernel::spec() const { return state_->spec; }
DType GemmKernel::result_dtype() const { return state_->result_dtype; }

std::vector<CodeRequest> GemmKernel::code_requests(Count m, Count n, Count k) const {
  std::vector<CodeRequest> out;
  if (m <= 0 || n <= 0 || k < 0) return out;
  for (Piece piece : state_->pieces(make_plan(state_->spec, state_->machine, m, n, k), n))
    out.push_back(state_->request(piece));
  return out;
}

void GemmKernel::run(const GemmArguments& a) const {
  const State& state = *state_;
  Call call(state.spec, state.machine, a, state.operand_bytes, state.result_dtype);
  call.check();
  Count products = 0;
  if (__builtin_mul_overflow(a.batch, a.outer, &products))
    throw InternalError(text("gemm: ", a.outer, " batches of ", a.batch));
  if (a.m == 0 || a.n == 0 || products == 0) return;
  const Plan& plan = call.plan;
  Grid grid{1, 1, a.m, a.n};
  if (plan.method == GemmMethod::epilogue_only) {
    call.functions[pass] = state.function(pass);
  } else if (plan.method == GemmMethod::library_panels) {
    if (state.spec.epilogue.expression.defined()) call.functions[pass] = state.function(pass);
    grid = cut_library(a.m, a.n);
  } else if (plan.method == GemmMethod::dot) {
    call.functions[dot] = state.function(dot);
    grid = cut_generated(state.spec, plan, a, products);
  } else {
    if (a.n >= plan.panel_columns) call.functions[plan.widest] = state.function(plan.widest);
    for (Count left = a.n & (plan.panel_columns - 1); left > 0;) {
      Piece tile = plan.next_tile(left);
      call.functions[tile] = state.function(tile);
      left -= tile_vectors[tile] * plan.lanes;
    }
    if (plan.method == GemmMethod::packed_tile)
      call.right_packer = state.function(state.spec.transpose_right ? transpose : copy);
    if (plan.pack_left) call.left_packer = state.function(copy);
    grid = cut_generated(state.spec, plan, a, products);
  }
  run_chunks(call, grid, a, products);
  if (call.failed) throw UserError(text("out of memory for panels of a ", a.m, "x", a.k, "x", a.n, " product"));
}

GemmMethod gemm_method(const GemmSpec& spec, Count m, Count n, Count k) {
  return m > 0 && n > 0 && k >= 0 ? make_plan(spec, Machine(spec.dtype), m, n, k).method : GemmMethod::tile;
}

}  // namespace stet::cpu
