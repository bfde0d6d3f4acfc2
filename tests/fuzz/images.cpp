#include <zlib.h>

#include "tests/fuzz/tensors.h"

namespace stet::fuzz {
namespace {

/// The checksums of chunks.
void mend_png(std::string& bytes, Random&) {
  auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    const std::size_t length = number(at);
    if (length > bytes.size() - at - 12) return;
    const auto sum = static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data() + at + 4), static_cast<uInt>(length + 4)));
    for (std::size_t i = 0; i < 4; ++i) bytes[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
}

/// All ways to decode it, of which the file's size chooses one.
void load(const FuzzFile& file) {
  static constexpr int channels[] = {0, 1, 3, 4};
  const std::size_t size = file.bytes().size();
  within_memory((1 << 20) + 8 * 1100 * size, [&] {
    data::read_image(file.path(),
                     {.channels = channels[size % 4], .bits = size % 3 ? 8 : 16, .accept_damaged = size % 2 == 0});
  });
}

std::vector<std::string> seeds_of(std::initializer_list<const char*> names) {
  std::vector<std::string> seeds;
  for (const char* name : names) seeds.push_back(stored_reader_file(name));
  return seeds;
}

const FuzzFormat png({
    .name = "png",
    .seeds =
        [] {
          return seeds_of({"gray.png", "rgb.png", "rgba16.png", "gray_alpha_interlaced.png", "rgb_interlaced.png",
                           "palette.png", "palette2bits.png", "palette_transparent.png", "bits.png", "gamma.png"});
        },
    .load = load,
    .mend = mend_png,
    .memory_per_byte = 8 * 1100,
});

const FuzzFormat jpeg({
    .name = "jpeg",
    .seeds =
        [] {
          return seeds_of({"420.jpg", "422.jpg", "444.jpg", "progressive.jpg", "restarts.jpg", "gray.jpg", "cmyk.jpg"});
        },
    .load = load,
    .memory_per_byte = 8 * 1100,
});

}  // namespace
}  // namespace stet::fuzz
