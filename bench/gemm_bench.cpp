// GEMM side by side with dnnl_sgemm: prints the markdown table of docs/gemm.md.
//
//   gemm_bench [seconds per figure, default 0.3] [part of a shape's text to select rows]
//
// Figures are GFLOP/s at the minimum time. The two sides take turns, so that neighbours and clocks hit both.
#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "stet/base/text.h"
#include "stet/cpu/gemm.h"
#include "stet/runtime/parallel.h"

namespace {

using namespace stet;
using namespace stet::cpu;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct ProductSize {
  const char* layout;
  std::int64_t m, n, k;
};

std::vector<ProductSize> shapes() {
  std::vector<ProductSize> out;
  const std::int64_t triples[][3] = {{32, 128, 784},  {32, 10, 128},   {1, 512, 512},      {8, 64, 64},
                                     {128, 512, 512}, {512, 512, 512}, {2048, 2048, 2048}, {256, 3072, 768}};
  for (const auto& t : triples) {
    // Forward, weight gradient and input gradient of one layer: y = x w, dw = xᵀ dy, dx = dy wᵀ.
    out.push_back({"NN", t[0], t[1], t[2]});
    out.push_back({"TN", t[2], t[1], t[0]});
    out.push_back({"NT", t[0], t[2], t[1]});
  }
  for (const char* layout : {"NN", "TN", "NT"}) {
    out.push_back({layout, 64, 64, 64});
    out.push_back({layout, 128, 128, 128});
    out.push_back({layout, 256, 256, 256});
    out.push_back({layout, 384, 384, 384});
    out.push_back({layout, 768, 768, 768});
    out.push_back({layout, 1024, 1024, 1024});
    out.push_back({layout, 4, 1024, 1024});
    out.push_back({layout, 32, 2048, 2048});
    out.push_back({layout, 128, 2048, 2048});
    out.push_back({layout, 100, 100, 1000});
    out.push_back({layout, 10000, 64, 64});
  }
  return out;
}

/// Seconds of one call; the shortest of as many as the time allows.
template <class Body>
double shortest(const Body& body, double seconds) {
  double begin = now();
  body();
  double once = std::max(now() - begin, 1e-9);
  int repeat = std::max(1, static_cast<int>(1e-4 / once));
  double best = once, end = now() + seconds;
  do {
    begin = now();
    for (int i = 0; i < repeat; ++i) body();
    best = std::min(best, (now() - begin) / repeat);
  } while (now() < end);
  return best;
}

const char* name_of(GemmMethod method) {
  switch (method) {
    case GemmMethod::tile:
      return "tile";
    case GemmMethod::packed_tile:
      return "packed";
    case GemmMethod::dot:
      return "dot";
    default:
      return "library";
  }
}

/// f64 has no library to compare with: GFLOP/s with one thread and with two.
void measure_f64(const ProductSize& shape, double seconds) {
  bool left = shape.layout[0] == 'T', right = shape.layout[1] == 'T';
  std::int64_t m = shape.m, n = shape.n, k = shape.k;
  std::vector<double> a(static_cast<std::size_t>(m * k), 0.5), b(static_cast<std::size_t>(k * n), 0.25),
      c(static_cast<std::size_t>(m * n));
  GemmKernel kernel({f64, left, right, {}});
  GemmArguments arguments{
      m, n, k, 1, {a.data(), left ? m : k, 0, m * k}, {b.data(), right ? k : n, 0, k * n}, {c.data(), n, 0, m * n}, {}};
  std::printf("| f64 %s %lld,%lld,%lld | %s |", shape.layout, static_cast<long long>(m), static_cast<long long>(n),
              static_cast<long long>(k), name_of(gemm_method(kernel.spec(), m, n, k)));
  double operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  for (int threads : {1, 2}) {
    set_thread_count(threads);
    std::printf(" – | %.1f | – |", operations / shortest([&] { kernel.run(arguments); }, seconds) * 1e-9);
  }
  std::printf("\n");
}

void measure(const ProductSize& shape, double seconds) {
  bool left = shape.layout[0] == 'T', right = shape.layout[1] == 'T';
  std::int64_t m = shape.m, n = shape.n, k = shape.k;
  auto matrix = [](std::int64_t elements) {
    std::vector<float> values(static_cast<std::size_t>(elements));
    std::minstd_rand random(1);
    for (float& value : values) value = static_cast<float>(random() % 1000) * 1e-3f - 0.5f;
    return values;
  };
  std::vector<float> a = matrix(m * k), b = matrix(k * n), c = matrix(m * n);
  GemmKernel kernel({f32, left, right, {}});
  GemmArguments arguments{
      m, n, k, 1, {a.data(), left ? m : k, 0, m * k}, {b.data(), right ? k : n, 0, k * n}, {c.data(), n, 0, m * n}, {}};
  std::printf("| %s %lld,%lld,%lld | %s |", shape.layout, static_cast<long long>(m), static_cast<long long>(n),
              static_cast<long long>(k), name_of(gemm_method(kernel.spec(), m, n, k)));
  for (int threads : {1, 2}) {
    set_thread_count(threads);
    omp_set_num_threads(threads);
    double ours = 1e9, theirs = 1e9;
    for (int round = 0; round < 3; ++round) {
      auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };  // spinning workers give up
      theirs = std::min(theirs, shortest(
                                    [&] {
                                      dnnl_sgemm(left ? 'T' : 'N', right ? 'T' : 'N', m, n, k, 1, a.data(),
                                                 left ? m : k, b.data(), right ? k : n, 0, c.data(), n);
                                    },
                                    seconds / 3));
      rest();
      ours = std::min(ours, shortest([&] { kernel.run(arguments); }, seconds / 3));
      rest();
    }
    double operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    std::printf(" %.1f | %.1f | %.2f |", operations / theirs * 1e-9, operations / ours * 1e-9, theirs / ours);
    std::fflush(stdout);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
  std::printf(
      "| op M,N,K | how | dnnl 1T | stet 1T | ratio | dnnl 2T | stet 2T | ratio "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for (const ProductSize& shape : shapes()) {
    std::string label = text(shape.layout, " ", shape.m, ",", shape.n, ",", shape.k);
    if (argc <= 2 || label.find(argv[2]) != std::string::npos) measure(shape, seconds);
  }
  for (const char* layout : {"NN", "TN", "NT"})
    for (std::int64_t size : {64, 512, 1536}) {
      std::string label = text("f64 ", layout, " ", size, ",", size, ",", size);
      if (argc <= 2 || label.find(argv[2]) != std::string::npos) measure_f64({layout, size, size, size}, seconds);
    }
}
