// What a pass over a pipeline tells of itself, for Dataset::explain(). Private to the library.
//
// Each stage that makes elements counts them and the time inside of it, what it waits for upstream included: own times
// are differences. Numbers are written by the threads of the pass and may be read by any thread at any time.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stet::data {

class Stage;

inline std::uint64_t nanoseconds_now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

struct StageStatistics {
  std::atomic<std::uint64_t> elements{0};
  std::atomic<std::uint64_t> nanoseconds{0};  // from asking to having, on the thread that asks
  // Of stages with threads of their own.
  std::atomic<std::uint64_t> busy{0};   // inside of its function, of all its threads
  std::atomic<std::uint64_t> looks{0};  // how often somebody came for an element,
  std::atomic<std::uint64_t> found{0};  // how many were ready then, in sum,
  std::atomic<std::uint64_t> room{0};   // and how many there is room for
  std::atomic<std::uint64_t> threads{0};

  static void add(std::atomic<std::uint64_t>& to, std::uint64_t amount) {
    to.fetch_add(amount, std::memory_order_relaxed);
  }
  static std::uint64_t read(const std::atomic<std::uint64_t>& from) { return from.load(std::memory_order_relaxed); }
};

/// Of one iteration of a dataset.
class Statistics {
 public:
  explicit Statistics(const std::vector<const Stage*>& stages) {
    for (const Stage* stage : stages) stages_.try_emplace(stage);
  }
  /// Null of a stage that belongs to another dataset, one that a flat_map made.
  StageStatistics* of(const Stage* stage) {
    auto found = stages_.find(stage);
    return found == stages_.end() ? nullptr : &found->second;
  }

  // Of who iterates.
  std::atomic<std::uint64_t> elements{0};
  std::atomic<std::uint64_t> first_wait{0};  // for the first element
  std::atomic<std::uint64_t> waited{0};      // for the others
  std::atomic<std::uint64_t> first_had{0};   // when
  std::atomic<std::uint64_t> last_had{0};

 private:
  std::unordered_map<const Stage*, StageStatistics> stages_;
};

}  // namespace stet::data
