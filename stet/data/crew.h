// Threads that work for one pass over a pipeline. Private to the library.
//
// What they share with the one who iterates lives in an object of its own on the heap: a child of fork() has a copy of
// it, but not the threads, which may have left it in any state. So the child lets it lie.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "stet/base/where.h"

namespace stet::data {

class Crew {
 public:
  Crew() = default;
  /// stop() must have been called if threads were started.
  ~Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// UserError that names the stage if not one thread can be had. Signals are not delivered to them, and parallel
  /// regions in them run inline: they work beside the thread that needs the pool.
  void start(std::size_t count, const std::function<void()>& body, const char* stage, Where where);
  bool started() const { return threads_ != nullptr; }
  std::size_t size() const { return threads_ ? threads_->size() : 0; }
  /// This is a child of fork(), begun after the threads: they are not here.
  bool lost() const;
  /// UserError if lost.
  void require(const char* stage, Where where) const;
  void join();
  /// In place of join(), when lost.
  void forget() { threads_.release(); }

 private:
  std::unique_ptr<std::vector<std::thread>> threads_;
  std::uint64_t generation_ = 0;
};

/// What a cursor shares with its crew. Shared has abandon(), which tells the crew to end.
template <class Shared>
class CrewWork {
 public:
  template <class... A>
  explicit CrewWork(A&&... arguments) : shared_(std::make_unique<Shared>(std::forward<A>(arguments)...)) {}
  ~CrewWork() {
    if (crew_.lost()) {
      crew_.forget();
      shared_.release();
      return;
    }
    if (!crew_.started()) return;
    shared_->abandon();
    crew_.join();
  }
  Shared* operator->() const { return shared_.get(); }
  Shared& operator*() const { return *shared_; }
  Crew& crew() { return crew_; }

 private:
  std::unique_ptr<Shared> shared_;
  Crew crew_;
};

}  // namespace stet::data
