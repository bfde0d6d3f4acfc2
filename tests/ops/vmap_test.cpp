// Every row for many examples at once equals the row for one after the other, whichever operands hold examples.
#include <set>

#include "stet/core/flat_loop.h"
#include "stet/core/function.h"
#include "tests/ops/gradient_samples.h"

namespace stet::op_test {
namespace {

class Vmap : public OpTest {};

/// Operand number k of one example: other values for every example, all of which suit the row.
Tensor operand_of_example(const OpDef& op, const Sample& sample, std::size_t k, int example) {
  const SampleInput& input = sample.inputs[k];
  const DType type = input.below >= 0 ? DType::i64 : op.kind == Kind::random ? DType::f32 : DType::f64;
  Values values = drawn_values(static_cast<int>(k), type, input);
  for (Value& value : values) {
    if (input.below >= 0)
      value = (static_cast<std::int64_t>(value) + example) % input.below;
    else if (input.draw == Draw::definite || input.draw == Draw::regular)
      value *= 1 + 0.25L * example;
    else
      value += 0.125L * example;
  }
  return make_tensor(type, values, input.sizes);
}

struct Case {
  const OpDef& op;
  Attributes attributes;
  std::vector<std::vector<Tensor>> examples;  // by example and operand
  unsigned mask = 0;                          // the operands that hold examples
  Rounding rounding = Rounding::exact;

  bool holds(std::size_t operand) const { return (mask >> operand & 1) != 0; }
  std::vector<Tensor> operands(int count) const {
    std::vector<Tensor> out;
    for (std::size_t k = 0; k < examples[0].size(); ++k) {
      std::vector<Tensor> parts;
      for (int e = 0; e < count; ++e) parts.push_back(examples[static_cast<std::size_t>(e)][k]);
      out.push_back(holds(k) ? stack(parts) : parts[0]);
    }
    return out;
  }
  /// What the row gives for the examples, one after the other.
  std::vector<Tensor> one_by_one(int count) const {
    std::vector<std::vector<Tensor>> results;
    for (int e = 0; e < count; ++e) {
      std::vector<Tensor> given;
      for (std::size_t k = 0; k < examples[0].size(); ++k)
        given.push_back(examples[holds(k) ? static_cast<std::size_t>(e) : 0][k]);
      results.push_back(eager_all(op, given, attributes));
    }
    std::vector<Tensor> out;
    for (std::size_t r = 0; r < results[0].size(); ++r) {
      std::vector<Tensor> parts;
      for (const std::vector<Tensor>& one : results) parts.push_back(one[r]);
      out.push_back(stack(parts));
    }
    return out;
  }
  std::vector<Tensor> at_once(const std::vector<Tensor>& operands) const {
    FlatLoop loop;
    loop.name = "vmap";
    loop.at_once = true;
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (holds(k)) loop.sequences.push_back(operands[k]);
    loop.turns = loop.sequences[0].dim(0);
    loop.body = [&](std::span<const Tensor>, std::span<const Tensor> elements, const Tensor&) {
      std::vector<In> given;
      std::size_t next = 0;
      for (std::size_t k = 0; k < operands.size(); ++k) given.emplace_back(holds(k) ? elements[next++] : operands[k]);
      std::vector<Tensor> results(op.result_count());
      call_into(op, given, attributes.view(), results);
      return FlatTurn{{}, results};
    };
    return run_flat_loop(loop).stacked;
  }
};

/// The same elements; sums of as many terms may be added up in another order.
testing::AssertionResult agree(const std::vector<Tensor>& a, const std::vector<Tensor>& b, Rounding rounding) {
  if (rounding == Rounding::exact) return same_bits(a, b);
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " results and " << b.size();
  for (std::size_t r = 0; r < a.size(); ++r) {
    if (sizes_of(a[r]) != sizes_of(b[r]) || a[r].dtype() != b[r].dtype())
      return testing::AssertionFailure() << text(a[r].dtype(), a[r].shape()) << " is not "
                                         << text(b[r].dtype(), b[r].shape());
    Values x = values_of(a[r]), y = values_of(b[r]);
    Value scale = 1;
    for (Value value : y)
      if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool same = std::isfinite(y[i]) ? std::abs(x[i] - y[i]) <= 1e-11L * scale
                                            : x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
      if (!same)
        return testing::AssertionFailure() << "result " << r << ", element " << i << ": " << static_cast<double>(x[i])
                                           << " is not " << static_cast<double>(y[i]);
    }
  }
  return testing::AssertionSuccess();
}

/// Whether anything is left to a loop over the examples.
bool check(const Case& one) {
  EXPECT_TRUE(agree(one.at_once(one.operands(3)), one.one_by_one(3), one.rounding));
  auto traced = function("traced", [&](std::vector<Tensor> operands) { return one.at_once(operands); });
  for (int count : {2, 4, 1}) EXPECT_TRUE(agree(traced(one.operands(count)), one.one_by_one(count), one.rounding));
  EXPECT_EQ(traced.trace_count(), 1);
  return traced.graph(0).find(" loop ") != std::string::npos;
}

TEST_F(Vmap, OfEveryMap) {
  for (const OpDef& row : elementwise_rows()) {
    for (const std::vector<Sizes>& sizes : {std::vector<Sizes>{{5}, {5}, {5}}, std::vector<Sizes>{{3, 1}, {4}, {}},
                                            std::vector<Sizes>{{}, {2, 3}, {3}}}) {
      std::vector<std::vector<Tensor>> examples;
      for (int e = 0; e < 4; ++e) {
        std::vector<Tensor> operands;
        for (int k = 0; k < row.arity; ++k) {
          const DType type = row.dtypes.result == DTypeRule::logical ? DType::i64 : DType::f64;
          Tensor values = values_from(row.domain, DType::f64, sizes[static_cast<std::size_t>(k)],
                                      static_cast<std::uint64_t>(10 * e + k));
          if (type == DType::i64) values = abs(values * 10);
          const bool condition = row.dtypes.result == DTypeRule::selected && k == 0;
          operands.push_back(condition ? values > 0.5 : cast(values, type));
        }
        examples.push_back(std::move(operands));
      }
      for (unsigned mask = 1; mask < 1u << row.arity; ++mask) {
        SCOPED_TRACE(text(row.name, " of ", Shape(sizes[0]), ", operands ", static_cast<int>(mask)));
        EXPECT_FALSE(check({row, {}, examples, mask}));
      }
    }
  }
}

/// A map may ask where it is: in its own example.
TEST_F(Vmap, OfMapsThatAskForTheirPosition) {
  const Tensor x = values_from({-1, 1}, DType::f64, {3, 2, 4}, 5);
  const Expr body = operand(0, DType::f64) + scalar::cast(loop_index(0) * 100 + loop_index(1), DType::f64);
  FlatLoop loop;
  loop.name = "vmap";
  loop.at_once = true;
  loop.sequences = {x};
  loop.turns = 3;
  loop.body = [&](std::span<const Tensor>, std::span<const Tensor> elements, const Tensor&) {
    return FlatTurn{{}, {call_map(body, std::vector<In>{In(elements[0])})}};
  };
  Tensor expected = x + reshape(tensor({0., 1., 2., 3., 100., 101., 102., 103.}), {2, 4});
  EXPECT_TRUE(same_bits(run_flat_loop(loop).stacked, std::vector<Tensor>{expected}));
}

TEST_F(Vmap, OfEveryStructuredRow) {
  std::set<std::string> in_turns;
  int checked = 0;
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || op->kind == Kind::late) continue;
    for (const Sample& sample : visited_samples(*op, "vmap", 3)) {
      std::vector<std::vector<Tensor>> examples;
      for (int e = 0; e < 4; ++e) {
        examples.emplace_back();
        for (std::size_t k = 0; k < sample.inputs.size(); ++k)
          examples.back().push_back(operand_of_example(*op, sample, k, e));
      }
      for (unsigned mask = 1; mask < 1u << sample.inputs.size(); ++mask) {
        SCOPED_TRACE(text(sample_line(*op, sample), ", operands ", static_cast<int>(mask)));
        if (check({*op, sample.attributes, examples, mask, sample.rounding}))
          in_turns.insert(text(op->name, " ", static_cast<int>(mask)));
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 150);
  // Where examples are left to a loop: a filter, a place or a random key for every example.
  std::set<std::string> expected;
  for (const char* name : {"conv", "conv_input"}) expected.insert({text(name, " 2"), text(name, " 3")});
  for (int mask = 1; mask < 4; ++mask) expected.insert(text("conv_filter ", mask));
  for (const char* name : {"pad", "dynamic_slice"}) expected.insert({text(name, " 2"), text(name, " 3")});
  for (int mask = 4; mask < 8; ++mask) expected.insert(text("dynamic_update_slice ", mask));
  for (const char* name : {"scatter_update", "scatter_add", "scatter_multiply", "scatter_min", "scatter_max"})
    for (int mask : {2, 3, 6, 7}) expected.insert(text(name, " ", mask));
  for (const std::string& one : in_turns) {
    const bool draws = one.starts_with("uniform") || one.starts_with("normal") || one.starts_with("rand");
    EXPECT_TRUE(draws || expected.contains(one)) << one << " runs example by example";
  }
}

}  // namespace
}  // namespace stet::op_test
