#include "stet/cpu/emit_scan.h"

#include <algorithm>
#include <cstddef>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/emit_expr.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/ir/expand_math.h"

namespace stet::cpu {
namespace {

/// Vectors that are scanned together: enough to make the chain from group to group cheap, few enough for registers.
constexpr int group_vectors = 8;

/// Rows that columns are walked at a time: the state is loaded and stored once for all of them.
constexpr int most_rows = 4;

class ScanEmitter {
 public:
  ScanEmitter(LlvmBuilder& builder, const ScanSpec& spec, ScanShape shape, ScanOptions options)
      : b(builder),
        spec_(spec),
        shape_(shape),
        options_(options),
        accumulator_(spec.combine.dtype()),
        combine_(simplify(expand_math(simplify(spec.combine)))),
        lanes_(scan_lanes(spec)) {}

  void emit_scan() {
    begin();
    auto every_line = [&] {
      b.loop(b.parameter(2), b.parameter(3), b.index(1), [&](Value line) {
        if (along())
          scan_line(line);
        else
          scan_columns(line);
      });
    };
    if (shape_ == ScanShape::lines && !long_) {
      Value few = b.compare(LLVMIntSLE, length_, b.index(lanes_));
      Value packed = b.bit_and(few, b.bit_not(chained_));
      b.when(packed, [&] { scan_packed_lines(); });
      b.when(b.bit_not(packed), every_line);
    } else {
      every_line();
    }
    // Non-temporal stores are not ordered with the store by which a thread hands the result to another: the fence is.
    if (options_.nontemporal) LLVMBuildFence(b.raw(), LLVMAtomicOrderingSequentiallyConsistent, false, "");
    b.result(b.index(0));
  }

  void emit_total() {
    begin();
    b.when(chained_, [&] {
      if (along())
        store_one(scan_total, b.extract(combined(carry_splat(), load_splat(scan_total)), 0));
      else
        join_columns();
    });
    b.when(b.bit_not(chained_), [&] {
      if (along())
        total_of_line(b.parameter(2));
      else
        walk_columns(b.parameter(2), false, false);
    });
    b.result(b.index(0));
  }

 private:
  static Value no_operand(int) { throw InternalError("scan: the identity is not a constant"); }

  void begin() {
    Type i64 = b.index(), pointer = b.pointer();
    Value function = b.begin_function(entry_name, i64, {pointer, pointer, i64, i64, pointer});
    b.add_parameter_attribute(function, 0, "noalias");
    b.add_parameter_attribute(function, 1, "noalias");
    for (int k = 0; k < scan_buffer_count; ++k)
      buffers_[k] = b.load(b.pointer(), b.element_pointer(b.pointer(), b.parameter(0), b.index(k)), 8);
    auto word = [&](std::size_t offset) {
      return b.load(i64, b.element_pointer(i64, b.parameter(1), b.index(static_cast<std::int64_t>(offset / 8))), 8);
    };
    length_ = word(offsetof(ScanNumbers, length));
    inner_ = word(offsetof(ScanNumbers, inner));
    first_ = word(offsetof(ScanNumbers, first));
    last_ = word(offsetof(ScanNumbers, last));
    column_begin_ = word(offsetof(ScanNumbers, column_begin));
    column_end_ = word(offsetof(ScanNumbers, column_end));
    chained_ = b.compare(LLVMIntNE, word(offsetof(ScanNumbers, chained)), b.index(0));
    identity_ = hidden(emit_expr(b, spec_.identity, lanes_, no_operand, no_operand));
    for (std::size_t k = 0; options_.checked && k < scan_buffer_count; ++k)
      extents_[k] = word(offsetof(ScanNumbers, extents) + 8 * k);
  }

  // --- values

  /// A constant that the code generator takes for a variable: where it sees zeros shifted in, it chooses an
  /// instruction (vexpand) that is several times slower than a shift of two vectors.
  Value hidden(Value constant) {
    if (accumulator_ == DType::bool_) return constant;  // lanes of one bit
    Value place = LLVMAddGlobal(b.module(), b.type_of(constant), "stet_identity");
    LLVMSetInitializer(place, constant);
    LLVMSetGlobalConstant(place, 1);
    LLVMSetLinkage(place, LLVMPrivateLinkage);
    Value loaded = b.load(b.type_of(constant), place, size_of(accumulator_));
    LLVMSetVolatile(loaded, 1);
    return loaded;
  }

  Value combined(Value before, Value next) {
    return emit_expr(
        b, combine_, LlvmBuilder::lanes_of(next), [&](int number) { return number == 0 ? before : next; },
        [](int) -> Value { throw InternalError("scan: a combination has no loop index"); });
  }
  Value converted(DType from, DType to, Value value) {
    return emit_expr(
        b, scalar::cast(operand(0, from), to), LlvmBuilder::lanes_of(value), [&](int) { return value; }, no_operand);
  }
  DType type_in(int buffer) const {
    return buffer == scan_operand ? spec_.stored : buffer == scan_result ? spec_.result : accumulator_;
  }

  Value shuffled(Value left, Value right, const std::function<int(int)>& lane) {
    std::vector<int> numbers;
    for (int i = 0; i < lanes_; ++i) numbers.push_back(lane(i));
    return b.shuffle(left, right, numbers);
  }
  Value every(Value vector, int lane) {
    return shuffled(vector, b.poison(b.type_of(vector)), [&](int) { return lane; });
  }
  Value reversed(Value vector) {
    return shuffled(vector, b.poison(b.type_of(vector)), [&](int i) { return lanes_ - 1 - i; });
  }
  /// The lanes moved on by `count`; the last ones of `before` come in.
  Value shifted(Value before, Value vector, int count) {
    return shuffled(before, vector, [&](int i) { return lanes_ + i - count; });
  }

  // --- memory

  /// Checked mode: elements [at, at + active) lie in the buffer.
  void check_range(int buffer, Value at, Value active) {
    if (!options_.checked) return;
    Value low = b.compare(LLVMIntSLT, at, b.index(0));
    Value high = b.compare(LLVMIntSGT, b.add(at, active), extents_[buffer]);
    b.when(b.bit_or(low, high), [&] {
      std::int64_t check = bounds_check_base + buffer;
      Value fields[] = {b.index(check), at, active};
      for (int k = 0; k < 3; ++k) b.store(fields[k], b.element_pointer(b.index(), b.parameter(4), b.index(k)), 8);
      b.result(b.index(check));
      b.position(b.block("unreachable"));  // `when` adds a branch; this block has no predecessor
    });
  }

  /// Elements at … at + lanes, of which `active` exist, the first ones, or all where `mask` is null.
  Value load(int buffer, Value at, Value mask, Value active) {
    check_range(buffer, at, active);
    return load_unchecked(buffer, at, mask);
  }
  Value load_unchecked(int buffer, Value at, Value mask) {
    DType dtype = type_in(buffer);
    Type element = b.storage(dtype), type = b.vector(element, lanes_);
    Value place = b.element_pointer(element, buffers_[buffer], at);
    int align = size_of(dtype);
    Value stored = mask ? b.masked_load(type, place, mask, align) : b.load(type, place, align);
    return converted(dtype, accumulator_, from_storage(b, dtype, stored));
  }
  void store(int buffer, Value value, Value at, Value mask, Value active) {
    check_range(buffer, at, active);
    store_unchecked(buffer, value, at, mask);
  }
  void store_unchecked(int buffer, Value value, Value at, Value mask) {
    DType dtype = type_in(buffer);
    Value stored = to_storage(b, dtype, converted(accumulator_, dtype, value));
    Value place = b.element_pointer(b.storage(dtype), buffers_[buffer], at);
    int align = size_of(dtype);
    if (mask)
      b.masked_store(stored, place, mask, align);
    else if (buffer == scan_result && options_.nontemporal)
      b.store_nontemporal(stored, place, lanes_ * align);
    else
      b.store(stored, place, align);
  }

  /// Elements wherever they are, checked by the caller.
  Value gathered(Value places, Value mask) {
    DType dtype = spec_.stored;
    Value stored = b.gather(b.storage(dtype), buffers_[scan_operand], places, all_lanes(mask), size_of(dtype));
    return converted(dtype, accumulator_, from_storage(b, dtype, stored));
  }
  void scatter(Value value, Value places, Value mask) {
    DType dtype = spec_.result;
    Value stored = to_storage(b, dtype, converted(accumulator_, dtype, value));
    b.scatter(stored, b.storage(dtype), buffers_[scan_result], places, all_lanes(mask), size_of(dtype));
  }
  Value all_lanes(Value mask) { return mask ? mask : LLVMConstAllOnes(b.vector(b.boolean(), lanes_)); }

  Value load_splat(int buffer) {
    check_range(buffer, b.index(0), b.index(1));
    Value one = b.load(b.storage(accumulator_), buffers_[buffer], size_of(accumulator_));
    return b.splat(from_storage(b, accumulator_, one), lanes_);
  }
  Value carry_splat() { return load_splat(scan_carry); }
  void store_one(int buffer, Value scalar) {
    check_range(buffer, b.index(0), b.index(1));
    b.store(to_storage(b, accumulator_, scalar), buffers_[buffer], size_of(accumulator_));
  }

  // --- the axis is contiguous

  /// Lanes run along the axis.
  bool along() const { return shape_ == ScanShape::lines || shape_ == ScanShape::strided; }

  /// Elements of one line, in the order of the scan, a vector at a time.
  struct Line {
    Value base;    // of the line's first element in memory
    Value length;  // of the line
    Value active;  // how many lanes there are, from the first on in the order of the scan
    Value mask;    // null: all of them; else as they lie in memory
  };
  Line line_at(Value number) {
    Line line{b.multiply(number, length_), length_, b.index(lanes_), nullptr};
    if (shape_ != ScanShape::strided) return line;
    Value outer = LLVMBuildSDiv(b.raw(), number, inner_, "");
    Value column = b.subtract(number, b.multiply(outer, inner_));
    line.base = b.add(b.multiply(outer, b.multiply(length_, inner_)), column);
    return line;
  }
  /// The line as far as there are elements.
  Line part_of(Line line, Value active) {
    line.active = active;
    line.mask = b.mask_below(active, lanes_);
    if (spec_.reverse && shape_ != ScanShape::strided) {
      Value missing = LLVMBuildTrunc(b.raw(), b.subtract(b.index(lanes_), active), b.integer(32), "");
      line.mask = b.compare(LLVMIntSGE, b.lane_numbers(b.integer(32), lanes_), b.splat(missing, lanes_));
    }
    return line;
  }
  /// Where the vector at `i` begins in memory; where elements are missing it may begin outside the line.
  Value place(const Line& line, Value i) {
    if (!spec_.reverse) return b.add(line.base, i);
    return b.subtract(b.add(line.base, line.length), b.add(i, b.index(lanes_)));
  }
  void check_along(int buffer, const Line& line, Value at) {
    Value first = spec_.reverse ? b.add(at, b.subtract(b.index(lanes_), line.active)) : at;
    check_range(buffer, first, line.active);
  }
  /// Where each lane's element is, of a line with gaps.
  Value strided_places(int buffer, const Line& line, Value i) {
    Value position = spec_.reverse ? b.subtract(b.subtract(line.length, b.index(1)), i) : i;
    Value step = spec_.reverse ? b.subtract(b.index(0), inner_) : inner_;
    Value first = b.add(line.base, b.multiply(position, inner_));
    Value span = b.multiply(b.subtract(line.active, b.index(1)), inner_);
    check_range(buffer, spec_.reverse ? b.subtract(first, span) : first, b.add(span, b.index(1)));
    return b.add(b.splat(first, lanes_), b.multiply(b.lane_numbers(b.index(), lanes_), b.splat(step, lanes_)));
  }
  Value load_along(const Line& line, Value i) {
    if (shape_ == ScanShape::strided) return gathered(strided_places(scan_operand, line, i), line.mask);
    Value at = place(line, i);
    check_along(scan_operand, line, at);
    Value value = load_unchecked(scan_operand, at, line.mask);
    return spec_.reverse ? reversed(value) : value;
  }
  void store_along(const Line& line, Value value, Value i) {
    if (shape_ == ScanShape::strided) return scatter(value, strided_places(scan_result, line, i), line.mask);
    Value at = place(line, i);
    check_along(scan_result, line, at);
    store_unchecked(scan_result, spec_.reverse ? reversed(value) : value, at, line.mask);
  }

  /// As many whole lines to a vector as there is room for.
  void scan_packed_lines() {
    Value room = LLVMBuildSDiv(b.raw(), b.index(lanes_), length_, ""), end = b.parameter(3);
    Value positions = lane_positions();
    b.loop(b.parameter(2), end, room, [&](Value number) {
      Value active = b.multiply(b.minimum(room, b.subtract(end, number)), length_);
      Line lines = part_of({b.multiply(number, length_), active, nullptr, nullptr}, active);
      Value vector = load_along(lines, b.index(0));
      auto from = [&](int position) {
        return b.compare(LLVMIntSGE, positions, b.constant(b.type_of(positions), position));
      };
      for (int step = 1; step < lanes_; step *= 2)
        vector = b.select(from(step), combined(shifted(identity_, vector, step), vector), vector);
      if (spec_.exclusive) vector = b.select(from(1), shifted(identity_, vector, 1), identity_);
      store_along(lines, vector, b.index(0));
    });
  }
  /// Each lane's number modulo the length, by way of a division that is exact enough for such small numbers.
  Value lane_positions() {
    Type reals = b.vector(b.storage(f32), lanes_), words = b.vector(b.integer(32), lanes_);
    Value lanes = b.lane_numbers(b.integer(32), lanes_);
    Value length = b.splat(LLVMBuildTrunc(b.raw(), length_, b.integer(32), ""), lanes_);
    Value middle = b.fadd(LLVMBuildSIToFP(b.raw(), lanes, reals, ""), b.real(reals, 0.5));
    Value line = LLVMBuildFPToSI(b.raw(), b.fdivide(middle, LLVMBuildSIToFP(b.raw(), length, reals, "")), words, "");
    return b.subtract(lanes, b.multiply(line, length));
  }

  /// One vector's own running combination.
  Value prefix(Value vector) {
    for (int step = 1; step < lanes_; step *= 2) vector = combined(shifted(identity_, vector, step), vector);
    return vector;
  }

  struct Pairs {
    std::vector<Value> first, second, both;
  };
  /// Neighbours taken apart and combined: half as many vectors.
  Pairs pairs_of(const std::vector<Value>& vectors) {
    Pairs out;
    for (std::size_t k = 0; k < vectors.size(); k += 2) {
      out.first.push_back(shuffled(vectors[k], vectors[k + 1], [](int i) { return 2 * i; }));
      out.second.push_back(shuffled(vectors[k], vectors[k + 1], [](int i) { return 2 * i + 1; }));
      out.both.push_back(combined(out.first.back(), out.second.back()));
    }
    return out;
  }

  /// What goes from group to group, each in every lane.
  struct Chain {
    Value running;  // the block up to here, without its carry
    Value before;   // the value at the element before
  };

  /// The values at the elements of `vectors`.
  std::vector<Value> scan_vectors(const std::vector<Value>& vectors, Value carry, Chain& chain) {
    if (vectors.size() == 1) {
      Value alone = combined(chain.running, prefix(vectors[0]));
      chain.running = every(alone, lanes_ - 1);
      // The first block has no carry; a branch is cheaper than a long combination with the identity.
      if (long_)
        return {chosen(
            chained_, [&] { return combined(carry, alone); }, alone)};
      return {combined(carry, alone)};
    }
    Pairs pairs = pairs_of(vectors);
    std::vector<Value> seconds = scan_vectors(pairs.both, carry, chain), out;
    for (std::size_t k = 0; k < seconds.size(); ++k) {
      Value before = shifted(k == 0 ? chain.before : seconds[k - 1], seconds[k], 1);
      Value firsts = combined(before, pairs.first[k]);
      for (int half = 0; half < 2; ++half)
        out.push_back(shuffled(firsts, seconds[k], [&](int i) {
          int pair = half * lanes_ / 2 + i / 2;
          return i % 2 == 0 ? pair : lanes_ + pair;
        }));
    }
    return out;
  }
  /// Scans and stores vectors from `i` on.
  void scan_group_at(const Line& line, Value i, int count, Value carry, Chain& chain) {
    std::vector<Value> vectors;
    for (int k = 0; k < count; ++k) vectors.push_back(load_along(line, b.add(i, b.index(k * lanes_))));
    std::vector<Value> values = scan_vectors(vectors, carry, chain);
    Value before = chain.before;
    chain.before = every(values.back(), lanes_ - 1);
    for (int k = 0; k < count; ++k) {
      Value value = values[static_cast<std::size_t>(k)];
      Value stored = spec_.exclusive ? shifted(before, value, 1) : value;
      before = value;
      store_along(line, stored, b.add(i, b.index(k * lanes_)));
    }
  }

  /// Where the whole groups of so many vectors end.
  Value whole_vectors_end(int vectors) {
    Value step = b.index(vectors * lanes_);
    return b.add(first_, b.multiply(LLVMBuildSDiv(b.raw(), b.subtract(last_, first_), step, ""), step));
  }

  void scan_line(Value number) {
    Line line = line_at(number);
    Value carry = chosen(
        chained_, [&] { return carry_splat(); }, identity_);
    Value whole = whole_vectors_end(group_vectors);
    Value start[] = {identity_, carry};
    auto groups = [&](Value i, std::span<const Value> in, const Line& at, int count) {
      Chain chain{in[0], in[1]};
      scan_group_at(at, i, count, carry, chain);
      return std::vector<Value>{chain.running, chain.before};
    };
    std::vector<Value> state =
        b.loop(first_, whole, b.index(group_vectors * lanes_), start,
               [&](Value i, std::span<const Value> in) { return groups(i, in, line, group_vectors); });
    Value full = whole_vectors_end(1);
    std::vector<Value> rest = b.loop(whole, full, b.index(lanes_), state,
                                     [&](Value i, std::span<const Value> in) { return groups(i, in, line, 1); });
    b.when(b.compare(LLVMIntSLT, full, last_), [&] { groups(full, rest, part_of(line, b.subtract(last_, full)), 1); });
    // Only whole groups are followed by another block.
    Value next = chosen(
        chained_, [&] { return combined(carry, state[0]); }, state[0]);
    store_one(scan_total, b.extract(next, 0));
  }
  /// A value that is made only under a condition.
  Value chosen(Value condition, const std::function<Value()>& make, Value otherwise) {
    BasicBlock before = b.current(), then = b.block("then"), after = b.block("after");
    b.branch_if(condition, then, after);
    b.position(then);
    Value made = make();
    BasicBlock made_in = b.current();
    b.branch(after);
    b.position(after);
    Value phi = LLVMBuildPhi(b.raw(), b.type_of(otherwise), "");
    Value values[] = {otherwise, made};
    BasicBlock blocks[] = {before, made_in};
    LLVMAddIncoming(phi, values, blocks, 2);
    return phi;
  }

  void total_of_line(Value number) {
    Line line = line_at(number);
    Value start[] = {identity_};
    std::vector<Value> state =
        b.loop(first_, whole_vectors_end(group_vectors), b.index(group_vectors * lanes_), start,
               [&](Value i, std::span<const Value> in) {
                 std::vector<Value> vectors;
                 for (int k = 0; k < group_vectors; ++k)
                   vectors.push_back(load_along(line, b.add(i, b.index(k * lanes_))));
                 while (vectors.size() > 1) vectors = pairs_of(vectors).both;
                 return std::vector<Value>{every(combined(in[0], prefix(vectors[0])), lanes_ - 1)};
               });
    store_one(scan_total, b.extract(state[0], 0));
  }

  // --- lanes run across lines

  /// Calls `body` for the vectors of columns, with their number from column_begin on.
  void for_columns(const std::function<void(Value i, Value mask, Value active)>& body) {
    Value count = b.subtract(column_end_, column_begin_), lanes = b.index(lanes_);
    Value whole = b.multiply(LLVMBuildSDiv(b.raw(), count, lanes, ""), lanes);
    b.loop(b.index(0), whole, lanes, [&](Value i) { body(i, nullptr, lanes); });
    b.when(b.compare(LLVMIntSLT, whole, count), [&] {
      Value active = b.subtract(count, whole);
      body(whole, b.mask_below(active, lanes_), active);
    });
  }

  void scan_columns(Value line) {
    b.when(chained_, [&] {
      walk_columns(line, true, true);
      join_columns();
    });
    b.when(b.bit_not(chained_), [&] { walk_columns(line, true, false); });
  }

  /// Scans (or only combines) the rows of the block; scan_total becomes its total, without the carry.
  void walk_columns(Value line, bool stores, bool carries) {
    Value row_start = b.multiply(line, b.multiply(length_, inner_));
    Walk walk{b.add(row_start, across(column_begin_)), stores, carries};
    // One vector stays in a register: loads of what was just stored with a mask would have to wait for it.
    Value count = b.subtract(column_end_, column_begin_), narrow = b.compare(LLVMIntSLE, count, b.index(lanes_));
    b.when(narrow, [&] {
      Value mask = b.mask_below(count, lanes_);
      Value carry = carries ? load(scan_carry, b.index(0), mask, count) : nullptr;
      Value start[] = {identity_};
      std::vector<Value> state = for_rows(start, [&](Value row, int rows, std::span<const Value> in) {
        Value running = in[0];
        for (Value at : places(walk, row, rows)) running = step(walk, at, running, carry, mask, count);
        return std::vector<Value>{running};
      });
      store(scan_total, state[0], b.index(0), mask, count);
    });
    b.when(b.bit_not(narrow), [&] {
      for_columns([&](Value i, Value mask, Value active) { store(scan_total, identity_, i, mask, active); });
      for_rows({}, [&](Value row, int rows, std::span<const Value>) {
        std::vector<Value> starts = places(walk, row, rows);
        for_columns([&](Value i, Value mask, Value active) {
          Value running = load(scan_total, i, mask, active);
          Value carry = carries ? load(scan_carry, i, mask, active) : nullptr;
          for (Value start : starts) running = step(walk, b.add(start, across(i)), running, carry, mask, active);
          store(scan_total, running, i, mask, active);
        });
        return std::vector<Value>{};
      });
    });
  }

  struct Walk {
    Value base;  // of the line's first row, at the first column
    bool stores, carries;
  };
  /// Calls `body` for the rows of the block, several at a time and the rest one by one.
  std::vector<Value> for_rows(
      std::span<const Value> start,
      const std::function<std::vector<Value>(Value row, int rows, std::span<const Value> carried)>& body) {
    Value step = b.index(rows_);
    Value whole = b.add(first_, b.multiply(LLVMBuildSDiv(b.raw(), b.subtract(last_, first_), step, ""), step));
    std::vector<Value> state =
        b.loop(first_, whole, step, start, [&](Value row, std::span<const Value> in) { return body(row, rows_, in); });
    if (rows_ == 1) return state;
    return b.loop(whole, last_, b.index(1), state,
                  [&](Value row, std::span<const Value> in) { return body(row, 1, in); });
  }
  /// Where rows in the order of the scan begin in memory.
  std::vector<Value> places(const Walk& walk, Value row, int rows) {
    std::vector<Value> out;
    for (int k = 0; k < rows; ++k) {
      Value at = b.add(row, b.index(k));
      if (spec_.reverse) at = b.subtract(b.subtract(length_, b.index(1)), at);
      out.push_back(b.add(walk.base, b.multiply(at, inner_)));
    }
    return out;
  }
  /// Takes in the elements at `at`, stores their values and returns what is running then.
  Value step(const Walk& walk, Value at, Value running, Value carry, Value mask, Value active) {
    Value next = combined(running, load_across(at, mask, active));
    Value value = spec_.exclusive ? running : next;
    if (walk.stores) store_across(walk.carries ? combined(carry, value) : value, at, mask, active);
    return next;
  }
  /// Elements from the first column to the next ones.
  Value across(Value columns) { return shape_ == ScanShape::across ? b.multiply(columns, length_) : columns; }
  Value lane_places(int buffer, Value at, Value active) {
    check_range(buffer, at, b.add(across(b.subtract(active, b.index(1))), b.index(1)));
    Value lanes = b.multiply(b.lane_numbers(b.index(), lanes_), b.splat(length_, lanes_));
    return b.add(b.splat(at, lanes_), lanes);
  }
  Value load_across(Value at, Value mask, Value active) {
    if (shape_ == ScanShape::columns) return load(scan_operand, at, mask, active);
    return gathered(lane_places(scan_operand, at, active), mask);
  }
  void store_across(Value value, Value at, Value mask, Value active) {
    if (shape_ == ScanShape::columns) return store(scan_result, value, at, mask, active);
    scatter(value, lane_places(scan_result, at, active), mask);
  }

  /// scan_total = scan_carry . scan_total
  void join_columns() {
    for_columns([&](Value i, Value mask, Value active) {
      Value carry = load(scan_carry, i, mask, active), total = load(scan_total, i, mask, active);
      store(scan_total, combined(carry, total), i, mask, active);
    });
  }

  LlvmBuilder& b;
  const ScanSpec& spec_;
  ScanShape shape_;
  ScanOptions options_;
  DType accumulator_;
  Expr combine_;
  int lanes_;
  bool long_ = scan_is_long(spec_);
  int rows_ = long_ ? 1 : most_rows;
  Value buffers_[scan_buffer_count] = {}, extents_[scan_buffer_count] = {};
  Value identity_ = nullptr, length_ = nullptr, inner_ = nullptr, first_ = nullptr, last_ = nullptr;
  Value column_begin_ = nullptr, column_end_ = nullptr, chained_ = nullptr;
};

const char* name_of(ScanShape shape) {
  switch (shape) {
    case ScanShape::lines:
      return " lines ";
    case ScanShape::strided:
      return " strided ";
    case ScanShape::columns:
      return " columns ";
    default:
      return " across ";
  }
}

std::string key_of(const char* what, const ScanSpec& spec, ScanShape shape, ScanOptions options) {
  return text("scan ", what, name_of(shape), spec.stored, " ", spec.result, " ", spec.combine.str(true), " from ",
              spec.identity->bits, " ", spec.combine.dtype(), spec.reverse ? "; reverse" : "",
              spec.exclusive ? "; exclusive" : "", options.checked ? "; checked" : "",
              options.nontemporal ? "; nontemporal" : "");
}

}  // namespace

int scan_lanes(const ScanSpec& spec) {
  int widest = std::max(size_of(spec.stored), size_of(spec.result));
  for (Expr part : topological(spec.combine)) widest = std::max(widest, size_of(compute_type(part.dtype())));
  return 64 / widest;
}

bool scan_is_long(const ScanSpec& spec) { return expand_math(spec.combine).size() > 16; }

int scan_group(const ScanSpec& spec) { return group_vectors * scan_lanes(spec); }

CodeRequest scan_code(const ScanSpec& spec, ScanShape shape, ScanOptions options) {
  return {key_of("values", spec, shape, options),
          [spec, shape, options](LlvmBuilder& b) { ScanEmitter(b, spec, shape, options).emit_scan(); }};
}

CodeRequest scan_total_code(const ScanSpec& spec, ScanShape shape, ScanOptions options) {
  options.nontemporal = false;
  return {key_of("total", spec, shape, options),
          [spec, shape, options](LlvmBuilder& b) { ScanEmitter(b, spec, shape, options).emit_total(); }};
}

}  // namespace stet::cpu
