// Images in files: PNG and JPEG, as tensors u8[height, width, channels].
#pragma once
#include <cstdint>
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/data/bytes_view.h"

namespace stet::data {

struct ImageOptions {
  /// 1: grey, 3: red, green, blue, 4: and opacity; 0: as many as the image has (1 to 4; a palette's colours are 3 or
  /// 4).
  int channels = 0;
  /// 8: u8, the upper half of numbers with 16 bits. 16: i32 from 0 to 65535, what has 8 bits multiplied by 257.
  int bits = 8;
  /// Of JPEG: what is cut off or damaged in its picture is filled in, as many programs do, and no UserError.
  bool accept_damaged = false;
  std::int64_t max_pixels = std::int64_t{1} << 28;  // more are a UserError
};

/// A PNG or a JPEG file, whichever it is. What is damaged, cut off, or declares more pixels than its bytes can hold is
/// a UserError. Several threads may read.
STET_API Tensor read_image(const std::string& path, ImageOptions options = {}, Where where = Where::here());
/// The same of bytes in memory: features of an Example, say.
STET_API Tensor decode_image(const BytesView& bytes, ImageOptions options = {}, Where where = Where::here());
STET_API Tensor decode_png(const BytesView& bytes, ImageOptions options = {}, Where where = Where::here());
STET_API Tensor decode_jpeg(const BytesView& bytes, ImageOptions options = {}, Where where = Where::here());

struct PngOptions {
  int compression = 6;  // 0: none, 9: the most
};
struct JpegOptions {
  int quality = 95;  // 1 to 100
};
/// u8[height, width, channels] with 1 to 4 channels, or [height, width], as the bytes of a file.
STET_API std::string encode_png(const Tensor& image, PngOptions options = {}, Where where = Where::here());
/// With 1 or 3 channels.
STET_API std::string encode_jpeg(const Tensor& image, JpegOptions options = {}, Where where = Where::here());
/// Overwrites a file of that name, at once and completely.
STET_API void write_png(const std::string& path, const Tensor& image, PngOptions options = {},
                        Where where = Where::here());
STET_API void write_jpeg(const std::string& path, const Tensor& image, JpegOptions options = {},
                         Where where = Where::here());

}  // namespace stet::data
