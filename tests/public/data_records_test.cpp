// TFRecord files with Examples in them, and text files: as TensorFlow writes them, and for TensorFlow to read.
#include <sys/resource.h>
#include <zlib.h>

#include <csignal>
#include <thread>

#include "data_files.h"
#include "little_memory.h"

namespace stet {
namespace {

using RecordsTest = FilesTest;

std::vector<std::string> records(const data::Dataset<Tensor>& dataset) {
  std::vector<std::string> out;
  for (Tensor record : dataset) {
    EXPECT_EQ(record.dtype(), u8);
    EXPECT_EQ(record.rank(), 1);
    out.push_back(text_of(record));
  }
  return out;
}

std::string gzip(const std::string& bytes) {
  z_stream state{};
  deflateInit2(&state, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&state, bytes.size()), 0);
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  deflate(&state, Z_FINISH);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

TEST_F(RecordsTest, OfTensorFlowAreRead) {
  const std::vector<std::string> plain = records(data::tfrecord(stored("examples.tfrecord")));
  ASSERT_EQ(plain.size(), 4u);
  EXPECT_EQ(plain[3], "");
  for (const char* compression : {"GZIP", "ZLIB"}) {
    const std::string file = stored(std::string("examples") + compression + ".tfrecord");
    EXPECT_TRUE(records(data::tfrecord(file)) == plain);
    EXPECT_TRUE(records(data::tfrecord(file, {.compression = compression})) == plain);
  }
  auto both = records(data::tfrecord({stored("examples.tfrecord"), stored("examplesGZIP.tfrecord")}));
  EXPECT_EQ(both.size(), 8u);
  EXPECT_EQ(both[4], plain[0]);
  EXPECT_EQ(data::tfrecord(stored("examples.tfrecord")).cardinality(), std::nullopt);
}

TEST_F(RecordsTest, ExamplesOfTensorFlowAreParsed) {
  std::int64_t i = 0;
  for (Tensor record : data::tfrecord(stored("examples.tfrecord")).take(3)) {
    data::Example example = data::Example::parse(record);
    EXPECT_EQ(example.features.size(), 7u);
    EXPECT_EQ(example.integers("label"), (std::vector<std::int64_t>{i}));
    EXPECT_EQ(example.integers("big"), (std::vector<std::int64_t>{-1, std::int64_t{1} << 62, INT64_MIN}));
    EXPECT_EQ(example.floats("point"), (std::vector<float>{static_cast<float>(i) + 0.5f, -1.25f}));
    EXPECT_EQ(example.strings("name"), (std::vector<std::string>{"number " + std::to_string(i)}));
    EXPECT_EQ(example.strings("words"), (std::vector<std::string>{"a", "", std::string("\0\xFF", 2)}));
    EXPECT_EQ(example.floats("many").size(), static_cast<std::size_t>(i));
    EXPECT_TRUE(example.floats("nothing").empty() && example.strings("nothing").empty());
    // With sorted names, as TensorFlow writes them when asked to be deterministic.
    EXPECT_TRUE(example.serialize() == text_of(record));

    auto features = data::parse_example(record, {{"label", {.dtype = i64}},
                                                 {"point", {.shape = {2, 1}}},
                                                 {"name", {.dtype = u8}},
                                                 {"many", {.variable = true}},
                                                 {"absent", {.shape = {3}, .default_value = tensor(7.f)}},
                                                 {"nothing", {.dtype = i64, .default_value = tensor(std::int64_t{-1})}},
                                                 {"unknown", {.dtype = i64, .variable = true}}});
    EXPECT_EQ(features.size(), 7u);
    EXPECT_EQ(type_text(features.at("label")), "i64[]");
    EXPECT_EQ(features.at("label").item<std::int64_t>(), i);
    expect_same(features.at("point"), tensor({{static_cast<float>(i) + 0.5f}, {-1.25f}}));
    EXPECT_EQ(text_of(features.at("name")), "number " + std::to_string(i));
    EXPECT_EQ(type_text(features.at("many")), "f32[" + std::to_string(i) + "]");
    expect_same(features.at("absent"), full({3}, 7));
    EXPECT_EQ(features.at("nothing").item<int>(), -1);
    EXPECT_EQ(type_text(features.at("unknown")), "i64[0]");
    ++i;
  }
}

TEST_F(RecordsTest, ExamplesGoBothWays) {
  data::Example example;
  example.set("a", 3).set("b", 2.5).set("c", "text").set("d", tensor({{1.5f, 2.f}})).set("e", arange(3));
  example.set("f", tensor(std::vector<std::uint8_t>{0, 255})).set("g", tensor({true, false}));
  example.set("h", data::Example::Strings{}).set("i", data::Example::Feature()).set("", 1);
  data::Example back = data::Example::parse(example.serialize());
  EXPECT_TRUE(back.features == example.features);
  EXPECT_EQ(back.floats("d"), (std::vector<float>{1.5f, 2.f}));
  EXPECT_EQ(back.integers("g"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(back.strings("f"), (std::vector<std::string>{std::string("\0\xFF", 2)}));
  EXPECT_TRUE(data::Example::parse(std::string()).features.empty());
}

TEST_F(RecordsTest, ListsMayBeStoredOneByOne) {
  // Numbers that are not packed, a field that nobody knows, the last of two entries with one name, of two kinds.
  auto message = [](int field, const std::string& body) {
    return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(body.size())} + body;
  };
  const std::string integers = message(3, std::string("\x08\x05\x08\x07\x12\x01x", 7));
  const std::string floats =
      message(2, std::string("\x0D\0\0\x80\x3F", 5)) + message(2, std::string("\x0D\0\0\0\x40", 5));
  auto entry = [&](const std::string& feature) { return message(1, message(1, "n") + message(2, feature)); };
  data::Example example = data::Example::parse(message(1, entry(integers)));
  EXPECT_EQ(example.integers("n"), (std::vector<std::int64_t>{5, 7}));
  example = data::Example::parse(message(1, entry(integers) + entry(floats)) + message(7, "x"));
  EXPECT_EQ(example.floats("n"), (std::vector<float>{1, 2}));
}

TEST_F(RecordsTest, AnIntegerThatIsNoI64IsRefused) {
  data::Example example;
  example.set("a", std::uint64_t{1} << 62).set("b", true).set("c", 'x').set("d", std::int8_t{-3});
  EXPECT_EQ(example.integers("a"), (std::vector<std::int64_t>{std::int64_t{1} << 62}));
  EXPECT_EQ(example.integers("b"), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(example.integers("c"), (std::vector<std::int64_t>{'x'}));
  EXPECT_EQ(example.integers("d"), (std::vector<std::int64_t>{-3}));
  EXPECT_CONTAINS(
      error_of([&] { example.set("y", ~std::uint64_t{0}); }),
      "Example: feature 'y' cannot hold 18446744073709551615: integers are i64, at most 9223372036854775807");
  EXPECT_FALSE(example.features.contains("y"));
}

TEST_F(RecordsTest, ErrorsOfExamples) {
  auto of = [](const std::string& bytes) { return error_of([&] { data::Example::parse(bytes); }); };
  EXPECT_CONTAINS(of("\x0A\x05x"),
                  "Example: the record is no tf.train.Example: it ends in a field of 5 bytes, at byte 2");
  EXPECT_CONTAINS(of("\x0A"), "it ends in a number, at byte 1");
  EXPECT_CONTAINS(of(std::string(11, '\xFF')), "a number has more than 10 bytes, at byte 10");
  EXPECT_CONTAINS(of("\x08\x01"), "the list of features is stored in way 0, not 2, at byte 1");
  EXPECT_CONTAINS(of(std::string("\0\1", 2)), "a field has number 0, at byte 1");
  EXPECT_CONTAINS(of("\x0B"), "the list of features is stored in way 3, not 2");
  EXPECT_CONTAINS(of("\x13"), "a field is stored in way 3");
  EXPECT_CONTAINS(of("\x0A\x09\x0A\x07\x12\x05\x12\x03\x0A\x01x"), "a list of floating numbers has 1 bytes");
  data::Example example;
  example.set("a", 3).set("b", "x").set("c", data::Example::Strings{"x", "y"});
  EXPECT_CONTAINS(error_of([&] { example.floats("a"); }),
                  "Example::floats: feature 'a' holds integers, not floating numbers");
  EXPECT_CONTAINS(error_of([&] { example.floats("z"); }), "Example::floats: there is no feature 'z'");
  EXPECT_CONTAINS(error_of([&] { example.floats("z"); }), "it has 'a', 'b', 'c'");
  auto parse = [&](const data::FeatureSpecs& specs) {
    return error_of([&] { data::parse_example(example.serialize(), specs); });
  };
  EXPECT_CONTAINS(parse({{"z", {}}}), "parse_example: there is no feature 'z' in the record");
  EXPECT_CONTAINS(parse({{"a", {}}}), "parse_example: feature 'a' holds integers, not floating numbers");
  EXPECT_CONTAINS(parse({{"a", {.dtype = i64, .shape = {2}}}}),
                  "parse_example: feature 'a' has 1 element, its shape is [2]");
  EXPECT_CONTAINS(parse({{"a", {.dtype = i32}}}), "parse_example: feature 'a' is to be i32");
  EXPECT_CONTAINS(parse({{"a", {.dtype = i64, .shape = {-1}}}}), "feature 'a' has size -1");
  EXPECT_CONTAINS(parse({{"a", {.dtype = i64, .shape = {2}, .variable = true}}}),
                  "is variable, and has a shape or a default value");
  EXPECT_CONTAINS(parse({{"b", {.dtype = u8, .shape = {2}}}}), "is a string of bytes with a shape");
  EXPECT_CONTAINS(parse({{"c", {.dtype = u8}}}), "feature 'c' has 2 strings of bytes, not one");
  // A default is looked at whether it is needed or not: it takes the feature's place as it is.
  for (const char* name : {"a", "z"}) {
    const std::string feature = std::string("parse_example: feature '") + name + "' is ";
    EXPECT_CONTAINS(parse({{name, {.dtype = u8, .default_value = tensor(1.5f)}}}),
                    feature + "u8[n], its default_value f32[]");
    EXPECT_CONTAINS(parse({{name, {.dtype = u8, .default_value = zeros({2, 2}, u8)}}}), "its default_value u8[2,2]");
    EXPECT_CONTAINS(parse({{name, {.dtype = i64, .default_value = tensor(1.5f)}}}),
                    feature + "i64[], its default_value f32[]");
    EXPECT_CONTAINS(parse({{name, {.shape = {3}, .default_value = tensor({1.f, 2.f})}}}),
                    feature + "f32[3], its default_value f32[2]");
    EXPECT_CONTAINS(parse({{name, {.shape = {3}, .default_value = tensor({1.f, 2.f})}}}),
                    "give it in the shape of the feature, or one number for all");
  }
  EXPECT_CONTAINS(parse({{"a", {.shape = {INT64_MAX, 2, 0}}}}),
                  "has the shape [9223372036854775807,2,0], which is too large");
  EXPECT_CONTAINS(error_of([] { data::Example::parse(tensor({1.f})); }),
                  "bytes are expected as u8[n], the tensor is f32[1]");
  EXPECT_CONTAINS(error_of([] { data::Example::parse(Tensor()); }), "bytes are expected, the tensor is undefined");
}

/// As they are in a pipeline: parsed by host code, on several threads.
TEST_F(RecordsTest, ExamplesInAPipeline) {
  data::TFRecordWriter writer(path("a"));
  for (int i = 0; i < 6; ++i) {
    data::Example example;
    example.set("image", data::encode_png(full({2, 3, 1}, i, u8))).set("label", i);
    writer.write(example.serialize());
  }
  writer.close();
  auto records = data::tfrecord(path("a"));
  auto parsed = [](const Tensor& record) {
    auto features = data::parse_example(record, {{"image", {.dtype = u8}}, {"label", {.dtype = i64}}});
    return std::pair(data::decode_png(features.at("image")), features.at("label"));
  };
  std::int64_t next = 0;
  for (auto [images, labels] : records.map_host(parsed, {.num_parallel_calls = 2}).batch(3)) {
    EXPECT_EQ(type_text(images), "u8[3,2,3,1]");
    for (std::int64_t label : labels.to_vector<std::int64_t>()) EXPECT_EQ(label, next++);
  }
  EXPECT_EQ(next, 6);
  const std::string error = error_of([&] {
    for (auto [image, label] : records.map(parsed)) (void)image, (void)label;
  });
  EXPECT_CONTAINS(error, "do not exist while 'map' is being traced");
  EXPECT_CONTAINS(error, "decode in map_host(), whose code is called for every element and not traced");
}

TEST_F(RecordsTest, WriterAndReader) {
  std::vector<std::string> written;
  std::mt19937 draw(2);
  for (int i = 0; i < 200; ++i) {
    std::string record(draw() % 50 ? draw() % 300 : 300'000, 0);
    for (char& c : record) c = static_cast<char>(i % 3 ? draw() : 'a');
    written.push_back(record);
  }
  for (const char* compression : {"NONE", "GZIP", "ZLIB"}) {
    data::TFRecordWriter writer(path("a.tfrecord"), {.compression = compression});
    for (const std::string& record : written) writer.write(record);
    EXPECT_EQ(writer.count(), 200);
    EXPECT_TRUE(!std::filesystem::exists(path("a.tfrecord")) || compression != std::string("NONE"));
    writer.close();
    writer.close();
    EXPECT_CONTAINS(error_of([&] { writer.write(std::string("x")); }), "a.tfrecord' is closed");
    EXPECT_TRUE(records(data::tfrecord(path("a.tfrecord"))) == written) << compression;
  }
  // As TensorFlow wrote it.
  data::TFRecordWriter same(path("b.tfrecord"));
  for (const std::string& record : records(data::tfrecord(stored("examples.tfrecord")))) same.write(record);
  same.close();
  EXPECT_TRUE(bytes_of(path("b.tfrecord")) == bytes_of(stored("examples.tfrecord")));
}

TEST_F(RecordsTest, WriterClosesAtItsEndButNotAfterAnException) {
  {
    data::TFRecordWriter writer(path("a"));
    writer.write(tensor(std::vector<std::uint8_t>{1, 2}));
  }
  EXPECT_EQ(records(data::tfrecord(path("a"))), (std::vector<std::string>{"\x01\x02"}));
  try {
    data::TFRecordWriter writer(path("b"));
    writer.write(std::string("x"));
    throw 1;
  } catch (int) {
  }
  EXPECT_FALSE(std::filesystem::exists(path("b")));
  data::TFRecordWriter first(path("c"));
  first.write(std::string("1"));
  first = data::TFRecordWriter(path("d"));
  EXPECT_EQ(records(data::tfrecord(path("c"))).size(), 1u);
  data::TFRecordWriter moved = std::move(first);
  EXPECT_CONTAINS(error_of([&] { first.write(std::string("x")); }), "is closed");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 3);  // a, c, and what is to be d
}

TEST_F(RecordsTest, DamagedFilesAreErrors) {
  const std::string good = bytes_of(stored("examples.tfrecord"));
  auto of = [&](const std::string& bytes, data::TFRecordOptions options = {}) {
    write("a.tfrecord", bytes);
    return error_of([&] { records(data::tfrecord(path("a.tfrecord"), options)); });
  };
  EXPECT_EQ(of(good), "no error");
  EXPECT_EQ(of(""), "no error");
  EXPECT_CONTAINS(of(good.substr(0, 5)), "tfrecord: '");
  EXPECT_CONTAINS(of(good.substr(0, 5)), "a.tfrecord': ends in its record's header, at byte 5");
  EXPECT_CONTAINS(of(good.substr(0, 40)), "ends in record 0, which has ");
  EXPECT_CONTAINS(of(good.substr(0, good.size() - 1)), "ends in record 3, which has 0 bytes, at byte ");
  EXPECT_CONTAINS(of("something else entirely"),
                  "is not a TFRecord file: the first record's length has a wrong checksum, at byte 0");
  std::string bad = good;
  bad[20] ^= 1;
  EXPECT_CONTAINS(of(bad), "record 0 has a wrong checksum, at byte 0");
  bad = good;
  bad[bad.size() - 16] ^= 1;  // the length of the last
  EXPECT_CONTAINS(of(bad), "the length of record 3 has a wrong checksum");
  EXPECT_CONTAINS(of(good, {.compression = "LZ4"}), "tfrecord: compression \"LZ4\" is not known");
  EXPECT_CONTAINS(of(good, {.compression = "GZIP"}), "does not decompress (incorrect header check), at byte ");
  EXPECT_CONTAINS(of(gzip(good).substr(0, 60)), "ends in its compressed data, at byte 60");
  EXPECT_CONTAINS(of(gzip(good) + "more"), "has more behind its compressed data, at byte ");
  EXPECT_CONTAINS(of(gzip(good.substr(0, 40))), "of what it decompresses to");
  EXPECT_EQ(of(gzip(good.substr(0, 40)) + gzip(good.substr(40))), "no error");
  EXPECT_CONTAINS(error_of([&] { data::tfrecord(path("none")); }), "none': cannot be opened: No such file");
  EXPECT_CONTAINS(error_of([&] { data::tfrecord(folder); }), "': is a folder");
  EXPECT_CONTAINS(error_of([&] { data::tfrecord(std::vector<std::string>{}); }), "tfrecord: no file is named");
  EXPECT_CONTAINS(error_of([&] { data::TFRecordWriter(path("a"), {.compression = "BZ2"}); }),
                  "TFRecordWriter: compression \"BZ2\" is not known");
  EXPECT_CONTAINS(error_of([&] { data::TFRecordWriter(path("no/a")); }), "no/a': cannot be written: No such file");
}

TEST_F(RecordsTest, WithoutMemoryIsAnErrorOfTheFile) {
  SKIP_WITHOUT_LIMITS();
  const std::size_t little = std::size_t{64} << 20;
  data::Example example;
  example.set("a", data::Example::Strings(8'000'000));
  const std::string record = example.serialize();
  example = {};
  EXPECT_CONTAINS(error_with_memory(little, [&] { data::Example::parse(record); }),
                  "Example: there is no memory for what is in a record of 16000023 bytes");
  // One line, of zeros that take no room on the disk.
  const std::string file = write("a", "x");
  std::filesystem::resize_file(file, std::uintmax_t{1} << 32);
  EXPECT_CONTAINS(error_with_memory(little,
                                    [&] {
                                      for (Tensor t : data::text_lines(file, {.max_line_bytes = INT64_MAX})) (void)t;
                                    }),
                  "text_lines: '" + file + "': there is no memory for what is in it");
}

/// CRC-32C bit by bit, turned as the format has it.
std::uint32_t checksum(const std::string& bytes) {
  std::uint32_t sum = ~0u;
  for (unsigned char c : bytes) {
    sum ^= c;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0x82F63B78 : 0);
  }
  sum = ~sum;
  return (sum >> 15 | sum << 17) + 0xA282EAD8;
}

TEST_F(RecordsTest, ARecordThatClaimsMuchCostsLittle) {
  // A right checksum of the length, plain and in a gzip file of a few bytes.
  for (unsigned shift : {62u, 40u, 25u, 16u}) {
    const std::uint64_t length = std::uint64_t{1} << shift;
    std::string head(reinterpret_cast<const char*>(&length), 8);
    const std::uint32_t sum = checksum(head);
    head.append(reinterpret_cast<const char*>(&sum), 4);
    for (bool compressed : {false, true}) {
      const std::string file = write("a", compressed ? gzip(head + "data") : head + "data");
      reset_peak_memory();
      const std::size_t before = memory_statistics().peak_bytes;
      EXPECT_CONTAINS(error_of([&] { records(data::tfrecord(file)); }), "ends in record 0, which has ");
      EXPECT_LT(memory_statistics().peak_bytes, before + (1 << 20));
    }
  }
}

TEST_F(RecordsTest, TextLines) {
  EXPECT_EQ(records(data::text_lines(write("a.txt", "one\ntwo\r\n\nfour"))),
            (std::vector<std::string>{"one", "two", "", "four"}));
  EXPECT_EQ(records(data::text_lines(write("b.txt", "one\n"))), (std::vector<std::string>{"one"}));
  EXPECT_TRUE(records(data::text_lines(write("c.txt", ""))).empty());
  EXPECT_EQ(records(data::text_lines(write("d.gz", gzip("x\ny\n")))), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(records(data::text_lines({path("b.txt"), path("c.txt"), path("d.gz")})),
            (std::vector<std::string>{"one", "x", "y"}));
  // Lines that go over the ends of what is read at once.
  std::vector<std::string> lines;
  std::string all;
  std::mt19937 draw(9);
  while (all.size() < 1'000'000) {
    lines.emplace_back(draw() % 100 ? draw() % 200 : draw() % 300'000, 'a');
    if (!lines.back().empty() && draw() % 5 == 0) lines.back().back() = '\r';
    all += lines.back() + "\n";
    if (lines.back().ends_with('\r')) lines.back().pop_back();
  }
  EXPECT_TRUE(records(data::text_lines(write("e.txt", all))) == lines);
  EXPECT_TRUE(records(data::text_lines(write("e.gz", gzip(all)))) == lines);
  EXPECT_CONTAINS(
      error_of([&] { records(data::text_lines(write("f.txt", "one\ntwo\n\nfour"), {.max_line_bytes = 3})); }),
      "f.txt': line 4 is longer than 3 bytes, at byte 9");
  EXPECT_CONTAINS(error_of([&] { data::text_lines(path("a.txt"), {.max_line_bytes = -1}); }),
                  "text_lines: max_line_bytes is -1");
  EXPECT_CONTAINS(error_of([&] { data::text_lines(path("none")); }), "text_lines: '");
  EXPECT_CONTAINS(error_of([&] { records(data::text_lines(path("none"))); }), "cannot be opened");
}

TEST_F(RecordsTest, AFileThatGoesAwayIsAnErrorInItsPlace) {
  write("a.txt", "1\n2\n");
  write("b.txt", "3\n");
  auto dataset = data::text_lines({path("a.txt"), path("b.txt")});
  std::filesystem::remove(path("b.txt"));
  std::vector<std::string> got;
  EXPECT_CONTAINS(error_of([&] {
                    for (Tensor line : dataset.prefetch(2)) got.push_back(text_of(line));
                  }),
                  "b.txt': cannot be opened");
  EXPECT_EQ(got, (std::vector<std::string>{"1", "2"}));
}

TEST_F(RecordsTest, IterationsThatEndEarlyCloseTheirFiles) {
  auto open_files = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  std::string rows = "x,y\n";
  for (int i = 0; i < 1000; ++i) rows += std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  const std::string file = write("a.csv", rows);
  auto table = data::csv(file, {.label = "y"});
  auto lines = data::text_lines({file, file});
  for (Tensor line : lines.prefetch(2)) {  // what a thread keeps for its first use is opened now
    (void)line;
    break;
  }
  const auto before = open_files();
  for (int i = 0; i < 20; ++i) {
    for (Tensor line : lines.prefetch(3)) {
      (void)line;
      break;
    }
    for (auto [x, y] : table.batch(10).prefetch(3)) {
      (void)x, (void)y;
      break;
    }
    for (Tensor record : data::tfrecord(stored("examplesGZIP.tfrecord"))) {
      (void)record;
      break;
    }
    error_of([&] { records(data::tfrecord(file)); });
    error_of([&] { data::read_image(file); });
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(RecordsTest, AreReadByManyThreads) {
  std::string rows = "x,y\n";
  for (int i = 0; i < 2000; ++i) rows += std::to_string(i) + ",c" + std::to_string(i % 7) + "\n";
  auto table = data::csv(write("a.csv", rows), {.label = "y"});
  auto examples = data::tfrecord(stored("examplesZLIB.tfrecord"));
  const std::vector<std::string> expected = records(examples);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::int64_t count = 0;
      for (auto [x, y] : table) {
        if (x.item<int>() != count || y.item<int>() != count % 7) ADD_FAILURE() << count;
        ++count;
      }
      EXPECT_EQ(count, 2000);
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(records(examples) == expected);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RecordsTest, AFullDiskLeavesNoFile) {
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 100'000;
  std::string writing, closing;
  {
    data::TFRecordWriter writer(path("a.tfrecord"));
    writer.write("small");
    setrlimit(RLIMIT_FSIZE, &small);
    writing = error_of([&] { writer.write(std::string(1'000'000, 'x')); });
    closing = error_of([&] { writer.close(); });
    setrlimit(RLIMIT_FSIZE, &old);
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_CONTAINS(writing, "a.tfrecord': cannot be written: File too large");
  EXPECT_CONTAINS(closing, "a.tfrecord': a record could not be written");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(RecordsTest, FilesOfAPattern) {
  for (const char* name : {"b.txt", "a.txt", "c.csv", ".hidden.txt"}) write(name, "");
  std::filesystem::create_directory(path("folder.txt"));
  EXPECT_EQ(data::files(folder + "/*.txt"), (std::vector<std::string>{path("a.txt"), path("b.txt")}));
  EXPECT_EQ(data::files(folder + "/[bc].*"), (std::vector<std::string>{path("b.txt"), path("c.csv")}));
  EXPECT_CONTAINS(error_of([&] { data::files(folder + "/*.png"); }), "files: no file matches '");
  EXPECT_CONTAINS(error_of([&] { data::files(folder + "/folder.txt"); }), "files: no file matches '");
  EXPECT_CONTAINS(error_of([&] { data::files(std::string("a\0b", 3)); }), "files: there is a zero byte in the pattern");
}

TEST_F(RecordsTest, MutatedFilesAreReadOrRefused) {
  std::mt19937 draw(4);
  const std::string seeds[] = {bytes_of(stored("examples.tfrecord")), bytes_of(stored("examplesGZIP.tfrecord")),
                               bytes_of(stored("examplesZLIB.tfrecord"))};
  for (int i = 0, count = mutations(400); i < count; ++i) {
    const std::string file = write("a", mutated(seeds[i % 3], draw));
    try {
      records(data::tfrecord(file));
    } catch (const UserError& error) {
      EXPECT_CONTAINS(std::string(error.what()), "tfrecord: '");
    }
  }
  const std::string record = records(data::tfrecord(stored("examples.tfrecord")))[2];
  int parsed = 0;
  for (int i = 0, count = mutations(20'000); i < count; ++i) {
    try {
      data::Example example = data::Example::parse(mutated(record, draw));
      ++parsed;
      EXPECT_TRUE(data::Example::parse(example.serialize()).features.size() == example.features.size());
    } catch (const UserError& error) {
      EXPECT_CONTAINS(std::string(error.what()), "Example: the record is no tf.train.Example: ");
    }
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace stet
