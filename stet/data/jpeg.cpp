// libjpeg-turbo reports errors by a callback that must not return. The functions that call it keep to C: what they need
// is in a struct that their callers hold, so that the longjmp out of the callback jumps over no destructor.
// clang-format off
#include <cstdio>  // jpeglib.h needs it before
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/image_codec.h"
#include "stet/data/stream.h"

namespace stet::data {
namespace {

/// More than any encoder makes: each goes over the whole image, and may cost a file next to nothing.
constexpr int most_scans = 100;

struct JpegReading {
  ~JpegReading() {
    if (created) jpeg_destroy_decompress(&jpeg);
  }
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  std::jmp_buf back;
  std::span<const std::byte> bytes;
  bool created = false, cut_off = false, accept_damaged = false, too_many_scans = false;
  char message[JMSG_LENGTH_MAX] = {};

  std::uint64_t at() const { return bytes.size() - source.bytes_in_buffer; }
};

JpegReading& reading_of(j_common_ptr jpeg) { return *static_cast<JpegReading*>(jpeg->client_data); }

void leave(j_common_ptr jpeg) {
  JpegReading& reading = reading_of(jpeg);
  if (!reading.message[0]) jpeg->err->format_message(jpeg, reading.message);
  std::longjmp(reading.back, 1);
}
/// Warnings, level -1, and traces.
void warned(j_common_ptr jpeg, int level) {
  if (level >= 0 || reading_of(jpeg).accept_damaged) return;
  // What means that pixels are lost. Others (bytes between markers, odd headers) are of no consequence.
  const int code = jpeg->err->msg_code;
  if (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC ||
      code == JWRN_ARITH_BAD_CODE || code == JWRN_BOGUS_PROGRESSION)
    leave(jpeg);
}
void no_message(j_common_ptr) {}

void nothing(j_decompress_ptr) {}
/// All bytes were there from the begin: there are no more.
boolean no_more(j_decompress_ptr jpeg) {
  JpegReading& reading = reading_of(reinterpret_cast<j_common_ptr>(jpeg));
  if (!reading.accept_damaged || !reading.jpeg.output_components) {
    reading.cut_off = true;
    leave(reinterpret_cast<j_common_ptr>(jpeg));
  }
  static const JOCTET end[] = {0xFF, JPEG_EOI};
  jpeg->src->next_input_byte = end;
  jpeg->src->bytes_in_buffer = 2;
  return TRUE;
}
void skip_bytes(j_decompress_ptr jpeg, long count) {
  if (count <= 0) return;
  if (static_cast<std::size_t>(count) > jpeg->src->bytes_in_buffer) {
    jpeg->src->bytes_in_buffer = 0;
    no_more(jpeg);
    return;
  }
  jpeg->src->next_input_byte += count;
  jpeg->src->bytes_in_buffer -= static_cast<std::size_t>(count);
}
void count_scans(j_common_ptr jpeg) {
  JpegReading& reading = reading_of(jpeg);
  if (reading.jpeg.input_scan_number <= most_scans) return;
  reading.too_many_scans = true;
  leave(jpeg);
}

/// False after an error.
bool read_header(JpegReading& reading) {
  jpeg_decompress_struct& jpeg = reading.jpeg;
  jpeg.err = jpeg_std_error(&reading.errors);
  reading.errors.error_exit = leave;
  reading.errors.emit_message = warned;
  reading.errors.output_message = no_message;
  if (setjmp(reading.back)) return false;
  jpeg.client_data = &reading;
  jpeg_create_decompress(&jpeg);
  reading.created = true;
  jpeg.client_data = &reading;
  reading.source.init_source = nothing;
  reading.source.fill_input_buffer = no_more;
  reading.source.skip_input_data = skip_bytes;
  reading.source.resync_to_restart = jpeg_resync_to_restart;
  reading.source.term_source = nothing;
  reading.source.next_input_byte = reinterpret_cast<const JOCTET*>(reading.bytes.data());
  reading.source.bytes_in_buffer = reading.bytes.size();
  jpeg.src = &reading.source;
  reading.progress.progress_monitor = count_scans;
  jpeg.progress = &reading.progress;
  jpeg_read_header(&jpeg, TRUE);
  return true;
}

/// Into rows of `row_bytes` bytes; `line` has room for one of four components. False after an error.
bool read_pixels(JpegReading& reading, int channels, unsigned char* to, std::size_t row_bytes, unsigned char* line) {
  jpeg_decompress_struct& jpeg = reading.jpeg;
  if (setjmp(reading.back)) return false;
  const bool inks = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_EXT_RGBA;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    unsigned char* row = to + jpeg.output_scanline * row_bytes;
    JSAMPROW target = inks ? line : row;
    jpeg_read_scanlines(&jpeg, &target, 1);
    if (!inks) continue;
    // Adobe's programs store inks inverted, and so does nearly everybody.
    const bool inverted = jpeg.saw_Adobe_marker;
    for (JDIMENSION x = 0; x < jpeg.output_width; ++x, row += channels) {
      unsigned color[3];
      const unsigned black = inverted ? line[4 * x + 3] : 255u - line[4 * x + 3];
      for (unsigned c = 0; c < 3; ++c) color[c] = (inverted ? line[4 * x + c] : 255u - line[4 * x + c]) * black / 255;
      if (channels == 1) {
        row[0] = static_cast<unsigned char>((color[0] * 19595 + color[1] * 38470 + color[2] * 7471 + 32768) >> 16);
      } else {
        for (unsigned c = 0; c < 3; ++c) row[c] = static_cast<unsigned char>(color[c]);
        if (channels == 4) row[3] = 255;
      }
    }
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

[[noreturn]] void fail(const JpegReading& jpeg, const files::Reading& reading) {
  if (jpeg.cut_off) reading.fail("ends in its data", jpeg.bytes.size());
  if (jpeg.too_many_scans)
    reading.fail(text("has more than ", most_scans, " scans"), jpeg.at(), "write it again with another program");
  reading.fail(text("is a JPEG that cannot be decoded (", jpeg.message, ")"), jpeg.at());
}

}  // namespace

Tensor decode_jpeg_bytes(std::span<const std::byte> bytes, const ImageOptions& options, const files::Reading& reading) {
  JpegReading jpeg;
  jpeg.bytes = bytes;
  jpeg.accept_damaged = options.accept_damaged;
  if (!read_header(jpeg)) fail(jpeg, reading);
  const std::uint64_t width = jpeg.jpeg.image_width, height = jpeg.jpeg.image_height;
  check_pixels(width, height, options, reading);
  if (jpeg.jpeg.arith_code)
    reading.fail("is an arithmetic-coded JPEG", "write it again with Huffman codes, as nearly all programs do");
  // A block of 8 x 8 numbers takes a bit at least.
  std::uint64_t blocks = 0;
  for (int i = 0; i < jpeg.jpeg.num_components; ++i)
    blocks += std::uint64_t{jpeg.jpeg.comp_info[i].width_in_blocks} * jpeg.jpeg.comp_info[i].height_in_blocks;
  if (blocks > 8 * std::uint64_t{bytes.size()})
    reading.fail(text("declares ", width, " x ", height, " pixels, more than ", bytes.size(), " bytes can hold"),
                 jpeg.at());
  const int channels = options.channels ? options.channels : jpeg.jpeg.num_components == 1 ? 1 : 3;
  const bool wide = options.bits == 16;
  const std::uint64_t row = width * static_cast<unsigned>(channels), count = row * height;
  Buffer buffer = memory_for_file(reading, count * (wide ? 4 : 1));
  auto* first = reinterpret_cast<unsigned char*>(buffer.data()) + (wide ? 3 * count : 0);
  std::vector<unsigned char> line(jpeg.jpeg.num_components == 4 ? 4 * width : 0);
  if (!read_pixels(jpeg, channels, first, static_cast<std::size_t>(row), line.data())) fail(jpeg, reading);
  if (wide)
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::int32_t number = first[i] * 257;
      std::memcpy(buffer.data() + 4 * i, &number, 4);
    }
  const std::int64_t sizes[] = {static_cast<std::int64_t>(height), static_cast<std::int64_t>(width), channels};
  return dense_tensor(wide ? DType::i32 : DType::u8, sizes, std::move(buffer));
}

// --- writing

namespace {

struct JpegWriting {
  ~JpegWriting() {
    if (created) jpeg_destroy_compress(&jpeg);
    std::free(out);
  }
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf back;
  unsigned char* out = nullptr;
  unsigned long size = 0;
  bool created = false;
};

void stop(j_common_ptr jpeg) { std::longjmp(static_cast<JpegWriting*>(jpeg->client_data)->back, 1); }
void no_warning(j_common_ptr, int) {}

bool write_pixels(JpegWriting& writing, const Pixels& pixels, int quality) {
  jpeg_compress_struct& jpeg = writing.jpeg;
  jpeg.err = jpeg_std_error(&writing.errors);
  writing.errors.error_exit = stop;
  writing.errors.emit_message = no_warning;
  writing.errors.output_message = no_message;
  jpeg.client_data = &writing;
  if (setjmp(writing.back)) return false;
  jpeg_create_compress(&jpeg);
  writing.created = true;
  jpeg.client_data = &writing;
  jpeg_mem_dest(&jpeg, &writing.out, &writing.size);
  jpeg.image_width = static_cast<JDIMENSION>(pixels.width);
  jpeg.image_height = static_cast<JDIMENSION>(pixels.height);
  jpeg.input_components = static_cast<int>(pixels.channels);
  jpeg.in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels.data + std::int64_t{jpeg.next_scanline} * pixels.width * pixels.channels);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

}  // namespace

std::string encode_jpeg_pixels(const Pixels& pixels, const JpegOptions& options, const char* call, Where where) {
  JpegWriting writing;
  if (!write_pixels(writing, pixels, options.quality))
    throw UserError(error_text(text(call, ": the image could not be encoded"), where, "free memory"));
  return {reinterpret_cast<const char*>(writing.out), writing.size};
}

}  // namespace stet::data
