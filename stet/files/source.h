// Bytes that are read at random: a file, a part of a file, or memory. Not a public header.
//
// Readers of formats take a Source, so that a file inside of another one (the weights in a .keras) is read where it
// stands, and a compressed one from memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "stet/files/file.h"

namespace stet::files {

/// A view: copies are cheap, any number of threads may read.
class Source {
 public:
  /// All of a file, which must outlive it.
  Source(const Input& input) : Source(input, 0, input.size(), input.reading()) {}
  Source(const Input&& gone) = delete;
  /// Bytes in memory. `reading` says what they are in errors.
  Source(Bytes bytes, Reading reading);

  const Reading& reading() const { return reading_; }
  std::uint64_t size() const { return size_; }
  /// UserError if that is not all inside; `what` is to be read: "header".
  void read(std::uint64_t offset, void* to, std::size_t count, const char* what) const;
  /// Memory is taken after the size was checked.
  Bytes read(std::uint64_t offset, std::uint64_t count, const char* what) const;
  /// `count` bytes from `offset` on, which must be inside; byte 0 of errors is their first.
  Source part(std::uint64_t offset, std::uint64_t count, Reading reading) const;

 private:
  Source(const Input& input, std::uint64_t base, std::uint64_t size, Reading reading)
      : input_(&input), base_(base), size_(size), reading_(std::move(reading)) {}
  const Input* input_ = nullptr;
  std::shared_ptr<const Bytes> bytes_;  // where there is no file
  std::uint64_t base_ = 0, size_ = 0;
  Reading reading_;
};

/// What takes bytes one after another: a file, or an entry of an archive.
using Sink = std::function<void(std::span<const std::byte>)>;

/// Sizes times the bytes of an element; none where that, without the zeros among them, is more than the 2^62 that
/// tensors have at most, or a size is negative.
bool bytes_of(std::span<const std::int64_t> sizes, std::uint64_t element, std::uint64_t& bytes);
/// "[2,3]", for errors.
std::string sizes_text(std::span<const std::int64_t> sizes);

}  // namespace stet::files
