#include "stet/report/chrome_trace.h"

#include <map>
#include <sstream>

#include "stet/report/json_members.h"
#include "tests/report/recordings.h"

namespace stet::reporting {
namespace {

using files::Json;
using recording::Kind;

/// Written, read back, and held to the rules of the format: every event has a phase, a name and numbers of a process
/// and a thread; times are microseconds; what a thread does nests.
Json::List events_of(const Recorded& recorded) {
  std::ostringstream out;
  write_chrome_trace(out, recorded);
  const Json whole = files::parse_json(out.str(), files::test_reading());
  EXPECT_NE(whole.find("displayTimeUnit"), nullptr);
  const Json::List events = list_in(whole, "traceEvents");
  EXPECT_FALSE(events.empty());
  std::map<std::int64_t, std::vector<double>> ends;
  std::map<std::int64_t, double> last;
  for (const Json& event : events) {
    const std::string& phase = string_in(event, "ph");
    EXPECT_NE(event.find("name")->if_string(), nullptr);
    EXPECT_NE(event.find("pid")->if_integer(), nullptr);
    const std::optional<std::int64_t> thread = known_integer_in(event, "tid");
    EXPECT_TRUE(thread.has_value());
    if (phase == "M") {
      EXPECT_NE(event.find("args")->if_object(), nullptr);
      continue;
    }
    const std::optional<double> begin = known_number_in(event, "ts");
    EXPECT_TRUE(begin && *begin >= 0 && *begin <= static_cast<double>(recorded.length) / 1000);
    if (phase == "C") {
      EXPECT_NE(event.find("args")->find("value"), nullptr);
    } else if (phase == "i") {
      EXPECT_EQ(string_in(event, "s"), "p");
    } else {
      EXPECT_EQ(phase, "X");
      const double end = *begin + known_number_in(event, "dur").value_or(-1);
      EXPECT_GE(end, *begin);
      EXPECT_GE(*begin, last[*thread]);
      last[*thread] = *begin;
      std::vector<double>& around = ends[*thread];
      while (!around.empty() && around.back() <= *begin + 1e-6) around.pop_back();
      EXPECT_TRUE(around.empty() || end <= around.back() + 1e-6);
      around.push_back(end);
    }
  }
  return events;
}

TEST(ChromeTrace, HasSpansCountersAndEvents) {
  HandMade made(1 * s);
  made.span(Kind::call, "f \"quoted\" </script>", 1, 2 * ms);
  made.span(Kind::step, "add", 1001, 3001, 4000, 1000);
  made.span(Kind::user, "instant", 1001, 1001);
  made.span(Kind::region, "add", 1500, 2000, 0, 0, 3);
  made.counter("memory of tensors", 1 * ms, 4096.5);
  made.note({{"note", "event"}, {"kind", "retrace"}, {"function", "f"}, {"text", "why\n\x01"}}, 5 * ms);
  made.note({{"note", "event"}, {"kind", "note"}, {"text", "no function"}}, 99 * s);  // after the end
  made.note({{"note", "thread"}, {"thread", 0}, {"name", "main"}});
  made.poke(offsetof(recording::Head, process), std::uint64_t{1234});
  const Recorded recorded = made.read();
  const Json::List events = events_of(recorded);
  std::vector<std::string> lines;
  for (const Json& event : events) lines.push_back(files::to_text(event));
  EXPECT_EQ(
      lines,
      (std::vector<std::string>{
          R"({"ph": "M", "name": "process_name", "pid": 1234, "tid": 0, "args": {"name": "train"}})",
          R"({"ph": "M", "name": "thread_name", "pid": 1234, "tid": 1, "args": {"name": "main"}})",
          R"({"ph": "M", "name": "thread_sort_index", "pid": 1234, "tid": 1, "args": {"sort_index": 0}})",
          R"({"ph": "M", "name": "thread_name", "pid": 1234, "tid": 2, "args": {"name": "thread 3"}})",
          R"({"ph": "M", "name": "thread_sort_index", "pid": 1234, "tid": 2, "args": {"sort_index": 1}})",
          R"({"ph": "X", "name": "f \"quoted\" </script>", "pid": 1234, "tid": 1, "cat": "call", "ts": 0.001, "dur": 1999.999})",
          R"({"ph": "X", "name": "add", "pid": 1234, "tid": 1, "cat": "step", "ts": 1.001, "dur": 2.0, )"
          R"("args": {"bytes": 4000.0, "GB/s": 2.0, "flops": 1000.0, "GF/s": 0.5}})",
          R"({"ph": "X", "name": "instant", "pid": 1234, "tid": 1, "cat": "user", "ts": 1.001, "dur": 0.0})",
          R"({"ph": "X", "name": "add", "pid": 1234, "tid": 2, "cat": "region", "ts": 1.5, "dur": 0.5})",
          R"({"ph": "C", "name": "memory of tensors", "pid": 1234, "tid": 0, "ts": 1000.0, "args": {"value": 4096.5}})",
          R"({"ph": "i", "name": "retrace of f", "pid": 1234, "tid": 0, "cat": "event", "s": "p", "ts": 5000.0, )"
          R"("args": {"text": "why\n\u0001"}})",
          R"({"ph": "i", "name": "note", "pid": 1234, "tid": 0, "cat": "event", "s": "p", "ts": 1e+06, )"
          R"("args": {"text": "no function"}})"}));
}

TEST(ChromeTrace, OfAnEmptyRecording) { EXPECT_EQ(events_of(HandMade(0).read()).size(), 1u); }

/// Spans that overlap without nesting, as of two threads that got one number.
TEST(ChromeTrace, NestsWhatDoesNot) {
  HandMade made(1 * s);
  for (std::uint64_t i = 0; i < 300; ++i)
    made.span(Kind::user, "span", i * 7919 % 1000, i * 7919 % 1000 + i * 31 % 500);
  EXPECT_EQ(events_of(made.read()).size(), 303u);
}

}  // namespace
}  // namespace stet::reporting
