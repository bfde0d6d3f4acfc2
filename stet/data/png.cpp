// libpng reports errors by longjmp. The functions that call it keep to C: what they need is in a struct that their
// callers hold, so that no destructor is jumped over.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/image_codec.h"
#include "stet/data/stream.h"

namespace stet::data {
namespace {

struct PngReading {
  ~PngReading() { png_destroy_read_struct(&png, &info, nullptr); }
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> bytes;
  std::size_t at = 0;
  bool cut_off = false;
  char message[200] = {};

  // After the header.
  png_uint_32 width = 0, height = 0;
  int bit_depth = 0, color_type = 0;
  bool transparent = false;
  std::size_t stored_row_bytes = 0;
};

void keep_message(png_structp png, png_const_charp message) {
  auto* reading = static_cast<PngReading*>(png_get_error_ptr(png));
  std::strncpy(reading->message, message, sizeof reading->message - 1);
  std::longjmp(png_jmpbuf(png), 1);
}
void no_warning(png_structp, png_const_charp) {}

void give_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* reading = static_cast<PngReading*>(png_get_io_ptr(png));
  if (count > reading->bytes.size() - reading->at) {
    reading->cut_off = true;
    png_error(png, "ends in its data");
  }
  std::memcpy(to, reading->bytes.data() + reading->at, count);
  reading->at += count;
}

/// False after an error.
bool read_header(PngReading& reading) {
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, keep_message, no_warning);
  if (!reading.png) return false;
  if (setjmp(png_jmpbuf(reading.png))) return false;
  reading.info = png_create_info_struct(reading.png);
  if (!reading.info) return false;
  png_set_read_fn(reading.png, &reading, give_bytes);
  // Its pixels are checked by who asked for it.
  png_set_user_limits(reading.png, 0x7FFFFFFF, 0x7FFFFFFF);
  // Texts and profiles are of no interest, and may be bombs; what is said of light would change how grey is made.
  png_set_chunk_malloc_max(reading.png, 1 << 20);
  png_set_chunk_cache_max(reading.png, 64);
  png_set_keep_unknown_chunks(reading.png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  static const png_byte ignored[] = "iCCP\0zTXt\0iTXt\0tEXt\0sPLT\0eXIf\0hIST\0pCAL\0sCAL\0gAMA\0cHRM\0sRGB\0bKGD";
  png_set_keep_unknown_chunks(reading.png, PNG_HANDLE_CHUNK_NEVER, ignored, 13);
  png_set_crc_action(reading.png, PNG_CRC_ERROR_QUIT, PNG_CRC_QUIET_USE);
  png_read_info(reading.png, reading.info);
  reading.width = png_get_image_width(reading.png, reading.info);
  reading.height = png_get_image_height(reading.png, reading.info);
  reading.bit_depth = png_get_bit_depth(reading.png, reading.info);
  reading.color_type = png_get_color_type(reading.png, reading.info);
  reading.transparent = png_get_valid(reading.png, reading.info, PNG_INFO_tRNS) != 0;
  reading.stored_row_bytes = png_get_rowbytes(reading.png, reading.info);
  return true;
}

int channels_of(const PngReading& reading, int asked) {
  if (asked != 0) return asked;
  if (reading.color_type == PNG_COLOR_TYPE_PALETTE) return reading.transparent ? 4 : 3;
  return (reading.color_type & PNG_COLOR_MASK_COLOR ? 3 : 1) + (reading.color_type & PNG_COLOR_MASK_ALPHA ? 1 : 0);
}

/// Rows of `channels` numbers of 8 bits, or 16 with the lowest byte first. Row by row: pointers to all of them would
/// take more memory than narrow images. False after an error.
bool read_pixels(PngReading& reading, int channels, bool wide, png_bytep to) {
  png_structp png = reading.png;
  if (setjmp(png_jmpbuf(png))) return false;
  const bool alpha = reading.color_type & PNG_COLOR_MASK_ALPHA;
  const bool gray = !(reading.color_type & PNG_COLOR_MASK_COLOR);
  png_set_expand(png);  // palettes, less than 8 bits, and transparent colours to opacity
  if (wide && reading.bit_depth < 16) png_set_expand_16(png);
  if (!wide && reading.bit_depth == 16) png_set_strip_16(png);
  if (wide) png_set_swap(png);
  if (channels % 2 == 1) {
    if (alpha || reading.transparent) png_set_strip_alpha(png);
  } else if (!alpha && !reading.transparent) {
    png_set_add_alpha(png, wide ? 65535 : 255, PNG_FILLER_AFTER);
  }
  if (channels < 3 && !gray) png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, 29900, 58700);
  if (channels >= 3 && gray) png_set_gray_to_rgb(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, reading.info);
  const std::size_t row = std::size_t{reading.width} * static_cast<unsigned>(channels) * (wide ? 2 : 1);
  if (png_get_rowbytes(png, reading.info) != row) png_error(png, "has rows of another length than its header says");
  for (int pass = 0; pass < passes; ++pass)
    for (std::size_t y = 0; y < reading.height; ++y) png_read_row(png, to + y * row, nullptr);
  png_read_end(png, nullptr);
  return true;
}

[[noreturn]] void fail(const PngReading& png, const files::Reading& reading) {
  if (png.cut_off) reading.fail("ends in its data", png.bytes.size());
  if (!png.message[0]) reading.fail("there is no memory to decode it", "free memory");
  reading.fail(text("is a PNG that cannot be decoded (", png.message, ")"), png.at);
}

}  // namespace

Tensor decode_png_bytes(std::span<const std::byte> bytes, const ImageOptions& options, const files::Reading& reading) {
  PngReading png;
  png.bytes = bytes;
  if (!read_header(png)) fail(png, reading);
  check_pixels(png.width, png.height, options, reading);
  // Each row has its bytes and one for its filter; deflate makes at most 1032 of one.
  const std::uint64_t stored = (png.stored_row_bytes + 1) * std::uint64_t{png.height};
  if (stored > deflate_bound(bytes.size()))
    reading.fail(
        text("declares ", png.width, " x ", png.height, " pixels, more than ", bytes.size(), " bytes can hold"), 16);
  const int channels = channels_of(png, options.channels);
  const bool wide = options.bits == 16;
  const std::int64_t sizes[] = {png.height, png.width, channels};
  const std::uint64_t row = std::uint64_t{png.width} * static_cast<unsigned>(channels) * (wide ? 2 : 1);
  // Numbers of 16 bits stand in the upper half of their memory until they are made i32.
  Buffer buffer = memory_for_file(reading, row * png.height * (wide ? 2 : 1));
  std::byte* first = buffer.data() + (wide ? row * png.height : 0);
  if (!read_pixels(png, channels, wide, reinterpret_cast<png_bytep>(first))) fail(png, reading);
  if (wide) {
    auto* to = reinterpret_cast<std::int32_t*>(buffer.data());
    for (std::uint64_t i = 0; i < row * png.height / 2; ++i) {
      std::uint16_t value;
      std::memcpy(&value, first + 2 * i, 2);
      const std::int32_t number = value;
      std::memcpy(to + i, &number, 4);
    }
  }
  return dense_tensor(wide ? DType::i32 : DType::u8, sizes, std::move(buffer));
}

// --- writing

namespace {

struct PngWriting {
  ~PngWriting() { png_destroy_write_struct(&png, &info); }
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string out;
  bool no_memory = false;
};

void stop(png_structp png, png_const_charp) { std::longjmp(png_jmpbuf(png), 1); }
void take_bytes(png_structp png, png_bytep from, std::size_t count) {
  auto* writing = static_cast<PngWriting*>(png_get_io_ptr(png));
  try {
    writing->out.append(reinterpret_cast<const char*>(from), count);
    return;
  } catch (...) {
    writing->no_memory = true;
  }
  png_error(png, "no memory");  // outside of the handler, which a jump must not leave
}
void nothing(png_structp) {}

bool write_pixels(PngWriting& writing, const Pixels& pixels, int compression) {
  static constexpr int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                  PNG_COLOR_TYPE_RGB_ALPHA};
  writing.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, stop, no_warning);
  if (!writing.png) return false;
  if (setjmp(png_jmpbuf(writing.png))) return false;
  writing.info = png_create_info_struct(writing.png);
  if (!writing.info) return false;
  png_set_user_limits(writing.png, 0x7FFFFFFF, 0x7FFFFFFF);
  png_set_write_fn(writing.png, &writing, take_bytes, nothing);
  png_set_compression_level(writing.png, compression);
  png_set_IHDR(writing.png, writing.info, static_cast<png_uint_32>(pixels.width),
               static_cast<png_uint_32>(pixels.height), 8, types[pixels.channels - 1], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(writing.png, writing.info);
  for (std::int64_t y = 0; y < pixels.height; ++y)
    png_write_row(writing.png, pixels.data + y * pixels.width * pixels.channels);
  png_write_end(writing.png, nullptr);
  return true;
}

}  // namespace

std::string encode_png_pixels(const Pixels& pixels, const PngOptions& options, const char* call, Where where) {
  PngWriting writing;
  if (!write_pixels(writing, pixels, options.compression))
    throw UserError(
        error_text(text(call, ": the image could not be encoded", writing.no_memory ? ": there is no memory" : ""),
                   where, "free memory"));
  return std::move(writing.out);
}

}  // namespace stet::data
