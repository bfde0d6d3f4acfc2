// PNG and JPEG, compared with what TensorFlow and Pillow make of the same files.
#include <zlib.h>

#include <cmath>
#include <thread>

#include "data_files.h"
#include "little_memory.h"

namespace stet {
namespace {

using ImagesTest = FilesTest;

Tensor stored_npy(const std::string& name) { return data::read_npy(stored(name)); }

TEST_F(ImagesTest, PngIsWhatTensorFlowReads) {
  for (const std::string& file : data::files(stored("*.png")))
    for (int channels : {0, 3, 4}) {
      Tensor image = data::read_image(file, {.channels = channels});
      Tensor expected = data::read_npy(file + "." + std::to_string(channels) + ".npy");
      if (channels == 4 && file.find("bits.png") != std::string::npos) {
        // TensorFlow fills opacity in before fewer bits are made eight: 1 or 3 of 255.
        EXPECT_EQ(min(image[{ellipsis, 3}]).item<int>(), 255);
        image = image[{ellipsis, range(0, 3)}].contiguous();
        expected = expected[{ellipsis, range(0, 3)}].contiguous();
      }
      expect_same(image, expected, file + " with channels " + std::to_string(channels));
    }
  for (const char* name : {"gray", "gray_alpha", "rgb", "rgba"}) {
    Tensor expected = stored_npy(std::string(name) + ".png.npy");
    expect_same(data::read_image(stored(std::string(name) + ".png")), expected, name);
    expect_same(data::read_image(stored(std::string(name) + "_interlaced.png")), expected, name);
    expect_same(data::read_image(stored(std::string(name) + "16.png"), {.bits = 16}),
                stored_npy(std::string(name) + "16.png.npy"), name);
    expect_same(data::read_image(stored(std::string(name) + ".png"), {.bits = 16}), cast(expected, i32) * 257, name);
  }
}

TEST_F(ImagesTest, GreyIsMadeOfStoredColours) {
  // Pillow rounds, libpng cuts off: they differ by one.
  Tensor grey = cast(data::read_image(stored("rgb.png"), {.channels = 1}), i32),
         expected = cast(stored_npy("rgb.png.1.npy"), i32);
  EXPECT_EQ(grey.shape(), expected.shape());
  EXPECT_LE(max(abs(grey - expected)).item<int>(), 1);
  // What a file says about light does not matter.
  expect_same(data::read_image(stored("gamma.png"), {.channels = 1}), cast(grey, u8));
  EXPECT_EQ(type_text(data::read_image(stored("palette.png"), {.channels = 1})), "u8[11,13,1]");
}

TEST_F(ImagesTest, JpegIsWhatPillowReads) {
  for (const std::string& file : data::files(stored("*.jpg"))) {
    Tensor image = cast(data::read_image(file), i32), expected = cast(data::read_npy(file + ".npy"), i32);
    ASSERT_EQ(image.shape(), expected.shape()) << file;
    // The same library or nearly: Pillow's CMYK is another formula, and versions of the library upsample differently.
    const int most = file.ends_with("cmyk.jpg") ? 3 : 2;
    EXPECT_LE(max(abs(image - expected)).item<int>(), most) << file;
  }
  EXPECT_EQ(type_text(data::read_image(stored("420.jpg"), {.channels = 1})), "u8[37,45,1]");
  Tensor with_opacity = data::read_image(stored("444.jpg"), {.channels = 4});
  EXPECT_EQ(type_text(with_opacity), "u8[37,45,4]");
  expect_same(with_opacity[{ellipsis, range(0, 3)}].contiguous(), data::read_image(stored("444.jpg")));
  EXPECT_EQ(min(with_opacity[{ellipsis, 3}]).item<int>(), 255);
  expect_same(data::read_image(stored("420.jpg"), {.bits = 16}), cast(data::read_image(stored("420.jpg")), i32) * 257);
  for (int channels : {1, 3, 4})
    EXPECT_EQ(type_text(data::read_image(stored("cmyk.jpg"), {.channels = channels})),
              "u8[37,45," + std::to_string(channels) + "]");
  EXPECT_EQ(type_text(data::read_image(stored("gray.jpg"), {.channels = 3})), "u8[37,45,3]");
}

TEST_F(ImagesTest, BytesAreDecodedAsFilesAre) {
  const std::string png = bytes_of(stored("rgb.png")), jpeg = bytes_of(stored("420.jpg"));
  Tensor expected = data::read_image(stored("rgb.png"));
  expect_same(data::decode_png(png), expected);
  expect_same(data::decode_image(png), expected);
  expect_same(data::decode_image(tensor(std::vector<std::uint8_t>(png.begin(), png.end()))), expected);
  expect_same(data::decode_jpeg(jpeg), data::read_image(stored("420.jpg")));
  EXPECT_CONTAINS(error_of([&] { data::decode_png(jpeg); }), "decode_png: '");
  EXPECT_CONTAINS(error_of([&] { data::decode_png(jpeg); }), " bytes': is not a PNG: it is a JPEG, at byte 0");
  EXPECT_CONTAINS(error_of([&] { data::decode_jpeg(png); }), "is not a JPEG: it is a PNG");
  for (auto [bytes, what] : {std::pair{"GIF89a..", "it is a GIF"},
                             {"BM......", "it is a BMP"},
                             {"RIFF....WEBPVP8", "it is a WebP"},
                             {"", "it is empty"}})
    EXPECT_CONTAINS(error_of([&] { data::decode_image(std::string(bytes)); }), what);
  EXPECT_CONTAINS(error_of([&] { data::decode_image(std::string("text")); }), "is not a PNG or JPEG, at byte 0");
  EXPECT_CONTAINS(error_of([&] {
                    data::decode_image(tensor({1, 2}));
                  }),
                  "bytes are expected as u8[n], the tensor is i32[2]");
}

TEST_F(ImagesTest, WhatIsWrittenIsRead) {
  std::mt19937 draw(3);
  for (int channels : {1, 2, 3, 4})
    for (auto [height, width] : {std::pair{1, 1}, {7, 5}, {64, 100}}) {
      Tensor image = cast(random::randint({height, width, channels}, 0, 256), u8);
      for (int compression : {0, 6, 9})
        expect_same(data::decode_png(data::encode_png(image, {.compression = compression})), image);
      data::write_png(path("a.png"), image);
      expect_same(data::read_image(path("a.png")), image);
    }
  Tensor grey = cast(random::randint({9, 8}, 0, 256), u8);
  expect_same(data::decode_png(data::encode_png(grey)), reshape(grey, {9, 8, 1}));
  expect_same(data::decode_png(data::encode_png(grey.T())), reshape(grey.T(), {8, 9, 1}).contiguous());
  Tensor smooth = data::read_image(stored("rgb.png"));
  for (const Tensor& image : {smooth, smooth[{ellipsis, 0}]}) {
    data::write_jpeg(path("a.jpg"), image, {.quality = 100});
    Tensor back = data::read_image(path("a.jpg"));
    EXPECT_EQ(back.dim(-1), image.rank() == 3 ? 3 : 1);
    EXPECT_LE(max(abs(cast(reshape(back, image.shape()), i32) - cast(image, i32))).item<int>(), 20);
  }
  EXPECT_LT(data::encode_jpeg(smooth, {.quality = 10}).size(), data::encode_jpeg(smooth, {.quality = 100}).size());
}

TEST_F(ImagesTest, ErrorsOfOptionsAndOfWriting) {
  Tensor image = zeros({2, 2, 3}, u8);
  EXPECT_CONTAINS(error_of([&] { data::read_image(stored("rgb.png"), {.channels = 2}); }), "read_image: channels is 2");
  EXPECT_CONTAINS(error_of([&] { data::read_image(stored("rgb.png"), {.bits = 12}); }), "read_image: bits is 12");
  EXPECT_CONTAINS(error_of([&] { data::read_image(stored("rgb.png"), {.max_pixels = -1}); }),
                  "read_image: max_pixels is -1");
  EXPECT_CONTAINS(error_of([&] { data::read_image(stored("rgb.png"), {.max_pixels = 100}); }),
                  "rgb.png': has 13 x 11 pixels, more than 100");
  EXPECT_CONTAINS(error_of([&] { data::read_image(stored("420.jpg"), {.max_pixels = 100}); }),
                  "420.jpg': has 45 x 37 pixels, more than 100");
  EXPECT_CONTAINS(error_of([&] { data::read_image(path("none")); }), "none': cannot be opened: No such file");
  EXPECT_CONTAINS(error_of([&] { data::read_image(folder); }), "': is a folder");
  EXPECT_CONTAINS(error_of([&] { data::encode_png(Tensor()); }), "encode_png: the image is an undefined tensor");
  EXPECT_CONTAINS(error_of([&] {
                    data::encode_png(zeros({2, 2, 3}));
                  }),
                  "encode_png: the image is f32[2,2,3], not u8[height, width, channels] with 1 to 4 channels");
  EXPECT_CONTAINS(error_of([&] { data::encode_png(zeros({2, 2, 5}, u8)); }), "encode_png: the image is u8[2,2,5]");
  EXPECT_CONTAINS(error_of([&] { data::encode_png(zeros({0, 2, 3}, u8)); }), "it has no pixels");
  EXPECT_CONTAINS(error_of([&] { data::encode_jpeg(zeros({2, 2, 4}, u8)); }), "with 1 or 3 channels");
  EXPECT_CONTAINS(error_of([&] { data::encode_jpeg(zeros({1, 70'000}, u8)); }), "height and width are at most 65500");
  EXPECT_CONTAINS(error_of([&] { data::encode_png(image, {.compression = 10}); }), "encode_png: compression is 10");
  EXPECT_CONTAINS(error_of([&] { data::encode_jpeg(image, {.quality = 0}); }), "encode_jpeg: quality is 0");
  EXPECT_CONTAINS(error_of([&] { data::write_png(path("no/a.png"), image); }), "write_png: '");
  EXPECT_CONTAINS(error_of([&] { data::write_jpeg(path("no/a.jpg"), image); }),
                  "no/a.jpg': cannot be written: No such file");
}

std::string be32(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}
std::string png_chunk(const std::string& kind, const std::string& body) {
  const std::string both = kind + body;
  return be32(static_cast<std::uint32_t>(body.size())) + both +
         be32(static_cast<std::uint32_t>(
             crc32(0, reinterpret_cast<const Bytef*>(both.data()), static_cast<uInt>(both.size()))));
}

TEST_F(ImagesTest, WhatBytesCannotHoldIsRefusedBeforeThereIsMemory) {
  // 16000 x 16000 pixels of nothing.
  const std::string head =
      "\x89PNG\r\n\x1A\n" + png_chunk("IHDR", be32(16000) + be32(16000) + std::string("\x08\x02\0\0\0", 5));
  const std::string png = head + png_chunk("IDAT", std::string("x\x9C\x03\0\0\0\0\1", 8)) + png_chunk("IEND", "");
  std::string jpeg = bytes_of(stored("420.jpg"));
  const std::size_t frame = jpeg.find("\xFF\xC0");
  jpeg.replace(frame + 5, 4, "\x3E\x80\x3E\x80");
  for (const std::string& bytes : {png, jpeg}) {
    release_cached_memory();
    reset_peak_memory();
    const std::size_t before = memory_statistics().peak_bytes;
    EXPECT_CONTAINS(error_of([&] { data::decode_image(bytes); }), " declares 16000 x 16000 pixels, more than ");
    EXPECT_LT(memory_statistics().peak_bytes, before + (1 << 20));
  }
  // Larger than any limit.
  const std::string huge = "\x89PNG\r\n\x1A\n" +
                           png_chunk("IHDR", be32(0x7FFFFFFF) + be32(0x7FFFFFFF) + std::string("\x08\x02\0\0\0", 5)) +
                           png_chunk("IDAT", "x");
  EXPECT_CONTAINS(error_of([&] { data::decode_png(huge); }), "has 2147483647 x 2147483647 pixels, more than 268435456");
}

/// A pixel takes a byte, and not that of a pointer to its row too.
TEST_F(ImagesTest, ANarrowImageTakesNoMoreThanItsPixels) {
  SKIP_WITHOUT_LIMITS();
  constexpr std::uint32_t height = 1u << 25;
  const std::string rows(2 * std::size_t{height}, 0);
  std::string packed(compressBound(rows.size()), 0);
  uLongf size = packed.size();
  ASSERT_EQ(compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                      rows.size(), 1),
            Z_OK);
  packed.resize(size);
  const std::string file = write(
      "tall.png", "\x89PNG\r\n\x1A\n" + png_chunk("IHDR", be32(1) + be32(height) + std::string("\x08\0\0\0\0", 5)) +
                      png_chunk("IDAT", packed) + png_chunk("IEND", ""));
  EXPECT_EQ(error_with_memory(std::size_t{100} << 20,
                              [&] {
                                if (data::read_image(file).shape() != Shape({height, 1, 1}))
                                  throw UserError("of another size");
                              }),
            "no error");
  EXPECT_CONTAINS(error_with_memory(std::size_t{10} << 20, [&] { data::read_image(file); }),
                  "read_image: '" + file + "': out of memory");
}

TEST_F(ImagesTest, DamagedFilesAreErrors) {
  for (const char* name : {"rgb.png", "rgb_interlaced.png", "420.jpg", "progressive.jpg", "restarts.jpg"}) {
    const std::string good = bytes_of(stored(name));
    const bool png = std::string(name).ends_with("png");
    // Cut anywhere: at every byte of a header, and here and there in the pixels.
    for (std::size_t size = 8; size < good.size() - (png ? 0 : 2); size += size < 200 ? 1 : 37) {
      const std::string error = error_of([&] { data::decode_image(good.substr(0, size)); });
      EXPECT_CONTAINS(error, "decode_image: '");
      EXPECT_CONTAINS(error, ", at byte ");
    }
  }
  std::string png = bytes_of(stored("rgb.png"));
  png[png.find("IDAT") + 20] ^= 1;
  EXPECT_CONTAINS(error_of([&] { data::decode_png(png); }), "is a PNG that cannot be decoded (");
  std::string jpeg = bytes_of(stored("444.jpg"));
  EXPECT_CONTAINS(error_of([&] { data::decode_jpeg(jpeg.substr(0, jpeg.size() - 100)); }),
                  "ends in its data, at byte ");
  EXPECT_EQ(type_text(data::decode_jpeg(jpeg.substr(0, jpeg.size() - 100), {.accept_damaged = true})), "u8[37,45,3]");
  jpeg.replace(jpeg.size() - 100, 2, "\xFF\xD9");
  EXPECT_CONTAINS(error_of([&] { data::decode_jpeg(jpeg); }),
                  "is a JPEG that cannot be decoded (Corrupt JPEG data: premature end of data segment), at byte ");
}

TEST_F(ImagesTest, ManyScansAreABomb) {
  // The last scan of a progressive file over and over.
  std::string jpeg = bytes_of(stored("progressive.jpg"));
  const std::size_t last = jpeg.rfind("\xFF\xDA"), end = jpeg.rfind("\xFF\xD9");
  const std::string scan = jpeg.substr(last, end - last);
  std::string bomb = jpeg.substr(0, end);
  for (int i = 0; i < 2000; ++i) bomb += scan;
  bomb += "\xFF\xD9";
  EXPECT_CONTAINS(error_of([&] { data::decode_jpeg(bomb, {.accept_damaged = true}); }),
                  "has more than 100 scans, at byte ");
}

TEST_F(ImagesTest, AreReadByManyThreads) {
  Tensor png = data::read_image(stored("rgb.png")), jpeg = data::read_image(stored("progressive.jpg"));
  const std::string damaged = bytes_of(stored("420.jpg")).substr(0, 900);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        expect_same(data::read_image(stored("rgb.png")), png);
        expect_same(data::read_image(stored("progressive.jpg")), jpeg);
        EXPECT_CONTAINS(error_of([&] { data::decode_image(damaged); }), "ends in its data");
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ImagesTest, MutatedFilesAreReadOrRefused) {
  std::mt19937 draw(6);
  std::vector<std::string> seeds;
  for (const char* pattern : {"*.png", "*.jpg"})
    for (const std::string& file : data::files(stored(pattern))) seeds.push_back(bytes_of(file));
  int read = 0;
  for (int i = 0, count = mutations(6000); i < count; ++i) {
    const std::string bytes = mutated(seeds[static_cast<std::size_t>(i) % seeds.size()], draw);
    try {
      read += data::decode_image(bytes, {.channels = std::array{0, 1, 3, 4}[draw() % 4],
                                         .bits = draw() % 8 ? 8 : 16,
                                         .accept_damaged = draw() % 2 == 0})
                  .defined();
    } catch (const UserError& error) {
      EXPECT_CONTAINS(std::string(error.what()), "decode_image: '");
    }
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace stet
