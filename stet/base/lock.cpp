#include "stet/base/lock.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>

#include "stet/base/thread_end.h"

namespace stet {
namespace {

/// Whether a thread is inside of a section. Never freed: a later thread takes it over.
struct Presence {
  std::atomic<bool> inside{false};
  std::atomic<bool> taken{false};
  Presence* next = nullptr;
};

/// Trivial, so that destructors of thread_local objects may use it.
struct ThisThread {
  Presence* presence = nullptr;
  int depth = 0;
};
// initial-exec: one load instead of a call. It is small, which fits the room kept for opened libraries.
[[gnu::tls_model("initial-exec")]] constinit thread_local ThisThread this_thread;

constinit std::atomic<Presence*> presences{nullptr};
constinit std::atomic<bool> forking{false};
constinit std::mutex one_fork_at_a_time;
constinit std::atomic<std::uint64_t> generation{0};

void before_fork() {
  one_fork_at_a_time.lock();
  forking.store(true);
  // A thread stores `inside`, then looks at `forking`; here it is the other way round: one sees the other.
  for (Presence* one = presences.load(); one; one = one->next)
    while (one != this_thread.presence && one->inside.load()) sched_yield();
}

void after_fork() {
  forking.store(false);
  one_fork_at_a_time.unlock();
}

void in_child() {
  generation.fetch_add(1);
  for (Presence* one = presences.load(); one; one = one->next)
    if (one != this_thread.presence) one->taken.store(false);
  after_fork();
}

/// From the first call on, forks are counted and waited for.
void watch_forks() {
  static const int prepared = pthread_atfork(before_fork, after_fork, in_child);
  (void)prepared;
}

Presence* own_presence() {
  watch_forks();
  Presence* own = nullptr;
  for (Presence* one = presences.load(); one && !own; one = one->next)
    if (!one->taken.exchange(true)) own = one;
  if (!own) {
    own = new Presence;
    own->taken.store(true);
    own->next = presences.load();
    while (!presences.compare_exchange_weak(own->next, own)) {
    }
  }
  this_thread.presence = own;
  at_thread_end(
      [](void* kept) {
        this_thread.presence = nullptr;
        static_cast<Presence*>(kept)->taken.store(false);
      },
      own);
  return own;
}

}  // namespace

void ForkSafeSection::enter() {
  if (this_thread.depth++ > 0) return;
  Presence* own = this_thread.presence ? this_thread.presence : own_presence();
  while (own->inside.exchange(true), forking.load()) {
    own->inside.store(false);
    while (forking.load()) sched_yield();
  }
}

void ForkSafeSection::leave() {
  if (--this_thread.depth > 0) return;
  if (this_thread.presence) this_thread.presence->inside.store(false, std::memory_order_release);
}

bool ForkSafeSection::open() { return this_thread.depth > 0; }

WorksInsideSection::WorksInsideSection(bool inside) : inside_(inside) { this_thread.depth += inside_; }
WorksInsideSection::~WorksInsideSection() { this_thread.depth -= inside_; }

std::uint64_t fork_generation() {
  watch_forks();
  return generation.load(std::memory_order_relaxed);
}

}  // namespace stet
