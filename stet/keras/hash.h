// Hashes of strings that are the same everywhere, as TensorFlow's and so Keras's. Not a public header.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stet::keras {

/// FarmHash's Fingerprint64.
std::uint64_t fingerprint(std::string_view bytes);
/// One fingerprint of two, in order.
std::uint64_t combined_fingerprint(std::uint64_t first, std::uint64_t second);
/// SipHash-2-4.
std::uint64_t keyed_hash(const std::array<std::uint64_t, 2>& key, std::string_view bytes);

/// Puts strings into bins: by their fingerprint, or with a salt by the keyed hash.
struct Binning {
  std::int64_t bins = 1;
  std::optional<std::array<std::uint64_t, 2>> salt = {};
  std::int64_t operator()(std::string_view bytes) const {
    const std::uint64_t hash = salt ? keyed_hash(*salt, bytes) : fingerprint(bytes);
    return static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(bins));
  }
};

}  // namespace stet::keras
