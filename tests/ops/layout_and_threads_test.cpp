// What must not change a bit: the number of threads, and how operands lie in memory.
#include "tests/ops/coverage.h"
#include "tests/ops/oracle.h"
#include "tests/sampling.h"

namespace stet::op_test {
namespace {

class SameBits : public OpTest {
 protected:
  void TearDown() override {
    set_thread_count(threads_before_);
    OpTest::TearDown();
  }
  int threads_before_ = thread_count();
};

std::vector<Tensor> map_operands(const OpDef& row, DType dtype, const Sizes& sizes) {
  std::vector<Tensor> out;
  for (int k = 0; k < row.arity; ++k) {
    Values values;
    for (std::int64_t i = 0; i < count_of(sizes); ++i) {
      double unit =
          static_cast<double>(drawn(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(k) + 40)) / 0x1p31;
      values.push_back(rounded_to(dtype, row.domain.low + (row.domain.high - row.domain.low) * unit));
    }
    bool condition = row.dtypes.result == DTypeRule::selected && k == 0;
    Tensor tensor = make_tensor(dtype, values, sizes);
    out.push_back(condition ? tensor > 0 : tensor);
  }
  return out;
}

DType map_type(const OpDef& row) { return row.dtypes.result == DTypeRule::logical ? DType::i32 : DType::f32; }

// --- threads

/// The result with one thread and with two, and (of the graph's program) again with two.
void expect_threads_agree(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes = {}) {
  set_thread_count(1);
  std::vector<Tensor> alone = eager_all(op, inputs, attributes);
  set_thread_count(2);
  std::vector<Tensor> together = eager_all(op, inputs, attributes), again = eager_all(op, inputs, attributes);
  EXPECT_TRUE(same_bits(alone, together));
  EXPECT_TRUE(same_bits(alone, again));
}

TEST_F(SameBits, MapsOnOneAndTwoThreads) {
  for (const OpDef& row : elementwise_rows()) {
    SCOPED_TRACE(row.name);
    expect_threads_agree(row, map_operands(row, map_type(row), {150'001}));
    if (row.arity >= 2) {
      std::vector<Tensor> columns = map_operands(row, map_type(row), {301, 1});
      std::vector<Tensor> rows = map_operands(row, map_type(row), {401});
      columns[1] = rows[1];
      expect_threads_agree(row, columns);
    }
  }
}

Tensor random_values(DType dtype, const Sizes& sizes, int stream) {
  Values values;
  for (std::int64_t i = 0; i < count_of(sizes); ++i)
    values.push_back(
        static_cast<double>(drawn(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(stream))) / 0x1p30 - 1);
  return make_tensor(dtype, values, sizes);
}

TEST_F(SameBits, ReductionsOnOneAndTwoThreads) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const Sizes& sizes :
         {Sizes{400'003}, Sizes{3, 100'003}, Sizes{100'003, 3}, Sizes{700, 501}, Sizes{5, 20'000, 4}}) {
      SCOPED_TRACE(text(dtype, Shape(sizes)));
      Tensor x = random_values(dtype, sizes, 7);
      auto each = [&](auto reduce) {
        set_thread_count(1);
        Tensor alone = reduce();
        set_thread_count(2);
        EXPECT_TRUE(same_bits(alone, reduce()));
      };
      each([&] { return sum(x); });
      each([&] { return max(x); });
      for (int axis = 0; axis < static_cast<int>(sizes.size()); ++axis) {
        each([&] { return sum(x, axis); });
        each([&] { return mean(x, axis, {.keepdims = true}); });
        each([&] { return argmax(x, axis); });
        each([&] { return min(x, axis); });
      }
    }
}

/// The samples of a row that a run visits; one with elements for certain.
std::vector<Sample> visited_samples(const OpDef& op, const std::string& what, std::size_t count) {
  std::vector<Sample> samples = samples_of(op), out;
  for (std::size_t i :
       chosen(text(what, " ", op.name), samples.size(), count, [&](std::size_t k) { return has_elements(samples[k]); }))
    out.push_back(samples[i]);
  return out;
}

TEST_F(SameBits, StructuredRowsOnOneAndTwoThreads) {
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map) continue;
    for (const Sample& sample : visited_samples(*op, "threads", 3)) {
      SCOPED_TRACE(sample_line(*op, sample));
      expect_threads_agree(*op, drawn_inputs(sample, DType::f32), sample.attributes);
    }
  }
  // And at sizes that are cut into chunks.
  Tensor a = random_values(DType::f32, {310, 290}, 1), b = random_values(DType::f32, {290, 270}, 2);
  Tensor stacked = random_values(DType::f32, {6, 64, 70}, 3), right = random_values(DType::f32, {70, 90}, 4);
  Tensor images = random_values(DType::f32, {4, 40, 41, 8}, 5), filter = random_values(DType::f32, {3, 3, 8, 16}, 6);
  Tensor long_indices = cast(abs(random_values(DType::f32, {50'000}, 8)) * 309, DType::i64);
  Tensor big = random_values(DType::f32, {700, 300}, 9);
  const std::function<Tensor()> calls[] = {
      [&] { return matmul(a, b); },
      [&] { return matmul(a, a, {.transpose_a = true}); },
      [&] { return matmul(b, b, {.transpose_b = true}); },
      [&] { return matmul(cast(a, DType::f64), cast(b, DType::f64)); },
      [&] { return matmul(cast(a, DType::bf16), cast(b, DType::bf16)); },
      [&] { return matmul(stacked, right); },
      [&] { return conv2d(images, filter, {.same_padding = true}); },
      [&] {
        return conv2d(images, filter, {.strides = {2, 3}});
      },
      [&] { return gather(a, long_indices); },
      [&] {
        return scatter_add(zeros({310, 4}), long_indices, random_values(DType::f32, {50'000, 4}, 10));
      },
      [&] { return scatter_add(zeros({310}), long_indices, random_values(DType::f32, {50'000}, 10)); },
      [&] { return transpose(big).contiguous(); },
      [&] {
        return reverse(big, {0, 1});
      },
      [&] {
        return concat({big, big, big}, 1);
      },
      [&] { return one_hot(long_indices, 20); },
      [&] { return nonzero(big > 0); },
      [&] { return softmax(big); },
      [&] { return layer_norm(big, ones({300}), zeros({300})); },
      [&] { return sum(big * big); },
      [&] {
        random::seed(5);
        return random::normal({200'001});
      },
  };
  int number = 0;
  for (const std::function<Tensor()>& one : calls) {
    set_thread_count(1);
    Tensor alone = one();
    set_thread_count(2);
    EXPECT_TRUE(same_bits(alone, one())) << "call " << number;
    ++number;
  }
}

// --- layouts

/// The same values with gaps between the elements of the last axis.
Tensor strided(const Tensor& x) {
  int rank = x.rank();
  if (rank == 0) return x;
  Sizes sizes = sizes_of(x);
  Tensor doubled = concat({expand_dims(x, rank), expand_dims(zeros_like(x), rank)}, rank);
  sizes.back() *= 2;
  std::vector<Dim> flat(sizes.begin(), sizes.end());
  Tensor wide = reshape(doubled, flat);
  std::vector<Dim> begin(static_cast<std::size_t>(rank), Dim(0)), size;
  for (std::int64_t one : sizes_of(x)) size.push_back(one);
  std::vector<std::int64_t> steps(static_cast<std::size_t>(rank), 1);
  steps.back() = 2;
  return slice(wide, begin, size, steps);
}

/// The same values, axes reversed in memory.
Tensor transposed_in_memory(const Tensor& x) { return transpose(transpose(x).contiguous()); }

/// The same values inside a larger tensor: rows with a gap between them, starting off the beginning.
Tensor inside(const Tensor& x) {
  int rank = x.rank();
  if (rank == 0) return x;
  Tensor out = x;
  for (int axis = 0; axis < rank; ++axis) {
    Sizes edge = sizes_of(out);
    edge[static_cast<std::size_t>(axis)] = 1;
    Tensor border = full(Shape(edge), 1, x.dtype());
    out = concat({border, out, border}, axis);
  }
  std::vector<Dim> begin(static_cast<std::size_t>(rank), Dim(1)), size;
  for (std::int64_t one : sizes_of(x)) size.push_back(one);
  return slice(out, begin, size);
}

/// Repeated along the first axis, without a copy; not the same values.
Tensor repeated(const Tensor& x) {
  if (x.rank() == 0 || sizes_of(x)[0] < 1) return x;
  std::vector<Dim> begin(static_cast<std::size_t>(x.rank()), Dim(0)), size;
  for (std::int64_t one : sizes_of(x)) size.push_back(one);
  size[0] = 1;
  return broadcast_to(slice(x, begin, size), x.shape());
}

/// With operands that lie otherwise: in all ways, or in one that the seed chooses.
void expect_layouts_agree(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                          const std::string& what) {
  using Rearranged = Tensor (*)(const Tensor&);
  constexpr Rearranged layouts[] = {strided, transposed_in_memory, inside, repeated};
  for (std::size_t number : chosen(what, std::size(layouts), 1)) {
    Rearranged layout = layouts[number];
    // A matrix of equal rows is singular.
    if (layout == repeated && op.kind == Kind::linalg && inputs[0].rank() == 2) continue;
    std::vector<Tensor> views, dense;
    for (const Tensor& input : inputs) {
      views.push_back(layout(input));
      dense.push_back(views.back().contiguous());
    }
    std::vector<Tensor> expected = eager_all(op, dense, attributes);
    EXPECT_TRUE(same_bits(eager_all(op, views, attributes), expected));
    EXPECT_TRUE(same_bits(OneNode(op, views, attributes).run_all(views, attributes), expected)) << "as a graph";
    // One operand of each.
    if (inputs.size() > 1) {
      std::vector<Tensor> mixed = views;
      mixed[0] = dense[0];
      EXPECT_TRUE(same_bits(eager_all(op, mixed, attributes), expected)) << "the first operand dense";
    }
    CheckedKernels checked;
    EXPECT_TRUE(same_bits(eager_all(op, views, attributes), expected)) << "in checked code";
  }
}

TEST_F(SameBits, ViewsAreTheirValues) {
  for (DType dtype : {DType::f32, DType::i8, DType::f16, DType::bool_, DType::i64}) {
    Tensor x = drawn_inputs({{{{5, 7, 6}}}, {}}, dtype)[0];
    for (auto layout : {strided, transposed_in_memory, inside}) {
      Tensor view = layout(x);
      EXPECT_FALSE(view.is_dense());
      EXPECT_TRUE(same_bits(view, x)) << dtype;
      EXPECT_TRUE(same_bits(reshape(view, {-1}), reshape(x, {-1}))) << dtype;
    }
  }
}

TEST_F(SameBits, MapsOfAnyLayout) {
  for (const OpDef& row : elementwise_rows())
    for (const Sizes& sizes : {Sizes{7, 33}, Sizes{3, 4, 5}})
      for (DType dtype : visited_types(row, text("layouts ", Shape(sizes)))) {
        std::string what = text(row.name, " of ", dtype, Shape(sizes));
        SCOPED_TRACE(what);
        expect_layouts_agree(row, map_operands(row, dtype, sizes), {}, what);
      }
}

TEST_F(SameBits, StructuredRowsOfAnyLayout) {
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || op->kind == Kind::random) continue;
    for (DType dtype : all_dtypes)
      for (const Sample& sample : visited_samples(*op, text("layouts ", dtype), 1)) {
        if (!accepts(*op, sample, dtype)) continue;
        std::string what = text(sample_line(*op, sample), " of ", dtype);
        SCOPED_TRACE(what);
        expect_layouts_agree(*op, drawn_inputs(sample, dtype), sample.attributes, what);
      }
  }
}

}  // namespace
}  // namespace stet::op_test
