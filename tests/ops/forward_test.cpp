// Forward mode of rows: along a random direction the results change as central differences say, and by as much as the
// gradients say; the same of the change of a gradient. What tapes keep of every row is enough for both ways.
#include "stet/core/gradient_reads.h"
#include "stet/core/tape_state.h"
#include "tests/ops/gradient_samples.h"

namespace stet::op_test {
namespace {

class Forward : public OpTest {};

constexpr double step = 1e-5;

std::vector<TapeSource> sources_of(const std::vector<Tensor>& tensors) {
  std::vector<TapeSource> out;
  for (const Tensor& one : tensors) out.push_back({identity_of(*one.node()), 0});
  return out;
}

std::vector<Tensor> floating_among(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> out;
  for (const Tensor& one : tensors)
    if (is_floating(one.dtype())) out.push_back(one);
  return out;
}

/// The finite elements of the results, weighted.
double weighted(const std::vector<Tensor>& outputs, const std::vector<Tensor>& ds) {
  double sum = 0;
  for (std::size_t r = 0; r < outputs.size(); ++r)
    if (ds[r].defined()) sum += inner_product(where(less(abs(outputs[r]), INFINITY), outputs[r], 0), ds[r]);
  return sum;
}

void check_forward(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  GradientTape tape({.persistent = true});
  std::vector<Tensor> sources = floating_among(inputs), along;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    tape.watch(sources[k]);
    along.push_back(direction_like(sources[k], k));
  }
  std::vector<Tensor> outputs = eager_all(op, inputs, attributes);
  if (!any_floating(outputs)) return;
  std::vector<Tensor> ds = directions_like(outputs), targets, weights;
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    if (!ds[r].defined()) continue;
    ds[r] = where(less(abs(outputs[r]), INFINITY), ds[r], 0);
    targets.push_back(outputs[r]);
    weights.push_back(ds[r]);
  }
  std::vector<Tensor> moved = tangents_of(tape.state(), targets, sources_of(sources), along);
  std::vector<Tensor> gradients = stet::gradients_of(tape, targets, weights, {sources.begin(), sources.end()});
  double forward = 0, reverse = 0, scale = 1;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (!moved[r].defined()) continue;
    EXPECT_EQ(sizes_of(moved[r]), sizes_of(targets[r]));
    EXPECT_EQ(moved[r].dtype(), targets[r].dtype());
    forward += inner_product(where(equal(weights[r], 0), 0, moved[r]), weights[r]);
  }
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (!gradients[k].defined()) continue;
    reverse += inner_product(gradients[k], along[k]);
    scale = std::max(scale, largest(gradients[k]) * std::sqrt(static_cast<double>(count_of(sizes_of(sources[k])) + 1)));
  }
  EXPECT_NEAR(forward, reverse, 1e-9 * scale);
  std::vector<Tensor> up = inputs, down = inputs;
  std::size_t next = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!is_floating(inputs[k].dtype())) continue;
    up[k] = (inputs[k] + along[next] * step).contiguous();
    down[k] = (inputs[k] - along[next] * step).contiguous();
    ++next;
  }
  double above = weighted(eager_all(op, up, attributes), ds), below = weighted(eager_all(op, down, attributes), ds);
  EXPECT_NEAR(forward, (above - below) / (2 * step), 1e-5 * scale);
}

/// The gradient, moved: forward over reverse equals reverse over reverse.
void check_forward_over_reverse(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  GradientTape outer({.persistent = true});
  std::vector<Tensor> sources = floating_among(inputs), along;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    outer.watch(sources[k]);
    along.push_back(direction_like(sources[k], 40 + k));
  }
  std::vector<Tensor> outputs, first;
  {
    GradientTape inner;
    for (const Tensor& source : sources) inner.watch(source);
    outputs = eager_all(op, inputs, attributes);
    if (!any_floating(outputs)) return;
    std::vector<Tensor> ds = directions_like(outputs), targets, weights;
    for (std::size_t r = 0; r < outputs.size(); ++r) {
      if (!ds[r].defined()) continue;
      targets.push_back(outputs[r]);
      weights.push_back(where(less(abs(outputs[r]), INFINITY), ds[r], 0));
    }
    for (const Tensor& d : stet::gradients_of(inner, targets, weights, {sources.begin(), sources.end()}))
      if (d.defined()) first.push_back(d);
  }
  std::vector<Tensor> weights;
  for (std::size_t k = 0; k < first.size(); ++k) weights.push_back(direction_like(first[k], 60 + k));
  std::vector<Tensor> moved = tangents_of(outer.state(), first, sources_of(sources), along);
  std::vector<Tensor> second = stet::gradients_of(outer, first, weights, {sources.begin(), sources.end()});
  double forward = 0, reverse = 0, scale = 1;
  for (std::size_t k = 0; k < first.size(); ++k)
    if (moved[k].defined()) forward += inner_product(moved[k], weights[k]);
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (!second[k].defined()) continue;
    reverse += inner_product(second[k], along[k]);
    scale = std::max(scale, largest(second[k]) * std::sqrt(static_cast<double>(count_of(sizes_of(sources[k])) + 1)));
  }
  EXPECT_NEAR(forward, reverse, 1e-8 * scale);
}

TEST_F(Forward, OfEveryMap) {
  for (const OpDef& row : elementwise_rows()) {
    if (!has_floating_result(row)) continue;
    for (const std::vector<Sizes>& sizes :
         {std::vector<Sizes>{{17}, {17}, {17}}, std::vector<Sizes>{{3, 1}, {4}, {3, 4}},
          std::vector<Sizes>{{1}, {1}, {1}}, std::vector<Sizes>{{2, 0}, {2, 1}, {}}}) {
      SCOPED_TRACE(text(row.name, " of ", Shape(sizes[0])));
      check_forward(row, map_operands(row, sizes), {});
      check_forward_over_reverse(row, map_operands(row, sizes), {});
    }
  }
}

TEST_F(Forward, OfEveryStructuredRow) {
  int checked = 0;
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || !op->gradient) continue;
    for (const Sample& sample : visited_samples(*op, "forward", 2)) {
      std::vector<Tensor> inputs = sample_operands(sample);
      SCOPED_TRACE(sample_line(*op, sample));
      check_forward(*op, inputs, sample.attributes);
      check_forward_over_reverse(*op, inputs, sample.attributes);
      ++checked;
    }
  }
  EXPECT_GT(checked, 60);
}

/// What rows of a few kinds are known to read.
TEST_F(Forward, GradientsReadNoMoreThanTheyNeed) {
  auto reads = [](const char* name, std::size_t number = 0) {
    for (const OpDef* op : all_rows()) {
      if (std::string(op->name) != name) continue;
      Sample sample = samples_of(*op)[number];
      std::vector<Tensor> inputs = op->kind == Kind::map ? map_operands(*op, {{5}, {5}, {5}}) : sample_operands(sample);
      std::vector<Tensor> outputs = eager_all(*op, inputs, sample.attributes);
      auto found =
          gradient_reads(*op, inputs, sample.attributes.view(), outputs, std::vector<bool>(inputs.size(), true));
      std::string out;
      for (bool one : found->inputs) out += one ? 'x' : '.';
      out += '>';
      for (bool one : found->outputs) out += one ? 'y' : '.';
      return out + (found->together ? " linear" : found->multilinear ? " multilinear" : "");
    }
    throw std::runtime_error(name);
  };
  EXPECT_EQ(reads("reshape"), ".>. linear");
  EXPECT_EQ(reads("slice"), ".>. linear");
  EXPECT_EQ(reads("sum"), ".>. linear");
  EXPECT_EQ(reads("mean"), ".>. linear");
  EXPECT_EQ(reads("cumsum"), ".>. linear");
  EXPECT_EQ(reads("gather"), "..>. linear");
  EXPECT_EQ(reads("matmul"), "xx>. multilinear");
  EXPECT_EQ(reads("max"), "x>y");
  EXPECT_EQ(reads("cholesky"), ".>y");
  EXPECT_EQ(reads("max_pool"), ".>..");
  EXPECT_EQ(reads("sort"), ".>..");
}

}  // namespace
}  // namespace stet::op_test
