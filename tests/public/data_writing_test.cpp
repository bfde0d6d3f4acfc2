// Files of every format that is written. tests/oracle/readers/check_readers.py reads them with other programs.
#include <cstdlib>

#include "data_files.h"

namespace stet {
namespace {

using DataWriting = FilesTest;

TEST_F(DataWriting, WritesFilesForOthers) {
  std::string out = folder;
  if (const char* given = std::getenv("STET_WRITTEN_FILES")) {
    out = given;
    std::filesystem::create_directories(out);
  }
  auto to = [&](const std::string& name) { return out + "/" + name; };
  Tensor x = reshape(arange(24), {2, 3, 4});
  for (auto [name, dtype] : {std::pair{"bool", bool_},
                             {"uint8", u8},
                             {"int8", i8},
                             {"int16", i16},
                             {"int32", i32},
                             {"int64", i64},
                             {"float16", f16},
                             {"bfloat16", bf16},
                             {"float32", f32},
                             {"float64", f64}})
    data::write_npy(to(std::string(name) + ".npy"), cast(x, dtype));
  data::write_npy(to("scalar.npy"), tensor(2.5f));
  data::write_npy(to("empty.npy"), zeros({0, 3}));
  data::write_npz(to("arrays.npz"), {{"x", x}, {"layer/kernel", arange(5)}, {"ß", tensor(2.5f)}});

  for (const char* compression : {"NONE", "GZIP", "ZLIB"}) {
    data::TFRecordWriter writer(to(std::string(compression) + ".tfrecord"), {.compression = compression});
    for (int i = 0; i < 3; ++i) {
      data::Example example;
      example.set("label", i)
          .set("point", tensor({static_cast<float>(i) + 0.5f, -1.25f}))
          .set("name", "number " + std::to_string(i));
      example.set("words", data::Example::Strings{"a", "", std::string("\0\xFF", 2)})
          .set("nothing", data::Example::Integers{});
      example.set("negative", data::Example::Integers{-1, INT64_MIN});
      writer.write(example.serialize());
    }
    writer.write(std::string());
    writer.close();
  }

  for (int channels : {1, 2, 3, 4})
    data::write_png(to(std::to_string(channels) + ".png"),
                    cast(reshape(arange(35 * channels) * 3 % 256, {5, 7, channels}), u8));
  data::write_jpeg(to("gray.jpg"), full({5, 7}, 100, u8));
  data::write_jpeg(to("rgb.jpg"), full({5, 7, 3}, 100, u8));

  Tensor numbers = cast(arange(10) - 5, f32) / 5;
  for (int bits : {8, 16, 24, 32}) data::write_wav(to(std::to_string(bits) + ".wav"), numbers, 8000, {.bits = bits});
  EXPECT_EQ(data::files(out + "/*").size(), 26u);
}

}  // namespace
}  // namespace stet
