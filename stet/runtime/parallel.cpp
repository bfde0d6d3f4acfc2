// The thread pool: workers that spin for a while, then sleep on a futex.
//
// A region is announced in one word, `state`: a number that grows with every region, whether it is open, and how many
// workers are in it. A worker enters by a compare-and-swap that succeeds only while the region is open; the caller
// takes chunks like everybody, closes the region when none are left, and waits for those inside. So a worker that
// sleeps, or that the system has taken off its core, delays nobody.
#include "stet/runtime/parallel.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <thread>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/runtime/recorded_steps.h"
#include "stet/runtime/recording.h"

namespace stet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto worker_spin = std::chrono::microseconds(200);
constexpr std::size_t worker_stack = 8 * 1024 * 1024;
constexpr int most_threads = 1024;

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<std::uint32_t>& word, int threads) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

// The parts of `state`.
constexpr std::uint64_t inside_mask = 0xFFFF;
constexpr std::uint64_t open_bit = 0x10000;
constexpr std::uint64_t one_region = 0x20000;
constexpr std::uint64_t region_number(std::uint64_t state) { return state / one_region; }

constinit thread_local bool inside_region = false;
constinit std::atomic<void (*)()> worker_start{nullptr};

/// One per process; a forked child gets a new one. Never destroyed: workers may still look at it while the process
/// ends.
class Pool {
 public:
  void run(std::int64_t chunks, void (*body)(void*, std::int64_t), void* context, int threads);
  bool try_acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void acquire() {
    while (!try_acquire()) sched_yield();
  }
  void release() { busy_.store(false, std::memory_order_release); }
  /// Ends all workers; the next region starts new ones. Needs the pool acquired.
  void stop_workers();

 private:
  static void* worker_main(void* pool);
  void start_workers(int wanted);
  void work();
  void take_chunks();
  std::uint64_t wait_for_region(std::uint64_t last_number);
  bool something_new(std::uint64_t state, std::uint64_t last_number) const {
    return ((state & open_bit) && region_number(state) != last_number) || stopping_.load(std::memory_order_relaxed);
  }

  // One cache line holds all that a region needs: every line that moves between cores costs as much as all else here.
  alignas(128) std::atomic<std::uint64_t> state_{0};
  std::atomic<std::int64_t> next_chunk_{0};
  std::int64_t chunks_ = 0;
  void (*body_)(void*, std::int64_t) = nullptr;
  void* context_ = nullptr;
  recording::Name recorded_ = 0;  // the step that the region is of, where somebody records
  alignas(128) std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> signal_{0};  // The futex; changed to wake.
  std::atomic<bool> stopping_{false};
  alignas(128) std::atomic<bool> busy_{false};
  int attempted_ = 0;  // Workers that were to be started: a failed start is not tried again in every region.
  std::vector<pthread_t> workers_;
};

void Pool::run(std::int64_t chunks, void (*body)(void*, std::int64_t), void* context, int threads) {
  ForkSafeSection section;  // workers count as inside of it
  if (attempted_ < threads - 1) start_workers(threads - 1);
  chunks_ = chunks;
  body_ = body;
  context_ = context;
  if (recording::on()) recorded_ = running_step();
  next_chunk_.store(1, std::memory_order_relaxed);  // Chunk 0 is the caller's.
  // Sequentially consistent, as is a worker's way to sleep: either it sees the region or we see it in sleepers_.
  state_.fetch_add(one_region | open_bit, std::memory_order_seq_cst);
  if (const std::uint32_t sleepers = sleepers_.load(std::memory_order_seq_cst)) {
    signal_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(signal_, static_cast<int>(std::min<std::int64_t>(sleepers, chunks - 1)));
  }
  inside_region = true;
  body(context, 0);
  take_chunks();
  inside_region = false;
  std::uint64_t state = state_.fetch_and(~open_bit, std::memory_order_acquire);
  for (int round = 0; state & inside_mask; state = state_.load(std::memory_order_acquire)) {
    // A worker that was taken off its core may need ours.
    if (++round < 4096) {
      pause_cpu();
    } else {
      sched_yield();
    }
  }
}

inline void Pool::take_chunks() {
  const std::int64_t chunks = chunks_;
  for (;;) {
    const std::int64_t chunk = next_chunk_.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= chunks) return;
    body_(context_, chunk);
  }
}

void Pool::work() {
  inside_region = true;  // A region started by a chunk runs inline.
  WorksInsideSection section(true);
  if (auto* const start = worker_start.load()) start();
  std::uint64_t last_number = 0;
  for (;;) {
    std::uint64_t state = wait_for_region(last_number);
    if (stopping_.load(std::memory_order_acquire)) return;
    last_number = region_number(state);
    bool entered = false;
    while (!entered && (state & open_bit) && region_number(state) == last_number)
      entered = state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed);
    if (!entered) continue;
    if (recording::on()) [[unlikely]] {
      recording::Span span(recording::Kind::region, recorded_);
      take_chunks();
    } else {
      take_chunks();
    }
    state_.fetch_sub(1, std::memory_order_release);
  }
}

/// Returns a state with an open region that is not the last one, or anything when the pool stops.
std::uint64_t Pool::wait_for_region(std::uint64_t last_number) {
  std::uint64_t seen = last_number;
  for (;;) {
    Clock::time_point end = Clock::now() + worker_spin;
    for (;;) {
      std::uint64_t state = 0;
      for (int round = 0; round < 64; ++round) {
        state = state_.load(std::memory_order_relaxed);
        if (something_new(state, last_number)) return state;
        pause_cpu();
      }
      const Clock::time_point now = Clock::now();
      if (region_number(state) != seen) {
        seen = region_number(state);  // A region came and went without us: more will come.
        end = now + worker_spin;
      }
      if (now >= end) break;
    }
    const std::uint32_t signal = signal_.load(std::memory_order_acquire);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (!something_new(state_.load(std::memory_order_seq_cst), last_number)) futex_wait(signal_, signal);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void* Pool::worker_main(void* pool) {
  static_cast<Pool*>(pool)->work();
  return nullptr;
}

void Pool::start_workers(int wanted) {
  attempted_ = wanted;
  workers_.reserve(static_cast<std::size_t>(wanted));
  // The user's signal handlers run on the user's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, worker_stack);
  while (static_cast<int>(workers_.size()) < wanted) {
    pthread_t worker;
    if (pthread_create(&worker, &attributes, worker_main, this) != 0) break;  // Fewer workers do the same work.
    pthread_setname_np(worker, "stet worker");
    workers_.push_back(worker);
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pool::stop_workers() {
  stopping_.store(true, std::memory_order_seq_cst);
  signal_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(signal_, INT_MAX);
  for (pthread_t worker : workers_) pthread_join(worker, nullptr);
  workers_.clear();
  attempted_ = 0;
  stopping_.store(false, std::memory_order_seq_cst);
}

constinit std::atomic<Pool*> current_pool{nullptr};
constinit std::atomic<int> wanted_threads{0};  // 0: not decided yet.

[[gnu::noinline]] Pool& make_pool() {
  auto* pool = new Pool;
  Pool* expected = nullptr;
  if (!current_pool.compare_exchange_strong(expected, pool)) {
    delete pool;
    return *expected;
  }
  static std::atomic<bool> registered{false};
  // The child has none of the workers, and the pool may have been in use at that moment: it is left behind.
  if (!registered.exchange(true)) pthread_atfork(nullptr, nullptr, [] { current_pool.store(new Pool); });
  return *pool;
}
inline Pool& the_pool() {
  Pool* const pool = current_pool.load(std::memory_order_acquire);
  return pool ? *pool : make_pool();
}

[[gnu::noinline]] int decide_thread_count() {
  cpu_set_t cpus;
  const int available = sched_getaffinity(0, sizeof cpus, &cpus) == 0
                            ? CPU_COUNT(&cpus)
                            : static_cast<int>(std::thread::hardware_concurrency());
  int expected = 0;
  const int count = std::clamp(available, 1, most_threads);
  return wanted_threads.compare_exchange_strong(expected, count) ? count : expected;
}

}  // namespace

int thread_count() {
  const int count = wanted_threads.load(std::memory_order_relaxed);
  return count ? count : decide_thread_count();
}

void set_thread_count(int count) {
  if (count < 1 || count > most_threads)
    throw UserError(error_text(text("set_thread_count: ", count, " threads are not possible"), Where{},
                               text("use 1 to ", most_threads)));
  if (inside_region)
    throw UserError(
        error_text("set_thread_count: called from inside a parallel region", Where{}, "call it between operations"));
  Pool& pool = the_pool();
  pool.acquire();
  if (count != thread_count()) pool.stop_workers();
  wanted_threads.store(count, std::memory_order_relaxed);
  pool.release();
}

void run_regions_inline() { inside_region = true; }

void set_worker_start(void (*start)()) {
  Pool& pool = the_pool();
  pool.acquire();
  worker_start.store(start);
  pool.stop_workers();
  pool.release();
}

void parallel_for(std::int64_t chunks, void (*body)(void* context, std::int64_t chunk), void* context) {
  if (chunks > 1 && thread_count() > 1 && !inside_region) {
    Pool& pool = the_pool();
    if (pool.try_acquire()) {
      pool.run(chunks, body, context, thread_count());  // Asked again: it may change until the pool is ours.
      pool.release();
      return;
    }
  }
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
}

}  // namespace stet
