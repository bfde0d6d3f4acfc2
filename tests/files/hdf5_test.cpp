#include "stet/files/hdf5.h"

#include <array>
#include <cstdio>
#include <memory>
#include <thread>

#include "stet/base/text.h"
#include "stet/files/hdf5_inside.h"
#include "stet/files/zip.h"
#include "tests/files/files.h"

namespace stet::files {
namespace {

template <class T>
std::vector<T> values(const Hdf5Reader& file, std::string_view path) {
  const Hdf5Node* dataset = file.find(path);
  if (!dataset) {
    ADD_FAILURE() << path << " is missing";
    return {};
  }
  EXPECT_EQ(dataset->type().bytes, sizeof(T));
  std::vector<T> values(static_cast<std::size_t>(dataset->elements()));
  file.read(*dataset, std::as_writable_bytes(std::span(values)));
  return values;
}

/// Element i of the stored datasets is i - 3 (make_hdf5.py).
template <class T>
std::vector<T> counted(std::size_t count) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<T>(static_cast<std::int64_t>(i) - 3));
  return values;
}
std::vector<std::uint16_t> counted_halves(std::size_t count) {
  std::vector<std::uint16_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(Half(static_cast<float>(i) - 3).bits);
  return values;
}

std::string error_of_file(const std::string& bytes, Hdf5Limits limits = {}) {
  return user_error_of([&] {
    Hdf5Reader file(in_memory(bytes, "w.h5"), limits);
    auto all = [&](const Hdf5Node& node, auto& self) -> void {
      for (const Hdf5Node& child : node.children()) self(child, self);
      if (!node.is_dataset()) return;
      if (node.type().is_string()) {
        file.strings(node);
      } else {
        Bytes data(static_cast<std::size_t>(node.bytes()));
        file.read(node, data);
      }
    };
    all(file.root(), all);
  });
}
std::string refused(const std::string& reason,
                    const std::string& advice = "the file is damaged: fetch or write it again") {
  return "load: 'w.h5': " + reason + "\n  fix: " + advice;
}

TEST(Hdf5, ReadsEveryType) {
  Input input(stored("types.h5"), "load", Where{});
  Hdf5Reader file(input);
  for (std::string order : {"little/", "big/"}) {
    EXPECT_EQ(values<std::int8_t>(file, order + "i1"), counted<std::int8_t>(6));
    EXPECT_EQ(values<std::int16_t>(file, order + "i2"), counted<std::int16_t>(6));
    EXPECT_EQ(values<std::int32_t>(file, order + "i4"), counted<std::int32_t>(6));
    EXPECT_EQ(values<std::int64_t>(file, order + "i8"), counted<std::int64_t>(6));
    EXPECT_EQ(values<std::uint8_t>(file, order + "u1"), counted<std::uint8_t>(6));
    EXPECT_EQ(values<std::uint16_t>(file, order + "u2"), counted<std::uint16_t>(6));
    EXPECT_EQ(values<std::uint32_t>(file, order + "u4"), counted<std::uint32_t>(6));
    EXPECT_EQ(values<std::uint64_t>(file, order + "u8"), counted<std::uint64_t>(6));
    EXPECT_EQ(values<std::uint16_t>(file, order + "f2"), counted_halves(6));
    EXPECT_EQ(values<float>(file, order + "f4"), counted<float>(6));
    EXPECT_EQ(values<double>(file, order + "f8"), counted<double>(6));
  }
  EXPECT_EQ(file.find("big/f4")->sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(file.find("big/f4")->dtype(), DType::f32);
  EXPECT_EQ(file.find("big/u4")->dtype(), std::nullopt);
  EXPECT_EQ(file.find("big/u4")->type().str(), "u32");
  EXPECT_EQ(file.find("bool")->dtype(), DType::bool_);
  EXPECT_EQ(values<std::uint8_t>(file, "bool"), (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(file.find("opaque")->dtype(), std::nullopt);
  EXPECT_EQ(values<std::uint16_t>(file, "opaque"), (std::vector<std::uint16_t>{0x6261, 0x6463}));
  EXPECT_EQ(values<float>(file, "scalar"), std::vector<float>{2.5f});
  EXPECT_TRUE(file.find("scalar")->sizes().empty());
  EXPECT_TRUE(values<std::int32_t>(file, "empty").empty());
  EXPECT_EQ(file.find("empty")->sizes(), (std::vector<std::int64_t>{0, 4}));
  EXPECT_TRUE(values<float>(file, "nothing").empty());
  EXPECT_EQ(values<std::int32_t>(file, "enumeration"), (std::vector<std::int32_t>{0, 7}));
  EXPECT_EQ(file.strings(*file.find("fixed")), (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(file.strings(*file.find("strings")), (std::vector<std::string>{"eins", "", "größe"}));
}

TEST(Hdf5, ReadsAttributes) {
  Input input(stored("types.h5"), "load", Where{});
  Hdf5Reader file(input);
  const Hdf5Node& node = *file.find("attributes");
  EXPECT_EQ(*node.attribute("string")->if_string(), "größe");
  EXPECT_EQ(*node.attribute("empty string")->if_string(), "");
  EXPECT_EQ(*node.attribute("bytes")->if_string(), "old");
  EXPECT_EQ(node.attribute("strings")->if_string(), nullptr);
  EXPECT_EQ(node.attribute("strings")->strings, (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(node.attribute("fixed strings")->strings, (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(node.attribute("integer")->if_integer(), -7);
  EXPECT_EQ(node.attribute("integer")->if_real(), std::nullopt);
  EXPECT_EQ(node.attribute("integer")->if_string(), nullptr);
  EXPECT_EQ(node.attribute("small")->if_integer(), 200);
  EXPECT_EQ(node.attribute("real")->if_real(), 0.25);
  EXPECT_EQ(node.attribute("real")->if_integer(), std::nullopt);
  EXPECT_EQ(node.attribute("half")->if_real(), 0.5);
  EXPECT_EQ(node.attribute("flag")->if_integer(), 1);
  EXPECT_EQ(node.attribute("vector")->sizes, std::vector<std::int64_t>{3});
  EXPECT_EQ(node.attribute("vector")->if_integer(), std::nullopt);
  EXPECT_EQ(peek<std::int32_t>(text_of(node.attribute("vector")->data), 8), 3);
  EXPECT_EQ(node.attribute("none"), nullptr);
}

TEST(Hdf5, FindsPaths) {
  Input input(stored("many.h5"), "load", Where{});
  Hdf5Reader file(input);
  const Hdf5Node* c = file.find("a/b/c");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->children().size(), 130u);
  EXPECT_EQ(c->path(), "a/b/c");
  for (int i = 0; i < 130; ++i) {
    ASSERT_EQ(values<std::int32_t>(file, text("a/b/c/", i)), std::vector<std::int32_t>{i});
    EXPECT_EQ(c->find(text(i))->name(), text(i));
  }
  EXPECT_EQ(file.find(""), &file.root());
  for (const char* none : {"b", "a/c", "a/b/c/130", "/a", "a/", "a//b", "a/b/c/1/x", "..", "a/b/.."})
    EXPECT_EQ(file.find(none), nullptr) << none;
  EXPECT_EQ(file.find("a")->find("b/c"), c);
}

TEST(Hdf5, ReadsTheNewForms) {
  Input latest(stored("latest.h5"), "load", Where{});
  Hdf5Reader file(latest);
  EXPECT_EQ(values<std::int32_t>(file, "layers/dense/vars/i4"), counted<std::int32_t>(6));
  EXPECT_EQ(values<float>(file, "layers/dense/vars/f4"), counted<float>(6));
  EXPECT_EQ(values<double>(file, "layers/dense/vars/f8"), counted<double>(6));
  EXPECT_EQ(values<std::int32_t>(file, "compact"), (std::vector<std::int32_t>{5, 6, 7}));
  EXPECT_EQ(*file.find("layers")->attribute("name")->if_string(), "wörter");
  Input ordered(stored("ordered.h5"), "load", Where{});
  Hdf5Reader in_order(ordered);
  std::string names;
  for (const Hdf5Node& child : in_order.root().children()) names += child.name();
  EXPECT_EQ(names, "zba");
}

TEST(Hdf5, ReadsChunks) {
  Input input(stored("chunked.h5"), "load", Where{});
  Hdf5Reader file(input);
  for (const char* name : {"plain", "gzip", "all", "checked"})
    EXPECT_EQ(values<float>(file, name), counted<float>(35)) << name;
  EXPECT_EQ(values<std::int64_t>(file, "large chunk"), (std::vector<std::int64_t>{0, 1, 2}));
  std::vector<std::int16_t> many = values<std::int16_t>(file, "many");
  ASSERT_EQ(many.size(), 500u);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(many[static_cast<std::size_t>(i)], i);
  std::vector<std::int64_t> deep = values<std::int64_t>(file, "deep");
  ASSERT_EQ(deep.size(), 120u);
  for (std::size_t i = 0; i < 120; ++i) ASSERT_EQ(deep[i], static_cast<std::int64_t>(i));
  EXPECT_TRUE(values<float>(file, "no rows").empty());
  // Filters that were left out for single chunks.
  Input some(stored("skipped_filters.h5"), "load", Where{});
  EXPECT_EQ(values<std::int32_t>(Hdf5Reader(some), "packed"), counted<std::int32_t>(16));
  std::vector<std::string> strings = file.strings(*file.find("strings"));
  ASSERT_EQ(strings.size(), 10u);
  EXPECT_EQ(strings[9], "word 9");
}

void expect_keras_weights(const Hdf5Reader& file) {
  EXPECT_EQ(values<float>(file, "layers/dense/vars/0"), (std::vector<float>{0, 0.25, 0.5, 0.75, 1, 1.25}));
  EXPECT_EQ(values<float>(file, "layers/dense/vars/1"), (std::vector<float>{7, 8}));
  const Hdf5Node* second = file.find("layers/dense_1/vars/0");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->dtype(), DType::bf16);
  std::vector<std::uint16_t> bits;
  for (float value : {0.5f, 1.5f, -2.f, 3.f}) bits.push_back(BFloat16(value).bits);
  EXPECT_EQ(values<std::uint16_t>(file, "layers/dense_1/vars/0"), bits);
  EXPECT_EQ(*file.find("layers/dense_1/vars")->attribute("name")->if_string(), "second");
}

TEST(Hdf5, ReadsWhatKerasWrites) {
  Input weights(stored("keras.weights.h5"), "load", Where{});
  expect_keras_weights(Hdf5Reader(weights));
  // In its place inside of the archive.
  Input model(stored("model.keras"), "load_model", Where{});
  ZipReader zip(model);
  Hdf5Reader inside(zip.open(*zip.find("model.weights.h5")));
  expect_keras_weights(inside);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { expect_keras_weights(inside); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Hdf5, RefusesByName) {
  const char* copy = "write a copy of what it leads to";
  const char* inside = "write its data into the file";
  const char* plain = "write it with h5py's defaults";
  const char* older =
      "write it with h5py's defaults: without libver='latest' and track_order, and with names of ASCII "
      "characters, which the old form has";
  const char* numbers = "write numbers, bools or strings";
  struct Case {
    const char *file, *reason, *advice;
  };
  for (const Case& c : {
           Case{"soft_link", "a soft link, 'a', which is not supported, at byte 808", copy},
           Case{"external_link", "a link to another file, 'a', which is not supported, at byte 856", copy},
           Case{"hard_link", "a second name, 'b', for the same object, which is not supported, at byte 800",
                "write a copy instead"},
           Case{"circle", "a second name, 'a/b', for the same object, which is not supported, at byte 96",
                "write a copy instead"},
           Case{"external_storage", "external storage of 'a', which is not supported, at byte 896", inside},
           Case{"virtual", "a virtual dataset, 'a', which is not supported, at byte 904", inside},
           Case{"committed", "a committed type, 'type', which is not supported, at byte 800", plain},
           Case{"committed_use", "a committed type, which is not supported, at byte 1232", plain},
           Case{"lzf", "the filter 32000 'lzf' of the dataset 'a', which is not supported, at byte 904",
                "write it with compression='gzip', or without"},
           Case{"compound", "values of type compound, which is not supported, at byte 864", numbers},
           Case{"reference", "values of type reference, which is not supported, at byte 856", numbers},
           Case{"array", "values of type array, which is not supported, at byte 864", numbers},
           Case{"unwritten", "the dataset 'a' of sizes [1099511627776] has no data, at byte 904",
                "write its data: none of it is in the file"},
           Case{"holes", "the dataset 'a' has 1 of its 1024 chunks, at byte 904",
                "write all of its data: none is made up"},
           Case{"dense", "a dense group (of many links, in HDF5's new form), which is not supported, at byte 81",
                older},
           Case{"dense_attributes",
                "dense attributes (many of one object, in HDF5's new form), which is not supported, at byte 104",
                older},
           Case{"new_chunks",
                "the chunk index of the dataset 'a', in HDF5's new form, which is not supported, at byte 253",
                "write it with h5py's defaults: without libver='latest'"},
           Case{"user_block", "a block of the user's own before the HDF5 file, which is not supported, at byte 0",
                "write it without userblock_size"},
       })
    EXPECT_EQ(error_of_file(contents_of(stored(text("refused_", c.file, ".h5")))), refused(c.reason, c.advice));
}

TEST(Hdf5, RefusesWhatItIsNot) {
  const char* advice = "it is no HDF5 file, or is damaged";
  EXPECT_EQ(error_of_file(""), refused("is too short for an HDF5 file", advice));
  EXPECT_EQ(error_of_file(std::string(5000, 'x')), refused("is no HDF5 file", advice));
  std::string bytes = contents_of(stored("types.h5"));
  EXPECT_EQ(error_of_file(bytes), "no error");
  EXPECT_EQ(error_of_file(bytes.substr(0, 2000)),
            refused("is cut off: it has 2000 bytes and says that it has 20424, at byte 40"));
  for (const char* name : {"types.h5", "latest.h5", "chunked.h5"}) {
    std::string whole = contents_of(stored(name));
    for (std::size_t size = 0; size < whole.size(); size += 97)
      ASSERT_NE(error_of_file(whole.substr(0, size)), "no error");
  }
}

TEST(Hdf5, RefusesDamagedData) {
  std::string chunked = contents_of(stored("chunked.h5"));
  Hdf5Reader file(in_memory(chunked));
  // Every byte of the file turned over, one at a time: what is not refused reads as something.
  std::size_t refusals = 0;
  for (std::size_t at = 0; at < chunked.size(); at += 61) {
    std::string changed = chunked;
    changed[at] = static_cast<char>(~changed[at]);
    refusals += error_of_file(changed) != "no error";
  }
  EXPECT_GT(refusals, 50u);
  // Superblocks and headers of the new form have checksums.
  std::string latest = contents_of(stored("latest.h5"));
  std::size_t header = latest.find("OHDR");
  std::string changed = latest;
  changed[header + 20] = static_cast<char>(changed[header + 20] ^ 1);
  EXPECT_CONTAINS(error_of_file(changed), "the checksum of an object header is wrong, at byte ");
  changed = latest;
  changed[44] = static_cast<char>(changed[44] ^ 1);
  EXPECT_EQ(error_of_file(changed), refused("the checksum of its superblock is wrong, at byte 44"));
}

/// Every chunk comes once, at a place of its own: otherwise elements would be memory that nobody wrote.
TEST(Hdf5, RefusesTreesOfChunksThatAreNone) {
  const std::string bytes = contents_of(stored("chunked.h5"));
  // The first tree of such a level and so many entries, of chunks.
  auto tree = [&](char level, std::uint16_t count) {
    for (std::size_t at = bytes.find("TREE"); at != std::string::npos; at = bytes.find("TREE", at + 1))
      if (bytes[at + 4] == 1 && bytes[at + 5] == level && (count == 0 || peek<std::uint16_t>(bytes, at + 6) == count))
        return at;
    return std::string::npos;
  };
  auto with = [&](std::size_t at, auto value) {
    std::string changed = bytes;
    poke(changed, at, value);
    return error_of_file(changed);
  };
  EXPECT_EQ(error_of_file(bytes), "no error");
  // Nine chunks of two axes: their sizes, and where each begins on both axes and in its elements.
  const std::size_t plain = tree(0, 9), second = plain + 24 + 40;
  ASSERT_NE(plain, std::string::npos);
  EXPECT_CONTAINS(with(second + 16, std::uint64_t{1}), "of sizes [7,5] has a chunk at 1 of axis 1, at byte ");
  EXPECT_CONTAINS(with(second + 16, std::uint64_t{6}), "of sizes [7,5] has a chunk at 6 of axis 1, at byte ");
  EXPECT_CONTAINS(with(second + 16, std::uint64_t{0}), text("are not in order, at byte ", second));
  EXPECT_CONTAINS(with(second + 24, std::uint64_t{4}), text("a chunk begins inside of an element, at byte ", second));
  EXPECT_CONTAINS(with(plain + 6, std::uint16_t{8}), "has 8 of its 9 chunks, at byte ");
  EXPECT_CONTAINS(with(plain + 4, '\0'),
                  text("a tree of something else where one of chunks should be, at byte ", plain));
  EXPECT_CONTAINS(with(plain + 5, '\1'), "a tree of chunks is missing, at byte ");
  const std::size_t root = tree(1, 0);
  ASSERT_NE(root, std::string::npos);
  EXPECT_CONTAINS(with(root + 5, '\2'), "a tree of chunks has a node of a wrong level, at byte ");

  // The layout of that dataset: its axes and one of bytes, where the tree is, the sizes of a chunk.
  std::string layout("\3\2\3", 3);
  layout.append(reinterpret_cast<const char*>(&plain), 8);
  const std::size_t at = bytes.find(layout);
  ASSERT_NE(at, std::string::npos);
  EXPECT_CONTAINS(with(at + 2, '\2'), "of 2 axes has chunks of 2, at byte ");
  EXPECT_CONTAINS(with(at + 11, std::uint32_t{0}), "has chunks of size 0, at byte ");
  EXPECT_CONTAINS(with(at + 19, std::uint32_t{2}), "has chunks of size 2, at byte ");
  EXPECT_CONTAINS(with(at + 11, std::uint32_t{0x7FFFFFFF}), "has chunks of 4 GiB and more, at byte ");
}

TEST(Hdf5, RefusesTypesThatAreNone) {
  const std::string bytes = contents_of(stored("chunked.h5"));
  auto with = [&](std::string_view type, std::uint32_t size) {
    const std::size_t at = bytes.find(type);
    EXPECT_NE(at, std::string::npos);
    std::string changed = bytes;
    poke(changed, at + 4, size);
    return error_of_file(changed);
  };
  using namespace std::string_view_literals;
  EXPECT_CONTAINS(with("\x10\x08\0\0\x02\0\0\0"sv, 0), "a type of no bytes, at byte ");
  EXPECT_CONTAINS(with("\x10\x08\0\0\x02\0\0\0"sv, 3), "values of type integer of 16 bits in 3 bytes, which is not");
  EXPECT_CONTAINS(with("\x19\x01\x01\0\x10\0\0\0"sv, 17), "a string whose place takes 17 bytes, at byte ");
}

TEST(Hdf5, RefusesWrongChecksumsOfChunks) {
  // The bytes of "checked", which nothing packs: -3, -2, …
  std::string bytes = contents_of(stored("chunked.h5"));
  const float values[] = {-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(values), sizeof values));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 2] = static_cast<char>(bytes[at + 2] ^ 1);
  EXPECT_EQ(error_of_file(bytes), refused(text("a chunk of the dataset 'checked' has a wrong checksum, at byte ", at)));
}

TEST(Hdf5, RefusesBoolsThatAreNone) {
  Hdf5Writer writer;
  writer.dataset("a", DType::bool_, {3}, [](const Sink& sink) { sink(bytes_from(std::string("\1\2\0", 3))); });
  std::string bytes;
  writer.write([&](std::span<const std::byte> part) { bytes += text_of(Bytes(part.begin(), part.end())); });
  EXPECT_CONTAINS(error_of_file(bytes), "a bool of 2, at byte ");
}

TEST(Hdf5, RefusesBombs) {
  // Half a MiB from less than 4 KiB.
  std::string bytes = contents_of(stored("packed.h5"));
  EXPECT_EQ(error_of_file(bytes), "no error");
  EXPECT_EQ(error_of_file(bytes, {.floor = 1000, .ratio = 1000}), "no error");
  std::string error = error_of_file(bytes, {.floor = 1000, .ratio = 30});
  EXPECT_CONTAINS(error, "load: 'w.h5': its chunks would unpack to ");
  EXPECT_CONTAINS(error, " bytes and more, beyond 30 times the file, at byte ");
  EXPECT_CONTAINS(error, "fix: do not trust it: files like this are made to fill memory");
  // Data that two datasets share.
  Hdf5Writer writer;
  for (const char* name : {"a", "b"}) writer.dataset(name, DType::i8, {64}, [](const Sink& sink) { sink(Bytes(64)); });
  std::string shared;
  writer.write([&](std::span<const std::byte> part) { shared += text_of(Bytes(part.begin(), part.end())); });
  EXPECT_EQ(error_of_file(shared), "no error");
  const std::uint64_t first = shared.size() - 128, second = shared.size() - 64;
  std::size_t at =
      shared.find(std::string(reinterpret_cast<const char*>(&second), 8) + std::string("\x40\0\0\0\0\0\0\0", 8));
  ASSERT_NE(at, std::string::npos);
  poke(shared, at, first + 63);
  EXPECT_EQ(error_of_file(shared),
            refused(text("a dataset overlaps with a dataset at byte ", first, ", at byte ", first + 63)));
  poke(shared, at, std::uint64_t{96});
  EXPECT_CONTAINS(error_of_file(shared), "a dataset overlaps with a header at byte ");
  poke(shared, at, ~std::uint64_t{0} - 8);
  EXPECT_EQ(error_of_file(shared),
            refused(text("a dataset of 64 bytes at byte 18446744073709551607 would be outside of the file, "
                         "at byte ",
                         shared.size())));
}

TEST(Hdf5, Depth) {
  auto nested = [](int depth) {
    std::string path = "x";
    for (int i = 1; i < depth; ++i) path += "/x";
    Hdf5Writer writer;
    writer.group(path);
    std::string bytes;
    writer.write([&](std::span<const std::byte> part) { bytes += text_of(Bytes(part.begin(), part.end())); });
    return bytes;
  };
  EXPECT_EQ(error_of_file(nested(64)), "no error");
  EXPECT_CONTAINS(error_of_file(nested(65)), "its groups are nested deeper than 64, at byte ");
  EXPECT_CONTAINS(error_of_file(contents_of(stored("refused_long_path.h5"))), "…' is longer than 1024 bytes, at byte ");
}

// --- writing

std::function<void(const Sink&)> gives(Bytes bytes) {
  return [bytes](const Sink& sink) {
    sink(std::span(bytes).first(bytes.size() / 3));
    sink(std::span(bytes).subspan(bytes.size() / 3));
  };
}
template <class T>
std::function<void(const Sink&)> gives(const std::vector<T>& values) {
  auto bytes = std::as_bytes(std::span(values));
  return gives(Bytes(bytes.begin(), bytes.end()));
}
std::string written(Hdf5Writer& writer) {
  std::string bytes;
  writer.write(
      [&](std::span<const std::byte> part) { bytes.append(reinterpret_cast<const char*>(part.data()), part.size()); });
  EXPECT_EQ(bytes.size(), writer.size());
  return bytes;
}

/// What many places name is kept for each of them: all of it together is no more than the file.
TEST(Hdf5, RefusesBombsOfStringsAndNames) {
  const std::string long_text(5000, 'x');
  Hdf5Writer writer;
  std::vector<std::string> list(1000, "y");
  list[0] = long_text;
  writer.attribute("", "list", list);
  std::string bytes = written(writer);
  EXPECT_EQ(error_of_file(bytes), "no error");
  // The list: length, heap and number of each string. The first has this length and number 1.
  std::string place(reinterpret_cast<const char*>(std::array{std::uint32_t{5000}}.data()), 4);
  const std::size_t first = bytes.find(place, bytes.find("list"));
  ASSERT_NE(first, std::string::npos);
  for (std::size_t i = 1; i < list.size(); ++i) bytes.replace(first + 16 * i, 16, bytes, first, 16);
  EXPECT_CONTAINS(error_of_file(bytes), "its strings have more bytes than the file, at byte ");

  Hdf5Writer names;
  names.group("a/" + std::string(900, 'a'));
  for (int i = 0; i < 500; ++i) names.dataset(text("a/b", i), DType::f32, {0}, [](const Sink&) {});
  bytes = written(names);
  EXPECT_EQ(error_of_file(bytes), "no error");
  for (std::size_t at = bytes.find("SNOD"); at != std::string::npos; at = bytes.find("SNOD", at + 1))
    for (std::size_t i = 0; i < peek<std::uint16_t>(bytes, at + 6); ++i) poke(bytes, at + 8 + 40 * i, std::uint64_t{8});
  EXPECT_CONTAINS(error_of_file(bytes), "its names have more bytes than the file, at byte ");
}

/// A heap of strings numbers them with 16 bits, and a small one says how much of it is free.
TEST(Hdf5, ManyStringsAndHeapsOfEverySize) {
  Hdf5Writer writer;
  std::vector<std::vector<std::string>> lists(20);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (int k = 0; k < 4000; ++k) lists[i].push_back(text("s", i, "_", k));
    writer.attribute("", text("list", i), lists[i]);
  }
  const std::string many = written(writer);
  Hdf5Reader file(in_memory(many, "w.h5"));
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const Hdf5Attribute* list = file.root().attribute(text("list", i));
    ASSERT_TRUE(list);
    EXPECT_EQ(list->strings, lists[i]);
  }
  for (std::size_t length = 4020; length < 4110; ++length) {
    Hdf5Writer one;
    one.attribute("", "text", std::string(length, 'x'));
    const std::string bytes = written(one);
    Hdf5Reader same(in_memory(bytes, "w.h5"));
    EXPECT_EQ(same.root().attribute("text")->if_string()->size(), length);
  }
}

TEST(Hdf5, RefusesATreeOfNamesOfAWrongLevel) {
  Hdf5Writer writer;
  for (int i = 0; i < 400; ++i) writer.group(text(i));
  std::string bytes = written(writer);
  std::size_t root = bytes.find(std::string("TREE\0\1", 6));
  ASSERT_NE(root, std::string::npos);
  bytes[root + 5] = 2;
  EXPECT_CONTAINS(error_of_file(bytes), "a tree of names has a node of a wrong level, at byte ");
}

/// Every type, attributes of every kind, an empty group, a group of many children.
void fill(Hdf5Writer& writer, int many) {
  for (DType dtype : {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::f32, DType::f64, DType::f16,
                      DType::bf16, DType::bool_}) {
    Bytes bytes;
    for (int i = 0; i < 6; ++i) {
      auto put = [&](auto value) {
        auto from = std::as_bytes(std::span(&value, 1));
        bytes.insert(bytes.end(), from.begin(), from.end());
      };
      const int value = dtype == DType::bool_ ? i % 2 : dtype == DType::u8 ? i : i - 3;
      if (dtype == DType::f32)
        put(static_cast<float>(value));
      else if (dtype == DType::f64)
        put(static_cast<double>(value));
      else if (dtype == DType::f16)
        put(Half(static_cast<float>(value)));
      else if (dtype == DType::bf16)
        put(BFloat16(static_cast<float>(value)));
      else if (size_of(dtype) == 1)
        put(static_cast<std::int8_t>(value));
      else if (size_of(dtype) == 2)
        put(static_cast<std::int16_t>(value));
      else if (size_of(dtype) == 4)
        put(value);
      else
        put(std::int64_t{value});
    }
    writer.dataset(text("types/", name(dtype)), dtype, {2, 3}, gives(bytes));
  }
  writer.dataset("types/u32", {Hdf5Kind::unsigned_integer, 4}, {2}, gives(std::vector<std::uint32_t>{1, 4000000000}));
  writer.dataset("scalar", DType::f32, {}, gives(std::vector<float>{2.5f}));
  writer.dataset("empty", DType::i32, {0, 4}, gives(Bytes()));
  writer.group("nothing in it");
  writer.attribute("", "root", "größe");
  writer.attribute("nothing in it", "none", "");
  writer.attribute("nothing in it", "words", std::vector<std::string>{"a", "", "ccc"});
  writer.attribute("nothing in it", "no words", std::vector<std::string>{});
  writer.attribute("scalar", "integer", std::int64_t{-7});
  writer.attribute("scalar", "real", 0.25);
  for (int i = 0; i < many; ++i) {
    writer.dataset(text("many/", i), DType::i32, {1}, gives(std::vector<std::int32_t>{i}));
    writer.attribute(text("many/", i), "name", text("number ", i));
  }
}

void expect_filled(const Hdf5Reader& file, int many) {
  EXPECT_EQ(values<std::int8_t>(file, "types/i8"), counted<std::int8_t>(6));
  EXPECT_EQ(values<std::uint8_t>(file, "types/u8"), (std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values<std::uint8_t>(file, "types/bool"), (std::vector<std::uint8_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(values<std::int16_t>(file, "types/i16"), counted<std::int16_t>(6));
  EXPECT_EQ(values<std::int32_t>(file, "types/i32"), counted<std::int32_t>(6));
  EXPECT_EQ(values<std::int64_t>(file, "types/i64"), counted<std::int64_t>(6));
  EXPECT_EQ(values<float>(file, "types/f32"), counted<float>(6));
  EXPECT_EQ(values<double>(file, "types/f64"), counted<double>(6));
  EXPECT_EQ(values<std::uint16_t>(file, "types/f16"), counted_halves(6));
  for (DType dtype : {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::f32, DType::f64, DType::f16,
                      DType::bf16, DType::bool_}) {
    EXPECT_EQ(file.find(text("types/", name(dtype)))->dtype(), dtype);
    EXPECT_EQ(file.find(text("types/", name(dtype)))->sizes(), (std::vector<std::int64_t>{2, 3}));
  }
  EXPECT_EQ(values<std::uint32_t>(file, "types/u32"), (std::vector<std::uint32_t>{1, 4000000000}));
  EXPECT_EQ(values<float>(file, "scalar"), std::vector<float>{2.5f});
  EXPECT_EQ(file.find("empty")->sizes(), (std::vector<std::int64_t>{0, 4}));
  EXPECT_TRUE(values<std::int32_t>(file, "empty").empty());
  EXPECT_EQ(*file.root().attribute("root")->if_string(), "größe");
  const Hdf5Node& nothing = *file.find("nothing in it");
  EXPECT_TRUE(nothing.children().empty() && !nothing.is_dataset());
  EXPECT_EQ(*nothing.attribute("none")->if_string(), "");
  EXPECT_EQ(nothing.attribute("words")->strings, (std::vector<std::string>{"a", "", "ccc"}));
  EXPECT_TRUE(nothing.attribute("no words")->strings.empty());
  EXPECT_EQ(file.find("scalar")->attribute("integer")->if_integer(), -7);
  EXPECT_EQ(file.find("scalar")->attribute("real")->if_real(), 0.25);
  for (int i = 0; i < many; ++i) {
    ASSERT_EQ(values<std::int32_t>(file, text("many/", i)), std::vector<std::int32_t>{i});
    ASSERT_EQ(*file.find(text("many/", i))->attribute("name")->if_string(), text("number ", i));
  }
}

// Children of a group: none to those that need one, two and three levels of nodes.
TEST(Hdf5, WhatIsWrittenReadsBack) {
  for (int many : {0, 1, 8, 9, 256, 257, 9000}) {
    Hdf5Writer writer;
    fill(writer, many);
    std::string bytes = written(writer);
    expect_filled(Hdf5Reader(in_memory(bytes)), many);
  }
  Hdf5Writer nothing;
  EXPECT_TRUE(Hdf5Reader(in_memory(written(nothing))).root().children().empty());
}

TEST(Hdf5, IsWrittenIntoAnArchive) {
  TemporaryFolder folder;
  {
    Output output(folder / "m.keras", "save", Where{});
    ZipWriter zip(output);
    zip.add("config.json", std::string_view("{}"));
    Hdf5Writer writer;
    fill(writer, 20);
    zip.begin("model.weights.h5", writer.size());
    writer.write([&](std::span<const std::byte> bytes) { zip.write(bytes); });
    zip.end();
    zip.finish();
    output.commit();
  }
  Input input(folder / "m.keras", "load", Where{});
  ZipReader zip(input);
  expect_filled(Hdf5Reader(zip.open(*zip.find("model.weights.h5"))), 20);
}

TEST(Hdf5, ManyAttributes) {
  Hdf5Writer writer;
  for (int i = 0; i < 5000; ++i) writer.attribute("", text("name ", i), std::int64_t{i});
  std::string bytes = written(writer);
  Hdf5Reader file(in_memory(bytes, "w.h5"));
  ASSERT_EQ(file.root().attributes().size(), 5000u);
  EXPECT_EQ(file.root().attribute("name 4999")->if_integer(), 4999);
  bytes.replace(bytes.find("name 17\0"), 7, "name 16");
  EXPECT_CONTAINS(error_of_file(bytes), "the attribute 'name 16' comes twice, at byte ");
}

/// Data that cannot be had: the error goes through, and nothing is left on the disk.
TEST(Hdf5, DataThatThrows) {
  TemporaryFolder folder;
  std::string error = user_error_of([&] {
    Output output(folder / "m.keras", "save", Where{});
    ZipWriter zip(output);
    Hdf5Writer writer;
    writer.dataset("a", DType::i8, {1'000'000}, [](const Sink& sink) {
      sink(Bytes(500'000));
      throw UserError("no data");
    });
    zip.begin("model.weights.h5", writer.size());
    writer.write([&](std::span<const std::byte> bytes) { zip.write(bytes); });
    zip.end();
    zip.finish();
    output.commit();
  });
  EXPECT_EQ(error, "no data");
  EXPECT_EQ(folder.count(), 0u);
}

TEST(Hdf5, WriterRefuses) {
  Hdf5Writer writer;
  writer.dataset("a/b", DType::f32, {2}, gives(std::vector<float>{1, 2}));
  writer.attribute("a", "x", std::int64_t{1});
  auto error = [&](auto f) { return internal_error_of(f); };
  EXPECT_EQ(error([&] { writer.dataset("a/b", DType::f32, {2}, {}); }), "the name 'a/b' comes twice in an HDF5 file");
  EXPECT_EQ(error([&] { writer.dataset("a", DType::f32, {2}, {}); }), "the name 'a' comes twice in an HDF5 file");
  EXPECT_EQ(error([&] { writer.group("a/b"); }), "the name 'a/b' comes twice in an HDF5 file");
  EXPECT_EQ(error([&] { writer.group("a/b/c"); }), "the path 'a/b/c' in an HDF5 file goes through a dataset");
  for (const char* path : {"/a", "a//b", "a/", "./a", "a\xFF"})
    EXPECT_CONTAINS(error([&] { writer.group(path); }), " in an HDF5 file is none");
  EXPECT_EQ(error([&] { writer.attribute("a", "x", 2.0); }), "the attribute 'x' comes twice in an HDF5 file");
  EXPECT_EQ(error([&] { writer.attribute("z", "x", 2.0); }), "the path 'z' is not in an HDF5 file");
  EXPECT_EQ(error([&] { writer.attribute("a", "", 2.0); }), "the name '' of an attribute in an HDF5 file is none");
  EXPECT_EQ(error([&] { writer.dataset("c", DType::f32, {-1}, {}); }), "the dataset 'c' of f32 and sizes [-1]");
  EXPECT_EQ(error([&] {
              writer.dataset("s", {Hdf5Kind::string, 16}, {1}, {});
            }),
            "the dataset 's' of a string and sizes [1]");
  for (std::size_t count : {1u, 3u}) {
    Hdf5Writer wrong;
    wrong.dataset("a", DType::f32, {2}, gives(std::vector<float>(count)));
    EXPECT_EQ(error([&] { written(wrong); }), "the dataset 'a' gives other bytes than its sizes say");
    EXPECT_EQ(error([&] { wrong.group("b"); }), "an HDF5 file that is laid out is changed");
  }
  Hdf5Writer large;
  large.attribute("", "x", std::vector<std::string>(5000, "word"));
  EXPECT_EQ(error([&] { large.size(); }), "the attribute 'x' is longer than the 64 KiB that HDF5 allows");
  Hdf5Writer long_one;
  long_one.attribute("", "x", std::string(200'000, 'x'));
  EXPECT_EQ(Hdf5Reader(in_memory(written(long_one))).root().attribute("x")->if_string()->size(), 200'000u);
}

std::string output_of(const std::string& command) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen((command + " 2>&1").c_str(), "r"), pclose);
  std::string output;
  char part[4096];
  while (std::size_t got = std::fread(part, 1, sizeof part, pipe.get())) output.append(part, got);
  return output;
}

/// HDF5's own program reads what we write. (What h5py and Keras say of it: tests/oracle/files/check_hdf5.py.)
TEST(Hdf5, TheLibraryReadsWhatIsWritten) {
  if (output_of("h5dump --version").find("Version") == std::string::npos) GTEST_SKIP() << "h5dump is not installed";
  TemporaryFolder folder;
  Hdf5Writer writer;
  fill(writer, 300);
  write_whole(folder / "w.h5", written(writer));
  auto dumped = [&](const std::string& options) {
    std::string all = output_of(text("h5dump ", options, " ", folder / "w.h5"));
    std::size_t begin = all.find("DATA {");
    return begin == std::string::npos ? all : all.substr(begin + 6, all.find('}', begin) - begin - 6);
  };
  for (const char* type : {"i8", "i16", "i32", "i64", "f16", "f32", "f64"})
    EXPECT_EQ(dumped(text("-d /types/", type)), "\n   (0,0): -3, -2, -1,\n   (1,0): 0, 1, 2\n   ") << type;
  EXPECT_EQ(dumped("-d /types/u8"), "\n   (0,0): 0, 1, 2,\n   (1,0): 3, 4, 5\n   ");
  EXPECT_EQ(dumped("-d /types/bool"), "\n   (0,0): FALSE, TRUE, FALSE,\n   (1,0): TRUE, FALSE, TRUE\n   ");
  EXPECT_EQ(dumped("-d /types/bf16"), "\n   (0,0): 40:c0, 00:c0, 80:bf,\n   (1,0): 00:00, 80:3f, 00:40\n   ");
  EXPECT_EQ(dumped("-d /types/u32"), "\n   (0): 1, 4000000000\n   ");
  EXPECT_EQ(dumped("-d /scalar"), "\n   (0): 2.5\n   ");
  // As it shows those of h5py: letters beyond ASCII by their bytes.
  EXPECT_CONTAINS(dumped("-a /root"), "\n   (0): \"gr\\");
  EXPECT_EQ(dumped("-a '/nothing in it/words'"), "\n   (0): \"a\", \"\", \"ccc\"\n   ");
  EXPECT_EQ(dumped("-a /scalar/integer"), "\n   (0): -7\n   ");
  EXPECT_EQ(dumped("-a /scalar/real"), "\n   (0): 0.25\n   ");
  for (int i = 0; i < 300; i += 97) {
    EXPECT_EQ(dumped(text("-d /many/", i)), text("\n   (0): ", i, "\n   "));
    EXPECT_EQ(dumped(text("-a /many/", i, "/name")), text("\n   (0): \"number ", i, "\"\n   "));
  }
  std::string everything = output_of(text("h5dump ", folder / "w.h5"));
  EXPECT_EQ(everything.find("error"), std::string::npos) << everything.substr(0, 2000);
  std::size_t datasets = 0;
  for (std::size_t at = 0; (at = everything.find("DATASET \"", at)) != std::string::npos; ++at) ++datasets;
  EXPECT_EQ(datasets, 313u);
  // For check_hdf5.py.
  if (const char* kept = std::getenv("STET_WRITTEN_HDF5")) std::filesystem::copy_file(folder / "w.h5", kept);
}

}  // namespace
}  // namespace stet::files
