#include "stet/base/thread_end.h"

#include <pthread.h>

#include <utility>

namespace stet {
namespace {

struct Kept {
  void (*release)(void*);
  void* what;
  Kept* before;
};

/// The last first: what was made later may use what was made earlier.
void release_all(void* list) {
  for (auto* one = static_cast<Kept*>(list); one;) {
    Kept* before = one->before;
    one->release(one->what);
    delete one;
    one = before;
  }
}

// A key's destructors run after those of thread_local objects, and again if they set the key anew.
pthread_key_t made_key() {
  pthread_key_t key = {};
  pthread_key_create(&key, release_all);
  return key;
}

}  // namespace

void at_thread_end(void (*release)(void*), void* kept) {
  static const pthread_key_t key = made_key();
  auto* before = static_cast<Kept*>(pthread_getspecific(key));
  pthread_setspecific(key, new Kept{release, kept, before});
}

}  // namespace stet
