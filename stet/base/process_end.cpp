// The library lives as long as the process: what a user's static object does in its destructor may need all of it, also
// the compiler. So none of its statics is ever destroyed, neither ours nor those of LLVM, which is linked in: the
// linker sends their registrations here (--wrap in CMakeLists.txt). Memory goes back with the process.
#include "stet/base/process_end.h"

#include <cxxabi.h>

extern "C" {

/// std::ios_base::Init::~Init(): it counts those who use std::cout and flushes it when the last one ends. Were ours not
/// to end, the output of a program that has called sync_with_stdio(false) would be lost.
void stet_end_of_streams(void*) __asm__("_ZNSt8ios_base4InitD1Ev");

int __real___cxa_atexit(void (*)(void*), void*, void*) __attribute__((weak));  // NOLINT: the linker's names

int __wrap___cxa_atexit(void (*destructor)(void*), void* object, void* library) {
  if (destructor == stet_end_of_streams && __real___cxa_atexit) return __real___cxa_atexit(destructor, object, library);
  return 0;
}
}

namespace stet {

void at_process_end(void (*noticed)()) {
  auto call = [](void* function) { reinterpret_cast<void (*)()>(function)(); };
  // Without --wrap, as in tests that have the library's objects linked in, there is only the real one.
  auto* registered = __real___cxa_atexit ? __real___cxa_atexit : abi::__cxa_atexit;
  // No library's, but the process's own: no library that ends has this handle. (With none, the thread sanitizer of gcc
  // 12 loses the argument. Where there is no memory for it, it is not called.)
  static char of_the_process;
  registered(call, reinterpret_cast<void*>(noticed), &of_the_process);
}

}  // namespace stet
