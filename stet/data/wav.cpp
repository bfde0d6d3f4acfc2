#include "stet/data/wav.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/stream.h"
#include "stet/files/file.h"
#include "stet/ops/ops.h"

namespace stet::data {
namespace {

// A file is "RIFF", a size, "WAVE", and chunks: a name of four characters, a size, so many bytes, and one more if they
// are odd. "fmt " says what "data" holds; others are of no interest.

constexpr std::uint16_t pcm = 1, ieee = 3, extensible = 0xFFFE;
/// What stands behind the format's number in an extensible header.
constexpr unsigned char guid_end[14] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};

template <class T>
T number_at(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

struct Format {
  std::uint16_t kind = 0, channels = 0, bits = 0;
  std::uint32_t sample_rate = 0;
};

const char* coding_name(std::uint16_t kind) {
  switch (kind) {
    case 2:
      return "ADPCM";
    case 6:
      return "A-law";
    case 7:
      return "mu-law";
    case 0x11:
      return "IMA ADPCM";
    case 0x50:
      return "MPEG";
    case 0x55:
      return "MP3";
    default:
      return "unknown";
  }
}

Format read_format(const files::Input& input, std::uint64_t at, std::uint32_t size) {
  const files::Reading& reading = input.reading();
  if (size < 16) reading.fail(text("its format has ", size, " bytes, not 16 or more"), at);
  unsigned char bytes[40] = {};
  input.read(at, bytes, std::min<std::uint32_t>(size, 40), "format");
  Format format{number_at<std::uint16_t>(bytes), number_at<std::uint16_t>(bytes + 2),
                number_at<std::uint16_t>(bytes + 14), number_at<std::uint32_t>(bytes + 4)};
  if (format.kind == extensible) {
    if (size < 40) reading.fail(text("its extensible format has ", size, " bytes, not 40"), at);
    format.kind = number_at<std::uint16_t>(bytes + 24);
    if (std::memcmp(bytes + 26, guid_end, sizeof guid_end) != 0)
      reading.fail("its coding is unknown", at + 24, "convert it to PCM");
  }
  if (format.kind != pcm && format.kind != ieee)
    reading.fail(text("its coding is ", coding_name(format.kind), " (", format.kind, ")"), at,
                 "integers (PCM) and floating numbers are read: convert it");
  const bool known = format.kind == pcm
                         ? format.bits == 8 || format.bits == 16 || format.bits == 24 || format.bits == 32
                         : format.bits == 32 || format.bits == 64;
  if (!known)
    reading.fail(text("has samples of ", format.bits, " bits", format.kind == ieee ? ", floating" : ""), at + 14,
                 "integers have 8, 16, 24 or 32 bits, floating numbers 32 or 64");
  if (format.channels == 0) reading.fail("has no channels", at + 2);
  if (number_at<std::uint16_t>(bytes + 12) != format.channels * (format.bits / 8))
    reading.fail(text("a sample of ", format.channels, " channels of ", format.bits, " bits has ",
                      number_at<std::uint16_t>(bytes + 12), " bytes, it says"),
                 at + 12);
  if (format.sample_rate == 0) reading.fail("its sample rate is 0", at + 4);
  return format;
}

/// `count` numbers, from bytes to f32.
void convert(const unsigned char* from, float* to, std::size_t count, const Format& format) {
  if (format.kind == ieee && format.bits == 32) {
    std::memcpy(to, from, count * 4);
  } else if (format.kind == ieee) {
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(number_at<double>(from + i * 8));
  } else if (format.bits == 8) {
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(int{from[i]} - 128) / 128.f;
  } else if (format.bits == 16) {
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(number_at<std::int16_t>(from + i * 2)) / 32768.f;
  } else if (format.bits == 24) {
    for (std::size_t i = 0; i < count; ++i, from += 3) {
      // As the upper bytes of 32 bits, so that the sign is right.
      const std::uint32_t bits =
          std::uint32_t{from[0]} << 8 | std::uint32_t{from[1]} << 16 | std::uint32_t{from[2]} << 24;
      to[i] = static_cast<float>(static_cast<std::int32_t>(bits)) / 2147483648.f;
    }
  } else {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = static_cast<float>(number_at<std::int32_t>(from + i * 4)) / 2147483648.f;
  }
}

}  // namespace

Wav read_wav(const std::string& path, Where where) {
  files::Input input(path, "read_wav", where);
  const files::Reading& reading = input.reading();
  unsigned char head[12];
  input.read(0, head, 12, "header");
  if (std::memcmp(head, "RIFF", 4) != 0 || std::memcmp(head + 8, "WAVE", 4) != 0)
    reading.fail("is not a WAV file", 0, "such files begin with RIFF, a size, and WAVE");
  Format format;
  std::uint64_t data_at = 0, data_bytes = 0;
  bool have_format = false, have_data = false;
  // Other chunks are few; a file of a thousand million empty ones is not worth the time.
  constexpr int most_chunks = 10'000;
  std::uint64_t at = 12;
  for (int chunk = 0; at < input.size() && !(have_format && have_data); ++chunk) {
    // A byte at the end is padding of the last chunk, or what programs left.
    if (input.size() - at < 8) break;
    if (chunk == most_chunks) reading.fail(text("has more than ", most_chunks, " chunks before its data"), at);
    unsigned char chunk_head[8];
    input.read(at, chunk_head, 8, "chunk's header");
    const auto size = number_at<std::uint32_t>(chunk_head + 4);
    const std::uint64_t begin = at + 8, left = input.size() - begin;
    if (std::memcmp(chunk_head, "fmt ", 4) == 0 && !have_format) {
      if (size > left) reading.fail("ends in its format", input.size());
      format = read_format(input, begin, size);
      have_format = true;
    } else if (std::memcmp(chunk_head, "data", 4) == 0 && !have_data) {
      // Who does not know how long it gets writes the largest size.
      data_bytes = size == UINT32_MAX ? left : size;
      if (data_bytes > left)
        reading.fail(text("ends in its data, of which ", data_bytes - left, " bytes are missing"), input.size());
      data_at = begin;
      have_data = true;
    } else if (size > left) {
      reading.fail("ends in a chunk", input.size());
    }
    at = begin + std::min<std::uint64_t>(left, std::uint64_t{size} + (size & 1));
  }
  if (!have_format) reading.fail("has no format (a chunk 'fmt ')", input.size());
  if (!have_data) reading.fail("has no data (a chunk 'data')", input.size());
  const std::uint64_t sample_bytes = std::uint64_t{format.channels} * (format.bits / 8);
  const std::uint64_t samples = data_bytes / sample_bytes, numbers = samples * format.channels;
  if (samples * sample_bytes != data_bytes)
    reading.fail(text("its data of ", data_bytes, " bytes is not made of samples of ", sample_bytes), data_at);
  Buffer buffer = memory_for_file(reading, numbers * sizeof(float));
  auto* to = reinterpret_cast<float*>(buffer.data());
  const std::size_t width = format.bits / 8, piece = std::size_t{1} << 16;
  std::vector<unsigned char> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(piece, numbers)) * width);
  for (std::uint64_t done = 0; done < numbers;) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(piece, numbers - done));
    input.read(data_at + done * width, bytes.data(), part * width, "data");
    convert(bytes.data(), to + done, part, format);
    done += part;
  }
  const std::int64_t sizes[] = {static_cast<std::int64_t>(samples), format.channels};
  return {dense_tensor(DType::f32, sizes, std::move(buffer)), format.sample_rate};
}

void write_wav(const std::string& path, const Tensor& samples, std::int64_t sample_rate, WriteWavOptions options,
               Where where) {
  auto refuse = [&](const std::string& what, const char* advice) {
    throw UserError(error_text(text("write_wav: ", what), where, advice));
  };
  if (!samples.defined()) refuse("samples are an undefined tensor", "assign a value to it first");
  const TensorNode& given = concrete_node(samples, "write_wav", where);
  if (!is_floating(given.dtype) || given.rank < 1 || given.rank > 2)
    refuse(text("samples are ", type_text(samples), ", not floating [samples, channels] or [samples]"),
           "integers of 16 bits become what is meant by cast(x, f32) / 32768");
  const std::int64_t channels = given.rank == 2 ? given.sizes[1] : 1;
  if (channels < 1 || channels > 65535) refuse(text("there are ", channels, " channels"), "1 to 65535 are possible");
  if (sample_rate < 1 || sample_rate > UINT32_MAX)
    refuse(text("sample_rate is ", sample_rate), "give the samples a second: 16000, 44100, …");
  const bool known = options.floating
                         ? options.bits == 16 || options.bits == 32
                         : options.bits == 8 || options.bits == 16 || options.bits == 24 || options.bits == 32;
  if (!known) refuse(text("bits is ", options.bits), "8, 16, 24 or 32; floating numbers have 32");
  const int bits = options.floating ? 32 : options.bits;
  const std::int64_t sample_bytes = channels * bits / 8, data_bytes = given.sizes[0] * sample_bytes;
  if (sample_bytes > 65535)
    refuse(text("a sample has ", sample_bytes, " bytes"), "65535 are possible: write fewer channels");
  if (data_bytes > UINT32_MAX - 100)
    refuse(text(data_bytes, " bytes are more than WAV files hold"), "write several files");
  Tensor dense = on_host(cast(samples, DType::f32).contiguous(where));
  const float* from = dense.data<float>(where);
  const std::int64_t numbers = given.sizes[0] * channels;
  if (!options.floating)
    for (std::int64_t i = 0; i < numbers; ++i)
      if (std::isnan(from[i]))
        refuse(text("number ", i, " is NaN, which integers do not have"), "write .floating = true");

  std::string head("RIFF");
  auto put = [&head](auto value) { head.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(static_cast<std::uint32_t>(36 + data_bytes + (data_bytes & 1)));
  head += "WAVEfmt ";
  put(std::uint32_t{16});
  put(options.floating ? ieee : pcm);
  put(static_cast<std::uint16_t>(channels));
  put(static_cast<std::uint32_t>(sample_rate));
  put(static_cast<std::uint32_t>(std::min<std::int64_t>(sample_rate * sample_bytes, UINT32_MAX)));
  put(static_cast<std::uint16_t>(sample_bytes));
  put(static_cast<std::uint16_t>(bits));
  head += "data";
  put(static_cast<std::uint32_t>(data_bytes));
  files::Output out(path, "write_wav", where);
  out.write(head);
  std::vector<unsigned char> bytes;
  const double scale = std::ldexp(1.0, bits - 1);
  for (std::int64_t i = 0; i < numbers; ++i) {
    if (options.floating) {
      bytes.resize(bytes.size() + 4);
      std::memcpy(bytes.data() + bytes.size() - 4, from + i, 4);
    } else {
      const auto number =
          static_cast<std::int64_t>(std::clamp(std::nearbyint(double{from[i]} * scale), -scale, scale - 1)) +
          (bits == 8 ? 128 : 0);
      for (int shift = 0; shift < bits; shift += 8) bytes.push_back(static_cast<unsigned char>(number >> shift & 255));
    }
    if (bytes.size() >= 1 << 16) {
      out.write(bytes.data(), bytes.size());
      bytes.clear();
    }
  }
  if (data_bytes & 1) bytes.push_back(0);
  out.write(bytes.data(), bytes.size());
  out.commit();
}

}  // namespace stet::data
