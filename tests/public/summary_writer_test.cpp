// Event files for TensorBoard, read back by a reader of the tests' own. tests/oracle/tensorboard/check_events.py reads
// them with TensorBoard.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <optional>
#include <regex>
#include <thread>

#include "event_files.h"
#include "forks.h"
#include "profile_files.h"
#include "stet/stet.h"

namespace stet {
namespace {

using event_files::Value;

class SummaryWriterTest : public FilesTest {
 protected:
  event_files::EventFile events() const { return event_files::read_folder(folder); }
};

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_F(SummaryWriterTest, AFileBeginsWithItsVersionAndHasANameThatIsFound) {
  SummaryWriter writer(folder + "/a/b");
  EXPECT_EQ(event_files::files_in(folder + "/a/b"), std::vector{writer.path()});
  const std::string name = std::filesystem::path(writer.path()).filename();
  EXPECT_TRUE(std::regex_match(
      name, std::regex("events\\.out\\.tfevents\\.[0-9]{10}\\..+\\." + std::to_string(::getpid()) + "\\.[0-9]+\\.v2")))
      << name;
  const event_files::EventFile read = event_files::read(writer.path());
  EXPECT_EQ(read.version, "brain.Event:2");
  EXPECT_EQ(read.writer, "stet");
  EXPECT_EQ(read.rest, "");
  // Of one second and one process; a slash at the end is no part of a name.
  SummaryWriter other(folder + "/a/b/");
  EXPECT_NE(writer.path(), other.path());
  EXPECT_EQ(event_files::files_in(folder + "/a/b").size(), 2u);
}

TEST_F(SummaryWriterTest, Scalars) {
  SummaryWriter writer(folder);
  writer.scalar("loss", 0.5, 0);
  writer.scalar("loss", tensor({{2.25f}}), 1);
  writer.scalar("loss", tensor({7, 8, 9})[1], 2);
  writer.scalar("loss", tensor({true}), 3);
  writer.scalar("loss", tensor({1.5}).cast(f16), -4);
  writer.scalar("loss", Variable(tensor({3.f})), std::int64_t{1} << 40);
  writer.scalar("loss", NAN, 5);
  writer.scalar("loss", infinity, 6);
  writer.scalar("loss", -infinity, 7);
  writer.scalar("größe/é \"x\"", 1e300, 8);  // beyond f32
  const event_files::EventFile read = events();
  const std::vector<Value> loss = read.of("loss");
  const std::vector<float> expected{0.5f, 2.25f, 8, 1, 1.5f, 3, NAN, INFINITY, -INFINITY};
  const std::vector<std::int64_t> steps{0, 1, 2, 3, -4, std::int64_t{1} << 40, 5, 6, 7};
  ASSERT_EQ(loss.size(), expected.size());
  for (std::size_t i = 0; i < loss.size(); ++i) {
    EXPECT_EQ(loss[i].step, steps[i]);
    EXPECT_EQ(loss[i].plugin, "scalars");
    EXPECT_EQ(loss[i].data_class, 1);
    EXPECT_EQ(loss[i].dtype, 1);  // DT_FLOAT
    EXPECT_TRUE(loss[i].sizes.empty());
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(loss[i].number()));
    else
      EXPECT_EQ(loss[i].number(), expected[i]);
  }
  EXPECT_EQ(read.of("größe/é \"x\"").at(0).number(), INFINITY);
  EXPECT_TRUE(std::is_sorted(read.times.begin(), read.times.end()));
  EXPECT_EQ(read.rest, "");
}

TEST_F(SummaryWriterTest, ScalarsThatAreNone) {
  SummaryWriter writer(folder);
  EXPECT_CONTAINS(error_of([&] { writer.scalar("loss", ones({2}), 0); }),
                  "scalar 'loss': f32[2] is not one number\n  at ");
  EXPECT_CONTAINS(error_of([&] { writer.scalar("loss", ones({2}), 0); }),
                  "fix: write its mean, or all of it with histogram()");
  EXPECT_CONTAINS(error_of([&] { writer.scalar("loss", zeros({0}), 0); }), "scalar 'loss': f32[0] is not one number");
  EXPECT_CONTAINS(error_of([&] { writer.scalar("loss", Tensor(), 0); }), "scalar 'loss'");
  EXPECT_CONTAINS(error_of([&] { writer.scalar("", 1, 0); }),
                  "scalar: the tag is empty\n  at tests/public/summary_writer_test.cpp:");
  EXPECT_CONTAINS(error_of([&] { writer.scalar("", 1, 0); }), "fix: name what is written, as in \"loss\"");
  EXPECT_CONTAINS(error_of([&] { writer.scalar("a\xFF", 1, 0); }), "scalar: the tag 'a\\xff' is not UTF-8");
  // Nothing of it is in the file.
  EXPECT_TRUE(events().values.empty());
}

/// Edges and counts, [left, right, count] each.
std::vector<std::array<double, 3>> buckets_of(const Value& value) {
  EXPECT_EQ(value.plugin, "histograms");
  EXPECT_EQ(value.data_class, 2);
  EXPECT_EQ(value.dtype, 2);  // DT_DOUBLE
  EXPECT_EQ(value.sizes.size(), 2u);
  EXPECT_EQ(value.sizes.at(1), 3);
  const std::vector<double> all = event_files::numbers<double>(value.elements);
  EXPECT_EQ(static_cast<std::int64_t>(all.size()), value.sizes[0] * 3);
  std::vector<std::array<double, 3>> out;
  for (std::size_t i = 0; i + 2 < all.size(); i += 3) out.push_back({all[i], all[i + 1], all[i + 2]});
  return out;
}

using Buckets = std::vector<std::array<double, 3>>;

TEST_F(SummaryWriterTest, Histograms) {
  SummaryWriter writer(folder);
  writer.histogram("h", tensor({0.f, 1.f, 2.f, 3.f, 10.f}), 3, {.buckets = 5});
  writer.histogram("h", tensor({{4, 4}, {4, 4}}), 4, {.buckets = 3});
  writer.histogram("h", zeros({0, 7}), 5, {.buckets = 2});
  writer.histogram("h", tensor<double>({NAN, 1, infinity, 2, -infinity}), 6, {.buckets = 2});
  writer.histogram("h", tensor<double>({NAN, infinity}), 7, {.buckets = 1});
  writer.histogram("h", tensor({true, false, true}), 8, {.buckets = 2});
  writer.histogram("h", tensor({{1.f, 2.f}, {3.f, 4.f}})[{Range{}, 1}], 9, {.buckets = 1});
  const std::vector<Value> h = events().of("h");
  ASSERT_EQ(h.size(), 7u);
  EXPECT_EQ(buckets_of(h[0]), (Buckets{{0, 2, 2}, {2, 4, 2}, {4, 6, 0}, {6, 8, 0}, {8, 10, 1}}));
  EXPECT_EQ(buckets_of(h[1]), (Buckets{{4, 4, 0}, {4, 4, 0}, {4, 4, 4}}));
  EXPECT_EQ(buckets_of(h[2]), (Buckets{{0, 0, 0}, {0, 0, 0}}));
  EXPECT_EQ(buckets_of(h[3]), (Buckets{{1, 1.5, 1}, {1.5, 2, 1}}));
  EXPECT_EQ(buckets_of(h[4]), (Buckets{{0, 0, 0}}));
  EXPECT_EQ(buckets_of(h[5]), (Buckets{{0, 0.5, 1}, {0.5, 1, 2}}));
  EXPECT_EQ(buckets_of(h[6]), (Buckets{{2, 4, 2}}));
  EXPECT_EQ(h[6].step, 9);
}

TEST_F(SummaryWriterTest, HistogramsOfAnyNumbersCountAllOfThem) {
  SummaryWriter writer(folder);
  random::seed(3);
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  const std::vector<Tensor> all{
      random::normal({1000}),
      random::normal({1000}) * 1e-30f,
      tensor<double>({-most, 0, most}),
      tensor<double>({0, least}),
      tensor<double>({least, 2 * least, 3 * least}),
      tensor<double>({1, 1 + std::numeric_limits<double>::epsilon()}),
      tensor<std::int64_t>({std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()})};
  for (std::size_t i = 0; i < all.size(); ++i) writer.histogram("h", all[i], static_cast<std::int64_t>(i));
  const std::vector<Value> h = events().of("h");
  ASSERT_EQ(h.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Buckets buckets = buckets_of(h[i]);
    ASSERT_EQ(buckets.size(), 30u);
    double count = 0;
    for (std::size_t k = 0; k < buckets.size(); ++k) {
      EXPECT_TRUE(std::isfinite(buckets[k][0]) && std::isfinite(buckets[k][1])) << i << " " << k;
      EXPECT_LE(buckets[k][0], buckets[k][1]) << i << " " << k;
      EXPECT_EQ(buckets[k][0], buckets[k > 0 ? k - 1 : 0][k > 0 ? 1 : 0]) << i << " " << k;
      count += buckets[k][2];
    }
    const std::vector<double> values = all[i].to_vector<double>();
    EXPECT_EQ(count, static_cast<double>(values.size())) << i;
    EXPECT_EQ(buckets.front()[0], *std::min_element(values.begin(), values.end())) << i;
    EXPECT_EQ(buckets.back()[1], *std::max_element(values.begin(), values.end())) << i;
    EXPECT_GT(buckets.back()[2], 0) << i;
  }
  EXPECT_CONTAINS(error_of([&] { writer.histogram("h", ones({3}), 0, {.buckets = 0}); }),
                  "histogram 'h': buckets = 0\n");
  EXPECT_CONTAINS(error_of([&] { writer.histogram("h", ones({3}), 0, {.buckets = 200'000}); }),
                  "fix: it is from 1 to 100000");
}

TEST_F(SummaryWriterTest, Images) {
  SummaryWriter writer(folder);
  const Tensor grey = tensor<std::uint8_t>(std::vector<std::uint8_t>{0, 1, 2, 3, 254, 255}, {2, 3, 1});
  writer.image("one", grey, 1);
  writer.image("floating", reshape(tensor({-1.f, 0.f, 0.5f, 1.f, 7.f, NAN, 0.25f, INFINITY}), {2, 1, 1, 4}), 2);
  writer.image("many", zeros({5, 2, 2, 3}, u8), 3);
  writer.image("more", zeros({5, 2, 2, 2}, u8), 4, {.max_outputs = 10});
  writer.image("none", zeros({0, 2, 2, 2}, u8), 5);
  writer.image("half", full({1, 1, 3}, 0.5, f16), 6);
  writer.image("wide", ones({1, 70'000, 1}), 7);
  writer.image("high", ones({70'001, 1, 3}), 8);
  writer.image("view", transpose(grey, {1, 0, 2}), 9);
  const event_files::EventFile read = events();
  auto pixels = [&](const char* tag, std::size_t number) {
    return data::decode_png(read.of(tag).at(0).strings.at(2 + number));
  };
  const Value one = read.of("one").at(0);
  EXPECT_EQ(one.plugin, "images");
  EXPECT_EQ(one.data_class, 3);
  EXPECT_EQ(one.dtype, 7);  // DT_STRING
  EXPECT_EQ(one.sizes, std::vector<std::int64_t>{3});
  EXPECT_EQ(one.strings.at(0), "3");  // width
  EXPECT_EQ(one.strings.at(1), "2");
  expect_same(pixels("one", 0), grey);
  expect_same(pixels("view", 0), transpose(grey, {1, 0, 2}));
  EXPECT_EQ(pixels("floating", 0).to_vector<int>(), (std::vector<int>{0, 0, 128, 255}));
  EXPECT_EQ(pixels("floating", 1).to_vector<int>(), (std::vector<int>{255, 0, 64, 255}));
  EXPECT_EQ(read.of("many").at(0).strings.size(), 2 + 3u);
  EXPECT_EQ(read.of("more").at(0).strings.size(), 2 + 5u);
  EXPECT_EQ(pixels("more", 4).shape(), Shape({2, 2, 2}));
  EXPECT_EQ(read.of("none").at(0).strings, (std::vector<std::string>{"2", "2"}));
  EXPECT_EQ(pixels("half", 0).to_vector<int>(), (std::vector<int>{128, 128, 128}));
  EXPECT_EQ(pixels("wide", 0).shape(), Shape({1, 70'000, 1}));
  EXPECT_EQ(pixels("high", 0).shape(), Shape({70'001, 1, 3}));
}

TEST_F(SummaryWriterTest, ImagesThatAreNone) {
  SummaryWriter writer(folder);
  for (const Tensor& wrong : {zeros({2, 2}), zeros({1, 2, 2, 2, 2}), zeros({2, 2, 5}), zeros({0, 2, 1}),
                              zeros({2, 2, 2, 0}), zeros({2, 2, 1}, i32), zeros({2, 2, 1}, bool_)})
    EXPECT_CONTAINS(error_of([&] { writer.image("i", wrong, 0); }), "image 'i': " + type_text(wrong) + " is no image");
  EXPECT_CONTAINS(
      error_of([&] {
        writer.image("i", zeros({2, 2}), 0);
      }),
      "fix: it is [batch, height, width, channels] or [height, width, channels] with 1 to 4 channels, of u8 "
      "or a floating type; reshape() adds an axis");
  EXPECT_CONTAINS(error_of([&] {
                    writer.image("i", zeros({2, 2, 1}), 0, {.max_outputs = 0});
                  }),
                  "image 'i': max_outputs = 0");
  EXPECT_TRUE(events().values.empty());
}

TEST_F(SummaryWriterTest, Texts) {
  SummaryWriter writer(folder);
  writer.text("note", "# A *head*\n", 1);
  writer.text("note", "", 2);
  writer.text("note", std::string("a\0b", 3), 3);
  writer.text("note", std::string(1'000'000, 'x'), 4);
  writer.table("table", {{"name", "value"}, {"rate", "0.1"}, {"", "<b>"}}, 5);
  writer.table("table", {{"one"}}, 6);
  const event_files::EventFile read = events();
  const std::vector<Value> notes = read.of("note");
  ASSERT_EQ(notes.size(), 4u);
  EXPECT_EQ(notes[0].plugin, "text");
  EXPECT_EQ(notes[0].data_class, 2);
  EXPECT_EQ(notes[0].dtype, 7);
  EXPECT_EQ(notes[0].strings, std::vector<std::string>{"# A *head*\n"});
  EXPECT_TRUE(notes[0].sizes.empty());
  EXPECT_EQ(notes[1].strings, std::vector<std::string>{""});
  EXPECT_EQ(notes[2].strings[0].size(), 3u);
  EXPECT_EQ(notes[3].strings[0].size(), 1'000'000u);
  const std::vector<Value> tables = read.of("table");
  EXPECT_EQ(tables.at(0).sizes, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(tables.at(0).strings, (std::vector<std::string>{"name", "value", "rate", "0.1", "", "<b>"}));
  EXPECT_EQ(tables.at(1).sizes, (std::vector<std::int64_t>{1, 1}));

  EXPECT_CONTAINS(error_of([&] { writer.text("t", "\xC0\xAF", 0); }), "text: the text '\\xc0\\xaf' is not UTF-8");
  EXPECT_CONTAINS(error_of([&] { writer.table("t", {}, 0); }), "table 't' has no cells");
  EXPECT_CONTAINS(error_of([&] { writer.table("t", {{}, {}}, 0); }), "table 't' has no cells");
  EXPECT_CONTAINS(error_of([&] {
                    writer.table("t", {{"a", "b"}, {"c"}}, 0);
                  }),
                  "table 't': row 1 has another number of cells, 1, than row 0, 2");
  EXPECT_CONTAINS(error_of([&] { writer.table("t", {{"\xFF"}}, 0); }), "table: the cell '\\xff' is not UTF-8");
}

/// The one value of a tag of the plugin "hparams": what stands in its metadata under a number.
event_files::Message hparams_of(const event_files::EventFile& file, const std::string& tag, unsigned number) {
  const std::vector<Value> found = file.of(tag);
  EXPECT_EQ(found.size(), 1u) << tag;
  EXPECT_EQ(found.at(0).plugin, "hparams");
  return event_files::Message(found.at(0).content).message(number);
}

TEST_F(SummaryWriterTest, Hyperparameters) {
  {
    SummaryWriter writer(folder);
    writer.hparams({{"rate", 0.1}, {"layers", 3}, {"bias", true}, {"optimizer", "adam"}},
                   {.metrics = {"accuracy", {"epoch_loss", "validation", "loss"}}, .trial = "first"});
    EXPECT_CONTAINS(error_of([&] {
                      writer.hparams({{"rate", 0.2}});
                    }),
                    "hparams: this run has hyperparameters already\n");
    EXPECT_TRUE(events().of("_hparams_/session_end_info").empty());
    writer.scalar("accuracy", 0.5, 1);
  }
  const event_files::EventFile read = events();
  const event_files::Message experiment = hparams_of(read, "_hparams_/experiment", 2);
  std::map<std::string, std::uint64_t> types;
  for (const event_files::Message& info : experiment.messages(4)) types[info.bytes(1)] = info.integer(4);
  EXPECT_EQ(types, (std::map<std::string, std::uint64_t>{{"bias", 2}, {"layers", 3}, {"optimizer", 1}, {"rate", 3}}));
  const std::vector<event_files::Message> metrics = experiment.messages(5);
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0].message(1).bytes(2), "accuracy");
  EXPECT_EQ(metrics[1].message(1).bytes(1), "validation");
  EXPECT_EQ(metrics[1].message(1).bytes(2), "epoch_loss");
  EXPECT_EQ(metrics[1].bytes(3), "loss");

  const event_files::Message start = hparams_of(read, "_hparams_/session_start_info", 3);
  EXPECT_EQ(start.bytes(4), "first");
  std::map<std::string, event_files::Message> values;
  for (const event_files::Message& entry : start.messages(1)) values.emplace(entry.bytes(1), entry.message(2));
  EXPECT_EQ(values.at("rate").real(2), 0.1);
  EXPECT_EQ(values.at("layers").real(2), 3);
  EXPECT_EQ(values.at("bias").integer(4), 1u);
  EXPECT_EQ(values.at("optimizer").bytes(3), "adam");
  EXPECT_EQ(hparams_of(read, "_hparams_/session_end_info", 4).integer(1), 1u);  // a success
}

TEST_F(SummaryWriterTest, ATrialThatAnExceptionEndedHasNotEnded) {
  try {
    SummaryWriter writer(folder);
    writer.hparams({{"rate", 0.1}});
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
  }
  const event_files::EventFile read = events();
  EXPECT_EQ(read.tags(), std::set<std::string>{"_hparams_/session_start_info"});
  const std::string name(1, '\xFF');
  SummaryWriter writer(folder + "/other");
  EXPECT_CONTAINS(error_of([&] { writer.hparams({{"", 1}}); }), "hparams: a hyperparameter has no name");
  EXPECT_CONTAINS(error_of([&] { writer.hparams({{name, 1}}); }), "hparams: the name '\\xff' is not UTF-8");
  EXPECT_CONTAINS(error_of([&] { writer.hparams({{"a", name}}); }), "hparams: 'a' = '\\xff' is not UTF-8");
  EXPECT_CONTAINS(error_of([&] { writer.hparams({{"a", 1}}, {.metrics = {""}}); }), "hparams: a metric has no tag");
  writer.hparams({{"a", 1}});  // none of those was this run's
  writer.close();
  EXPECT_EQ(event_files::read(writer.path()).of("_hparams_/session_end_info").size(), 1u);
}

TEST_F(SummaryWriterTest, ValuesOfOtherPlugins) {
  SummaryWriter writer(folder);
  const SummaryMetadata metadata{
      .plugin_name = "curves", .plugin_content = std::string("\x08\0", 2), .display_name = "A", .description = "*b*"};
  writer.write("t", tensor({{1, 2, 3}, {4, 5, 6}}), 7, metadata);
  writer.write("t", tensor({{1, 2, 3}, {4, 5, 6}})[{Range{}, 2}], 8, metadata);
  writer.write("t", tensor({true, false}), 9, metadata);
  writer.write_string("s", std::string("\xFF\0{}", 4), 10, metadata);
  const event_files::EventFile read = events();
  const std::vector<Value> t = read.of("t");
  ASSERT_EQ(t.size(), 3u);
  EXPECT_EQ(t[0].plugin, "curves");
  EXPECT_EQ(t[0].content, metadata.plugin_content);
  EXPECT_EQ(t[0].display_name, "A");
  EXPECT_EQ(t[0].description, "*b*");
  EXPECT_EQ(t[0].dtype, 3);  // DT_INT32
  EXPECT_EQ(t[0].sizes, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(event_files::numbers<std::int32_t>(t[0].elements), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(event_files::numbers<std::int32_t>(t[1].elements), (std::vector<std::int32_t>{3, 6}));
  EXPECT_EQ(t[2].dtype, 10);  // DT_BOOL
  EXPECT_EQ(t[2].elements, std::string("\1\0", 2));
  EXPECT_EQ(read.of("s").at(0).strings.at(0).size(), 4u);
  EXPECT_CONTAINS(error_of([&] { writer.write("t", ones({1}), 0, {}); }), "write: the plugin has no name");
  EXPECT_CONTAINS(error_of([&] { writer.write_string("s", "", 0, {.plugin_name = "\xFF"}); }),
                  "write_string: plugin_name '\\xff' is not UTF-8");
}

TEST_F(SummaryWriterTest, FoldersThatCannotBeWrittenTo) {
  write("file", "");
  EXPECT_CONTAINS(error_of([&] { SummaryWriter(path("file")); }), "SummaryWriter: '" + path("file") + "': ");
  EXPECT_CONTAINS(error_of([&] { SummaryWriter(path("file") + "/in"); }),
                  "': the folder cannot be made: Not a directory");
  EXPECT_CONTAINS(error_of([&] { SummaryWriter(path("file") + "/in"); }),
                  "fix: give a folder that you may write to, or that can be made");
  EXPECT_CONTAINS(error_of([] { SummaryWriter(""); }), "SummaryWriter: '': the path of the folder is empty");
  EXPECT_CONTAINS(error_of([] { SummaryWriter(std::string("a\0b", 3)); }), "a zero byte is in the path");
  EXPECT_CONTAINS(error_of([&] { SummaryWriter("/proc/stet"); }),
                  "SummaryWriter: '/proc/stet': the folder cannot be made");
  EXPECT_CONTAINS(error_of([&] { SummaryWriter("/proc/self"); }), "': cannot be written: ");
  EXPECT_CONTAINS(error_of([&] { SummaryWriter(path(std::string(300, 'x'))); }), "File name too long");
}

TEST_F(SummaryWriterTest, AClosedFileTakesNothingMore) {
  SummaryWriter writer(folder), copy = std::move(writer);
  writer.scalar("a", 1, 0);
  writer.flush();
  copy.close();
  writer.close();
  EXPECT_CONTAINS(error_of([&] { writer.scalar("a", 1, 1); }), writer.path() + "': is closed\n");
  EXPECT_CONTAINS(error_of([&] { writer.scalar("a", 1, 1); }), "fix: write all before close(), or make another writer");
  EXPECT_CONTAINS(error_of([&] { writer.flush(); }), "': is closed");
  EXPECT_CONTAINS(error_of([&] { writer.hparams({{"a", 1}}); }), "': is closed");
  EXPECT_EQ(events().values.size(), 1u);
}

TEST_F(SummaryWriterTest, AFullDiskLeavesWholeEvents) {
  SummaryWriter writer(folder);
  writer.scalar("a", 1, 0);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 100'000;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string failed = error_of([&] { writer.text("b", std::string(1'000'000, 'x'), 1); });
  const std::string fits = error_of([&] { writer.scalar("a", 2, 2); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_CONTAINS(failed, writer.path() + "': cannot be written: File too large");
  EXPECT_CONTAINS(failed, "fix: what was written before is there; make room, or write to another disk");
  EXPECT_EQ(fits, "no error");
  writer.scalar("a", 3, 3);
  const event_files::EventFile read = events();
  EXPECT_EQ(read.rest, "");
  EXPECT_EQ(read.tags(), std::set<std::string>{"a"});
  EXPECT_EQ(read.of("a").size(), 3u);
}

TEST_F(SummaryWriterTest, ThreadsWriteWholeEvents) {
  SummaryWriter writer(folder);
  constexpr int count = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&writer, t] {
      const std::string tag = "thread " + std::to_string(t);
      for (int i = 0; i < count; ++i) {
        writer.scalar(tag, t * 1000 + i, i);
        if (i % 50 == 0) writer.histogram(tag + "/h", ones({100}), i);
        if (i % 100 == 0) writer.text(tag + "/t", std::string(100'000, static_cast<char>('a' + t)), i);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const event_files::EventFile read = events();
  EXPECT_EQ(read.rest, "");
  for (int t = 0; t < 8; ++t) {
    const std::string tag = "thread " + std::to_string(t);
    const std::vector<Value> values = read.of(tag);
    ASSERT_EQ(values.size(), static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(values[static_cast<std::size_t>(i)].step, i);
      EXPECT_EQ(values[static_cast<std::size_t>(i)].number(), static_cast<float>(t * 1000 + i));
    }
    EXPECT_EQ(read.of(tag + "/h").size(), 6u);
    for (const Value& text : read.of(tag + "/t"))
      EXPECT_EQ(text.strings.at(0), std::string(100'000, static_cast<char>('a' + t)));
  }
}

constexpr const char* folder_variable = "STET_SUMMARY_WRITER_TEST_FOLDER";

/// Not a test: what the process runs that is killed.
TEST(SummaryWriterKilled, DISABLED_Writing) {
  const char* folder = std::getenv(folder_variable);
  ASSERT_NE(folder, nullptr) << "this is run by SummaryWriterTest.KilledItLeavesWhatItWrote";
  SummaryWriter writer(folder);
  for (int i = 0; i < 100'000; ++i) writer.scalar("a", i, i);
  std::this_thread::sleep_for(std::chrono::seconds(20));  // it is killed long before
}

TEST_F(SummaryWriterTest, KilledItLeavesWhatItWrote) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(folder_variable, folder.c_str(), 1);
    for (const char* shard : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE"}) ::unsetenv(shard);
    ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
    ::execl("/proc/self/exe", "writing", "--gtest_also_run_disabled_tests", "--gtest_brief=1",
            "--gtest_filter=SummaryWriterKilled.DISABLED_Writing", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  // Some thousand events, which a reader sees while it writes.
  auto written = [&] {
    const std::vector<std::string> files = event_files::files_in(folder);
    return files.empty() ? std::uintmax_t{0} : std::filesystem::file_size(files[0]);
  };
  int status = 0;
  while (written() < 100'000 && ::waitpid(child, &status, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::uintmax_t before = written();
  ASSERT_EQ(::kill(child, SIGKILL), 0) << "it has ended with " << status;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_GE(written(), before);
  const std::vector<Value> values = events().of("a");
  EXPECT_GT(values.size(), 500u);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i].step, static_cast<std::int64_t>(i));
}

TEST_F(SummaryWriterTest, AfterAForkTheFileIsTheParents) {
  SKIP_WITHOUT_FORK();
  std::optional<SummaryWriter> writer(folder);
  writer->hparams({{"a", 1}});
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string refused = error_of([&] { writer->scalar("a", 1, 0); });
    const std::string flushed = error_of([&] { writer->flush(); });
    writer.reset();
    SummaryWriter own(folder + "/child");
    own.scalar("a", 2, 0);
    const bool right = refused.find("was begun before fork(), and is the parent's to write") != std::string::npos &&
                       refused.find("fix: make a writer in the child") != std::string::npos && flushed != "no error";
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  writer->scalar("a", 3, 0);
  EXPECT_EQ(events().tags(), (std::set<std::string>{"_hparams_/session_start_info", "a"}));
  EXPECT_EQ(event_files::read_folder(folder + "/child").of("a").at(0).number(), 2);
}

TEST_F(SummaryWriterTest, NothingHasAValueWhileAFunctionIsTraced) {
  SummaryWriter writer(folder);
  Function f = function("f(x)", [=](Tensor x) {
    writer.scalar("a", sum(x), 0);
    return x;
  });
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }),
                  "scalar 'a': the value of f32[] does not exist while 'f' is being traced");
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "fix: return the tensor and read it outside");
  EXPECT_TRUE(events().values.empty());
}

// --- graphs

using event_files::GraphNode;
using event_files::nodes_of;

std::set<std::string> names_of(const std::map<std::string, GraphNode>& nodes) {
  std::set<std::string> out;
  for (const auto& [name, node] : nodes) out.insert(name);
  return out;
}

TEST_F(SummaryWriterTest, AGraphHasNamesOfParts) {
  SummaryWriter writer(folder);
  Variable w(ones({3, 2}));
  Function f = function("f(x, rate)", [=](Tensor x, Tensor rate) {
    Tensor h;
    {
      NameScope encoder("encoder");
      h = relu(matmul(x, w));
      NameScope inner("inner");
      h = h * rate;
    }
    w.assign_sub(ones({3, 2}));
    return std::tuple{softmax(h), h + 1};
  });
  EXPECT_CONTAINS(error_of([&] { writer.graph(f); }), "SummaryWriter::graph: there is no trace 0 of 'f'\n");
  EXPECT_CONTAINS(error_of([&] { writer.graph(f); }), "fix: call the function before");
  f(ones({4, 3}), 0.5f);
  EXPECT_CONTAINS(error_of([&] { writer.graph(f, 1); }), "there is no trace 1 of 'f'");
  EXPECT_CONTAINS(error_of([&] { writer.graph(f, -1); }), "fix: it has 1, counted from 0");
  writer.graph(f);
  const auto nodes = nodes_of(events().graphs.at(0));
  EXPECT_EQ(nodes.at("x").op, "Placeholder");
  EXPECT_EQ(nodes.at("x").shapes, (std::vector<std::vector<std::int64_t>>{{-1, -1}}));
  EXPECT_EQ(nodes.at("x").texts.at("type"), "f32[x_0,x_1]");
  EXPECT_EQ(nodes.at("rate").op, "Placeholder");
  EXPECT_EQ(nodes.at("encoder/matmul").op, "matmul");
  EXPECT_EQ(nodes.at("encoder/matmul").inputs.at(0), "x");
  EXPECT_EQ(nodes.at(nodes.at("encoder/matmul").inputs.at(1)).op, "Variable");
  EXPECT_EQ(nodes.at("encoder/relu").inputs, std::vector<std::string>{"encoder/matmul"});
  EXPECT_EQ(nodes.at("encoder/inner/multiply").inputs, (std::vector<std::string>{"encoder/relu", "rate"}));
  EXPECT_CONTAINS(nodes.at("encoder/relu").texts.at("at"), "summary_writer_test.cpp:");
  EXPECT_CONTAINS(nodes.at("encoder/relu").texts.at("type"), "f32[");
  int assigned = 0, results = 0;
  for (const auto& [name, node] : nodes) {
    assigned += node.op == "Assign";
    results += node.op == "Result";
  }
  EXPECT_EQ(assigned, 1);
  EXPECT_EQ(results, 2);
}

TEST_F(SummaryWriterTest, ScopesEndWhereTheyEnd) {
  Function f = function("f(x)", [](Tensor x) {
    try {
      NameScope broken("broken");
      throw std::runtime_error("no");
    } catch (const std::runtime_error&) {
    }
    Tensor y = exp(x);
    {
      NameScope odd("//_a b//ü/");
      y = exp(y);
      NameScope empty("");
      y = exp(y);
    }
    return exp(y);
  });
  f(ones({2}));
  SummaryWriter writer(folder);
  writer.graph(f);
  EXPECT_EQ(names_of(nodes_of(events().graphs.at(0))),
            (std::set<std::string>{"x", "exp", "a_b/exp", "a_b/exp_1", "exp_1", "result_0"}));
  // Outside of traces it does nothing.
  NameScope outside("outside");
  EXPECT_EQ(NameScope::current(), nullptr);
}

TEST_F(SummaryWriterTest, ScopesOfThreadsAreTheirOwn) {
  Function f = function("f(x)", [](Tensor x) {
    NameScope outer("outer");
    std::string inside;
    std::thread([&] {
      Function g = function("g(x)", [&](Tensor y) {
        NameScope own("own");
        if (NameScope::current()) inside = *NameScope::current();  // there is none while it runs eagerly
        return y + 1;
      });
      g(ones({2}));
    }).join();
    EXPECT_EQ(inside, "own");
    return exp(x);
  });
  f(ones({2}));
  SummaryWriter writer(folder);
  writer.graph(f);
  EXPECT_TRUE(nodes_of(events().graphs.at(0)).contains("outer/exp"));
}

TEST_F(SummaryWriterTest, GradientsStandInTheirParts) {
  Variable w(ones({3}));
  Function f = function("f(x)", [=](Tensor x) {
    GradientTape tape;
    Tensor y;
    {
      NameScope part("part");
      y = tanh(x * w);
    }
    return tape.gradient(sum(y), {w})[0];
  });
  f(ones({3}));
  SummaryWriter writer(folder);
  writer.graph(f);
  const auto nodes = nodes_of(events().graphs.at(0));
  EXPECT_TRUE(nodes.contains("part/tanh"));
  bool back = false;
  for (const auto& [name, node] : nodes) back = back || name.starts_with("gradients/part/");
  EXPECT_TRUE(back);
}

TEST_F(SummaryWriterTest, BranchesAndLoopsAreBoxes) {
  Function f = function("f(x, n)", [](Tensor x, Tensor n) {
    NameScope part("part");
    Tensor y = cond(
        sum(x) > 0, [&] { return exp(x); }, [&] { return -x; });
    auto [i, z] = while_loop([&](Tensor i, Tensor) { return i < n; },
                             [](Tensor i, Tensor z) {
                               return std::tuple{i + 1, sin(z)};
                             },
                             std::tuple{Tensor(0), y});
    if (mean(z) > 10) z = z * 2;
    return z;
  });
  f(ones({3}), 4);
  SummaryWriter writer(folder);
  writer.graph(f);
  const auto nodes = nodes_of(events().graphs.at(0));
  std::set<std::string> boxes;
  for (const auto& [name, node] : nodes)
    if (name.starts_with("part/")) boxes.insert(name);
  auto inside = [&](const std::string& of) {
    return std::any_of(boxes.begin(), boxes.end(), [&](const std::string& name) { return name.starts_with(of); });
  };
  const std::string all = ::testing::PrintToString(boxes);
  EXPECT_TRUE(boxes.contains("part/cond/yes/exp")) << all;
  EXPECT_TRUE(boxes.contains("part/cond/no/negative") || boxes.contains("part/cond/no/neg")) << all;
  EXPECT_TRUE(inside("part/cond_1/")) << all;
  EXPECT_TRUE(inside("part/while_loop/body/sin") || inside("part/loop/body/sin")) << all;
  EXPECT_TRUE(inside("part/while_loop/condition/") || inside("part/loop/condition/")) << all;
  EXPECT_TRUE(boxes.contains("part/cond/results")) << all;
}

// --- for others

/// A training with all that keras::TensorBoard writes.
void train(const std::string& folder) {
  random::seed(4);
  keras::clear_session();
  keras::KerasTensor image = keras::Input({8, 8, 1}, {.name = "image"});
  keras::KerasTensor h = keras::Conv2D(4, {3, 3}, {.activation = "relu"})(image);
  keras::KerasTensor skip = keras::Flatten()(keras::MaxPooling2D({2, 2})(h));
  keras::KerasTensor wide = keras::Dense(36, {.activation = "tanh", .name = "wide"})(skip);
  keras::KerasTensor out = keras::Dense(3, {.name = "classes"})(keras::Dropout(0.2)(keras::Add()({wide, skip})));
  keras::Model model(image, out);
  model.compile({.optimizer = keras::Adam(1e-2),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  const Tensor x = random::normal({96, 8, 8, 1}), y = argmax(mean(x, {1, 3}), 1) / 3;
  model.fit(x, y.cast(i32),
            {.batch_size = 16,
             .epochs = 5,
             .verbose = 0,
             .callbacks = {keras::TensorBoard(folder, {.histogram_freq = 1,
                                                       .write_images = true,
                                                       .write_steps_per_second = true,
                                                       .update_freq = "batch",
                                                       .profile_batch = {6, 15}})},
             .validation_split = 0.25});
}

TEST_F(SummaryWriterTest, WritesEventsForOthers) {
  const char* kept = std::getenv("STET_WRITTEN_EVENTS");
  const std::string root = kept ? kept : folder;
  {
    SummaryWriter writer(root + "/all");
    for (int step = 0; step < 100; ++step) {
      writer.scalar("curve/sine", std::sin(step * 0.1), step);
      writer.scalar("curve/größe", step, step);
      if (step % 10 == 0) writer.histogram("normal", random::stateless_normal({500}, {step, 1}) + step * 0.05f, step);
    }
    writer.scalar("odd", NAN, 0);
    writer.scalar("odd", infinity, 1);
    writer.scalar("odd", -2, 2);
    writer.histogram("empty", zeros({0}), 0);
    writer.histogram("same", full({7}, 3), 0);
    Tensor ramp = tile(reshape(arange(64), {64, 1, 1}), {1, 48, 1}).cast(u8) * 4;
    writer.image("grey", ramp, 0);
    writer.image("colours", stack({ones({2, 5, 7}), zeros({2, 5, 7}), full({2, 5, 7}, 0.5)}, 3), 0);
    writer.text("note", "A *note* with `code`, ü", 0);
    writer.table("table", {{"name", "value"}, {"rate", "0.1"}}, 0);
  }
  for (int trial = 0; trial < 3; ++trial) {
    SummaryWriter writer(root + "/trials/" + std::to_string(trial));
    writer.hparams({{"rate", 0.1 * (trial + 1)}, {"layers", trial}, {"bias", trial > 0}, {"optimizer", "adam"}},
                   {.metrics = {"accuracy"}, .trial = "trial " + std::to_string(trial)});
    writer.scalar("accuracy", 0.5 + trial * 0.1, 1);
  }
  train(root + "/training");
  on_retrace([](const RetraceEvent&) {});
  Function scaled = function("scaled(x, rate)", [](Tensor x, double rate) { return sum(x) * rate; });
  Profile profile;
  for (int i = 0; i < 5; ++i) scaled(ones({4}), 0.5 + i);
  profile.stop();
  profile.save_tensorboard(root + "/retraces");
  on_retrace({});
  EXPECT_EQ(event_files::read_folder(root + "/all").of("curve/sine").size(), 100u);
  EXPECT_EQ(event_files::read_folder(root + "/trials/2").of("accuracy").at(0).number(), 0.7f);
  const event_files::EventFile training = event_files::read_folder(root + "/training/train");
  EXPECT_EQ(training.of("batch_accuracy").size(), 5 * 5u);
  EXPECT_EQ(training.of("conv2d/kernel/image").size(), 5u);
  EXPECT_TRUE(nodes_of(training.graphs.at(0)).contains("functional/wide/matmul"));
  ASSERT_EQ(profile_files::files_below(root + "/training").size(), 1u);
  EXPECT_EQ(profile_files::read(profile_files::files_below(root + "/training")[0]).named("step").size(), 10u);
  ASSERT_EQ(profile_files::files_below(root + "/retraces").size(), 1u);
}

}  // namespace
}  // namespace stet
