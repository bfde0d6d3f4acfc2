// Static objects of libstet.so are never destroyed.
//
// Tensors and functions may be used in destructors of the program's static objects, which may need a compilation. LLVM,
// which is linked into the library, keeps static objects in its functions: made when first used, they would be
// destroyed before older ones of the program. The library is never unloaded, so nobody misses the destructors. The
// linker sends all registrations of destructors here (--wrap=__cxa_atexit in CMakeLists.txt).
extern "C" {

/// std::ios_base::Init::~Init(), which counts users of std::cout, and flushes it when the last one ends.
void stet_end_of_streams(void*) __asm__("_ZNSt8ios_base4InitD1Ev");

int __real___cxa_atexit(void (*)(void*), void*, void*) __attribute__((weak));

int __wrap___cxa_atexit(void (*destructor)(void*), void* object, void* library) {
  if (destructor == stet_end_of_streams && __real___cxa_atexit) return __real___cxa_atexit(destructor, object, library);
  return 0;
}
}
