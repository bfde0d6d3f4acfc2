// Index arithmetic beyond 2^31 elements, and beyond 2^32 bytes, without the memory: operands are views of one element,
// or lie in address space of which only the pages that are touched exist.
#include <sys/mman.h>

#include "stet/core/function.h"
#include "tests/ops/coverage.h"
#include "tests/ops/oracle.h"
#include "tests/sampling.h"

namespace stet::op_test {
namespace {

class LargeIndex : public OpTest {};

constexpr std::int64_t beyond = (std::int64_t{1} << 31) + 16;

/// Zeroed memory that takes none until it is written, for as long as a tensor uses it.
std::shared_ptr<std::byte> reserved(std::int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(memory),
          [bytes](std::byte* start) { munmap(start, static_cast<std::size_t>(bytes)); }};
}

/// A dense vector of so many elements: zeros, but for those given.
Tensor sparse_vector(DType dtype, std::int64_t count, const std::vector<std::pair<std::int64_t, Value>>& elements) {
  std::shared_ptr<std::byte> memory = reserved(count * size_of(dtype));
  if (!memory) return {};
  for (auto [at, value] : elements) store_element(dtype, value, memory.get() + at * size_of(dtype));
  return from_memory(dtype, memory.get(), Shape(Sizes{count}), memory);
}

/// The same values, `beyond` elements between neighbours of the first axis.
Tensor far_apart(const Tensor& x) {
  if (x.rank() == 0) return x;
  Sizes sizes = sizes_of(x), strides(sizes.size());
  std::int64_t line = 1;
  for (std::size_t axis = sizes.size(); axis-- > 1; line *= sizes[axis]) strides[axis] = line;
  strides[0] = beyond;
  auto bytes = static_cast<std::size_t>(line * size_of(x.dtype()));
  std::shared_ptr<std::byte> memory = reserved(std::max<std::int64_t>(sizes[0], 1) * beyond * size_of(x.dtype()));
  if (!memory) return {};
  std::string elements = bytes_of(x);
  for (std::int64_t i = 0; i < sizes[0]; ++i)
    std::memcpy(memory.get() + i * beyond * size_of(x.dtype()), elements.data() + static_cast<std::size_t>(i) * bytes,
                bytes);
  return from_memory(x.dtype(), memory.get(), x.shape(), memory, {.strides = strides});
}

#define STET_NEEDS_ADDRESS_SPACE(tensor) \
  if (!(tensor).defined()) GTEST_SKIP() << "the address space is limited"

/// Every structured row: operands whose lines are 2^31 elements apart are their values, eagerly, in a program that
/// takes the strides as they come, and in checked code.
TEST_F(LargeIndex, EveryStructuredRowOfLinesFarApart) {
  STET_NEEDS_ADDRESS_SPACE(far_apart(ones({40, 1}, DType::f64)));
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || op->kind == Kind::random) continue;
    std::vector<Sample> samples = samples_of(*op);
    std::erase_if(samples, [](const Sample& sample) {
      return !has_elements(sample) || std::ranges::any_of(sample.inputs, [](const SampleInput& input) {
        return !input.sizes.empty() && input.sizes[0] > 40;
      });
    });
    for (std::size_t i : chosen(text("far apart ", op->name), samples.size(), 2))
      for (DType dtype : {DType::f32, DType::i8}) {
        const Sample& sample = samples[i];
        if (!accepts(*op, sample, dtype)) continue;
        SCOPED_TRACE(text(sample_line(*op, sample), " of ", dtype));
        std::vector<Tensor> inputs = drawn_inputs(sample, dtype), far;
        for (const Tensor& input : inputs) far.push_back(far_apart(input));
        std::vector<Tensor> expected = eager_all(*op, inputs, sample.attributes);
        EXPECT_TRUE(same_bits(eager_all(*op, far, sample.attributes), expected));
        EXPECT_TRUE(same_bits(OneNode(*op, far, sample.attributes).run_all(far, sample.attributes), expected))
            << "as a graph";
        CheckedKernels checked;
        EXPECT_TRUE(same_bits(eager_all(*op, far, sample.attributes), expected)) << "in checked code";
      }
  }
}

TEST_F(LargeIndex, EveryMapOfLinesFarApart) {
  for (const OpDef& row : elementwise_rows()) {
    DType dtype = row.dtypes.result == DTypeRule::logical ? DType::i8 : DType::f32;
    std::vector<Tensor> inputs, far;
    for (int k = 0; k < row.arity; ++k) {
      Values values;
      for (std::uint64_t i = 0; i < 3 * 17; ++i)
        values.push_back(drawn_from(row.domain, drawn(i, static_cast<std::uint64_t>(k))));
      DType type = row.dtypes.result == DTypeRule::selected && k == 0 ? DType::bool_ : dtype;
      inputs.push_back(make_tensor(type, values, {3, 17}));
      far.push_back(far_apart(inputs.back()));
      STET_NEEDS_ADDRESS_SPACE(far.back());
    }
    EXPECT_TRUE(same_bits(eager(row, far), eager(row, inputs))) << row.name;
  }
}

/// The last elements of a vector of more than 2^31, by everything that takes a position.
TEST_F(LargeIndex, PositionsAtTheFarEnd) {
  const std::int64_t count = beyond + 1000, last = count - 1, middle = std::int64_t{1} << 31;
  for (DType dtype : {DType::u8, DType::f32, DType::f64}) {
    SCOPED_TRACE(dtype);
    Tensor x = sparse_vector(dtype, count, {{0, 1}, {middle, 2}, {last - 1, 3}, {last, 4}});
    STET_NEEDS_ADDRESS_SPACE(x);
    EXPECT_EQ(x.item<int>({last}), 4);
    EXPECT_EQ(values_of(x[range(last - 1, count)]), (Values{3, 4}));
    EXPECT_EQ(values_of(slice(x, {last - 1}, {2})), (Values{3, 4}));
    EXPECT_EQ(values_of(slice(x, {0}, {2}, {middle})), (Values{1, 2}));
    EXPECT_EQ(values_of(slice(x, {middle}, {2}, {last - middle})), (Values{2, 4}));
    EXPECT_EQ(values_of(reverse(slice(x, {last - 1}, {2}), 0)), (Values{4, 3}));
    EXPECT_EQ(values_of(x[-1]), (Values{4}));
    Tensor indices = tensor(std::vector<std::int64_t>{last, 0, middle, last - 1});
    EXPECT_EQ(values_of(gather(x, indices)), (Values{4, 1, 2, 3}));
    EXPECT_EQ(values_of(take_along_axis(x, indices, 0)), (Values{4, 1, 2, 3}));
    EXPECT_EQ(values_of(dynamic_slice(x, tensor(std::vector<std::int64_t>{last - 1}), {2})), (Values{3, 4}));
    // A start beyond the end is moved back, not cut to 32 bits.
    EXPECT_EQ(values_of(dynamic_slice(x, tensor(std::vector<std::int64_t>{last + middle}), {2})), (Values{3, 4}));
    EXPECT_EQ(values_of(sum(slice(x, {last - 3}, {4}))), (Values{7}));
    Function traced = function("ends(x, i)", [](Tensor t, Tensor i) {
      return concat({gather(t, i), slice(t, {t.dim(0) - 2}, {2}), dynamic_slice(t, i[range(0, 1)], {1})});
    });
    EXPECT_EQ(values_of(traced(x, indices)), (Values{4, 1, 2, 3, 3, 4, 4}));
    STET_NEEDS_ADDRESS_SPACE(x);
    std::string message = message_of([&] { return gather(x, tensor(std::vector<std::int64_t>{count})); });
    EXPECT_NE(message.find(text(count)), std::string::npos) << message;
    message = message_of([&] { return gather(x, tensor(std::vector<std::int64_t>{last - (std::int64_t{1} << 32)})); });
    EXPECT_NE(message.find(text(last - (std::int64_t{1} << 32))), std::string::npos) << message;
  }
}

/// A search in more than 2^31 sorted elements looks at few of them.
TEST_F(LargeIndex, SearchesGivePositionsBeyond32Bits) {
  const std::int64_t count = beyond + 1000;
  Tensor line = sparse_vector(DType::u8, count, {{count - 2, 5}, {count - 1, 9}});
  STET_NEEDS_ADDRESS_SPACE(line);
  EXPECT_EQ(values_of(searchsorted(line, make_vector(DType::u8, {0, 1, 5, 6, 10}))),
            (Values{0, count - 2.0L, count - 2.0L, count - 1.0L, static_cast<Value>(count)}));
}

/// Rows of a matrix with more than 2^31 elements in front of them, as one dense operand.
TEST_F(LargeIndex, RowsOfADenseMatrix) {
  const std::int64_t columns = 1 << 16, rows = (std::int64_t{1} << 31) / columns + 3;
  std::vector<std::pair<std::int64_t, Value>> elements;
  for (std::int64_t k = 0; k < 5; ++k) elements.push_back({(rows - 1) * columns + k, static_cast<Value>(k + 1)});
  Tensor flat = sparse_vector(DType::f32, rows * columns, elements);
  STET_NEEDS_ADDRESS_SPACE(flat);
  Tensor x = reshape(flat, {rows, columns});
  Tensor row = gather(x, tensor(std::vector<std::int64_t>{rows - 1}));
  EXPECT_EQ(values_of(sum(row, 1)), (Values{15}));
  EXPECT_EQ(values_of(argmax(x[range(rows - 2, rows)], 1)), (Values{0, 4}));
  EXPECT_EQ(values_of(transpose(x)[{4, rows - 1}]), (Values{5}));
  EXPECT_EQ(values_of(cumsum(x[{rows - 1, range(0, 5)}])), (Values{1, 3, 6, 10, 15}));
  EXPECT_EQ(values_of(matmul(x[range(rows - 2, rows)], ones({columns, 1}))), (Values{0, 15}));
  // A column: the stride is within 32 bits, the elements are not.
  Tensor column = slice(x, {rows - 3, 4}, {3, 1});
  EXPECT_EQ(values_of(column), (Values{0, 0, 5}));
  EXPECT_EQ(values_of(sort(column, 0, {.descending = true})), (Values{5, 0, 0}));
}

/// More than 2^31 elements are added up, compared and counted: one, repeated.
TEST_F(LargeIndex, ReductionsOfMoreThan32Bits) {
  const std::int64_t count = beyond + 3;
  Tensor one = broadcast_to(full({1}, 1, DType::i64), {count});
  EXPECT_EQ(sum(one).item<std::int64_t>(), count);
  if (!full_tests()) return;  // a second each
  EXPECT_EQ(max(broadcast_to(full({1}, 7, DType::u8), {count})).item<int>(), 7);
  EXPECT_EQ(argmax(broadcast_to(full({1}, 7, DType::u8), {count}), 0).item<std::int64_t>(), 0);
  EXPECT_EQ(mean(broadcast_to(full({1}, 0.5, DType::f64), {count})).item<double>(), 0.5);
  EXPECT_EQ(count_nonzero(broadcast_to(full({1}, true, DType::bool_), {count})).item<std::int64_t>(), count);
}

/// The position of the largest element is beyond 32 bits.
TEST_F(LargeIndex, PositionsOfExtremesBeyond32Bits) {
  if (!full_tests()) GTEST_SKIP() << "reads 2 GB (make test-full)";
  const std::int64_t count = beyond + 3;
  Tensor x = sparse_vector(DType::u8, count, {{count - 2, 200}});
  STET_NEEDS_ADDRESS_SPACE(x);
  EXPECT_EQ(argmax(x, 0).item<std::int64_t>(), count - 2);
}

/// Views of views: offsets and sizes beyond 32 bits stay exact while nothing is read.
TEST_F(LargeIndex, ViewsOfViews) {
  const std::int64_t large = std::int64_t{1} << 40;
  Tensor x = broadcast_to(make_tensor(DType::f32, {1, 2, 3}, {1, 3}), {large, 3});
  Tensor far = slice(x, {large - 2, 1}, {2, 2});
  EXPECT_EQ(values_of(far), (Values{2, 3, 2, 3}));
  EXPECT_EQ(sizes_of(slice(x, {0, 0}, {large / 2, 3}, {2, 1})), (Sizes{large / 2, 3}));
  EXPECT_EQ(sizes_of(transpose(x)), (Sizes{3, large}));
  EXPECT_EQ(values_of(transpose(x)[{2, large - 1}]), (Values{3}));
  EXPECT_EQ(values_of(gather(x, tensor(std::vector<std::int64_t>{large - 1, 0}))), (Values{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(values_of(dynamic_slice(x, tensor(std::vector<std::int64_t>{large - 1, 2}), {1, 1})), (Values{3}));
  EXPECT_EQ(x.node()->element_count(), 3 * large);
}

#define STET_EXPECT_TOO_LARGE(call)                                                                             \
  {                                                                                                             \
    SCOPED_TRACE(#call);                                                                                        \
    std::string message = message_of([&]() -> Tensor { return call; });                                         \
    bool named = message.find("too large") != std::string::npos || message.find("memory") != std::string::npos; \
    EXPECT_TRUE(named) << message;                                                                              \
  }

/// Sizes and bytes whose products leave 64 bits, or memory: a UserError that says so, from every op that makes sizes.
TEST_F(LargeIndex, SizesThatNobodyHas) {
  const std::int64_t large = std::int64_t{1} << 40, most = INT64_MAX;
  Tensor one = ones({1, 1}), view = broadcast_to(one, {large, 1 << 20}), line = broadcast_to(ones({1}), {large});
  STET_EXPECT_TOO_LARGE(pad(ones({2}), {{0, large}}));
  STET_EXPECT_TOO_LARGE(pad(ones({2}), {{most / 2, most / 2}}));
  STET_EXPECT_TOO_LARGE(pad(ones({2, 2}), {{0, large}, {large, 0}}));
  STET_EXPECT_TOO_LARGE(tile(ones({2, 2}), {large, large}));
  STET_EXPECT_TOO_LARGE(tile(ones({2}), {large}));
  STET_EXPECT_TOO_LARGE(repeat(ones({2}), most / 2));
  STET_EXPECT_TOO_LARGE(repeat(ones({2}), large, 0));
  STET_EXPECT_TOO_LARGE(eye(large));
  STET_EXPECT_TOO_LARGE(outer(line, line));
  STET_EXPECT_TOO_LARGE(kron(view, view));
  STET_EXPECT_TOO_LARGE(cumsum(line));
  STET_EXPECT_TOO_LARGE(cummax(view, 1));
  STET_EXPECT_TOO_LARGE(sort(line));
  STET_EXPECT_TOO_LARGE(top_k(line, large).values);
  STET_EXPECT_TOO_LARGE(scatter_add(ones({2}), broadcast_to(zeros({1}, DType::i64), {large}), line));
  STET_EXPECT_TOO_LARGE(scatter_max(line, zeros({1}, DType::i64), ones({1})));
  STET_EXPECT_TOO_LARGE(put_along_axis(line, zeros({1}, DType::i64), ones({1})));
  STET_EXPECT_TOO_LARGE(take_along_axis(ones({2}), broadcast_to(zeros({1}, DType::i64), {large})));
  STET_EXPECT_TOO_LARGE(dynamic_slice(view, zeros({2}, DType::i64), {large, 1 << 20}));
  STET_EXPECT_TOO_LARGE(dynamic_update_slice(line, ones({1}), zeros({1}, DType::i64)));
  STET_EXPECT_TOO_LARGE(searchsorted(ones({2}), line));
  STET_EXPECT_TOO_LARGE(max_pool(broadcast_to(ones({1, 1, 1, 1}), {large, 4, 4, 1}), {2, 2}));
  STET_EXPECT_TOO_LARGE(average_pool(broadcast_to(ones({1, 1, 1, 1}), {large, 4, 4, 1}), {2, 2}));
  STET_EXPECT_TOO_LARGE(extract_patches(broadcast_to(ones({1, 1, 1, 1}), {large, 4, 4, 1}), {2, 2}));
  STET_EXPECT_TOO_LARGE(resize(ones({1, 2, 2, 1}), large, large));
  STET_EXPECT_TOO_LARGE(segment_sum(ones({2}), zeros({2}, DType::i64), large));
  STET_EXPECT_TOO_LARGE(linalg::band_part(view, 1, 1));
  STET_EXPECT_TOO_LARGE(einsum("i,j->ij", {line, line}));
  STET_EXPECT_TOO_LARGE(linspace(0.0, 1.0, large));
  EXPECT_EQ(sum(ones({1000})).item<float>(), 1000);  // nothing is left behind
}

}  // namespace
}  // namespace stet::op_test
