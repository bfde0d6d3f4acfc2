// Locks that a forked child finds free, with all that they guard whole.
//
// fork() copies one thread only. A lock that another thread held at that moment would stay locked in the child for
// ever, and what it guards half changed. So fork() waits until no thread is inside a section, and lets none in
// meanwhile.
#pragma once
#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace stet {

/// While one lives on any thread, fork() waits. Sections nest. They are short (a look-up, the run of a program), and no
/// user's code runs inside.
class ForkSafeSection {
 public:
  ForkSafeSection() { enter(); }
  ~ForkSafeSection() { leave(); }
  ForkSafeSection(const ForkSafeSection&) = delete;
  ForkSafeSection& operator=(const ForkSafeSection&) = delete;

  static void enter();
  static void leave();
  /// Whether this thread is inside of one.
  static bool open();
};

/// For a thread that works for another, which waits for it: while one lives, this thread is inside of a section if the
/// other is, so that it does not wait for a fork() that waits for the other.
class WorksInsideSection {
 public:
  explicit WorksInsideSection(bool inside);
  ~WorksInsideSection();
  WorksInsideSection(const WorksInsideSection&) = delete;
  WorksInsideSection& operator=(const WorksInsideSection&) = delete;

 private:
  const bool inside_;
};

/// How many forks lie between the first process and this one. What a thread of another generation began will not be
/// finished.
std::uint64_t fork_generation();

/// A mutex of the library's own: holding it is a section.
class Lock {
 public:
  constexpr Lock() = default;
  void lock() {
    ForkSafeSection::enter();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    ForkSafeSection::leave();
  }

 private:
  std::mutex mutex_;
};

class SharedLock {
 public:
  void lock() {
    ForkSafeSection::enter();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    ForkSafeSection::leave();
  }
  void lock_shared() {
    ForkSafeSection::enter();
    mutex_.lock_shared();
  }
  void unlock_shared() {
    mutex_.unlock_shared();
    ForkSafeSection::leave();
  }

 private:
  std::shared_mutex mutex_;
};

}  // namespace stet
