// What each thread keeps for itself, and its end.
//
// Tensors and functions may be used in destructors of static and thread_local objects, up to the end of the process. So
// nothing of the library that such a use needs may have a destructor that runs before:
// - what the process has one of is made on first use with `static T* const one = new T` and never destroyed;
// - what a thread has one of is reached through a thread_local pointer (no destructor), and given to at_thread_end().
#pragma once
#include <utility>

namespace stet {

/// Calls release(kept) when this thread ends, after the destructors of its thread_local objects; never on a thread that
/// ends with the process, as the main one does. May be called again from within a release.
void at_thread_end(void (*release)(void* kept), void* kept);

/// Makes what `pointer`, a thread_local that is null, stands for on this thread. It is null again when the thread ends;
/// who asks even later makes another, which ends as well.
template <class T>
T& make_for_this_thread(T*& pointer) {
  pointer = new T;
  at_thread_end([](void* place) { delete std::exchange(*static_cast<T**>(place), nullptr); }, &pointer);
  return *pointer;
}

}  // namespace stet
