#include "stet/report/summary_text.h"

#include <sstream>

#include "tests/report/recordings.h"

namespace stet::reporting {
namespace {

using files::Json;
using recording::Kind;

std::string text_of(const HandMade& made, const SummaryTextOptions& options = {},
                    std::optional<MachineLimits> limits = std::nullopt) {
  const Recorded recorded = made.read();
  return summary_text(recorded, summarize(recorded), limits, options);
}
std::size_t columns_of(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](unsigned char byte) { return (byte & 0xC0) != 0x80; }));
}

HandMade usual() {
  HandMade made(2 * s);
  for (int number : {1, 2})
    made.note({{"note", "trace"},
               {"id", number},
               {"function", "train_step(x, y)"},
               {"number", number},
               {"begin", static_cast<std::int64_t>(HandMade::began)},
               {"seconds", 0.125},
               {"compile_seconds", 0.125},
               {"call_file", "train.cpp"},
               {"call_line", 57},
               {"cause", number == 1 ? "" : "argument 0 'x' f32[b] -> f64[b] dtype changed"},
               {"fixes", number == 1 ? Json::List{} : Json::List{"cast(x, f32) before the call"}}});
  made.span(Kind::call, "train_step(x, y)", 0, 1900 * ms);
  made.span(Kind::trace, "train_step(x, y)", 0, 500 * ms);
  made.span(Kind::step, "matmul f32", 500 * ms, 1500 * ms, 4e9, 90e9);
  made.span(Kind::step, "add + mul", 1500 * ms, 1750 * ms, 10e9, 2e9);
  made.span(Kind::region, "add + mul", 1500 * ms, 1750 * ms, 0, 0, 1);
  return made;
}

TEST(SummaryText, IsATable) {
  EXPECT_EQ(text_of(usual(), {}, MachineLimits{.bytes = 50e9, .flops = 100e9}),
            R"(train, 2.0 s
2 traces of 1 function, 1 retrace: 250 ms = 12 % of the run; the top cause, of 'train_step(x, y)': argument 0 'x' f32[b] -> f64[b] dtype changed, called at train.cpp:57. The fix saves about 250 ms.
62 % of the time in kernels.

Where the time went
                      share    time
  kernels              62 %   1.2 s
  tracing              25 %  500 ms
  calls of functions  7.5 %  150 ms
  host code           5.0 %  100 ms

Functions
                    calls   time  share  traces  again  tracing    lost
  train_step(x, y)      1  1.9 s   95 %       2      1   500 ms  250 ms

Kernels
              runs    time  share    each  GB/s  GF/s      of limit  threads
  matmul f32     1   1.0 s   50 %   1.0 s  4.00  90.0  compute 90 %        1
  add + mul      1  250 ms   12 %  250 ms  40.0  8.00   memory 80 %        2
  limits of this machine: 50.0 GB/s, 100 GF/s

What to do
    12 %  'train_step(x, y)' was traced again, which took 250 ms = 12 % of the run: argument 0 'x' f32[b] -> f64[b] dtype changed, called at train.cpp:57. Fix: cast(x, f32) before the call.
    12 %  'add + mul' moves 40.0 GB/s, 80 % of what this machine's memory gives, for 12 % of the time. Only fewer bytes make it faster: a smaller dtype, or more fused into it.
)");
}

TEST(SummaryText, SaysWhatCachesFound) {
  HandMade made = usual();
  made.counter("kernels compiled", 10 * ms, 3);
  made.counter("kernels from the object cache", 10 * ms, 1);
  made.counter("kernels from the object cache", 20 * ms, 9);
  made.counter("calls looked up", 20 * ms, 5);  // more than calls were recorded
  EXPECT_CONTAINS(text_of(made), R"(
Caches
                                  found  of
  calls, served at once             0 %   1
  kernels, from the object cache   75 %  12
)");
  made.note({{"note", "counts"},
             {"calls looked up", 0},
             {"kernels compiled", 1},
             {"allocations", 1000},
             {"allocations from the system", 10}});  // at the end, when all is known
  EXPECT_CONTAINS(text_of(made), R"(
Caches
                                   found     of
  calls, served at once            100 %      1
  kernels, from the object cache    90 %     10
  allocations, without the system   99 %  1,000
)");
}

TEST(SummaryText, KeepsToTheWidth) {
  HandMade made = usual();
  made.span(Kind::step, "a kernel with a name that is longer than any terminal is wide: ä ä ä ä ä ä ä ä ä ä ä ä",
            1760 * ms, 1800 * ms);
  for (std::size_t width : {40, 60, 80, 120}) {
    std::istringstream lines(text_of(made, {.width = width}, MachineLimits{.bytes = 50e9, .flops = 100e9}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), width) << line;
  }
  const std::string narrow = text_of(made, {.width = 40});
  EXPECT_CONTAINS(narrow, "matmul f32 ");
  EXPECT_CONTAINS(narrow, "…");
  text_of(made, {.width = 1});  // whatever that looks like
}

TEST(SummaryText, ObeysNoCharacterOfNames) {
  HandMade made(1 * s);
  made.note({{"note", "event"}, {"kind", "note"}});
  made.span(Kind::call, "\33]0;title\7\r\n\u009b31m", 0, 1 * ms);
  made.span(Kind::step, "\33[2Jstep\tx", 0, 1 * ms);
  const std::string text = text_of(made);
  for (char c : text) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  EXPECT_EQ(text.find("\u009b"), std::string::npos);
  EXPECT_CONTAINS(text, "\\x1b[2Jstep\\x09x");
}

TEST(SummaryText, SaysHowItEnded) {
  EXPECT_EQ(text_of(HandMade(3 * s)), "train, 3.0 s\nNothing was recorded: no function was called, and no op ran.\n");
  HandMade killed(0);
  killed.poke(offsetof(recording::Head, ended), std::uint64_t{0});
  killed.span(Kind::user, "mine", 0, 2 * s);
  EXPECT_EQ(text_of(killed).substr(0, 43), "train, 2.0 s, ended before its recording\nNo");
}

TEST(SummaryText, ShowsTheDearestOnly) {
  HandMade made(1 * s);
  for (std::uint64_t i = 0; i < 30; ++i) {
    made.span(Kind::call, "function " + std::to_string(i), i * ms, (i + 1) * ms);
    made.span(Kind::step, "kernel " + std::to_string(i), i * ms, (i + 1) * ms - i * us);
  }
  const std::string text = text_of(made);
  EXPECT_CONTAINS(text, "  and 20 functions more\n");
  EXPECT_CONTAINS(text, "  and 15 kernels more\n");
  EXPECT_CONTAINS(text, "kernel 0 ");
  EXPECT_EQ(text.find("kernel 29"), std::string::npos);
  EXPECT_CONTAINS(text_of(made, {.kernels = 29}), "  and 1 kernel more\n");
}

TEST(SummaryText, HasColoursWhereTheyAreWanted) {
  EXPECT_CONTAINS(text_of(usual(), {.color = true}), "\33[1mKernels\33[0m\n");
  EXPECT_EQ(text_of(usual()).find('\33'), std::string::npos);
}

}  // namespace
}  // namespace stet::reporting
