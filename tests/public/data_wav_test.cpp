// WAV files, as Python's wave module writes them, by hand, and by write_wav.
#include <cmath>
#include <cstring>

#include "data_files.h"

namespace stet {
namespace {

using WavTest = FilesTest;

template <class T>
std::string number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string chunk(const std::string& kind, const std::string& body) {
  return kind + number(static_cast<std::uint32_t>(body.size())) + body + (body.size() % 2 ? std::string(1, 0) : "");
}
std::string format(int kind, int channels, int rate, int bits, const std::string& more = "") {
  return chunk("fmt ", number(static_cast<std::uint16_t>(kind)) + number(static_cast<std::uint16_t>(channels)) +
                           number(static_cast<std::uint32_t>(rate)) +
                           number(static_cast<std::uint32_t>(rate * channels * bits / 8)) +
                           number(static_cast<std::uint16_t>(channels * bits / 8)) +
                           number(static_cast<std::uint16_t>(bits)) + more);
}
std::string wav(const std::string& chunks) {
  return "RIFF" + number(static_cast<std::uint32_t>(chunks.size() + 4)) + "WAVE" + chunks;
}

TEST_F(WavTest, ReadsAllKindsOfNumbers) {
  for (const char* name : {"pcm8.wav", "pcm16.wav", "pcm24.wav", "pcm32.wav"}) {
    data::Wav sound = data::read_wav(stored(name));
    EXPECT_EQ(sound.sample_rate, 8000);
    expect_same(sound.samples, data::read_npy(stored(std::string(name) + ".npy")), name);
  }
  for (const char* name : {"float32.wav", "float64.wav"}) {
    data::Wav sound = data::read_wav(stored(name));
    EXPECT_EQ(sound.sample_rate, 44100);
    expect_same(sound.samples, data::read_npy(stored("float.wav.npy")), name);
  }
}

TEST_F(WavTest, WhatIsWrittenIsRead) {
  Tensor samples = random::uniform({1001, 2}) * 1.99f - 1;  // the largest number of 8 bits is 127 / 128
  for (int bits : {8, 16, 24, 32}) {
    data::write_wav(path("a.wav"), samples, 16000, {.bits = bits});
    data::Wav back = data::read_wav(path("a.wav"));
    EXPECT_EQ(back.sample_rate, 16000);
    EXPECT_EQ(type_text(back.samples), "f32[1001,2]");
    EXPECT_LE(max(abs(back.samples - samples)).item<double>(), std::max(0.5 * std::ldexp(1, 1 - bits), 1e-7)) << bits;
    // What was read stays what it is.
    data::write_wav(path("b.wav"), back.samples, 16000, {.bits = bits});
    if (bits < 32) {
      EXPECT_TRUE(bytes_of(path("b.wav")) == bytes_of(path("a.wav"))) << bits;
    }
  }
  data::write_wav(path("a.wav"), samples * 3, 16000, {.floating = true});
  expect_same(data::read_wav(path("a.wav")).samples, (samples * 3).contiguous());
  data::write_wav(path("a.wav"), tensor({-2.f, -1.f, 0.f, 1.f, 2.f}), 1);
  expect_same(data::read_wav(path("a.wav")).samples,
              tensor({{-1.f}, {-1.f}, {0.f}, {32767 / 32768.f}, {32767 / 32768.f}}));
  data::write_wav(path("a.wav"), tensor({0.25f}), 1, {.bits = 8});  // an odd number of bytes
  EXPECT_EQ(std::filesystem::file_size(path("a.wav")), 46u);
  expect_same(data::read_wav(path("a.wav")).samples, tensor({{0.25f}}));
  data::write_wav(path("a.wav"), zeros({0, 2}), 8000);
  EXPECT_EQ(type_text(data::read_wav(path("a.wav")).samples), "f32[0,2]");
  data::write_wav(path("a.wav"), cast(samples, f16), 8000);
  EXPECT_EQ(data::read_wav(path("a.wav")).samples.shape(), samples.shape());
}

TEST_F(WavTest, ChunksComeInAnyOrder) {
  const std::string body = number(std::int16_t{16384}) + number(std::int16_t{-32768});
  const std::string guid("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
  const std::string extension = number(std::uint16_t{22}) + number(std::uint16_t{16}) + number(std::uint32_t{3}) +
                                number(std::uint16_t{1}) + guid;
  Tensor expected = tensor({{0.5f}, {-1.f}});
  std::string endless = wav(format(1, 1, 8000, 16) + chunk("data", body));
  std::memset(endless.data() + 40, 0xFF, 4);
  for (const std::string& bytes :
       {wav(format(1, 1, 8000, 16) + chunk("data", body)), wav(chunk("data", body) + format(1, 1, 8000, 16)),
        wav(chunk("LIST", "odd") + format(1, 1, 8000, 16, std::string(2, 0)) + chunk("fact", "abcd") +
            chunk("data", body) + chunk("id3 ", "x")),
        wav(format(0xFFFE, 1, 8000, 16, extension) + chunk("data", body)), endless,
        wav(format(1, 1, 8000, 16) + chunk("data", body)) + "\x01"}) {
    data::Wav sound = data::read_wav(write("a.wav", bytes));
    expect_same(sound.samples, expected);
    EXPECT_EQ(sound.sample_rate, 8000);
  }
}

TEST_F(WavTest, Errors) {
  const std::string body(8, 0), good = wav(format(1, 1, 8000, 16) + chunk("data", body));
  auto of = [&](const std::string& bytes) {
    write("a.wav", bytes);
    return error_of([&] { data::read_wav(path("a.wav")); });
  };
  EXPECT_EQ(of(good), "no error");
  EXPECT_CONTAINS(of(""), "a.wav': ends in its header, at byte 0");
  EXPECT_CONTAINS(of("RIFF....AVI ........"), "a.wav': is not a WAV file, at byte 0");
  EXPECT_CONTAINS(of(good.substr(0, 30)), "ends in its format, at byte 30");
  EXPECT_CONTAINS(of(good.substr(0, good.size() - 1)), "ends in its data, of which 1 bytes are missing, at byte 51");
  EXPECT_CONTAINS(of(wav(format(1, 1, 8000, 16))), "has no data (a chunk 'data'), at byte 36");
  EXPECT_CONTAINS(of(wav(chunk("data", body))), "has no format (a chunk 'fmt ')");
  EXPECT_CONTAINS(of(wav("LIST\xFF\xFF\xFF\x7F"
                         "abc")),
                  "ends in a chunk");
  EXPECT_CONTAINS(of(wav(format(6, 1, 8000, 8) + chunk("data", body))), "its coding is A-law (6), at byte 20");
  EXPECT_CONTAINS(of(wav(format(1, 1, 8000, 12) + chunk("data", body))), "has samples of 12 bits, at byte 34");
  EXPECT_CONTAINS(of(wav(format(3, 1, 8000, 16) + chunk("data", body))), "has samples of 16 bits, floating");
  EXPECT_CONTAINS(of(wav(format(1, 0, 8000, 16) + chunk("data", body))), "has no channels, at byte 22");
  EXPECT_CONTAINS(of(wav(format(1, 1, 0, 16) + chunk("data", body))), "its sample rate is 0, at byte 24");
  EXPECT_CONTAINS(of(wav(format(1, 3, 8000, 16) + chunk("data", body))),
                  "its data of 8 bytes is not made of samples of 6, at byte 44");
  EXPECT_CONTAINS(of(wav(chunk("fmt ", "short"))), "its format has 5 bytes, not 16 or more, at byte 20");
  EXPECT_CONTAINS(of(wav(format(0xFFFE, 1, 8000, 16) + chunk("data", body))),
                  "its extensible format has 16 bytes, not 40");
  EXPECT_CONTAINS(of(wav(format(0xFFFE, 1, 8000, 16, std::string(24, 'x')) + chunk("data", body))),
                  "its coding is unknown, at byte 44");
  std::string wrong = good;
  wrong[32] = 3;
  EXPECT_CONTAINS(of(wrong), "a sample of 1 channels of 16 bits has 3 bytes, it says, at byte 32");
  std::string many;
  for (int i = 0; i < 10'001; ++i) many += chunk("junk", "");
  EXPECT_CONTAINS(of(wav(many)), "has more than 10000 chunks before its data");
  EXPECT_CONTAINS(error_of([&] { data::read_wav(path("none")); }), "none': cannot be opened");

  Tensor samples = zeros({3, 1});
  auto writing = [&](const Tensor& x, std::int64_t rate, data::WriteWavOptions options = {}) {
    return error_of([&] { data::write_wav(path("b.wav"), x, rate, options); });
  };
  EXPECT_CONTAINS(writing(Tensor(), 8000), "write_wav: samples are an undefined tensor");
  EXPECT_CONTAINS(writing(zeros({3}, i16), 8000),
                  "write_wav: samples are i16[3], not floating [samples, channels] or [samples]");
  EXPECT_CONTAINS(writing(zeros({3, 1, 1}), 8000), "write_wav: samples are f32[3,1,1]");
  EXPECT_CONTAINS(writing(zeros({3, 0}), 8000), "write_wav: there are 0 channels");
  EXPECT_CONTAINS(writing(zeros({1, 40'000}), 8000), "write_wav: a sample has 80000 bytes");
  EXPECT_CONTAINS(writing(samples, 0), "write_wav: sample_rate is 0");
  EXPECT_CONTAINS(writing(samples, 8000, {.bits = 12}), "write_wav: bits is 12");
  EXPECT_CONTAINS(writing(tensor({0.f, NAN}), 8000), "write_wav: number 1 is NaN, which integers do not have");
  EXPECT_FALSE(std::filesystem::exists(path("b.wav")));
}

TEST_F(WavTest, MutatedFilesAreReadOrRefused) {
  std::mt19937 draw(8);
  const std::string seeds[] = {bytes_of(stored("pcm24.wav")), bytes_of(stored("float64.wav")),
                               bytes_of(stored("pcm8.wav"))};
  int read = 0;
  for (int i = 0, count = mutations(500); i < count; ++i) {
    write("a.wav", mutated(seeds[i % 3], draw));
    try {
      read += data::read_wav(path("a.wav")).samples.defined();
    } catch (const UserError& error) {
      EXPECT_CONTAINS(std::string(error.what()), "read_wav: '");
    }
  }
  EXPECT_GT(read, 10);
}

}  // namespace
}  // namespace stet
