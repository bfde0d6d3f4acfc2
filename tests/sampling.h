// What a run of the table's tests visits: everything when STET_TEST_FULL=1 (make test-full), otherwise some samples of
// every row and type, which a seed chooses. The seed is printed when a program of tests starts; STET_TEST_SEED repeats
// it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

inline bool full_tests() {
  const char* value = std::getenv("STET_TEST_FULL");
  return value && std::string_view(value) != "" && std::string_view(value) != "0";
}

inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* value = std::getenv("STET_TEST_SEED");
    return value && *value ? std::strtoull(value, nullptr, 10) : std::random_device()() % 1'000'000'000;
  }();
  return seed;
}

/// The line that a program of tests begins with.
inline std::string what_tests_visit() {
  if (full_tests()) return "everything (STET_TEST_FULL)";
  return "samples of every row, chosen by STET_TEST_SEED=" + std::to_string(test_seed());
}

/// A number that depends on the run's seed and on what it is for, and on nothing else: not on which tests ran before.
inline std::uint64_t seeded(std::string_view what, std::uint64_t number = 0) {
  std::uint64_t hash = test_seed() * 0x9E3779B97F4A7C15u + number * 0xBF58476D1CE4E5B9u;
  for (char c : what) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  hash ^= hash >> 31;
  hash *= 0x94D049BB133111EBu;
  return hash ^ hash >> 29;
}

/// `count` of the numbers below `total`, in order; in a full run all of them. Those for which `first(number)` holds are
/// taken before others: at least one of them is among the chosen, if there is one.
template <class First>
std::vector<std::size_t> chosen(std::string_view what, std::size_t total, std::size_t count, First&& first) {
  std::vector<std::size_t> out(total);
  std::iota(out.begin(), out.end(), std::size_t{0});
  if (full_tests() || count >= total) return out;
  std::sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) { return seeded(what, a) < seeded(what, b); });
  auto sure = std::find_if(out.begin(), out.end(), first);
  if (sure != out.end()) std::rotate(out.begin(), sure, sure + 1);
  out.resize(count);
  std::sort(out.begin(), out.end());
  return out;
}
inline std::vector<std::size_t> chosen(std::string_view what, std::size_t total, std::size_t count) {
  return chosen(what, total, count, [](std::size_t) { return false; });
}

/// Whether a run visits this one of many: one in `every`, in a full run all of them.
inline bool visits(std::string_view what, std::uint64_t number, std::uint64_t every) {
  return full_tests() || seeded(what, number) % every == 0;
}

}  // namespace stet
