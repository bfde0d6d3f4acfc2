#include "stet/data/image.h"

#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/image_codec.h"
#include "stet/files/file.h"

namespace stet::data {
namespace {

bool begins_with(std::span<const std::byte> bytes, std::string_view mark) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(mark);
}
bool is_png(std::span<const std::byte> bytes) { return begins_with(bytes, std::string_view("\x89PNG\r\n\x1A\n", 8)); }
bool is_jpeg(std::span<const std::byte> bytes) { return begins_with(bytes, "\xFF\xD8\xFF"); }

/// What it is instead, as far as that is easily seen.
const char* other_format(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "it is empty";
  if (is_png(bytes)) return "it is a PNG";
  if (is_jpeg(bytes)) return "it is a JPEG";
  if (begins_with(bytes, "GIF8")) return "it is a GIF";
  if (begins_with(bytes, "BM")) return "it is a BMP";
  if (begins_with(bytes, "RIFF") && bytes.size() > 12 && begins_with(bytes.subspan(8), "WEBP")) return "it is a WebP";
  if (begins_with(bytes, std::string_view("II*\0", 4)) || begins_with(bytes, std::string_view("MM\0*", 4)))
    return "it is a TIFF";
  return nullptr;
}

[[noreturn]] void fail_format(const char* expected, std::span<const std::byte> bytes, const files::Reading& reading) {
  const char* other = other_format(bytes);
  reading.fail(text("is not a ", expected, other ? ": " : "", other ? other : ""), 0,
               "PNG and JPEG are read: convert others");
}

void check_options(const char* call, const ImageOptions& options, Where where) {
  auto refuse = [&](const std::string& what, const char* advice) {
    throw UserError(error_text(text(call, ": ", what), where, advice));
  };
  if (options.channels != 0 && options.channels != 1 && options.channels != 3 && options.channels != 4)
    refuse(text("channels is ", options.channels), "1 (grey), 3 (colours), 4 (and opacity) or 0 (as the image has)");
  if (options.bits != 8 && options.bits != 16) refuse(text("bits is ", options.bits), "8 (u8) or 16 (i32)");
  if (options.max_pixels < 0)
    refuse(text("max_pixels is ", options.max_pixels), "give the most that an image may have");
}

enum class Format : std::uint8_t { png, jpeg, any };

Tensor decode(std::span<const std::byte> bytes, Format format, const ImageOptions& options,
              const files::Reading& reading) {
  if (format != Format::jpeg && is_png(bytes)) return decode_png_bytes(bytes, options, reading);
  if (format != Format::png && is_jpeg(bytes)) return decode_jpeg_bytes(bytes, options, reading);
  fail_format(format == Format::png ? "PNG" : format == Format::jpeg ? "JPEG" : "PNG or JPEG", bytes, reading);
}

Tensor decode_memory(const char* call, const BytesView& bytes, Format format, const ImageOptions& options,
                     Where where) {
  check_options(call, options, where);
  return decode(bytes.bytes(), format, options, {call, text(bytes.size(), " bytes"), where});
}

Pixels pixels_of(const char* call, const Tensor& image, int most_channels, Where where) {
  auto refuse = [&](const std::string& what, const std::string& advice) {
    throw UserError(error_text(text(call, ": ", what), where, advice));
  };
  if (!image.defined()) refuse("the image is an undefined tensor", "assign a value to it first");
  const TensorNode& given = concrete_node(image, call, where);
  const std::int64_t channels = given.rank == 3 ? given.sizes[2] : 1;
  const bool channels_fit = channels == 1 || channels == 3 || (most_channels == 4 && (channels == 2 || channels == 4));
  if (given.dtype != DType::u8 || (given.rank != 2 && given.rank != 3) || !channels_fit)
    refuse(text("the image is ", given.dtype, given.shape(), ", not u8[height, width, channels] with ",
                most_channels == 4 ? "1 to 4" : "1 or 3", " channels"),
           is_floating(given.dtype) ? "cast(x, u8) of numbers from 0 to 255" : "one image at a time, channels last");
  if (given.sizes[0] == 0 || given.sizes[1] == 0)
    refuse(text("the image is ", given.dtype, given.shape(), ": it has no pixels"),
           "files hold images of 1 x 1 or more");
  const std::int64_t most = most_channels == 4 ? 0x7FFFFFFF : 65500;
  if (given.sizes[0] > most || given.sizes[1] > most)
    refuse(text("the image is ", given.dtype, given.shape()), text("height and width are at most ", most));
  Tensor dense = on_host(image.contiguous(where));
  return {dense, reinterpret_cast<const unsigned char*>(dense.node()->data), given.sizes[0], given.sizes[1], channels};
}

std::string encoded(const char* call, const Tensor& image, const PngOptions& options, Where where) {
  if (options.compression < 0 || options.compression > 9)
    throw UserError(
        error_text(text(call, ": compression is ", options.compression), where, "0 (none) to 9 (the most)"));
  return encode_png_pixels(pixels_of(call, image, 4, where), options, call, where);
}
std::string encoded(const char* call, const Tensor& image, const JpegOptions& options, Where where) {
  if (options.quality < 1 || options.quality > 100)
    throw UserError(error_text(text(call, ": quality is ", options.quality), where, "1 to 100"));
  return encode_jpeg_pixels(pixels_of(call, image, 3, where), options, call, where);
}

void write_file(const char* call, const std::string& path, const std::string& bytes, Where where) {
  files::Output out(path, call, where);
  out.write(bytes);
  out.commit();
}

}  // namespace

void check_pixels(std::uint64_t width, std::uint64_t height, const ImageOptions& options,
                  const files::Reading& reading) {
  if (width * height > static_cast<std::uint64_t>(options.max_pixels))
    reading.fail(text("has ", width, " x ", height, " pixels, more than ", options.max_pixels),
                 "give a larger max_pixels if it is to be read");
}

Tensor read_image_file(const std::string& path, const ImageOptions& options, const char* call, Where where) {
  check_options(call, options, where);
  files::Input input(path, call, where);
  // Not all of a large file that is something else.
  if (constexpr std::uint64_t large = 1 << 20; input.size() > large)
    if (const files::Bytes begin = input.read(0, 16, "header"); !is_png(begin) && !is_jpeg(begin))
      fail_format("PNG or JPEG", begin, input.reading());
  const files::Bytes bytes = input.read_all();
  return decode(bytes, Format::any, options, input.reading());
}

Tensor read_image(const std::string& path, ImageOptions options, Where where) {
  return read_image_file(path, options, "read_image", where);
}

Tensor decode_image(const BytesView& bytes, ImageOptions options, Where where) {
  return decode_memory("decode_image", bytes, Format::any, options, where);
}
Tensor decode_png(const BytesView& bytes, ImageOptions options, Where where) {
  return decode_memory("decode_png", bytes, Format::png, options, where);
}
Tensor decode_jpeg(const BytesView& bytes, ImageOptions options, Where where) {
  return decode_memory("decode_jpeg", bytes, Format::jpeg, options, where);
}

std::string encode_png(const Tensor& image, PngOptions options, Where where) {
  return encoded("encode_png", image, options, where);
}
std::string encode_jpeg(const Tensor& image, JpegOptions options, Where where) {
  return encoded("encode_jpeg", image, options, where);
}
void write_png(const std::string& path, const Tensor& image, PngOptions options, Where where) {
  write_file("write_png", path, encoded("write_png", image, options, where), where);
}
void write_jpeg(const std::string& path, const Tensor& image, JpegOptions options, Where where) {
  write_file("write_jpeg", path, encoded("write_jpeg", image, options, where), where);
}

}  // namespace stet::data
