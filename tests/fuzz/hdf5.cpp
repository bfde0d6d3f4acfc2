#include "stet/files/hdf5.h"

#include <cstring>

#include "stet/files/hdf5_inside.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/source.h"

namespace stet::fuzz {
namespace {

/// The end of the file is where it is, and checksums of headers of the new form agree again.
void mend(std::string& bytes, Random&) {
  auto checksum = [&](std::size_t begin, std::size_t end) {
    if (end > bytes.size() || bytes.size() - end < 4 || begin > end) return;
    std::uint32_t sum = files::hdf5::lookup3(std::as_bytes(std::span(bytes).subspan(begin, end - begin)));
    std::memcpy(bytes.data() + end, &sum, 4);
  };
  if (bytes.size() < 96) return;
  const bool old = bytes[8] < 2;
  std::uint64_t size = bytes.size();
  std::memcpy(bytes.data() + (old ? 40 : 28), &size, 8);
  if (old) return;
  checksum(0, 44);
  for (std::size_t at = 0; (at = bytes.find("OHDR", at)) != std::string::npos && at + 64 < bytes.size(); at += 4) {
    unsigned flags = static_cast<unsigned char>(bytes[at + 5]);
    std::size_t start = at + 6 + (flags & 32 ? 16 : 0) + (flags & 16 ? 4 : 0), width = std::size_t{1} << (flags & 3);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + start, width);
    if (length < bytes.size()) checksum(at, start + width + static_cast<std::size_t>(length));
  }
}

void read_all(const files::Hdf5Reader& file, const files::Hdf5Node& node) {
  for (const files::Hdf5Node& child : node.children()) read_all(file, child);
  if (!node.is_dataset()) return;
  if (node.type().is_string()) {
    file.strings(node);
  } else {
    files::Bytes data(static_cast<std::size_t>(node.bytes()));
    file.read(node, data);
  }
}

const FuzzFormat format({
    .name = "hdf5",
    .seeds =
        [] {
          std::vector<std::string> seeds;
          for (const char* name :
               {"types.h5", "latest.h5", "ordered.h5", "chunked.h5", "packed.h5", "keras.weights.h5"})
            seeds.push_back(stored_file(std::string("tests/oracle/files/") + name));
          files::Hdf5Writer writer;
          for (const char* path : {"layers/dense/vars/0", "layers/dense/vars/1", "x"})
            writer.dataset(path, DType::bf16, {2, 3}, [](const files::Sink& sink) { sink(files::Bytes(12)); });
          std::string written;
          writer.write([&](std::span<const std::byte> part) {
            written.append(reinterpret_cast<const char*>(part.data()), part.size());
          });
          seeds.push_back(written);
          return seeds;
        },
    .load =
        [](const FuzzFile& file) {
          files::Hdf5Reader reader(source_of(file));
          read_all(reader, reader.root());
        },
    .mend = mend,
    .memory_per_byte = 2200,  // packed chunks, as for zip
});

}  // namespace
}  // namespace stet::fuzz
