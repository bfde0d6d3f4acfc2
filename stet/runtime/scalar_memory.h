// Single values in the memory of a device, as the host reads and writes them.
#pragma once
#include <cstdint>

#include "stet/runtime/device.h"

namespace stet {

template <class T>
T read_scalar(Device& device, const void* from) {
  if (device.is_host()) return *static_cast<const T*>(from);
  T value{};
  device.copy_out(&value, from, sizeof value);
  return value;
}

}  // namespace stet
