// parallel_for for bodies that may throw.
#pragma once
#include <exception>
#include <mutex>

#include "stet/runtime/parallel.h"

namespace stet::cpu {

/// Runs body(chunk) for every chunk on the pool; what one of them throws is thrown here, after all have ended.
template <class Body>
void parallel_for_throwing(std::int64_t chunks, const Body& body) {
  std::mutex guard;
  std::exception_ptr failure;  // of any chunk: for the caller they all mean the same
  auto caught = [&](std::int64_t chunk) {
    try {
      body(chunk);
    } catch (...) {
      std::lock_guard lock(guard);
      failure = std::current_exception();
    }
  };
  parallel_for(chunks, caught);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace stet::cpu
