// What OpenBLAS, linked statically, gets from us instead of from itself (cmake/thirdparty.cmake wraps the names):
// scratch memory, one region for each call that runs. Debian's serial build looks for a free region without a lock, so
// that two threads may be given the same one.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/cpu/lapack.h"

namespace stet::cpu {
namespace {

/// OpenBLAS's BUFFER_SIZE for x86-64, which no header of it says. Only what is touched takes memory.
constexpr std::size_t region_bytes = std::size_t{128} << 20;

/// A free region begins with the address of the next one.
void* free_regions = nullptr;
Lock& regions_guard() {
  static Lock* const guard = new Lock;
  return *guard;
}

void* take_region() {
  {
    std::lock_guard lock(regions_guard());
    if (void* region = free_regions) {
      std::memcpy(&free_regions, region, sizeof free_regions);
      return region;
    }
  }
  void* region =
      mmap(nullptr, region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return region == MAP_FAILED ? nullptr : region;
}

void give_region(void* region) {
  std::lock_guard lock(regions_guard());
  std::memcpy(region, &free_regions, sizeof free_regions);
  free_regions = region;
}

/// This thread's region, in the scope of its LapackMemory.
struct Own {
  void* region = nullptr;
  int scopes = 0;
  bool used = false;
};
thread_local Own own;

}  // namespace

LapackMemory::LapackMemory() {
  if (own.scopes == 0) {
    own.region = take_region();
    if (!own.region) throw UserError(error_text("there is no memory for linear algebra", {}, "free some"));
  }
  ++own.scopes;
}

LapackMemory::~LapackMemory() {
  if (--own.scopes > 0) return;
  give_region(own.region);
  own.region = nullptr;
}

}  // namespace stet::cpu

extern "C" {

void* __wrap_blas_memory_alloc(int) {
  stet::cpu::Own& own = stet::cpu::own;
  if (!own.region || own.used) return stet::cpu::take_region();
  own.used = true;
  return own.region;
}

void __wrap_blas_memory_free(void* region) {
  stet::cpu::Own& own = stet::cpu::own;
  if (region == own.region)
    own.used = false;
  else
    stet::cpu::give_region(region);
}

void __wrap_gotoblas_dynamic_quit() {}

/// The one function of Fortran's run-time library that the routines we use call: a // b, cut or filled with blanks.
void _gfortran_concat_string(std::size_t size, char* to, std::size_t left_size, const char* left,
                             std::size_t right_size, const char* right) {
  std::size_t first = std::min(size, left_size), second = std::min(size - first, right_size);
  std::memcpy(to, left, first);
  std::memcpy(to + first, right, second);
  std::memset(to + first + second, ' ', size - first - second);
}

}  // extern "C"
