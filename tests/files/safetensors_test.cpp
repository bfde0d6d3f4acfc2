#include "stet/files/safetensors.h"

#include <cstring>

#include "stet/base/text.h"
#include "tests/files/files.h"

namespace stet::files {
namespace {

/// Element i of the stored tensors (make_safetensors.py), as bytes.
Bytes counted(DType dtype, std::size_t count) {
  Bytes bytes;
  auto put = [&](auto value) {
    auto from = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), from.begin(), from.end());
  };
  for (std::size_t i = 0; i < count; ++i) {
    auto value = static_cast<int>(i % (dtype == DType::bool_ ? 2 : 100));
    switch (dtype) {
      case DType::bool_:
      case DType::u8:
      case DType::i8:
        put(static_cast<std::uint8_t>(value));
        break;
      case DType::i16:
        put(static_cast<std::int16_t>(value));
        break;
      case DType::i32:
        put(value);
        break;
      case DType::i64:
        put(std::int64_t{value});
        break;
      case DType::f16:
        put(Half(static_cast<float>(value)));
        break;
      case DType::bf16:
        put(BFloat16(static_cast<float>(value)));
        break;
      case DType::f32:
        put(static_cast<float>(value));
        break;
      case DType::f64:
        put(static_cast<double>(value));
        break;
    }
  }
  return bytes;
}

struct Stored {
  const char* name;
  DType dtype;
  std::vector<std::int64_t> sizes;
};
const std::vector<Stored> all = {{"bool_values", DType::bool_, {2, 3}},
                                 {"uint8_values", DType::u8, {2, 3}},
                                 {"int8_values", DType::i8, {2, 3}},
                                 {"int16_values", DType::i16, {2, 3}},
                                 {"int32_values", DType::i32, {2, 3}},
                                 {"int64_values", DType::i64, {2, 3}},
                                 {"float16_values", DType::f16, {2, 3}},
                                 {"bfloat16_values", DType::bf16, {2, 3}},
                                 {"float32_values", DType::f32, {2, 3}},
                                 {"float64_values", DType::f64, {2, 3}},
                                 {"scalar", DType::f32, {}},
                                 {"empty", DType::i32, {0, 4}},
                                 {"größe \"x\"\n", DType::f32, {3}},
                                 {"long", DType::i16, {257}}};

std::vector<SafetensorsPart> parts() {
  std::vector<SafetensorsPart> parts;
  for (const Stored& tensor : all) {
    std::size_t count = 1;
    for (std::int64_t size : tensor.sizes) count *= static_cast<std::size_t>(size);
    parts.push_back({tensor.name, tensor.dtype, tensor.sizes, [=](const Sink& sink) {
                       // In two parts, of which one may be empty.
                       Bytes bytes = counted(tensor.dtype, count);
                       sink(std::span(bytes).first(bytes.size() / 3));
                       sink(std::span(bytes).subspan(bytes.size() / 3));
                     }});
  }
  return parts;
}

TEST(Safetensors, ReadsWhatTheLibraryWrites) {
  Input input(stored("all.safetensors"), "load_weights", Where{});
  SafetensorsReader file(input);
  EXPECT_EQ(file.metadata(), (SafetensorsMetadata{{"format", "pt"}}));
  ASSERT_EQ(file.tensors().size(), all.size());
  for (const Stored& tensor : all) {
    const SafetensorsEntry* entry = file.find(tensor.name);
    ASSERT_TRUE(entry) << tensor.name;
    EXPECT_EQ(entry->dtype, tensor.dtype);
    EXPECT_EQ(entry->sizes, tensor.sizes);
    Bytes bytes(entry->bytes);
    file.read(*entry, bytes);
    EXPECT_EQ(bytes, counted(tensor.dtype, entry->bytes / static_cast<std::size_t>(size_of(tensor.dtype))));
  }
  EXPECT_EQ(file.find("none"), nullptr);
  Input none(stored("none.safetensors"), "load_weights", Where{});
  EXPECT_TRUE(SafetensorsReader(none).tensors().empty());
}

TEST(Safetensors, WritesWhatTheLibraryWrites) {
  TemporaryFolder folder;
  Output output(folder / "all.safetensors", "save_weights", Where{});
  write_safetensors(output, parts(), {{"format", "pt"}});
  output.commit();
  EXPECT_EQ(contents_of(folder / "all.safetensors"), contents_of(stored("all.safetensors")));
  Output none(folder / "none.safetensors", "save_weights", Where{});
  write_safetensors(none, {});
  none.commit();
  EXPECT_EQ(contents_of(folder / "none.safetensors"), contents_of(stored("none.safetensors")));
}

TEST(Safetensors, WriterRefuses) {
  Sink nowhere = [](std::span<const std::byte>) {};
  auto give = [](std::size_t count) { return [=](const Sink& sink) { sink(Bytes(count)); }; };
  auto written = [&](std::vector<SafetensorsPart> parts) {
    return internal_error_of([&] { write_safetensors(nowhere, std::move(parts)); });
  };
  EXPECT_EQ(written({{"a", DType::f32, {2}, give(8)}}), "no error");
  EXPECT_EQ(written({{"a", DType::f32, {2}, give(8)}, {"a", DType::i8, {1}, give(1)}}),
            "a tensor to be saved has the name 'a', which is taken");
  EXPECT_EQ(written({{"__metadata__", DType::f32, {2}, give(8)}}),
            "a tensor to be saved has the name '__metadata__', which is taken");
  EXPECT_EQ(written({{"a\xFF", DType::f32, {2}, give(8)}}), "the name 'a\\xff' of a tensor to be saved is not UTF-8");
  EXPECT_EQ(written({{"a", DType::f32, {2}, give(7)}}), "the tensor 'a' gives other bytes than its sizes say");
  EXPECT_EQ(written({{"a", DType::f32, {2}, give(9)}}), "the tensor 'a' gives other bytes than its sizes say");
  EXPECT_EQ(written({{"a", DType::f32, {-2}, give(9)}}), "a tensor to be saved has the sizes [-2]");
}

std::string file_of(const std::string& header, std::size_t data) {
  std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data, '\1');
}
std::string error_of_file(const std::string& bytes) {
  return user_error_of([&] { SafetensorsReader file(in_memory(bytes, "w.safetensors")); });
}
std::string error_of_header(const std::string& header, std::size_t data) {
  return error_of_file(file_of(header, data));
}
std::string refused(const std::string& reason,
                    const std::string& advice = "the file is damaged: fetch or write it again") {
  return "load: 'w.safetensors': " + reason + "\n  fix: " + advice;
}
std::string one(const std::string& fields) { return "{\"a\":{" + fields + "}}"; }

TEST(Safetensors, RefusesHeaders) {
  const char* no_file = "it is no safetensors file, or is damaged";
  EXPECT_EQ(error_of_file("short"), refused("is too short for a safetensors file", no_file));
  EXPECT_EQ(
      error_of_file(std::string(8, '\xFF')),
      refused("declares a header of 18446744073709551615 bytes; at most 100000000 are allowed, at byte 0", no_file));
  EXPECT_EQ(error_of_file(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
            refused("declares a header of 16 bytes, but has 2 behind its first 8, at byte 0", no_file));
  EXPECT_EQ(error_of_header("", 0), refused("its header does not begin with '{', at byte 8", no_file));
  EXPECT_EQ(error_of_header(" {}", 0), refused("its header does not begin with '{', at byte 8", no_file));
  EXPECT_EQ(error_of_header("{}   ", 0), "no error");
  EXPECT_EQ(error_of_header("{\"a\":1,}", 0), refused("the name of a JSON member is missing, at byte 15"));
  EXPECT_EQ(error_of_header("{\"a\":1,\"a\":2}", 0), refused("the JSON member 'a' comes twice, at byte 15"));
  EXPECT_EQ(error_of_header("{\"a\":" + std::string(70, '[') + std::string(70, ']') + "}", 0),
            refused("JSON is nested deeper than 64, at byte 77"));
  EXPECT_EQ(error_of_header("{\"__metadata__\":{\"a\":1}}", 0),
            refused("its __metadata__ has an integer at 'a'", "metadata is an object of strings"));
  EXPECT_EQ(error_of_header("{\"__metadata__\":[]}", 0),
            refused("its __metadata__ is a list", "metadata is an object of strings"));
}

TEST(Safetensors, RefusesTensors) {
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]"), 8), "no error");
  EXPECT_EQ(error_of_header("{\"a\":3}", 0), refused("the tensor 'a' is an integer in the header, not an object"));
  EXPECT_EQ(error_of_header(one("\"shape\":[2],\"data_offsets\":[0,8]"), 8), refused("the tensor 'a' has no dtype"));
  EXPECT_EQ(error_of_header(one("\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]"), 8),
            refused("the tensor 'a' has a dtype that is an integer, not a string"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,8]"), 8),
            refused("the tensor 'a' has the dtype 'F8_E4M3', which stet does not have",
                    "write it as one of BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"data_offsets\":[0,8]"), 8),
            refused("the tensor 'a' has no shape"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]"), 8),
            refused("the tensor 'a' has a shape that is an integer, not a list"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]"), 8),
            refused("the tensor 'a' has a number in its shape"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]"), 8),
            refused("the tensor 'a' has a negative number in its shape"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4,8]"), 8),
            refused("the tensor 'a' has 3 data_offsets, not two"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]"), 8),
            refused("the tensor 'a' ends at 0, before it begins at 8"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]"), 8),
            refused("the tensor 'a' is f32 of sizes [3], which is 12 bytes; its data_offsets have 8"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]"), 0),
            refused("the tensor 'a' has sizes [4294967296,4294967296], whose product is too large"));
  EXPECT_EQ(error_of_header(one("\"dtype\":\"F32\",\"shape\":[4294967296,0,4294967295],\"data_offsets\":[0,0]"), 0),
            refused("the tensor 'a' has sizes [4294967296,0,4294967295], whose product is too large"));
  EXPECT_EQ(
      error_of_header(one("\"dtype\":\"U8\",\"shape\":[4611686018427387904],\"data_offsets\":[0,4611686018427387904]"),
                      4),
      refused("the tensor 'a' of 4611686018427387904 bytes goes beyond the end by 4611686018427387900, at byte 97"));
}

TEST(Safetensors, RefusesHolesAndOverlaps) {
  auto two = [](const std::string& a, const std::string& b) {
    return "{\"a\":{\"dtype\":\"U8\"," + a + "},\"b\":{\"dtype\":\"U8\"," + b + "}}";
  };
  std::string first = "\"shape\":[4],\"data_offsets\":[0,4]";
  EXPECT_EQ(error_of_header(two(first, "\"shape\":[4],\"data_offsets\":[4,8]"), 8), "no error");
  EXPECT_EQ(error_of_header(two("\"shape\":[4],\"data_offsets\":[4,8]", first), 8), "no error");
  EXPECT_EQ(error_of_header(two(first, "\"shape\":[0],\"data_offsets\":[4,4]"), 4), "no error");
  EXPECT_EQ(error_of_header(two(first, "\"shape\":[0],\"data_offsets\":[0,0]"), 4), "no error");
  EXPECT_CONTAINS(error_of_header(two(first, "\"shape\":[0],\"data_offsets\":[2,2]"), 4),
                  "the tensor 'b' begins at 2 of the data, inside of the one before it, at byte ");
  EXPECT_CONTAINS(error_of_header(two(first, "\"shape\":[4],\"data_offsets\":[3,7]"), 7),
                  "the tensor 'b' begins at 3 of the data, inside of the one before it, at byte ");
  EXPECT_CONTAINS(error_of_header(two(first, first), 4),
                  "the tensor 'b' begins at 0 of the data, inside of the one before it, at byte ");
  EXPECT_CONTAINS(error_of_header(two(first, "\"shape\":[4],\"data_offsets\":[5,9]"), 9),
                  "the tensor 'b' begins at 5 of the data, not where the one before it ends, at 4, at byte ");
  EXPECT_CONTAINS(error_of_header(two(first, "\"shape\":[4],\"data_offsets\":[4,8]"), 7),
                  "the tensor 'b' of 4 bytes goes beyond the end by 1, at byte ");
  EXPECT_CONTAINS(error_of_header(two(first, "\"shape\":[4],\"data_offsets\":[4,8]"), 9),
                  "1 bytes at its end belong to no tensor, at byte ");
}

TEST(Safetensors, RefusesBoolsThatAreNone) {
  std::string header = one("\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]");
  SafetensorsReader good(in_memory(file_of(header, 3), "w.safetensors"));
  Bytes to(3);
  good.read(good.tensors()[0], to);
  EXPECT_EQ(to, Bytes(3, std::byte{1}));
  std::string bytes = file_of(header, 3);
  bytes.back() = 2;
  SafetensorsReader bad(in_memory(bytes, "w.safetensors"));
  EXPECT_EQ(user_error_of([&] { bad.read(bad.tensors()[0], to); }),
            refused(text("the tensor 'a' of bools has a 2, at byte ", bytes.size() - 1)));
  Bytes small(2);
  EXPECT_EQ(internal_error_of([&] { bad.read(bad.tensors()[0], small); }),
            "a tensor of a safetensors file is read into a place of another size");
}

TEST(Safetensors, CutAtEveryByte) {
  std::string bytes = contents_of(stored("all.safetensors"));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_NE(error_of_file(bytes.substr(0, size)), "no error") << size;
}

}  // namespace
}  // namespace stet::files
