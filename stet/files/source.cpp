#include "stet/files/source.h"

#include <cstring>
#include <new>
#include <utility>

#include "stet/base/text.h"

namespace stet::files {

Source::Source(Bytes bytes, Reading reading)
    : bytes_(std::make_shared<const Bytes>(std::move(bytes))), size_(bytes_->size()), reading_(std::move(reading)) {}

void Source::read(std::uint64_t offset, void* to, std::size_t count, const char* what) const {
  if (offset > size_ || count > size_ - offset) reading_.fail(text("ends in its ", what), size_);
  if (count == 0) return;
  if (input_)
    input_->read(base_ + offset, to, count, what);
  else
    std::memcpy(to, bytes_->data() + base_ + offset, count);
}

Bytes Source::read(std::uint64_t offset, std::uint64_t count, const char* what) const {
  if (offset > size_ || count > size_ - offset) reading_.fail(text("ends in its ", what), size_);
  Bytes bytes;
  try {
    bytes.resize(static_cast<std::size_t>(count));
  } catch (const std::bad_alloc&) {
    reading_.fail(text("no memory for ", count, " bytes of its ", what), offset, "read it on a larger machine");
  }
  read(offset, bytes.data(), bytes.size(), what);
  return bytes;
}

Source Source::part(std::uint64_t offset, std::uint64_t count, Reading reading) const {
  if (offset > size_ || count > size_ - offset) throw InternalError("a part of a file that is not inside of it");
  Source part = *this;
  part.base_ += offset;
  part.size_ = count;
  part.reading_ = std::move(reading);
  return part;
}

bool bytes_of(std::span<const std::int64_t> sizes, std::uint64_t element, std::uint64_t& bytes) {
  // A size of zero makes nothing of the others, but they are multiplied elsewhere too.
  std::int64_t product = static_cast<std::int64_t>(element);
  bool overflow = false, empty = false;
  for (std::int64_t size : sizes) {
    if (size < 0) return false;
    if (size == 0)
      empty = true;
    else
      overflow |= __builtin_mul_overflow(product, size, &product);
  }
  if (overflow || product > std::int64_t{1} << 62) return false;
  bytes = empty ? 0 : static_cast<std::uint64_t>(product);
  return true;
}

std::string sizes_text(std::span<const std::int64_t> sizes) { return text("[", joined(sizes, ","), "]"); }

}  // namespace stet::files
