#include "stet/report/xspace.h"

#include <algorithm>
#include <cctype>

#include "stet/base/text.h"
#include "stet/report/findings.h"
#include "stet/report/summary.h"
#include "tests/public/expect_error.h"
#include "tests/public/profile_files.h"
#include "tests/report/recordings.h"

namespace stet::reporting {
namespace {

using files::Json;
using profile_files::Event;
using profile_files::Line;
using profile_files::Space;
using profile_files::Stat;
using profile_files::Stats;
using recording::Kind;

Space space_of(const Recorded& recorded, const XSpaceOptions& options = {}) {
  return profile_files::parse(xspace_of(recorded, options));
}
Space space_of(const HandMade& made, const XSpaceOptions& options = {}) { return space_of(made.read(), options); }

std::vector<std::string> names_of(const std::vector<Event>& events) {
  std::vector<std::string> out;
  for (const Event& event : events) out.push_back(event.name);
  return out;
}
std::vector<std::string> texts_of(const std::vector<Event>& events, const std::string& stat) {
  std::vector<std::string> out;
  for (const Event& event : events) out.push_back(event.text(stat));
  return out;
}
using Texts = std::vector<std::string>;

/// Every span of the recording stands in the line of its thread, in its order, with its times; nothing else does but
/// steps.
void expect_all_spans(const Recorded& recorded, const Space& space) {
  std::vector<std::vector<Event>> events(recorded.threads.size());
  ASSERT_GE(space.host().lines.size(), recorded.threads.size());
  for (std::size_t thread = 0; thread < recorded.threads.size(); ++thread) {
    const Line& line = space.host().line(recorded.threads[thread]);
    EXPECT_EQ(line.duration, recorded.length * 1000);
    for (const Event& event : line.events)
      if (!event.has("_r")) events[thread].push_back(event);
  }
  std::vector<std::size_t> next(recorded.threads.size());
  for (const RecordedSpan& span : recorded.spans) {
    ASSERT_LT(next[span.thread], events[span.thread].size());
    const Event& event = events[span.thread][next[span.thread]++];
    EXPECT_EQ(event.name, recorded.names[span.name]);
    EXPECT_EQ(event.text("kind"), recorded.kinds[span.kind]);
    EXPECT_EQ(event.begin, span.begin * 1000);
    EXPECT_EQ(event.duration, span.duration * 1000);
    EXPECT_EQ(event.number("bytes_accessed"), span.bytes);
    EXPECT_EQ(event.number("flops"), span.flops);
  }
  for (std::size_t thread = 0; thread < events.size(); ++thread) EXPECT_EQ(next[thread], events[thread].size());
}

TEST(XSpace, HasSpansCountersAndEvents) {
  HandMade made(1 * s);
  made.span(Kind::call, "f \"quoted\" </script>", 1, 2 * ms);
  made.span(Kind::step, "add", 1001, 3001, 4000, 1000);
  made.span(Kind::user, "instant", 1001, 1001);
  made.span(Kind::region, "add", 1500, 2000, 0, 0, 3);
  made.counter("memory of tensors", 1 * ms, 4096.5);
  made.counter("memory of tensors", 2 * ms, 1);
  made.note({{"note", "event"}, {"kind", "retrace"}, {"function", "f"}, {"text", "why\n\x01"}}, 5 * ms);
  made.note({{"note", "event"}, {"kind", "note"}, {"text", "no function"}}, 99 * s);  // after the end
  made.note({{"note", "thread"}, {"thread", 0}, {"name", "main"}});
  made.poke(offsetof(recording::Head, process), std::uint64_t{1234});
  const Recorded recorded = made.read();
  const Space space = space_of(recorded, {.host = "a-host"});
  expect_all_spans(recorded, space);
  EXPECT_EQ(space.hosts, Texts{"a-host"});
  EXPECT_TRUE(space.warnings.empty());
  ASSERT_EQ(space.planes.size(), 2u);
  EXPECT_EQ(space.host().stats, (Stats{{"process_id", {.number = 1234}}}));
  EXPECT_EQ(space.plane("Task Environment").stats,
            (Stats{{"profile_start_time", {.number = 1.7e18}}, {"profile_stop_time", {.number = 1.7e18 + 1e9}}}));
  ASSERT_EQ(space.host().lines.size(), 4u);
  const Event step = space.host().line("main").events.at(1);
  EXPECT_EQ(step.stats, (Stats{{"kind", {"step"}},
                               {"bytes_accessed", {.number = 4000}},
                               {"GB/s", {.number = 2}},
                               {"flops", {.number = 1000}},
                               {"GF/s", {.number = 0.5}},
                               {"tf_op", {"add:add"}}}));
  EXPECT_EQ(space.host().line("thread 3").events.at(0).stats, (Stats{{"kind", {"region"}}}));

  const Line& events = space.host().line("retraces, warnings, audits");
  EXPECT_EQ(names_of(events.events), (Texts{"retrace of f", "note"}));
  EXPECT_EQ(texts_of(events.events, "text"), (Texts{"why\n\x01", "no function"}));
  EXPECT_EQ(events.events[0].begin, 5'000'000'000);
  EXPECT_EQ(events.events[1].begin, 1'000'000'000'000);
  EXPECT_EQ(events.events[1].duration, 0);
  const Line& counters = space.host().line("_counters_");
  EXPECT_EQ(names_of(counters.events), (Texts{"memory of tensors", "memory of tensors"}));
  EXPECT_EQ(counters.events[0].begin, 1'000'000'000);
  EXPECT_EQ(counters.events[0].number("value"), 4096.5);
}

TEST(XSpace, TheMainThreadIsTheFirstLine) {
  HandMade made(1 * s);
  made.span(Kind::region, "add", 1, 10, 0, 0, 0);
  made.span(Kind::wait, "batch", 5 * ms, 10 * ms, 0, 0, 1);
  made.span(Kind::batch, "train_step", 10 * ms, 100 * ms, 0, 0, 1);
  made.span(Kind::region, "add", 20 * ms, 30 * ms, 0, 0, 2);
  const Space space = space_of(made);
  expect_all_spans(made.read(), space);
  std::vector<std::string> names;
  for (const Line& line : space.host().lines) names.push_back(line.name);
  EXPECT_EQ(names, (Texts{"thread 1", "thread 0", "thread 2"}));
  EXPECT_EQ(names_of(space.host().lines[0].events), (Texts{"step", "batch", "train_step"}));
  EXPECT_EQ(space.host().lines[0].id, 1);
}

TEST(XSpace, OfAnEmptyRecording) {
  const Space space = space_of(HandMade(0));
  EXPECT_EQ(space.planes.size(), 2u);
  EXPECT_TRUE(space.host().lines.empty());
}

TEST(XSpace, OfOneOfEverything) {
  const Recorded recorded = whole_recording().read();
  const Space space = space_of(recorded);
  expect_all_spans(recorded, space);
  EXPECT_EQ(space.of_kind("event").size(), 2u);
  EXPECT_EQ(space.host().line("_counters_").events.size(), 40u);
}

TEST(XSpace, SaysWhatIsNotInIt) {
  HandMade full(1 * s, 17);
  EXPECT_EQ(space_of(full).warnings.at(0), "The recording was full: the oldest 17 spans are not in it.");
  HandMade killed(1 * s);
  killed.poke(offsetof(recording::Head, ended), std::uint64_t{0});
  EXPECT_EQ(space_of(killed).warnings.at(0), "The recording was not ended: the program still ran, or was killed.");
}

TEST(XSpace, SaysWhatThereIsToDo) {
  const Recorded recorded = whole_recording().read();
  Texts expected;
  for (const Finding& finding : findings_of(recorded, summarize(recorded), std::nullopt))
    expected.push_back(finding.text);
  const Space space = space_of(recorded);
  EXPECT_EQ(space.warnings, expected);
  ASSERT_FALSE(expected.empty());
  EXPECT_CONTAINS(expected[0], "'train_step(x, y)' was traced again");
}

/// What fit() does: it waits for a batch, and trains on it; between epochs it validates.
HandMade training() {
  HandMade made(1 * s);
  made.span(Kind::epoch, "epoch 1", 0, 500 * ms);
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    const std::uint64_t begin = 10 * ms + batch * 100 * ms;
    made.span(Kind::wait, "batch", begin, begin + 10 * ms);
    made.span(Kind::wait, "data", begin + 1 * ms, begin + 9 * ms);
    made.span(Kind::callback, "before", begin + 11 * ms, begin + 12 * ms);
    made.span(Kind::batch, "train_step", begin + 20 * ms, begin + 90 * ms);
    made.span(Kind::call, "train_step", begin + 21 * ms, begin + 89 * ms);
    made.span(Kind::step, "add", begin + 22 * ms, begin + 80 * ms);
  }
  made.span(Kind::wait, "batch", 310 * ms, 320 * ms);  // there is no more
  made.span(Kind::wait, "batch", 330 * ms, 340 * ms);
  made.span(Kind::batch, "test_step", 350 * ms, 400 * ms);
  made.span(Kind::wait, "batch", 510 * ms, 520 * ms);  // of the next epoch, which was not recorded to its end
  made.span(Kind::batch, "train_step", 520 * ms, 550 * ms);
  return made;
}

TEST(XSpace, StepsAreBatchesWithTheWaitForThem) {
  const Space space = space_of(training(), {.first_step = 101});
  expect_all_spans(training().read(), space);
  const std::vector<Event> steps = space.named("step");
  ASSERT_EQ(steps.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(steps[i].begin, (10 + 100 * static_cast<std::int64_t>(i)) * 1'000'000'000) << i;
    EXPECT_EQ(steps[i].duration, 90'000'000'000) << i;
  }
  EXPECT_EQ(steps[3].begin, 510'000'000'000);
  EXPECT_EQ(steps[3].duration, 40'000'000'000);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(steps[i].stats, (Stats{{"_r", {.number = 1}}, {"step_num", {.number = 101 + static_cast<double>(i)}}}));
  for (const Event& wait : space.of_kind("wait")) EXPECT_EQ(wait.text("_ipl_stage_name"), wait.name);

  // The first batch of a recording that began after the wait for it.
  HandMade late(1 * s);
  late.span(Kind::batch, "train_step", 5 * ms, 9 * ms);
  EXPECT_EQ(space_of(late).named("step").at(0).begin, 5'000'000'000);
  EXPECT_EQ(space_of(late).named("step").at(0).number("step_num"), 1);

  // Without training, what there is.
  HandMade tests(1 * s);
  tests.span(Kind::wait, "batch", 1 * ms, 2 * ms);
  tests.span(Kind::batch, "test_step", 2 * ms, 3 * ms);
  tests.span(Kind::wait, "batch", 3 * ms, 4 * ms, 0, 0, 1);  // another thread's
  tests.span(Kind::batch, "test_step", 5 * ms, 6 * ms);
  const std::vector<Event> tested = space_of(tests).named("step");
  ASSERT_EQ(tested.size(), 2u);
  EXPECT_EQ(tested[0].begin, 1'000'000'000);
  EXPECT_EQ(tested[1].begin, 5'000'000'000);
}

Json::Object node(const char* kernel, const char* scope, int line, const Json::List& made_of = {"matmul", "add"}) {
  return {{"op", "x"},    {"kernel", kernel},  {"scope", scope}, {"file", "/src/a.cpp"},
          {"line", line}, {"made_of", made_of}};
}
void add_trace(HandMade& made, int number, std::uint64_t begin, const Json::List& nodes) {
  made.note({{"note", "trace"},
             {"id", number},
             {"function", "f"},
             {"file", "/src/a.cpp"},
             {"line", 7},
             {"number", number},
             {"begin", static_cast<std::int64_t>(HandMade::began + begin)},
             {"seconds", 0.001},
             {"program", Json::Object{{"nodes", nodes}}}});
}

TEST(XSpace, KernelsKnowTheirLayersAndLines) {
  HandMade made(1 * s);
  made.note({{"note", "kernel"}, {"name", "gemm"}, {"made_of", Json::List{"matmul", "add"}}, {"not_fused", "a sum"}});
  made.note({{"note", "kernel"}, {"name", "inner"}, {"made_of", Json::List{"Tanh"}}, {"not_fused", ""}});
  made.note({{"note", "kernel"}, {"name", "eager"}, {"made_of", Json::List{"relu"}}, {"not_fused", ""}});
  add_trace(made, 1, 0,
            {node("gemm", "model/a", 11), node("loop", "model:1/b", 12, {"while"}), node("gemm", "model/c", 13)});
  add_trace(made, 2, 500 * ms, {node("gemm", "", 21)});
  for (std::uint64_t begin : {10 * ms, 100 * ms, 600 * ms}) {
    made.span(Kind::call, "f", begin, begin + 50 * ms);
    made.span(Kind::step, "gemm", begin + 1 * ms, begin + 5 * ms);
    made.span(Kind::step, "loop", begin + 6 * ms, begin + 10 * ms);
    made.span(Kind::step, "inner", begin + 7 * ms, begin + 8 * ms);
    made.span(Kind::step, "inner", begin + 8 * ms, begin + 9 * ms);
    made.span(Kind::step, "gemm", begin + 11 * ms, begin + 15 * ms);
    made.span(Kind::step, "7 unknown: of no program", begin + 16 * ms, begin + 17 * ms);
  }
  made.span(Kind::run, "relu", 800 * ms, 810 * ms);
  made.span(Kind::step, "eager", 801 * ms, 802 * ms);
  const Space space = space_of(made);
  expect_all_spans(made.read(), space);
  const Texts first{"model/a/matmul_add:matmul_add", "model_1/b/while:while",         "model_1/b/tanh:tanh",
                    "model_1/b/tanh:tanh",           "model/c/matmul_add:matmul_add", "_7:_7"};
  // The second trace has one such kernel, of no layer; the other one is the first trace's.
  const Texts second{"matmul_add:matmul_add", "model_1/b/while:while", "model_1/b/tanh:tanh",
                     "model_1/b/tanh:tanh",   "matmul_add:matmul_add", "_7:_7"};
  Texts expected = first;
  expected.insert(expected.end(), first.begin(), first.end());
  expected.insert(expected.end(), second.begin(), second.end());
  expected.emplace_back("relu:relu");
  const std::vector<Event> steps = space.of_kind("step");
  EXPECT_EQ(texts_of(steps, "tf_op"), expected);
  EXPECT_EQ(steps[0].stats, (Stats{{"kind", {"step"}},
                                   {"scope", {"model/a"}},
                                   {"made_of", {"matmul+add"}},
                                   {"not_fused", {"a sum"}},
                                   {"source", {"/src/a.cpp:11"}},
                                   {"tf_op", {"model/a/matmul_add:matmul_add"}}}));
  EXPECT_EQ(steps[2].text("source"), "/src/a.cpp:12");
  EXPECT_EQ(steps[2].text("made_of"), "Tanh");
  EXPECT_EQ(steps[4].text("source"), "/src/a.cpp:13");
  EXPECT_EQ(steps[12].text("source"), "/src/a.cpp:21");
  EXPECT_FALSE(steps[18].has("source"));
  EXPECT_EQ(space.of_kind("call").at(0).text("source"), "/src/a.cpp:7");
}

TEST(XSpace, LongNamesOfOpsAreCut) {
  HandMade made(1 * s);
  auto op_of = [&](const char* name, const Json::List& made_of) {
    made.note({{"note", "kernel"}, {"name", name}, {"made_of", made_of}, {"not_fused", ""}});
    made.span(Kind::step, name, 1 * ms, 2 * ms);
    return space_of(made).of_kind("step").back();
  };
  EXPECT_EQ(op_of("four", {"a", "b", "c", "d"}).text("tf_op"), "a_b_c_d:a_b_c_d");
  const Event six = op_of("six", {"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(six.text("tf_op"), "a_b_c_d_2_more:a_b_c_d_2_more");
  EXPECT_EQ(six.text("made_of"), "a+b+c+d+e+f");
}

/// The plugin takes what stands behind the colon for the type of an op, if it is made of these letters.
TEST(XSpace, NamesOfOpsAreSuchAsThePluginTakes) {
  HandMade made(1 * s);
  const std::vector<std::string> names{"größe: x", "+ - *", "9 lives", "Mixed CASE", "a::b:c", ""};
  for (std::size_t i = 0; i < names.size(); ++i) made.span(Kind::step, names[i], i * ms, i * ms + 1);
  const std::vector<Event> steps = space_of(made).of_kind("step");
  ASSERT_EQ(steps.size(), names.size());
  for (const Event& step : steps) {
    const std::string op = step.text("tf_op");
    const std::size_t colon = op.find(':');
    ASSERT_NE(colon, std::string::npos);
    const std::string type = op.substr(colon + 1);
    ASSERT_FALSE(type.empty()) << step.name;
    EXPECT_EQ(std::isdigit(static_cast<unsigned char>(type[0])), 0) << type;
    EXPECT_EQ(type.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos) << type;
    EXPECT_EQ(op.substr(0, colon), type) << "without a layer";
  }
}

TEST(XSpace, CallsSayWhetherTheyTraced) {
  HandMade made(1 * s);
  add_trace(made, 1, 1 * ms, {});
  add_trace(made, 2, 601 * ms, {});
  made.span(Kind::call, "f", 0, 100 * ms);
  made.span(Kind::trace, "f", 1 * ms, 50 * ms);
  made.span(Kind::call, "g", 2 * ms, 10 * ms);  // while f is traced; nobody told of its traces
  made.span(Kind::call, "f", 200 * ms, 210 * ms);
  made.span(Kind::call, "f", 600 * ms, 700 * ms);
  made.span(Kind::trace, "f", 601 * ms, 650 * ms);
  made.span(Kind::call, "f", 800 * ms, 810 * ms);
  const std::vector<Event> calls = space_of(made).of_kind("call");
  EXPECT_EQ(names_of(calls), (Texts{"f", "g", "f", "f", "f"}));
  EXPECT_EQ(texts_of(calls, "tf_function_call"),
            (Texts{"traced-nonXla", "notTraced-nonXla", "notTraced-nonXla", "traced-nonXla", "notTraced-nonXla"}));
  std::vector<double> counts;
  for (const Event& call : calls) counts.push_back(call.number("tracing_count"));
  EXPECT_EQ(counts, (std::vector<double>{1, 0, 1, 2, 2}));
}

/// Spans that overlap without nesting, as of two threads that got one number, and times that no ps can tell.
TEST(XSpace, TakesWhatIsWrong) {
  HandMade overlapping(1 * s);
  for (std::uint64_t i = 0; i < 300; ++i)
    overlapping.span(i % 3 == 0 ? Kind::batch : Kind::wait, "train_step", i * 7919 % 1000,
                     i * 7919 % 1000 + i * 31 % 500);
  expect_all_spans(overlapping.read(), space_of(overlapping));

  const std::uint64_t years = std::uint64_t{1} << 57;
  HandMade long_ago(years);
  long_ago.poke(offsetof(recording::Head, began_at), ~std::uint64_t{0});
  long_ago.span(Kind::step, "add", years / 2, years, 1e300, 1e300);
  long_ago.note({{"note", "event"}, {"kind", "note"}, {"text", ""}}, years / 2);
  const Space space = space_of(long_ago);
  EXPECT_EQ(space.of_kind("step").at(0).begin, INT64_MAX / 1000 * 1000);
  EXPECT_EQ(space.plane("Task Environment").stats.at("profile_start_time").number, 0);
  EXPECT_GT(space.of_kind("step").at(0).number("flops"), 8e18);
}

TEST(XSpace, TakesLittleMoreRoomThanTheRecording) {
  HandMade made(1000 * s);
  add_trace(made, 1, 0, {node("gemm f32 NN m=x_0 n=64 k=16, then max(x0 + x1, 0)", "sequential/dense", 11)});
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t begin = i * 49'123'457 % (900 * s);
    made.span(Kind::step, "gemm f32 NN m=x_0 n=64 k=16, then max(x0 + x1, 0)", begin, begin + 999'999, 1e9, 1e12);
  }
  const Recorded recorded = made.read();
  ASSERT_EQ(recorded.spans.size(), 20'000u);
  EXPECT_LT(xspace_of(recorded, {}).size(), 2 * made.bytes().size());
}

}  // namespace
}  // namespace stet::reporting
