// The one thread pool of the process.
//
// It serves one region at a time; a caller that finds it busy, and a region inside a region, run their chunks
// themselves, in order. How work is cut into chunks is the caller's business and must depend on sizes only, never on
// the number of threads: chunks may run in any order on any thread, and results must not depend on it.
#pragma once
#include <cstdint>

#include "stet/base/export.h"

namespace stet {

/// Threads that work in a region, the caller included. Default: the CPUs this process may run on.
STET_API int thread_count();
/// At least 1 (UserError). Not while a region runs on another thread: waits for its end.
STET_API void set_thread_count(int count);

/// Calls body(context, chunk) for every chunk in [0, chunks); returns when all have ended. `body` must not throw.
void parallel_for(std::int64_t chunks, void (*body)(void* context, std::int64_t chunk), void* context);

/// From here on this thread runs the chunks of its regions itself: for threads that work beside the one which needs
/// the pool.
void run_regions_inline();

/// Called once by every worker thread when it starts. Workers that already run are replaced.
void set_worker_start(void (*start)());

template <class Body>
void parallel_for(std::int64_t chunks, Body& body) {
  parallel_for(
      chunks, [](void* context, std::int64_t chunk) { (*static_cast<Body*>(context))(chunk); }, &body);
}

}  // namespace stet
