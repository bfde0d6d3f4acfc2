// Sorting, the first of the sorted order and searching beside LibTorch, on memory and tensors that are already there.
//
//   sort [part of a measurement's name to select rows]
#include "stet/cpu/sort.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "bench/bench.h"
#include "stet/runtime/parallel.h"

namespace {

const char* selection = "";

struct Shape {
  std::int64_t outer, length, inner;
  std::string text;
};

struct Case {
  stet::DType dtype;
  at::Tensor from;  // [outer, length, inner]
  at::Tensor values, positions;
  stet::cpu::SortArguments arguments;
};

at::Tensor elements(stet::DType dtype, at::IntArrayRef sizes) {
  if (dtype == stet::i64) return at::randint(-(std::int64_t{1} << 62), std::int64_t{1} << 62, sizes, at::kLong);
  return at::randn(sizes, at::TensorOptions(dtype == stet::f32 ? at::kFloat : at::kDouble));
}

Case make(stet::DType dtype, const Shape& shape, std::int64_t kept, bool descending) {
  Case c{dtype, elements(dtype, {shape.outer, shape.length, shape.inner}), {}, {}, {}};
  c.values = at::empty({shape.outer, kept, shape.inner}, c.from.options());
  c.positions = at::empty({shape.outer, kept, shape.inner}, at::kLong);
  c.arguments = {dtype,
                 descending,
                 shape.outer,
                 shape.length,
                 shape.inner,
                 kept,
                 c.from.data_ptr(),
                 c.values.data_ptr(),
                 c.positions.data_ptr<std::int64_t>()};
  return c;
}

/// Ours against the quicker of the peer's ways, all writing into memory that is there.
void measure(const std::string& name, double unit_ns, const char* unit, const std::function<void()>& ours,
             const std::vector<std::function<void()>>& theirs, double goal) {
  if (name.find(selection) == std::string::npos) return;
  std::vector<bench::Turn> turns = {[&] { return bench::best_time(ours, 1, 3); }};
  for (const auto& way : theirs) turns.push_back([&] { return bench::best_time(way, 1, 3); });
  auto times = bench::interleave(turns, 12, 10, 2);
  bench::compare_times(name, times[0], bench::best_of(times, 1), unit_ns, unit, goal);
}

void measure_sort(stet::DType dtype, const Shape& shape) {
  const std::string type(stet::name(dtype));
  Case c = make(dtype, shape, shape.length, false);
  at::Tensor values = at::empty_like(c.from), positions = at::empty_like(c.positions);
  const std::vector<std::function<void()>> theirs = {
      [&] { at::sort_out(values, positions, c.from, /*stable=*/true, 1, false); },
      [&] { at::sort_out(values, positions, c.from, /*stable=*/false, 1, false); }};
  measure(
      "sort " + type + " " + shape.text, 1e6, "ms", [&] { stet::cpu::sort(c.arguments); }, theirs, 1);
  theirs[0]();
  stet::cpu::sort(c.arguments);
  if (!at::equal(values, c.values) || !at::equal(positions, c.positions))
    std::printf("sort %s %s: results differ\n", type.c_str(), shape.text.c_str());
  stet::cpu::SortArguments values_only = c.arguments;
  values_only.positions = nullptr;
  measure(
      "sort " + type + " " + shape.text + ", values", 1e6, "ms", [&] { stet::cpu::sort(values_only); }, theirs, 1);
}

void measure_top(stet::DType dtype, const Shape& shape, std::int64_t kept) {
  const std::string type(stet::name(dtype));
  Case c = make(dtype, shape, kept, true);
  at::Tensor values = at::empty_like(c.values), positions = at::empty_like(c.positions);
  auto theirs = [&] { at::topk_out(values, positions, c.from, kept, 1, true, true); };
  measure(
      "top " + std::to_string(kept) + " " + type + " " + shape.text, 1e6, "ms", [&] { stet::cpu::sort(c.arguments); },
      {theirs}, 1);
}

void measure_search(stet::DType dtype, std::int64_t length, std::int64_t count) {
  const std::string type(stet::name(dtype));
  at::Tensor line = std::get<0>(at::sort(elements(dtype, {length}))), wanted = elements(dtype, {count});
  at::Tensor positions = at::empty({count}, at::kLong), their_positions = at::empty({count}, at::kLong);
  const stet::cpu::SearchArguments arguments{
      dtype, false, 1, length, count, line.data_ptr(), wanted.data_ptr(), positions.data_ptr<std::int64_t>()};
  auto theirs = [&] { at::searchsorted_out(their_positions, line, wanted); };
  measure(
      "search " + type + " 10^6 in 10^5", 1e6, "ms", [&] { stet::cpu::search_sorted(arguments); }, {theirs}, 1);
  theirs();
  stet::cpu::search_sorted(arguments);
  if (!at::equal(positions, their_positions)) std::printf("search %s: results differ\n", type.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) selection = argv[1];
  at::set_num_threads(2);
  stet::set_thread_count(2);
  bench::print_head();
  for (stet::DType dtype : {stet::f32, stet::i64}) {
    measure_sort(dtype, {1, 1'000'000, 1, "[10^6]"});
    measure_sort(dtype, {1000, 1000, 1, "[1000,1000]"});
    measure_sort(dtype, {100'000, 16, 1, "[100000,16]"});
    measure_sort(dtype, {64, 1000, 64, "[64,1000,64] axis 1"});
    measure_top(dtype, {1000, 10'000, 1, "[1000,10000]"}, 10);
    measure_top(dtype, {1, 10'000'000, 1, "[10^7]"}, 100);
    measure_search(dtype, 100'000, 1'000'000);
  }
}
