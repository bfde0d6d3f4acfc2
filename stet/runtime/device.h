// Device: where tensors lie and programs run.
#pragma once
#include <cstddef>

#include "stet/runtime/buffer.h"

namespace stet {

class Target;

/// Memory, copies, and a stream of work that is done in the order it is asked for. Addresses in a device's memory may
/// be moved by offsets, but only the device reads them. Devices live as long as the process.
class Device {
 public:
  virtual ~Device() = default;
  virtual const char* name() const = 0;
  virtual const Target& target() const = 0;

  /// Fresh memory, not cleared; Problem when there is none.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// Copies after all work asked for before; when they return, the host's memory may be used.
  virtual void copy_in(void* to, const void* from_host, std::size_t bytes) = 0;
  virtual void copy_out(void* to_host, const void* from, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Returns when all work asked for is done.
  virtual void wait() = 0;

  bool is_host() const { return this == &host(); }
  /// The one whose memory is the process's: the CPU.
  static Device& host();  // defined in cpu/
};

/// The device of a buffer's memory.
inline Device& device_of(const Buffer& buffer) { return buffer.device() ? *buffer.device() : Device::host(); }

}  // namespace stet
