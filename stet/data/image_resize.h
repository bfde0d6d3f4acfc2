// Images u8 on the host at another size: what resize() (ops) computes, bit for bit, without a program for it, and from
// u8 straight to f32. Not a public header.
#pragma once
#include <cstdint>

namespace stet::data {

/// A part of an image of rows of `row_bytes` bytes.
struct ImagePart {
  const std::uint8_t* first;  // of its upper left pixel
  std::int64_t row_bytes, height, width, channels;
};
/// To f32[height, width, channels].
void resize_bilinear(const ImagePart& from, float* to, std::int64_t height, std::int64_t width);
void resize_nearest(const ImagePart& from, std::uint8_t* to, std::int64_t height, std::int64_t width);

}  // namespace stet::data
