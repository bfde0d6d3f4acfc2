// The caching allocator.
//
// A unit of memory is [Block, 64 bytes][capacity][64 bytes that may be read], so a block's header is recycled with its
// memory. Capacities come in classes, powers of two with four steps between. Each thread keeps short lists of free
// units that only it touches; they spill into, and refill from, lists under one lock. Large units are only ever under
// the lock: the lock is nothing beside the work on them, while a page fault of fresh memory is not.
#include "stet/runtime/buffer.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/runtime/guard.h"

// With the address sanitizer, free memory and what lies behind a block's bytes is poisoned. That is stricter than the
// contract, which lets generated code (which is not instrumented) read 64 bytes more.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace stet {
namespace {

constexpr std::size_t header_bytes = 64;
constexpr std::size_t slack_bytes = 64;  // Readable behind the capacity.
constexpr std::size_t guard_bytes = 64;  // On each side, when guards are on.
constexpr unsigned char guard_pattern = 0xA5;
constexpr unsigned char fresh_pattern = 0xFF;

constexpr std::size_t largest_capacity = std::size_t{1} << 46;  // The address space of a process is 2^47.

/// 0 for up to 64 bytes, then four classes for each doubling.
constexpr int size_class_of(std::size_t bytes) {
  if (bytes <= 64) return 0;
  const std::size_t last = bytes - 1;
  const int width = std::bit_width(last);  // At least 7.
  const int step = static_cast<int>(last >> (width - 3)) - 4;
  return (width - 7) * 4 + step + 1;
}
constexpr std::size_t capacity_of(int size_class) {
  if (size_class == 0) return 64;
  const int doubling = (size_class - 1) / 4, step = (size_class - 1) % 4;
  return static_cast<std::size_t>(5 + step) << (doubling + 4);
}
constexpr int class_count = size_class_of(largest_capacity) + 1;
static_assert(capacity_of(size_class_of(65)) == 80 && capacity_of(size_class_of(128)) == 128);
static_assert(capacity_of(class_count - 1) == largest_capacity);

/// Classes below this live in threads' lists; those from here on are mapped one by one, and only under the lock.
constexpr int small_class_count = size_class_of(256 * 1024) + 1;

constexpr std::uint32_t list_limit(int size_class) {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(128 * 1024 / capacity_of(size_class), 2, 64));
}

constexpr std::size_t unit_bytes(int size_class) {
  return (header_bytes + capacity_of(size_class) + slack_bytes + 63) / 64 * 64;
}

constexpr std::size_t huge_page = 2 * 1024 * 1024;

/// Fresh memory of the system for a unit, aligned to 64 bytes; null if there is none.
void* system_allocate(int size_class) {
  const std::size_t bytes = unit_bytes(size_class);
  if (size_class < small_class_count) return std::aligned_alloc(64, bytes);
  // Huge pages make the first touch of memory several times cheaper; they need an aligned start.
  const std::size_t extra = bytes >= huge_page ? huge_page : 0;
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (bytes + page - 1) / page * page;
  void* memory = mmap(nullptr, mapped + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (extra == 0) return memory;
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = (start + huge_page - 1) / huge_page * huge_page;
  if (aligned > start) munmap(memory, aligned - start);
  if (aligned + mapped < start + mapped + extra)
    munmap(reinterpret_cast<void*>(aligned + mapped), start + extra - aligned);
  madvise(reinterpret_cast<void*>(aligned), mapped, MADV_HUGEPAGE);  // A wish: without it, all works.
  return reinterpret_cast<void*>(aligned);
}

void system_free(void* memory, int size_class) {
  ASAN_UNPOISON_MEMORY_REGION(memory, unit_bytes(size_class));
  if (size_class < small_class_count) {
    std::free(memory);
  } else {
    munmap(memory, unit_bytes(size_class));
  }
}

/// Numbers that one thread writes and others may read: plain moves, no locked instructions.
template <class T>
void add_own(std::atomic<T>& counter, T amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

struct FreeList {
  Block* first = nullptr;
  std::atomic<std::uint32_t> count{0};
};

struct Counters {
  std::atomic<std::int64_t> in_use{0};  // Bytes; below zero on a thread that releases what others allocated.
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> cache_hits{0};
};

/// What one thread owns. Other threads read its atomics, and write `mark`, under the lock.
struct ThreadCache {
  Counters counters;
  /// As long as in_use stays at or below every thread's mark, the peak cannot have moved: the marks' sum is at most it.
  std::atomic<std::int64_t> mark{0};
  FreeList lists[small_class_count];
  ThreadCache* next = nullptr;
};

/// What all threads share. Constant-initialised and never destroyed: buffers may be released by destructors of statics.
struct Shared {
  Lock mutex;
  Block* lists[class_count] = {};
  std::uint64_t last_use[class_count] = {};  // For eviction: the class that nobody has asked for longest goes first.
  std::uint64_t clock = 0;
  std::size_t cached_bytes = 0;
  std::size_t cached_limit = 0;
  ThreadCache* threads = nullptr;
  Counters ended;  // Of threads that have ended.
  std::int64_t peak = 0;
  bool prepared = false;
  pthread_key_t thread_end = {};
};
static_assert(std::is_trivially_destructible_v<Shared>);
constinit Shared shared;

constinit std::atomic<bool> guards_on{false};
constinit std::atomic<std::uint64_t> guard_failure_count{0};
constinit Lock guard_text_mutex;
std::string& guard_text() {
  static std::string& text = *new std::string;
  return text;
}

// initial-exec: one load instead of a call. The variable is one pointer, which fits the room kept for opened libraries.
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadCache* this_thread = nullptr;

}  // namespace

/// The functions that look into Block.
class Allocator {
 public:
  static Block* allocate(std::size_t bytes);
  static Block* foreign(void* data, std::size_t bytes, void (*release)(void*), void* context);
  static void release(Block* block);
  static MemoryStatistics statistics();
  static void reset_peak();
  static void release_cached();

 private:
  static std::byte* payload(Block* block) { return reinterpret_cast<std::byte*>(block) + header_bytes; }
  static Block* next(Block* block) { return static_cast<Block*>(block->foreign_context_); }
  static void set_next(Block* block, Block* next) { block->foreign_context_ = next; }

  static ThreadCache& this_cache() { return this_thread ? *this_thread : make_this_cache(); }
  static ThreadCache& make_this_cache();
  static void prepare();
  static void end_thread(void* cache);
  static void fold(const ThreadCache& cache);
  static void forked_child();

  static Block* take(ThreadCache& cache, int size_class);
  static Block* take_slowly(ThreadCache& cache, int size_class);
  static Block* take_shared(int size_class);
  static Block* fresh(int size_class);
  [[noreturn]] static void out_of_memory(std::size_t bytes);
  static void give(ThreadCache& cache, Block* block);
  static void spill(ThreadCache& cache, int size_class, std::uint32_t keep);
  static void give_shared(Block* block);
  static void evict(std::size_t wanted);
  static void empty_shared_lists();

  static void count_in_use(ThreadCache& cache, std::int64_t bytes);
  static std::int64_t total_in_use();
  static void move_marks(ThreadCache& cache);

  static void write_guards(Block* block);
  static void check_guards(Block* block);
};
static_assert(sizeof(Block) <= header_bytes);

// Threads.

void Allocator::prepare() {
  shared.prepared = true;
  const auto pages = static_cast<std::size_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<std::size_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  shared.cached_limit = std::max(pages * page / 8, std::size_t{256} << 20);
  // A key's destructor runs after those of thread_local variables, which may hold buffers.
  pthread_key_create(&shared.thread_end, end_thread);
  pthread_atfork(nullptr, nullptr, forked_child);
}

ThreadCache& Allocator::make_this_cache() {
  auto* cache = new ThreadCache;
  std::lock_guard lock(shared.mutex);
  if (!shared.prepared) prepare();
  cache->next = shared.threads;
  shared.threads = cache;
  pthread_setspecific(shared.thread_end, cache);
  this_thread = cache;
  return *cache;
}

void Allocator::fold(const ThreadCache& cache) {
  add_own(shared.ended.in_use, cache.counters.in_use.load(std::memory_order_relaxed));
  add_own(shared.ended.allocations, cache.counters.allocations.load(std::memory_order_relaxed));
  add_own(shared.ended.cache_hits, cache.counters.cache_hits.load(std::memory_order_relaxed));
}

/// A buffer released after this (by another key's destructor) makes a new cache, and its end comes here again.
void Allocator::end_thread(void* ended) {
  auto* cache = static_cast<ThreadCache*>(ended);
  this_thread = nullptr;
  for (int size_class = 0; size_class < small_class_count; ++size_class) spill(*cache, size_class, 0);
  std::lock_guard lock(shared.mutex);
  fold(*cache);
  ThreadCache** link = &shared.threads;
  while (*link != cache) link = &(*link)->next;
  *link = cache->next;
  delete cache;
}

/// Only this thread lives on in the child, and it alone runs here: no lock is needed. What lies in the others' lists is
/// lost: they may have been changing them.
void Allocator::forked_child() {
  ThreadCache* cache = shared.threads;
  shared.threads = nullptr;
  while (cache) {
    ThreadCache* const following = cache->next;
    if (cache == this_thread) {
      cache->next = nullptr;
      shared.threads = cache;
    } else {
      fold(*cache);
    }
    cache = following;
  }
}

// Taking and giving units.

inline Block* Allocator::take(ThreadCache& cache, int size_class) {
  if (size_class < small_class_count) {
    FreeList& list = cache.lists[size_class];
    if (Block* const block = list.first) {
      list.first = next(block);
      add_own(list.count, std::uint32_t{0} - 1);
      add_own(cache.counters.cache_hits, std::uint64_t{1});
      return block;
    }
  }
  return take_slowly(cache, size_class);
}

/// From the shared lists (small units several at a time), or from the system; null if there is no memory.
[[gnu::noinline]] Block* Allocator::take_slowly(ThreadCache& cache, int size_class) {
  Block* block = nullptr;
  {
    std::lock_guard lock(shared.mutex);
    block = take_shared(size_class);
    if (block && size_class < small_class_count) {
      FreeList& list = cache.lists[size_class];
      for (std::uint32_t moved = 0; moved < list_limit(size_class) / 2; ++moved) {
        Block* const more = take_shared(size_class);
        if (!more) break;
        set_next(more, list.first);
        list.first = more;
        add_own(list.count, std::uint32_t{1});
      }
    }
  }
  if (block) {
    add_own(cache.counters.cache_hits, std::uint64_t{1});
    return block;
  }
  block = fresh(size_class);
  if (block) return block;
  release_cached();
  return fresh(size_class);
}

/// Under the lock. A large unit may come from up to three classes above: less than twice what was asked for.
Block* Allocator::take_shared(int size_class) {
  shared.last_use[size_class] = ++shared.clock;
  const int last = size_class < small_class_count ? size_class : std::min(size_class + 3, class_count - 1);
  for (int candidate = size_class; candidate <= last; ++candidate) {
    Block* const block = shared.lists[candidate];
    if (!block) continue;
    shared.lists[candidate] = next(block);
    shared.cached_bytes -= capacity_of(candidate);
    return block;
  }
  return nullptr;
}

Block* Allocator::fresh(int size_class) {
  void* const memory = system_allocate(size_class);
  if (!memory) return nullptr;
  auto* block = new (memory) Block;
  block->size_class_ = size_class;
  block->data_ = payload(block);
  ASAN_POISON_MEMORY_REGION(payload(block), capacity_of(size_class));
  return block;
}

[[gnu::noinline]] void Allocator::out_of_memory(std::size_t bytes) {
  throw Problem(text("out of memory: ", bytes, " bytes asked for, ", statistics().bytes_in_use, " in use"),
                "let go of tensors that are no longer needed, or use smaller ones");
}

inline void Allocator::give(ThreadCache& cache, Block* block) {
  const int size_class = block->size_class_;
  ASAN_POISON_MEMORY_REGION(payload(block), capacity_of(size_class));
  if (size_class >= small_class_count) {
    std::lock_guard lock(shared.mutex);
    give_shared(block);
    return;
  }
  FreeList& list = cache.lists[size_class];
  set_next(block, list.first);
  list.first = block;
  add_own(list.count, std::uint32_t{1});
  if (list.count.load(std::memory_order_relaxed) > list_limit(size_class))
    spill(cache, size_class, list_limit(size_class) / 2);
}

[[gnu::noinline]] void Allocator::spill(ThreadCache& cache, int size_class, std::uint32_t keep) {
  FreeList& list = cache.lists[size_class];
  if (!list.first) return;
  std::lock_guard lock(shared.mutex);
  while (list.count.load(std::memory_order_relaxed) > keep) {
    Block* const block = list.first;
    list.first = next(block);
    add_own(list.count, std::uint32_t{0} - 1);
    give_shared(block);
  }
}

/// Under the lock.
void Allocator::give_shared(Block* block) {
  const int size_class = block->size_class_;
  const std::size_t bytes = capacity_of(size_class);
  if (shared.cached_bytes + bytes > shared.cached_limit) evict(bytes);
  if (shared.cached_bytes + bytes > shared.cached_limit) {
    system_free(block, size_class);
    return;
  }
  set_next(block, shared.lists[size_class]);
  shared.lists[size_class] = block;
  shared.cached_bytes += bytes;
}

/// Under the lock: frees units of the classes longest out of use until `wanted` bytes fit.
void Allocator::evict(std::size_t wanted) {
  if (wanted > shared.cached_limit) return;
  while (shared.cached_bytes + wanted > shared.cached_limit) {
    int oldest = -1;
    for (int size_class = 0; size_class < class_count; ++size_class) {
      if (shared.lists[size_class] && (oldest < 0 || shared.last_use[size_class] < shared.last_use[oldest]))
        oldest = size_class;
    }
    if (oldest < 0) return;
    Block* const block = shared.lists[oldest];
    shared.lists[oldest] = next(block);
    shared.cached_bytes -= capacity_of(oldest);
    system_free(block, oldest);
  }
}

/// Under the lock.
void Allocator::empty_shared_lists() {
  for (int size_class = 0; size_class < class_count; ++size_class) {
    while (Block* const block = shared.lists[size_class]) {
      shared.lists[size_class] = next(block);
      shared.cached_bytes -= capacity_of(size_class);
      system_free(block, size_class);
    }
  }
}

/// The short lists of other threads stay: only they may touch them.
void Allocator::release_cached() {
  ThreadCache& cache = this_cache();
  for (int size_class = 0; size_class < small_class_count; ++size_class) spill(cache, size_class, 0);
  std::lock_guard lock(shared.mutex);
  empty_shared_lists();
}

// Statistics.

inline void Allocator::count_in_use(ThreadCache& cache, std::int64_t bytes) {
  const std::int64_t in_use = cache.counters.in_use.load(std::memory_order_relaxed) + bytes;
  cache.counters.in_use.store(in_use, std::memory_order_relaxed);
  if (in_use > cache.mark.load(std::memory_order_relaxed)) move_marks(cache);
}

/// Under the lock.
std::int64_t Allocator::total_in_use() {
  std::int64_t total = shared.ended.in_use.load(std::memory_order_relaxed);
  for (ThreadCache* cache = shared.threads; cache; cache = cache->next)
    total += cache->counters.in_use.load(std::memory_order_relaxed);
  return total;
}

/// This thread went past its mark: the peak may have moved. What is left below the peak is shared out again.
[[gnu::noinline]] void Allocator::move_marks(ThreadCache& own) {
  std::lock_guard lock(shared.mutex);
  const std::int64_t total = total_in_use();
  shared.peak = std::max(shared.peak, total);
  std::int64_t threads = 0;
  for (ThreadCache* cache = shared.threads; cache; cache = cache->next) ++threads;
  const std::int64_t room = shared.peak - total, part = room / threads;
  for (ThreadCache* cache = shared.threads; cache; cache = cache->next) {
    const std::int64_t in_use = cache->counters.in_use.load(std::memory_order_relaxed);
    cache->mark.store(in_use + (cache == &own ? room - part * (threads - 1) : part), std::memory_order_relaxed);
  }
}

MemoryStatistics Allocator::statistics() {
  std::lock_guard lock(shared.mutex);
  MemoryStatistics result;
  result.bytes_in_use = static_cast<std::size_t>(std::max<std::int64_t>(0, total_in_use()));
  result.peak_bytes = static_cast<std::size_t>(shared.peak);
  result.bytes_cached = shared.cached_bytes;
  result.allocations = shared.ended.allocations.load(std::memory_order_relaxed);
  result.cache_hits = shared.ended.cache_hits.load(std::memory_order_relaxed);
  for (ThreadCache* cache = shared.threads; cache; cache = cache->next) {
    result.allocations += cache->counters.allocations.load(std::memory_order_relaxed);
    result.cache_hits += cache->counters.cache_hits.load(std::memory_order_relaxed);
    for (int size_class = 0; size_class < small_class_count; ++size_class)
      result.bytes_cached += cache->lists[size_class].count.load(std::memory_order_relaxed) * capacity_of(size_class);
  }
  return result;
}

void Allocator::reset_peak() {
  std::lock_guard lock(shared.mutex);
  shared.peak = std::max<std::int64_t>(0, total_in_use());
  for (ThreadCache* cache = shared.threads; cache; cache = cache->next)
    cache->mark.store(cache->counters.in_use.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// Guards.

/// Moves the block's data behind a first guard; that data is not where it would be tells a guarded block.
[[gnu::noinline]] void Allocator::write_guards(Block* block) {
  std::byte* const start = payload(block);
  ASAN_UNPOISON_MEMORY_REGION(start, guard_bytes + block->bytes_ + guard_bytes);
  std::memset(start, guard_pattern, guard_bytes);
  std::memset(start + guard_bytes, fresh_pattern, block->bytes_);
  std::memset(start + guard_bytes + block->bytes_, guard_pattern, guard_bytes);
  block->data_ = start + guard_bytes;
}

[[gnu::noinline]] void Allocator::check_guards(Block* block) {
  const auto damaged = [](const std::byte* guard) -> std::ptrdiff_t {
    const auto* end = guard + guard_bytes;
    const auto* found = std::find_if(guard, end, [](std::byte b) { return b != std::byte{guard_pattern}; });
    return found == end ? -1 : found - guard;
  };
  const std::ptrdiff_t before = damaged(block->data_ - guard_bytes), after = damaged(block->data_ + block->bytes_);
  block->data_ = payload(block);
  if (before < 0 && after < 0) return;
  guard_failure_count.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t position =
      before >= 0 ? before - static_cast<std::int64_t>(guard_bytes) : static_cast<std::int64_t>(block->bytes_) + after;
  std::lock_guard lock(guard_text_mutex);
  guard_text() = text("a block of ", block->bytes_, " bytes was written at byte ", position);
}

// Blocks.

inline Block* Allocator::allocate(std::size_t bytes) {
  ThreadCache& cache = this_cache();
  add_own(cache.counters.allocations, std::uint64_t{1});
  const bool guarded = guards_on.load(std::memory_order_relaxed);
  if (bytes > largest_capacity - 2 * guard_bytes) out_of_memory(bytes);
  Block* const block = take(cache, size_class_of(guarded ? bytes + 2 * guard_bytes : bytes));
  if (!block) out_of_memory(bytes);
  block->holders_.store(1, std::memory_order_relaxed);
  block->bytes_ = bytes;
  ASAN_UNPOISON_MEMORY_REGION(block->data_, bytes);
  if (guarded) write_guards(block);
  count_in_use(cache, static_cast<std::int64_t>(bytes));
  return block;
}

/// The header of foreign memory is a unit of the smallest class whose own bytes are not used. It is no allocation, and
/// the bytes are not ours to count.
Block* Allocator::foreign(void* data, std::size_t bytes, void (*release)(void*), void* context) {
  ThreadCache& cache = this_cache();
  const std::uint64_t hits = cache.counters.cache_hits.load(std::memory_order_relaxed);
  Block* const block = take(cache, 0);
  if (!block) out_of_memory(sizeof(Block));
  cache.counters.cache_hits.store(hits, std::memory_order_relaxed);
  block->holders_.store(1, std::memory_order_relaxed);
  block->size_class_ = -1;
  block->data_ = static_cast<std::byte*>(data);
  block->bytes_ = bytes;
  block->release_foreign_ = release;
  block->foreign_context_ = context;
  return block;
}

inline void Allocator::release(Block* block) {
  if (block->size_class_ < 0) [[unlikely]] {
    if (block->release_foreign_) block->release_foreign_(block->foreign_context_);
    block->release_foreign_ = nullptr;
    block->device_ = nullptr;
    block->size_class_ = 0;
    block->data_ = payload(block);
    give(this_cache(), block);
    return;
  }
  if (block->data_ != payload(block)) [[unlikely]]
    check_guards(block);
  ThreadCache& cache = this_cache();
  add_own(cache.counters.in_use, -static_cast<std::int64_t>(block->bytes_));
  give(cache, block);
}

Buffer Buffer::allocate(std::size_t bytes) { return Buffer(Allocator::allocate(bytes)); }

Buffer Buffer::foreign(void* data, std::size_t bytes, void (*release)(void*), void* context) {
  return Buffer(Allocator::foreign(data, bytes, release, context));
}

Buffer Buffer::of_device(Device& device, void* data, std::size_t bytes, void (*release)(void*), void* context) {
  Buffer out = foreign(data, bytes, release, context);
  out.block_->device_ = &device;
  return out;
}

void Buffer::release(Block* block) { Allocator::release(block); }

MemoryStatistics memory_statistics() { return Allocator::statistics(); }
void reset_peak_memory() { Allocator::reset_peak(); }
void release_cached_memory() { Allocator::release_cached(); }

void set_guard_bytes(bool on) { guards_on.store(on, std::memory_order_relaxed); }
std::uint64_t guard_failures() { return guard_failure_count.load(std::memory_order_relaxed); }
std::string last_guard_failure() {
  std::lock_guard lock(guard_text_mutex);
  return guard_text();
}

}  // namespace stet
