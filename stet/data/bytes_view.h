// Bytes that somebody else holds: what decoders take.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet::data {

/// A string (of bytes), a span of them, or a tensor u8[n]; they must outlive it.
class STET_API BytesView {
 public:
  BytesView(std::string_view bytes) : bytes_(bytes) {}
  BytesView(const std::string& bytes) : bytes_(bytes) {}
  BytesView(const char* characters) : bytes_(characters) {}
  BytesView(const std::vector<std::uint8_t>& bytes) : BytesView(std::span(bytes)) {}
  BytesView(std::span<const std::byte> bytes) : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}
  BytesView(std::span<const unsigned char> bytes) : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}
  /// UserError if it is not u8[n], or there are no values yet (in a trace).
  BytesView(const Tensor& bytes, Where where = Where::here());

  std::string_view characters() const { return bytes_; }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()};
  }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  Tensor owner_;  // of a tensor: itself, or a dense copy
};

}  // namespace stet::data
