// What turns of a loop, per-sample gradients and Hessians cost.
//
//   derivatives [part of a measurement's name to select rows]
//
// An empty turn is compared with the goal of a microsecond; what vmap gives with a loop over traced calls, one for each
// example and one for each line of the Hessian.
#include <string>

#include "bench/bench.h"
#include "bench/mlp_data.h"
#include "stet/stet.h"

namespace {

using namespace stet;
const char* selection = "";

bool selected(const std::string& name) { return name.find(selection) != std::string::npos; }

void measure(const std::string& name, const std::function<void()>& ours, const std::function<void()>& theirs,
             double goal) {
  if (!selected(name)) return;
  const int calls = bench::calls_for(ours, 2e6), their_calls = bench::calls_for(theirs, 2e6);
  std::vector<bench::Turn> turns = {[&] { return bench::best_time(ours, calls, 3); },
                                    [&] { return bench::best_time(theirs, their_calls, 3); }};
  auto times = bench::interleave(turns, 15);
  bench::compare_times(name, times[0], times[1], 1e3, "us", goal);
}

/// Nanoseconds of a turn beyond those of a loop without any.
void measure_turn(const std::string& name, const std::function<Tensor(Tensor)>& loop) {
  if (!selected(name)) return;
  constexpr std::int64_t turns = 10'000;
  Function f = function("loop(n)", [&](Tensor n) { return loop(n); });
  Tensor none = tensor(std::int64_t{0}), many = tensor(turns);
  auto time = [&](const Tensor& n) { return bench::best_time([&] { f(n); }, 1, 5); };
  f(many);
  auto times = bench::interleave({[&] { return (time(many) - time(none)) / turns; }, [] { return 1000.0; }}, 15);
  bench::compare_times(name, times[0], times[1], 1, "ns", 1);
}

Tensor values(const Shape& shape, int seed) {
  return reshape(tensor(bench::mlp::uniform_values(shape.element_count().value(), -1, 1, seed)), shape);
}

void per_sample_gradients(std::int64_t examples, std::int64_t features, std::int64_t units, double goal) {
  const std::string name = "per-sample gradients, " + std::to_string(examples) + " of " + std::to_string(features) +
                           "-" + std::to_string(units) + "-10";
  if (!selected(name)) return;
  auto loss = [](std::pair<Tensor, Tensor> w, Tensor x, Tensor y) {
    Tensor logits = matmul(tanh(matmul(x, w.first)), w.second);
    return logsumexp(logits) - gather(logits, y);
  };
  Tensor x = values({examples, features}, 1), y = cast(arange(examples) % 10, i64);
  std::pair<Tensor, Tensor> w(values({features, units}, 2) * 0.1f, values({units, 10}, 3) * 0.1f);
  Function at_once = function("at_once(w, x, y)", [&](std::pair<Tensor, Tensor> weights, Tensor a, Tensor b) {
    return vmap(grad(loss), {std::nullopt, 0, 0})(weights, a, b);
  });
  Function one = function(
      "one(w, x, y)", [&](std::pair<Tensor, Tensor> weights, Tensor a, Tensor b) { return grad(loss)(weights, a, b); });
  std::vector<Tensor> xs, ys;
  for (std::int64_t i = 0; i < examples; ++i) {
    xs.push_back(x[i].contiguous());
    ys.push_back(y[i].contiguous());
  }
  measure(
      name, [&] { at_once(w, x, y); },
      [&] {
        std::vector<Tensor> first, second;
        for (std::size_t i = 0; i < xs.size(); ++i) {
          auto [a, b] = one(w, xs[i], ys[i]);
          first.push_back(a);
          second.push_back(b);
        }
        stack(first);
        stack(second);
      },
      goal);
}

void hessian_of(std::int64_t count, double goal) {
  const std::string name = "Hessian of " + std::to_string(count) + " variables";
  if (!selected(name)) return;
  Tensor a = values({count, count}, 4), x = values({count}, 5);
  auto f = [&](Tensor v) { return sum(log(1 + square(matmul(a, v)))) + sum(sin(v) * v); };
  Function at_once = function("at_once(x)", [&](Tensor v) { return hessian(f)(v); });
  Function line = function("line(x, unit)", [&](Tensor v, Tensor unit) {
    return grad([&](Tensor at) { return sum(grad(f)(at) * unit); })(v);
  });
  Tensor units = eye(count);
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(units[i].contiguous());
  measure(
      name, [&] { at_once(x); },
      [&] {
        std::vector<Tensor> lines;
        for (const Tensor& unit : rows) lines.push_back(line(x, unit));
        stack(lines);
      },
      goal);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) selection = argv[1];
  set_thread_count(2);
  bench::print_head();
  measure_turn("a turn of a for_loop, beside its kernel", [](Tensor n) {
    return for_loop(
        n, [](Tensor, Tensor x) { return x + 1; }, tensor(0.f));
  });
  measure_turn("a turn of a while_loop, beside its kernels", [](Tensor n) {
    return while_loop([&](Tensor i) { return i < n; }, [](Tensor i) { return i + 1; }, tensor(std::int64_t{0}));
  });
  per_sample_gradients(32, 64, 128, 1);
  per_sample_gradients(256, 784, 128, 1);
  hessian_of(100, 1);
}
