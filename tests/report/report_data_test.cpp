#include "stet/report/report_data.h"

#include <chrono>
#include <filesystem>
#include <random>
#include <sstream>

#include "stet/report/chrome_trace.h"
#include "stet/report/summary_text.h"
#include "stet/report/xspace.h"
#include "tests/public/profile_files.h"
#include "tests/report/recordings.h"

namespace stet::reporting {
namespace {

using files::Json;
using recording::Kind;

Json data_of(const Recorded& recorded, std::optional<MachineLimits> limits = std::nullopt) {
  const Json data = report_data(recorded, summarize(recorded), limits);
  // What is read is what a page gets, and NaN and infinities are no JSON.
  const std::string written = files::to_text(data);
  EXPECT_EQ(written.find("NaN"), std::string::npos);
  EXPECT_EQ(written.find("Infinity"), std::string::npos);
  return files::parse_json(written, files::test_reading());
}
const Json& at(const Json& from, std::string_view name) {
  static const Json none;
  const Json* found = from.find(name);
  EXPECT_NE(found, nullptr) << name;
  return found ? *found : none;
}
const Json& at(const Json& from, std::size_t place) {
  static const Json none;
  const Json::List* list = from.if_list();
  EXPECT_TRUE(list && place < list->size()) << place;
  return list && place < list->size() ? (*list)[place] : none;
}
template <class... Names>
const Json& at(const Json& from, const auto& first, const auto& second, const Names&... more) {
  return at(at(from, first), second, more...);
}
std::string text_at(const Json& from, const auto&... names) {
  const std::string* text = at(from, names...).if_string();
  return text ? *text : "no text";
}

/// Decodes base64 by its definition.
std::string bytes_of(const std::string& base64) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  EXPECT_EQ(base64.size() % 4, 0u);
  int bits = 0, count = 0;
  for (char letter : base64) {
    if (letter == '=') break;
    const std::size_t value = letters.find(letter);
    EXPECT_NE(value, std::string::npos);
    bits = (bits << 6 | static_cast<int>(value)) & 0xFFFF;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count);
  }
  return out;
}
template <class T>
std::vector<T> numbers_at(const Json& from, std::string_view name) {
  const std::string bytes = bytes_of(text_at(from, name));
  EXPECT_EQ(bytes.size() % sizeof(T), 0u);
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST(ReportData, OfAnEmptyRecording) {
  const Recorded recorded = HandMade(2 * s).read();
  const Json data = data_of(recorded);
  std::vector<std::string> members;
  for (const auto& [name, value] : *data.if_object()) members.push_back(name);
  EXPECT_EQ(members, (std::vector<std::string>{"format", "program", "limits", "verdict", "findings", "shares", "kinds",
                                               "names", "threads", "spans", "counters", "functions", "sources",
                                               "kernels", "caches", "training", "stages", "events"}));
  EXPECT_EQ(at(data, "format"), Json(1));
  EXPECT_EQ(
      files::to_text(at(data, "program")),
      R"({"name": "train", "stet": "0.1.0", "began": "2023-11-14T22:13:20Z", "cpu": "a processor", "threads": 2, )"
      R"("seconds": 2.0, "complete": true, "lost_spans": 0})");
  EXPECT_TRUE(at(data, "limits").is_null());
  EXPECT_EQ(
      files::to_text(at(data, "spans")),
      R"({"count": 0, "thread": "", "kind": "", "name": "", "begin": "", "duration": "", "bytes": "", "flops": ""})");
  for (const char* list : {"findings", "counters", "functions", "kernels", "caches", "training", "stages", "events"})
    EXPECT_EQ(at(data, list), Json(Json::List())) << list;
  EXPECT_EQ(at(data, "sources"), Json(Json::Object()));
  EXPECT_EQ(files::to_text(at(data, "shares")), R"([{"name": "host code", "seconds": 2.0}])");
}

TEST(ReportData, SpansAreArrays) {
  HandMade made(1 * s);
  made.span(Kind::step, "add", 250 * ms, 500 * ms, 64, 32, 9);
  made.span(Kind::call, "f", 0, 750 * ms, 0, 0, 4);
  made.span(Kind::step, "add", 100 * ms, 200 * ms, 64, 32, 4);
  made.counter("memory of tensors", 100 * ms, 4096);
  made.counter("cache hits", 300 * ms, 2);
  made.counter("memory of tensors", 50 * ms, 1024);
  const Recorded recorded = made.read();
  const Json data = data_of(recorded, MachineLimits{.bytes = 5e10, .flops = 0});
  EXPECT_EQ(files::to_text(at(data, "limits")), R"({"flops": null, "bytes": 5e+10})");
  EXPECT_EQ(files::to_text(at(data, "threads")), R"(["thread 4", "thread 9"])");
  const Json& spans = at(data, "spans");
  EXPECT_EQ(at(spans, "count"), Json(3));
  EXPECT_EQ(numbers_at<std::uint16_t>(spans, "thread"), (std::vector<std::uint16_t>{0, 0, 1}));
  EXPECT_EQ(numbers_at<std::uint8_t>(spans, "kind"), (std::vector<std::uint8_t>{0, 6, 6}));
  EXPECT_EQ(numbers_at<double>(spans, "begin"), (std::vector<double>{0, 0.1, 0.25}));
  EXPECT_EQ(numbers_at<double>(spans, "duration"), (std::vector<double>{0.75, 0.1, 0.25}));
  EXPECT_EQ(numbers_at<double>(spans, "bytes"), (std::vector<double>{0, 64, 64}));
  EXPECT_EQ(numbers_at<double>(spans, "flops"), (std::vector<double>{0, 32, 32}));
  std::vector<std::string> names;
  for (std::uint32_t name : numbers_at<std::uint32_t>(spans, "name")) names.push_back(text_at(data, "names", name));
  EXPECT_EQ(names, (std::vector<std::string>{"f", "add", "add"}));
  EXPECT_EQ(at(data, "names").if_list()->size(), 2u);  // those of counters are told with them
  ASSERT_EQ(at(data, "counters").if_list()->size(), 2u);
  const bool memory_first = text_at(data, "counters", 0, "name") == "memory of tensors";
  const Json &memory = at(data, "counters", memory_first ? 0 : 1), &hits = at(data, "counters", memory_first ? 1 : 0);
  EXPECT_EQ(text_at(memory, "unit"), "bytes");
  EXPECT_EQ(numbers_at<double>(memory, "time"), (std::vector<double>{0.05, 0.1}));
  EXPECT_EQ(numbers_at<double>(memory, "value"), (std::vector<double>{1024, 4096}));
  EXPECT_EQ(text_at(hits, "name"), "cache hits");
  EXPECT_EQ(text_at(hits, "unit"), "");
  EXPECT_EQ(
      files::to_text(at(data, "kernels")),
      R"([{"name": "add", "function": null, "count": 1, "seconds": 0.25, "bytes": 64.0, "flops": 32.0, "threads": 1, )"
      R"("made_of": [], "not_fused": null, "places": []}, )"
      R"({"name": "add", "function": "f", "count": 1, "seconds": 0.1, "bytes": 64.0, "flops": 32.0, "threads": 1, )"
      R"("made_of": [], "not_fused": null, "places": []}])");
}

Json::Object full_trace(int number) {
  auto place = [](const char* text, int line) {
    return Json::Object{
        {"text", text}, {"pin", true}, {"file", "/src/train.cpp"}, {"line", line}, {"asked_by", "host code"}};
  };
  return {{"note", "trace"},
          {"id", number},
          {"function", "f"},
          {"file", "/src/train.cpp"},
          {"line", 10},
          {"number", number},
          {"begin", static_cast<std::int64_t>(HandMade::began + 1 * s)},
          {"seconds", 0.25},
          {"compile_seconds", 0.5},
          {"nearest", number - 1},
          {"max_traces", 64},
          {"on_limit", "evict"},
          {"arguments", "x: f32[b,5]"},
          {"called_with", "f32[3,5]"},
          {"call_file", "/src/train.cpp"},
          {"call_line", 57},
          {"facts", Json::List{place("s0 == 5", 12), place("s1 == 7", 20)}},
          {"cause", number == 1 ? "" : "size s0 == 5 does not hold any more; host code asked for it at train.cpp:12"},
          {"fixes", Json::List{"keep it a Dim", "", 3}},
          {"constants", Json::List{Json::Object{{"text", "f32[10], a constant"}, {"bytes", 40}}}},
          {"passes",
           Json::List{Json::Object{{"name", "fuse"}, {"seconds", 0.125}, {"nodes_before", 9}, {"nodes_after", 4}}}},
          {"graph", Json::Object{{"nodes", Json::List{Json::Object{{"op", "add"},
                                                                   {"text", "add x y"},
                                                                   {"scope", "model/dense"},
                                                                   {"in", Json::List{0, 1, -1, 99, "x"}},
                                                                   {"file", "/src/train.cpp"},
                                                                   {"line", 30},
                                                                   {"made_of", Json::List{"a", 1}}},
                                                      Json::Object{{"op", 3}}}}}},
          {"program", nullptr},
          {"bytes", 1000}};
}

TEST(ReportData, FunctionsHaveTheirTraces) {
  HandMade made(3 * s);
  made.note(full_trace(1));
  made.note(full_trace(2));
  made.note({{"note", "trace_calls"}, {"id", 2}, {"calls", 7}});
  made.note({{"note", "source"},
             {"file", "/src/train.cpp"},
             {"line", 55},
             {"lines", Json::List{"a();", "b();", "train(x);"}}});
  made.note({{"note", "event"}, {"kind", "retrace"}, {"function", "f"}, {"text", "why"}}, 1 * s);
  const Recorded recorded = made.read();
  const Json data = data_of(recorded);
  const Json& function = at(data, "functions", 0);
  EXPECT_EQ(text_at(function, "file"), "/src/train.cpp");
  EXPECT_EQ(at(function, "line"), Json(10));
  EXPECT_EQ(at(function, "retraces"), Json(1));
  EXPECT_EQ(at(function, "trace_seconds"), Json(1.5));
  EXPECT_EQ(at(function, "lost_seconds"), Json(0.75));
  EXPECT_EQ(at(function, "max_traces"), Json(64));
  EXPECT_EQ(text_at(function, "on_limit"), "evict");
  EXPECT_TRUE(at(function, "traces", 0, "nearest").is_null());
  EXPECT_TRUE(at(function, "traces", 0, "calls").is_null());  // nobody told
  Json second = at(function, "traces", 1);
  EXPECT_EQ(
      files::to_text(second),
      R"({"number": 2, "begin": 1.0, "seconds": 0.75, "compile_seconds": 0.5, "calls": 7, "evicted": false, )"
      R"("bytes": 1000, "arguments": "x: f32[b,5]", "called_with": "f32[3,5]", "nearest": 1, "call_file": "/src/train.cpp", "call_line": 57, )"
      R"("facts": [{"text": "s0 == 5", "pin": true, "file": "/src/train.cpp", "line": 12, "asked_by": "host code"}, )"
      R"({"text": "s1 == 7", "pin": true, "file": "/src/train.cpp", "line": 20, "asked_by": "host code"}], )"
      R"("cause": "size s0 == 5 does not hold any more; host code asked for it at train.cpp:12", )"
      R"("fixes": [{"text": "keep it a Dim", "file": "/src/train.cpp", "line": 12}], )"
      R"("constants": [{"text": "f32[10], a constant", "bytes": 40}], )"
      R"("passes": [{"name": "fuse", "seconds": 0.125, "nodes_before": 9, "nodes_after": 4}], )"
      R"("graph": {"nodes": [{"op": "add", "text": "add x y", "scope": "model/dense", "in": [0, 1], )"
      R"("file": "/src/train.cpp", "line": 30, "made_of": ["a"]}, )"
      R"({"op": "", "text": "", "scope": "", "in": [], "file": null, "line": null, "made_of": []}]}, )"
      R"("program": null})");
  // A first trace has no cause: its fix, if any, is at the call.
  EXPECT_EQ(at(function, "traces", 0, "fixes", 0, "line"), Json(57));
  EXPECT_EQ(files::to_text(at(data, "sources")),
            R"({"/src/train.cpp:57": {"first": 55, "lines": ["a();", "b();", "train(x);"]}})");
  EXPECT_EQ(files::to_text(at(data, "events")),
            R"([{"time": 1.0, "kind": "retrace", "text": "why", "function": "f"}])");
}

TEST(ReportData, FilesOfThisFolderAreNamedFromIt) {
  const std::string here = std::filesystem::current_path().string();
  ASSERT_NE(here, "/");
  HandMade made(1 * s);
  made.note({{"note", "source"}, {"file", here + "/src/train.cpp"}, {"line", 57}, {"lines", Json::List{"train(x);"}}});
  made.note(
      {{"note", "trace"},
       {"function", "f"},
       {"file", here + "/src/train.cpp"},
       {"line", 57},
       {"call_file", here + "er/train.cpp"},  // of a folder whose name only begins like this one's
       {"call_line", 3},
       {"cause", "asked for at " + here + "/src/train.cpp:57, not at /mnt" + here + "/x.cpp"},
       {"graph",
        Json::Object{{"nodes", Json::List{Json::Object{{"op", "add"}, {"file", here + "/x.cpp"}, {"line", 1}}}}}}});
  const Json data = data_of(made.read());
  EXPECT_EQ(text_at(data, "functions", 0, "file"), "src/train.cpp");
  EXPECT_EQ(text_at(data, "functions", 0, "traces", 0, "call_file"), here + "er/train.cpp");
  EXPECT_EQ(text_at(data, "functions", 0, "traces", 0, "cause"),
            "asked for at src/train.cpp:57, not at /mnt" + here + "/x.cpp");
  EXPECT_EQ(text_at(data, "functions", 0, "traces", 0, "graph", "nodes", 0, "file"), "x.cpp");
  EXPECT_EQ(files::to_text(at(data, "sources")), R"({"src/train.cpp:57": {"first": 57, "lines": ["train(x);"]}})");
}

TEST(ReportData, KernelsHaveThePlacesThatTheyAreOf) {
  HandMade made(1 * s);
  auto told = [&](const char* scope, int line) {
    made.note({{"note", "kernel"}, {"name", "matmul"}, {"scope", scope}, {"file", "/src/train.cpp"}, {"line", line}});
  };
  told("model/dense", 57);
  told("model/dense_1", 57);
  told("model/dense", 57);
  made.note(
      {{"note", "kernel"}, {"name", "matmul"}, {"made_of", Json::List{"matmul"}}, {"scope", ""}, {"file", nullptr}});
  made.note({{"note", "source"}, {"file", "/src/train.cpp"}, {"line", 57}, {"lines", Json::List{"y = model(x);"}}});
  made.span(Kind::call, "f", 0, 400 * ms);
  made.span(Kind::step, "matmul", 0, 300 * ms);
  made.span(Kind::step, "matmul", 500 * ms, 600 * ms);  // outside of functions: of any line
  const Json data = data_of(made.read());
  EXPECT_EQ(files::to_text(at(data, "kernels", 0, "places")),
            R"([{"scope": "model/dense", "file": "/src/train.cpp", "line": 57}, )"
            R"({"scope": "model/dense_1", "file": "/src/train.cpp", "line": 57}])");
  EXPECT_EQ(files::to_text(at(data, "kernels", 0, "made_of")), R"(["matmul"])");
  EXPECT_EQ(at(data, "kernels", 1, "places"), Json(Json::List()));
  // Of a function whose steps are known only its own places are meant.
  made.note({{"note", "trace"},
             {"function", "f"},
             {"program",
              Json::Object{{"nodes", Json::List{Json::Object{
                                         {"scope", "model/dense_1"}, {"file", "/src/train.cpp"}, {"line", 57}}}}}}});
  EXPECT_EQ(files::to_text(at(data_of(made.read()), "kernels", 0, "places")),
            R"([{"scope": "model/dense_1", "file": "/src/train.cpp", "line": 57}])");
  EXPECT_EQ(files::to_text(at(data, "sources")), R"({"/src/train.cpp:57": {"first": 57, "lines": ["y = model(x);"]}})");
}

TEST(ReportData, NumbersThatAreNoneAreNull) {
  HandMade made(3 * s);
  made.entry(recording::TextHead::note,
             R"({"note": "epoch", "name": "mlp", "epoch": 1, "seconds": Infinity, "waited": -3, "batches": "many", )"
             R"("values": {"loss": NaN, "val_loss": -Infinity, "accuracy": 1, "name": "text"}})");
  made.entry(
      recording::TextHead::note,
      R"({"note": "trace", "function": 3, "begin": "then", "seconds": NaN, "number": -4, "graph": [], "facts": {}})");
  made.entry(recording::TextHead::note,
             R"({"note": "stages", "name": 1, "stages": [1, null, {"depth": -1, "seconds": NaN}]})");
  made.entry(recording::TextHead::note, R"({"note": 7})");
  const Json data = data_of(made.read());
  EXPECT_EQ(files::to_text(at(data, "training", 0, "epochs", 0, "values")),
            R"({"loss": null, "val_loss": null, "accuracy": 1, "name": null})");
  EXPECT_EQ(at(data, "training", 0, "epochs", 0, "seconds"), Json(0.0));
  EXPECT_EQ(at(data, "functions", 0, "traces", 0, "number"), Json(1));
  EXPECT_EQ(at(data, "functions", 0, "traces", 0, "graph"), Json());
  EXPECT_TRUE(at(data, "stages", 2, "seconds").is_null());
}

/// Whatever the bytes are, all that is made of them holds.
TEST(ReportData, OfADamagedRecordingHolds) {
  const std::string bytes = whole_recording().bytes();
  const std::size_t text_end = recording::head_bytes + 12'000;
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 20; ++i)
      damaged[8 + random() % (text_end - 8)] = "0123456789eE-+.,\"[]{}x\n\xff"[random() % 24];
    for (int i = 0; i < 20; ++i)
      damaged[recording::head_bytes + recording::chunk_bytes + 16 + random() % 6000] = static_cast<char>(random());
    const Recorded recorded = parse_recording(damaged, "damaged");
    const Summary summary = summarize(recorded);
    double sum = 0;
    for (double share : summary.shares) {
      EXPECT_GE(share, 0);
      sum += share;
    }
    EXPECT_NEAR(sum, summary.seconds, 1e-6 * (1 + summary.seconds));
    data_of(recorded, MachineLimits{.bytes = 1e10, .flops = 1e11});
    std::ostringstream trace;
    write_chrome_trace(trace, recorded);
    files::parse_json(trace.str(), files::test_reading());
    EXPECT_NO_THROW(profile_files::parse(xspace_of(recorded, {})));
    for (char c : summary_text(recorded, summary, std::nullopt, {.width = 80}))
      ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  }
}

TEST(ReportData, SourceLinesAreThoseOfFilesThatAreThere) {
  files::TemporaryFolder folder;
  std::string lines;
  for (int line = 1; line <= 9; ++line) lines += "line " + std::to_string(line) + (line == 4 ? "\xff" : "") + "\r\n";
  for (const char* name : {"train.cpp", "secret", "secret.txt", "new.cpp"}) files::write_whole(folder / name, lines);
  using std::filesystem::file_time_type;
  for (const char* name : {"train.cpp", "secret", "secret.txt"})  // before the recording
    std::filesystem::last_write_time(folder / name, file_time_type::clock::now() - std::chrono::hours(24 * 365 * 20));
  std::filesystem::create_directory(folder / "folder.cpp");
  HandMade made(1 * s);
  std::vector<std::pair<std::string, int>> places = {
      {folder / "train.cpp", 2},  {folder / "train.cpp", 9},  {folder / "train.cpp", 10},
      {folder / "secret", 2},     {folder / "secret.txt", 2}, {folder / "new.cpp", 2},
      {folder / "folder.cpp", 2}, {folder / "none.cpp", 2},   {std::string("a\0.cpp", 6), 2}};
  Json::List facts;
  for (const auto& [file, line] : places)
    facts.push_back(Json::Object{{"text", "fact"}, {"file", file}, {"line", line}});
  made.note({{"note", "trace"}, {"function", "f"}, {"facts", facts}});
  const Json data = data_of(made.read());
  const Json::Object& sources = *at(data, "sources").if_object();
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].first, (folder / "train.cpp") + ":2");
  EXPECT_EQ(files::to_text(sources[0].second),
            R"({"first": 1, "lines": ["line 1", "line 2", "line 3", "line 4\\xff", "line 5"]})");
  EXPECT_EQ(sources[1].first, (folder / "train.cpp") + ":9");
  EXPECT_EQ(files::to_text(sources[1].second), R"({"first": 6, "lines": ["line 6", "line 7", "line 8", "line 9"]})");
}

}  // namespace
}  // namespace stet::reporting
