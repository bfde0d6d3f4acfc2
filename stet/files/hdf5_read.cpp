// Data of datasets: contiguous, or in chunks that were filtered.
#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/hdf5.h"
#include "stet/files/hdf5_inside.h"
#include "stet/files/hdf5_parse.h"
#include "stet/files/inflate.h"
#include "stet/files/utf8.h"

namespace stet::files {

void make_native(const Hdf5Type& type, std::span<std::byte> data, const Reading& reading, std::uint64_t offset) {
  static_assert(std::endian::native == std::endian::little);
  if (type.kind == Hdf5Kind::boolean) {
    auto bad = std::find_if(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; });
    if (bad != data.end()) reading.fail(text("a bool of ", std::to_integer<int>(*bad)), offset);
  }
  if (!type.highest_first || type.bytes == 1) return;
  for (std::size_t at = 0; at + type.bytes <= data.size(); at += type.bytes)
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                 data.begin() + static_cast<std::ptrdiff_t>(at + type.bytes));
}

Hdf5Reader::Hdf5Reader(Source source, Hdf5Limits limits) : source_(std::move(source)) {
  try {
    root_ = Hdf5Parser(source_, limits).whole();
  } catch (const std::bad_alloc&) {
    reading().fail("no memory for what describes its data", "read it on a larger machine");
  }
}

namespace {

/// Bytes of the same place in all elements stand together: undone. What is no whole element stands behind.
Bytes unshuffled(const Bytes& shuffled, std::size_t element) {
  const std::size_t count = shuffled.size() / element;
  if (element == 1 || count <= 1) return shuffled;
  Bytes plain(shuffled.size());
  for (std::size_t place = 0; place < element; ++place)
    for (std::size_t i = 0; i < count; ++i) plain[i * element + place] = shuffled[place * count + i];
  std::copy(shuffled.begin() + static_cast<std::ptrdiff_t>(count * element), shuffled.end(),
            plain.begin() + static_cast<std::ptrdiff_t>(count * element));
  return plain;
}

}  // namespace

void Hdf5Reader::read(const Hdf5Node& dataset, std::span<std::byte> to) const {
  if (!dataset.is_dataset() || dataset.type().is_string() || to.size() != dataset.bytes())
    throw InternalError(text("read() of ", quoted_name(dataset.path()), " into ", to.size(), " bytes"));
  read_raw(dataset, to);
  make_native(dataset.type(), to, reading(), dataset.offset());
}

std::vector<std::string> Hdf5Reader::strings(const Hdf5Node& dataset) const {
  if (!dataset.is_dataset() || !dataset.type().is_string())
    throw InternalError(text("strings() of ", quoted_name(dataset.path())));
  try {
    Bytes data(static_cast<std::size_t>(dataset.bytes()));
    read_raw(dataset, data);
    return Hdf5Parser(source_, {}).strings(data, dataset.elements(), dataset.type(), dataset.offset());
  } catch (const std::bad_alloc&) {
    reading().fail(text("no memory for the strings of ", quoted_name(dataset.path())), "read it on a larger machine");
  }
}

void Hdf5Reader::read_raw(const Hdf5Node& dataset, std::span<std::byte> to) const {
  if (to.empty()) return;
  if (dataset.layout_ == Hdf5Node::Layout::contiguous) {
    source_.read(dataset.address_, to.data(), to.size(), "data");
    return;
  }
  try {
    for (const Hdf5Node::Chunk& chunk : dataset.chunks_) read_chunk(dataset, chunk, to);
  } catch (const std::bad_alloc&) {
    reading().fail(text("no memory for a chunk of ", quoted_name(dataset.path())), "read it on a larger machine");
  }
}

void Hdf5Reader::read_chunk(const Hdf5Node& dataset, const Hdf5Node::Chunk& chunk, std::span<std::byte> to) const {
  const std::size_t rank = dataset.chunk_sizes_.size(), element = dataset.type().bytes;
  std::size_t bytes = element;
  for (std::uint64_t size : dataset.chunk_sizes_) bytes *= static_cast<std::size_t>(size);
  auto fail = [&](const char* reason, std::uint64_t at) {
    reading().fail(text("a chunk of the dataset ", quoted_name(dataset.path()), " ", reason), chunk.address + at);
  };
  Bytes data = source_.read(chunk.address, chunk.bytes, "chunk");
  for (std::size_t i = dataset.filters_.size(); i-- > 0;) {
    if (chunk.skipped_filters >> i & 1) continue;
    const Hdf5Node::Filter& filter = dataset.filters_[i];
    if (filter.id == hdf5::fletcher32) {
      if (data.size() < 4) fail("has no checksum", 0);
      std::uint32_t stored;
      std::memcpy(&stored, data.data() + data.size() - 4, 4);
      data.resize(data.size() - 4);
      if (stored != hdf5::fletcher(data)) fail("has a wrong checksum", 0);
    } else if (filter.id == hdf5::deflate) {
      // What is still to be undone after it: checksums, of which each has four bytes.
      std::size_t expected = bytes;
      for (std::size_t k = 0; k < i; ++k)
        if (!(chunk.skipped_filters >> k & 1) && dataset.filters_[k].id == hdf5::fletcher32) expected += 4;
      data = inflated(Source(std::move(data), reading()), expected, Wrapped::zlib, fail);
    } else {
      data = unshuffled(data, filter.element);
    }
  }
  if (data.size() != bytes) fail("has other bytes than its sizes say", 0);

  // Row by row of what is inside of the dataset: chunks at its edges are larger.
  std::vector<std::size_t> count(rank), index(rank, 0);
  for (std::size_t axis = 0; axis < rank; ++axis)
    count[axis] = static_cast<std::size_t>(std::min<std::uint64_t>(
        dataset.chunk_sizes_[axis], static_cast<std::uint64_t>(dataset.sizes_[axis]) - chunk.begin[axis]));
  const std::size_t row = (rank == 0 ? 1 : count[rank - 1]) * element;
  while (true) {
    std::size_t from = 0, target = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      from = from * static_cast<std::size_t>(dataset.chunk_sizes_[axis]) + index[axis];
      target = target * static_cast<std::size_t>(dataset.sizes_[axis]) + static_cast<std::size_t>(chunk.begin[axis]) +
               index[axis];
    }
    std::memcpy(to.data() + target * element, data.data() + from * element, row);
    std::size_t axis = rank == 0 ? 0 : rank - 1;
    while (axis > 0 && ++index[axis - 1] == count[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace stet::files
