#include "stet/cpu/scan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <thread>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/cpu/cache_size.h"
#include "stet/ir/expand_math.h"
#include "stet/runtime/buffer.h"
#include "stet/runtime/kernel_abi.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

using Count = std::int64_t;

/// Elements of a block. Along contiguous lines: it stays in the second cache between two passes. Of columns: rows.
constexpr Count line_block = 16384, column_block = 2048;
/// From so many lines on, threads take lines; with fewer long ones they take blocks.
constexpr Count enough_lines = 8;
/// A strip of columns: not so narrow that every row costs a page of memory for a snippet (128 of 1000 columns took four
/// times as long as 512), nor so wide that its state leaves the first cache; where blocks are taken, so narrow that a
/// block stays in the last cache.
constexpr Count least_strip = 512, most_strip_bytes = 8192, most_block_strip = 512;
/// Lines up to this length are walked side by side where a combination is long.
constexpr Count most_across = 32;
/// Columns that fill less than one part in so many of a vector's lanes are walked along where a combination is long.
constexpr Count least_filled = 4;
/// What is worth a chunk of its own, and how many of them there are at most.
constexpr double chunk_nanoseconds = 3000, most_chunks = 64;

constexpr Count round_up(Count value, Count step) { return (value + step - 1) / step * step; }
constexpr Count divide_up(Count value, Count by) { return (value + by - 1) / by; }

/// Tells the core that this is a loop which waits.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// How a call of certain sizes is cut. A line is a line of the axis, or a strip of columns next to each other.
struct Plan {
  ScanShape shape = ScanShape::lines;
  ScanMethod method = ScanMethod::alone;
  Count block = 0, blocks = 1;  // of a line
  Count columns = 1;            // of an outer position
  Count width = 1, strips = 1;  // columns of a strip, strips of an outer position
  Count lines = 0;              // outer positions times strips
  Count chunk_lines = 0;        // ScanMethod::lines: lines of a chunk
};

/// What plans need to know of a spec; found out once per kernel, not per call.
struct Traits {
  explicit Traits(const ScanSpec& spec)
      : is_long(scan_is_long(spec)),
        lanes(scan_lanes(spec)),
        accumulator_bytes(size_of(spec.combine.dtype())),
        cost(0.0125 * (size_of(spec.stored) + size_of(spec.result)) + 0.03 * expand_math(spec.combine).size()) {}
  bool is_long;
  Count lanes, accumulator_bytes;
  double cost;  // nanoseconds of an element on one core, roughly: only used to decide whether threads are worth it
};

Plan make_plan(const Traits& traits, Count outer, Count length, Count inner) {
  Plan plan;
  bool side_by_side = inner == 1 ? traits.is_long && length <= most_across
                                 : !traits.is_long || length <= most_across || inner > traits.lanes / least_filled;
  if (side_by_side) {
    plan.shape = inner == 1 ? ScanShape::across : ScanShape::columns;
    plan.columns = inner == 1 ? outer : inner;
    if (inner == 1) outer = 1;
  } else {
    plan.shape = inner == 1 ? ScanShape::lines : ScanShape::strided;
    outer *= inner;
  }
  plan.block = side_by_side ? column_block : line_block;
  plan.blocks = divide_up(length, plan.block);
  if (side_by_side) {
    Count most = most_strip_bytes / traits.accumulator_bytes;
    Count wanted = divide_up(2 * enough_lines, outer);
    plan.width = std::min({plan.columns, most, round_up(divide_up(plan.columns, wanted), least_strip)});
    if (plan.blocks > 1 && outer * divide_up(plan.columns, plan.width) < enough_lines)
      plan.width = std::min(plan.width, most_block_strip);
    plan.strips = divide_up(plan.columns, plan.width);
  }
  plan.lines = outer * plan.strips;
  double line_time = traits.cost * static_cast<double>(length) * static_cast<double>(plan.width);
  double chunks = std::min(static_cast<double>(plan.lines) * line_time / chunk_nanoseconds, most_chunks);
  if (chunks < 2) return plan;
  if (plan.blocks > 1 && plan.lines < enough_lines) {
    plan.method = ScanMethod::blocks;
  } else if (plan.lines > 1) {
    plan.method = ScanMethod::lines;
    plan.chunk_lines = divide_up(plan.lines, static_cast<Count>(chunks));
  }
  return plan;
}

/// The code of one spec.
enum Piece { values, values_around_cache, totals, piece_count };

/// What chunks report: the failure of the lowest line and block counts, so that the message does not depend on timing.
class FirstFailure {
 public:
  void take(Count number, const KernelStatus& status) {
    std::lock_guard lock(guard_);
    if (number >= number_) return;
    number_ = number;
    status_ = status;
  }
  void raise(const ScanSpec& spec) const {
    if (number_ == INT64_MAX) return;
    throw InternalError(text("generated code touches element ", status_.value, " outside buffer ",
                             status_.check - bounds_check_base, " in a scan with ", spec.combine.str()));
  }

 private:
  std::mutex guard_;
  Count number_ = INT64_MAX;
  KernelStatus status_;
};

}  // namespace

struct ScanKernel::State {
  State(ScanSpec given, bool checked_code) : spec(std::move(given)), traits(spec), checked(checked_code) {}

  CodeRequest request(ScanShape shape, Piece piece) const {
    ScanOptions options{.checked = checked, .nontemporal = piece == values_around_cache};
    return piece == totals ? scan_total_code(spec, shape, options) : scan_code(spec, shape, options);
  }
  KernelFunction function(ScanShape shape, Piece piece) const {
    std::atomic<KernelFunction>& slot = functions[static_cast<std::size_t>(shape)][piece];
    KernelFunction loaded = slot.load(std::memory_order_acquire);
    if (loaded) [[likely]]
      return loaded;
    Code code = shared_code(request(shape, piece));
    loaded = reinterpret_cast<KernelFunction>(code.get());
    std::lock_guard lock(held_guard);
    held.push_back(std::move(code));
    slot.store(loaded, std::memory_order_release);
    return loaded;
  }

  ScanSpec spec;
  Traits traits;
  bool checked;
  mutable std::array<std::array<std::atomic<KernelFunction>, piece_count>, 4> functions{};
  mutable Lock held_guard;
  mutable std::vector<Code> held;  // what `functions` points to
};

namespace {

/// A call in progress.
class Call {
 public:
  Call(const ScanSpec& spec, const Plan& plan, const ScanArguments& arguments, KernelFunction values_code,
       KernelFunction totals_code)
      : spec_(spec),
        plan_(plan),
        a_(arguments),
        values_(values_code),
        totals_(totals_code),
        bytes_(size_of(spec.combine.dtype())) {}

  void run() {
    switch (plan_.method) {
      case ScanMethod::alone:
        run_lines(0, plan_.lines);
        break;
      case ScanMethod::lines: {
        auto chunk = [&](Count number) {
          Count begin = number * plan_.chunk_lines;
          run_lines(begin, std::min(begin + plan_.chunk_lines, plan_.lines));
        };
        parallel_for(divide_up(plan_.lines, plan_.chunk_lines), chunk);
        break;
      }
      case ScanMethod::blocks:
        run_blocks();
        break;
    }
    failure_.raise(spec_);
  }

 private:
  /// The state of a strip, or of a line.
  struct alignas(64) Row {
    std::byte bytes[most_strip_bytes];
  };

  void run_lines(Count begin, Count end) {
    Row rows[2];
    if (plan_.blocks == 1 && plan_.strips == 1) {
      launch(values_, begin, end, 0, 0, nullptr, rows[0].bytes);
      return;
    }
    for (Count line = begin; line < end; ++line)
      for (Count block = 0; block < plan_.blocks; ++block) {
        const std::byte* carry = block == 0 ? nullptr : rows[block % 2].bytes;
        scan(line, block, carry, rows[(block + 1) % 2].bytes);
      }
  }

  /// Scans a block; `next` becomes the carry of the block after it.
  void scan(Count line, Count block, const std::byte* carry, std::byte* next) {
    launch(values_, line, line + 1, block, block == 0 ? 0 : 1, carry, next);
  }

  /// The total of a block, into `next`; and then the carry in front of it.
  void total(Count line, Count block, std::byte* next) { launch(totals_, line, line + 1, block, 0, nullptr, next); }
  void join(Count line, Count block, const std::byte* carry, std::byte* next) {
    launch(totals_, line, line + 1, block, 1, carry, next);
  }

  /// Blocks are claimed in order, so whoever waits for a carry waits for somebody who is at work.
  void run_blocks() {
    Count row_bytes = round_up(plan_.width * bytes_, 64), tasks = plan_.lines * plan_.blocks;
    Buffer carries = Buffer::allocate(static_cast<std::size_t>(tasks * row_bytes));
    std::atomic<Count> claimed{0};
    std::array<std::atomic<Count>, enough_lines> known{};  // per line: the last block whose carry is known
    auto body = [&](Count) {
      Count task = claimed.fetch_add(1, std::memory_order_relaxed);
      Count line = task / plan_.blocks, block = task % plan_.blocks;
      std::atomic<Count>& reached = known[static_cast<std::size_t>(line)];
      std::byte* carry = carries.data() + task * row_bytes;
      std::byte* next = carry + row_bytes;
      Row unused;
      if (block + 1 == plan_.blocks) {
        wait_for(reached, block);
        scan(line, block, carry, unused.bytes);
      } else if (reached.load(std::memory_order_acquire) == block) {
        // Nobody else is at work on this line, or is just done: one pass does.
        scan(line, block, carry, next);
        reached.store(block + 1, std::memory_order_release);
      } else {
        total(line, block, next);
        wait_for(reached, block);
        join(line, block, carry, next);
        reached.store(block + 1, std::memory_order_release);
        scan(line, block, carry, unused.bytes);
      }
    };
    parallel_for(tasks, body);
  }
  static void wait_for(const std::atomic<Count>& reached, Count block) {
    for (int turns = 0; reached.load(std::memory_order_acquire) < block; ++turns) {
      if (turns < 1000)
        pause();
      else
        std::this_thread::yield();
    }
  }

  void launch(KernelFunction function, Count begin, Count end, Count block, Count chained, const std::byte* carry,
              std::byte* total) {
    Count outer = begin, outer_end = end, column = 0;
    if (plan_.strips > 1) {  // one strip
      outer = begin / plan_.strips;
      outer_end = outer + 1;
      column = begin % plan_.strips * plan_.width;
    }
    Count first = block * plan_.block, column_end = std::min(column + plan_.width, plan_.columns);
    void* buffers[] = {const_cast<void*>(a_.from), a_.to, const_cast<std::byte*>(carry), total};
    ScanNumbers numbers{a_.length, a_.inner,   first,   std::min(first + plan_.block, a_.length),
                        column,    column_end, chained, {a_.from_extent, a_.to_extent, plan_.width, plan_.width}};
    KernelStatus status;
    if (function(buffers, reinterpret_cast<const Count*>(&numbers), outer, outer_end, &status) != 0)
      failure_.take(begin * plan_.blocks + block, status);
  }

  const ScanSpec& spec_;
  const Plan& plan_;
  const ScanArguments& a_;
  KernelFunction values_, totals_;
  Count bytes_;
  FirstFailure failure_;
};

void check_extent(const char* what, const ScanArguments& a, Count extent) {
  Count line = 0, all = 0;
  bool fits = !__builtin_mul_overflow(a.outer, a.length, &line) && !__builtin_mul_overflow(line, a.inner, &all);
  if (!fits || all > extent) [[unlikely]]
    throw InternalError(
        text("scan: ", what, " of ", a.outer, "x", a.length, "x", a.inner, " does not fit ", extent, " elements"));
}

/// Results that do not fit the cache beside their operand are stored around it, which saves reading what is
/// overwritten. Such stores are aligned ones.
bool streams(const ScanSpec& spec, const Traits& traits, const Plan& plan, const ScanArguments& a) {
  if (plan.shape != ScanShape::lines || plan.method == ScanMethod::alone || a.from == a.to) return false;
  Count bytes = size_of(spec.stored) + size_of(spec.result);
  if (a.outer * a.length <= last_level_cache() / bytes || reinterpret_cast<std::uintptr_t>(a.to) % 64 != 0)
    return false;
  return a.length % traits.lanes == 0 || (a.outer == 1 && !spec.reverse);
}

}  // namespace

ScanKernel::ScanKernel(ScanSpec spec, bool checked) {
  if (!spec.combine.defined() || !spec.identity.defined()) throw InternalError("scan: a spec without a combination");
  DType accumulator = spec.combine.dtype();
  if (!spec.identity.is(Primitive::constant) || spec.identity.dtype() != accumulator)
    throw InternalError(text("scan: the identity ", spec.identity.str(true), " is not a constant of ", accumulator));
  for (Expr node : topological(spec.combine)) {
    if (node.is(Primitive::index)) throw InternalError("scan: a combination knows no positions");
    if (node.is(Primitive::operand) && (node->number > 1 || node.dtype() != accumulator))
      throw InternalError(text("scan: an operand of ", spec.combine.str(true), " is not one of two ", accumulator));
  }
  if (line_block % scan_group(spec) != 0)
    throw InternalError("scan: a block is no multiple of what is scanned at once");
  state_ = std::make_shared<const State>(std::move(spec), checked);
}
ScanKernel::~ScanKernel() = default;
ScanKernel::ScanKernel(const ScanKernel&) = default;
ScanKernel::ScanKernel(ScanKernel&&) noexcept = default;
ScanKernel& ScanKernel::operator=(const ScanKernel&) = default;
ScanKernel& ScanKernel::operator=(ScanKernel&&) noexcept = default;

const ScanSpec& ScanKernel::spec() const { return state_->spec; }

std::vector<CodeRequest> ScanKernel::code_requests(Count outer, Count length, Count inner) const {
  std::vector<CodeRequest> out;
  if (outer <= 0 || length <= 0 || inner <= 0) return out;
  Plan plan = make_plan(state_->traits, outer, length, inner);
  out.push_back(state_->request(plan.shape, values));
  if (plan.method == ScanMethod::blocks) out.push_back(state_->request(plan.shape, totals));
  return out;
}

void ScanKernel::run(const ScanArguments& a) const {
  const State& state = *state_;
  if (a.outer < 0 || a.length < 0 || a.inner < 0) throw InternalError("scan: a size is negative");
  if (a.outer == 0 || a.length == 0 || a.inner == 0) return;
  check_extent("the operand", a, a.from_extent);
  check_extent("the result", a, a.to_extent);
  Plan plan = make_plan(state.traits, a.outer, a.length, a.inner);
  Piece piece = streams(state.spec, state.traits, plan, a) ? values_around_cache : values;
  Call(state.spec, plan, a, state.function(plan.shape, piece),
       plan.method == ScanMethod::blocks ? state.function(plan.shape, totals) : nullptr)
      .run();
}

ScanMethod scan_method(const ScanSpec& spec, Count outer, Count length, Count inner) {
  if (outer <= 0 || length <= 0 || inner <= 0) return ScanMethod::alone;
  return make_plan(Traits(spec), outer, length, inner).method;
}

}  // namespace stet::cpu
