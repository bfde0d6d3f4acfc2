// Unpacking what zlib packed, without belief in what it says it unpacks to. Not a public header.
#pragma once
#include <cstdint>
#include <functional>

#include "stet/files/source.h"

namespace stet::files {

/// Deflate cannot do better: 258 bytes from two bits.
inline constexpr std::uint64_t best_deflate = 1032;

enum class Wrapped { not_at_all, zlib };

/// Exactly `size` bytes. Memory grows as they come. `fail` is called with what is wrong ("has packed data that is
/// damaged") and the byte of `packed` where that was found, and throws.
Bytes inflated(const Source& packed, std::uint64_t size, Wrapped wrapped,
               const std::function<void(const char* reason, std::uint64_t at)>& fail);

}  // namespace stet::files
