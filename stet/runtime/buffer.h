// Memory of tensors: counted blocks from a caching allocator.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "stet/base/export.h"

namespace stet {

class Device;

/// A block of memory with a count of its holders. Data is aligned to 64 bytes; at least `bytes` are usable, and reading
/// (not writing) up to 64 bytes past `bytes` never faults.
class Block {
 public:
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  friend class Buffer;
  friend class Allocator;
  std::atomic<std::int32_t> holders_{1};
  std::int32_t size_class_ = -1;  // -1: foreign memory, not from the cache
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device* device_ = nullptr;  // null: the host
  void (*release_foreign_)(void* context) = nullptr;
  void* foreign_context_ = nullptr;
};

/// A shared reference to a Block.
class Buffer {
 public:
  Buffer() = default;
  /// Fresh memory, not cleared. Throws Problem("out of memory: …") with the bytes asked for and in use. 0 bytes are
  /// fine: a valid block.
  STET_API static Buffer allocate(std::size_t bytes);
  /// Memory of somebody else; `release(context)` runs when the last holder lets go.
  STET_API static Buffer foreign(void* data, std::size_t bytes, void (*release)(void*), void* context);
  /// Memory of a device, which gives it back by release(context).
  static Buffer of_device(Device& device, void* data, std::size_t bytes, void (*release)(void*), void* context);

  Buffer(const Buffer& other) : block_(other.block_) {
    if (block_) block_->holders_.fetch_add(1, std::memory_order_relaxed);
  }
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() {
    if (block_ && block_->holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) release(block_);
  }

  explicit operator bool() const { return block_ != nullptr; }
  std::byte* data() const { return block_->data(); }
  std::size_t bytes() const { return block_->bytes(); }
  /// Whose memory it is; null: the host's.
  Device* device() const { return block_->device_; }
  /// Memory of the library's own, whose only reference this is: it may be overwritten, and nobody will know.
  bool exclusive() const { return block_ && block_->size_class_ >= 0 && unique(); }
  /// This is the only reference.
  bool unique() const { return block_->holders_.load(std::memory_order_acquire) == 1; }

 private:
  explicit Buffer(Block* block) : block_(block) {}
  STET_API static void release(Block*);
  Block* block_ = nullptr;
};

struct MemoryStatistics {
  std::size_t bytes_in_use = 0;   // held by buffers
  std::size_t peak_bytes = 0;     // highest bytes_in_use since start or reset
  std::size_t bytes_cached = 0;   // free, kept for reuse
  std::uint64_t allocations = 0;  // calls of allocate
  std::uint64_t cache_hits = 0;   // of them, served without the system
};
/// Exact when no other thread allocates; summed over threads.
STET_API MemoryStatistics memory_statistics();
STET_API void reset_peak_memory();
/// Gives cached memory back to the system.
STET_API void release_cached_memory();

}  // namespace stet
