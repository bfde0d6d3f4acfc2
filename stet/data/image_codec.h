// What the decoders and encoders of images have in common. Not a public header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "stet/data/image.h"
#include "stet/files/file.h"

namespace stet::data {

/// What read_image does, for who was called otherwise.
Tensor read_image_file(const std::string& path, const ImageOptions& options, const char* call, Where where);

/// `reading` is of a file, or names bytes in memory.
Tensor decode_png_bytes(std::span<const std::byte> bytes, const ImageOptions& options, const files::Reading& reading);
Tensor decode_jpeg_bytes(std::span<const std::byte> bytes, const ImageOptions& options, const files::Reading& reading);

/// UserError if there are more than the options allow.
void check_pixels(std::uint64_t width, std::uint64_t height, const ImageOptions& options,
                  const files::Reading& reading);

/// An image to be written: dense, on the host.
struct Pixels {
  Tensor owner;
  const unsigned char* data;
  std::int64_t height, width, channels;
};

std::string encode_png_pixels(const Pixels& pixels, const PngOptions& options, const char* call, Where where);
std::string encode_jpeg_pixels(const Pixels& pixels, const JpegOptions& options, const char* call, Where where);

}  // namespace stet::data
