#include "stet/report/machine_limits.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/base/version.h"
#include "stet/cpu/jit.h"
#include "stet/cpu/object_cache.h"
#include "stet/report/machine.h"
#include "stet/runtime/parallel.h"

namespace stet::reporting {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// The least time that the work takes, of those that fit into a while: what others take from the machine is not its
/// limit.
template <class Work>
double least_seconds(double a_while, const Work& work) {
  constexpr int fewest = 4;
  double least = INFINITY;
  Clock::time_point first = Clock::now();
  for (int turn = 0; turn < fewest || seconds_since(first) < a_while; ++turn) {
    Clock::time_point begin = Clock::now();
    work();
    least = std::min(least, seconds_since(begin));
  }
  return least;
}

// --- Memory

/// Pages that are written to first by the threads that use them.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    ::madvise(at, bytes, MADV_HUGEPAGE);
    floats_ = static_cast<float*>(at);
  }
  ~Pages() {
    if (floats_) ::munmap(floats_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  float* floats() const { return floats_; }

 private:
  std::size_t bytes_;
  float* floats_ = nullptr;
};

/// STREAM's triad, a = b + number * c, past the cache, as kernels write what no cache holds. `count`: a multiple of 4.
void triad(float* a, const float* b, const float* c, std::int64_t count) {
  const __m128 number = _mm_set1_ps(3);
  for (std::int64_t i = 0; i < count; i += 4)
    _mm_stream_ps(a + i, _mm_add_ps(_mm_load_ps(b + i), _mm_mul_ps(number, _mm_load_ps(c + i))));
  _mm_sfence();
}

/// Bytes of each of the three arrays: larger than the caches, and a small part of the memory that is free.
std::int64_t array_bytes() {
  constexpr std::int64_t least = 1 << 20, most = 128 << 20;
  Machine machine = look_at_machine();
  return std::max(least, std::min({2 * machine.last_level_cache, most, machine.free_memory() / 16}));
}

double measured_bytes() {
  constexpr std::int64_t piece = 1 << 16;  // elements
  const std::int64_t pieces = array_bytes() / (piece * std::int64_t{sizeof(float)}), count = pieces * piece;
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  Pages a(bytes), b(bytes), c(bytes);
  if (!a.floats() || !b.floats() || !c.floats()) return 0;
  auto fill = [&](std::int64_t at) {
    for (float* array : {a.floats(), b.floats(), c.floats()}) std::fill_n(array + at * piece, piece, 1.f);
  };
  parallel_for(pieces, fill);
  auto work = [&](std::int64_t at) {
    triad(a.floats() + at * piece, b.floats() + at * piece, c.floats() + at * piece, piece);
  };
  return 3. * static_cast<double>(bytes) / least_seconds(0.06, [&] { parallel_for(pieces, work); });
}

// --- Arithmetic

/// Chains of multiply-adds, as many as the processor can have under way, each of `turns`; gives their operations.
constexpr int chains = 12;

#define STET_UNROLLED _Pragma("GCC unroll 12") for (int i = 0; i < chains; ++i)
#define STET_CHAINS(Vector, lanes, set, multiply_add, first_of)                                                \
  Vector factor = set(0.999f), summand = set(0.001f), values[chains];                                          \
  STET_UNROLLED values[i] = set(static_cast<float>(i));                                                        \
  for (int turn = 0; turn < turns; ++turn) STET_UNROLLED values[i] = multiply_add(values[i], factor, summand); \
  float sum = 0;                                                                                               \
  STET_UNROLLED sum += first_of(values[i]);                                                                    \
  asm volatile("" : : "x"(sum)); /* it is used, so it is computed */                                           \
  return 2. * lanes * chains * turns

__attribute__((target("avx512f"))) double chains_avx512(int turns) {
  STET_CHAINS(__m512, 16, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32);
}
__attribute__((target("avx2,fma"))) double chains_avx2(int turns) {
  STET_CHAINS(__m256, 8, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32);
}
__m128 multiply_add(__m128 x, __m128 factor, __m128 summand) { return _mm_add_ps(_mm_mul_ps(x, factor), summand); }
double chains_plain(int turns) { STET_CHAINS(__m128, 4, _mm_set1_ps, multiply_add, _mm_cvtss_f32); }
#undef STET_CHAINS
#undef STET_UNROLLED

double measured_flops() {
  auto run = __builtin_cpu_supports("avx512f")                                 ? chains_avx512
             : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? chains_avx2
                                                                               : chains_plain;
  // A piece of some 0.1 ms, many for every thread: whoever is late takes fewer.
  constexpr int turns = 20'000, pieces_of_thread = 16;
  const std::int64_t pieces = std::int64_t{pieces_of_thread} * thread_count();
  auto work = [&](std::int64_t) { run(turns); };
  return run(turns) * static_cast<double>(pieces) / least_seconds(0.06, [&] { parallel_for(pieces, work); });
}

// --- Kept

/// What the figures depend on. The quota, too: a container with less processor time has another peak.
std::string key_of(const Machine& machine) {
  return text(cpu::figures_key, "limits of ", machine.cpu, ", ", thread_count(), " threads, ",
              machine.cpu_quota.value_or(machine.allowed_cpus), " processors\nstet ", STET_VERSION, " measured as 1");
}

bool sensible(const MachineLimits& limits) {
  return std::isfinite(limits.bytes) && std::isfinite(limits.flops) && limits.bytes > 0 && limits.flops > 0;
}

std::optional<MachineLimits> stored(const cpu::ObjectCache& cache, const std::string& key) {
  bool rejected = false;
  std::optional<std::vector<char>> bytes = cache.find(key, rejected);
  MachineLimits out;
  if (!bytes || bytes->size() != sizeof out) return std::nullopt;
  std::memcpy(&out, bytes->data(), sizeof out);
  return sensible(out) ? std::optional(out) : std::nullopt;
}

/// What this process knows, by key: the number of threads may change.
class Known {
 public:
  std::optional<MachineLimits> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto at = limits_.find(key);
    return at == limits_.end() ? std::nullopt : std::optional(at->second);
  }
  void set(const std::string& key, const MachineLimits& limits) {
    std::lock_guard lock(mutex_);
    limits_[key] = limits;
  }
  void clear() {
    std::lock_guard lock(mutex_);
    limits_.clear();
  }

 private:
  Lock mutex_;
  std::map<std::string, MachineLimits> limits_;
};
Known& known() {
  static Known& known = *new Known;  // never destroyed: see thread_end.h
  return known;
}

MachineLimits measured() { return {measured_bytes(), measured_flops()}; }

void keep(const cpu::ObjectCache& cache, const std::string& key, const MachineLimits& limits) {
  if (sensible(limits)) cache.store(key, {reinterpret_cast<const char*>(&limits), sizeof limits});
  known().set(key, limits);
}

}  // namespace

MachineLimits machine_limits() {
  const std::string key = key_of(look_at_machine());
  if (std::optional<MachineLimits> limits = known().find(key)) return *limits;
  cpu::ObjectCache cache(cpu::cache_folder());
  std::optional<MachineLimits> limits = stored(cache, key);
  if (limits) {
    known().set(key, *limits);
    return *limits;
  }
  limits = measured();
  keep(cache, key, *limits);
  return *limits;
}

MachineLimits measured_again() {
  const MachineLimits now = measured();
  const std::string key = key_of(look_at_machine());
  cpu::ObjectCache cache(cpu::cache_folder());
  const MachineLimits before = stored(cache, key).value_or(now);
  keep(cache, key, {std::max(now.bytes, before.bytes), std::max(now.flops, before.flops)});
  return now;
}

void forget_limits() { known().clear(); }

}  // namespace stet::reporting
