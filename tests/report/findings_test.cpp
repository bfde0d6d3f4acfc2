#include "stet/report/findings.h"

#include "stet/base/text.h"
#include "tests/report/recordings.h"

namespace stet::reporting {
namespace {

using files::Json;
using recording::Kind;

std::vector<std::string> verdict(const HandMade& made) {
  const Recorded recorded = made.read();
  return verdict_of(recorded, summarize(recorded));
}
std::vector<Finding> findings(const HandMade& made, std::optional<MachineLimits> limits = std::nullopt) {
  const Recorded recorded = made.read();
  return findings_of(recorded, summarize(recorded), limits);
}

void trace(HandMade& made, int number, double seconds, const std::string& cause = {}, const std::string& fix = {},
           const std::string& function = "train_step(x, y)", std::uint64_t begin = 1 * s) {
  static std::int64_t id = 0;
  Json::List fixes;
  if (!fix.empty()) fixes.emplace_back(fix);
  made.note({{"note", "trace"},
             {"id", ++id},
             {"function", function},
             {"file", "/home/me/train.cpp"},
             {"line", 40},
             {"number", number},
             {"begin", static_cast<std::int64_t>(HandMade::began + begin)},
             {"seconds", seconds / 2},
             {"compile_seconds", seconds / 2},
             {"call_file", "/home/me/train.cpp"},
             {"call_line", 57},
             {"cause", cause},
             {"fixes", std::move(fixes)}});
}

TEST(Verdict, OfAGoodRun) {
  HandMade made(1 * s);
  trace(made, 1, 0.01);
  made.span(Kind::wait, "data", 0, 100 * us);
  made.span(Kind::call, "train_step(x, y)", 10 * ms, 990 * ms);
  made.span(Kind::step, "matmul", 20 * ms, 960 * ms);
  EXPECT_EQ(verdict(made), (std::vector<std::string>{"1 trace of 1 function, 0 retraces.",
                                                     "94 % of the time in kernels.", "Data never waited for."}));
  EXPECT_TRUE(findings(made).empty());
}

TEST(Verdict, OfNothing) {
  EXPECT_EQ(verdict(HandMade(1 * s)),
            std::vector<std::string>{"Nothing was recorded: no function was called, and no op ran."});
  EXPECT_EQ(verdict(HandMade(0)),
            std::vector<std::string>{"Nothing was recorded: no function was called, and no op ran."});
  EXPECT_TRUE(findings(HandMade(0)).empty());
}

TEST(Verdict, OfFunctionsThatWereTracedBefore) {
  HandMade made(1 * s);
  made.span(Kind::call, "f", 0, 1 * s);
  EXPECT_EQ(verdict(made), (std::vector<std::string>{"No traces: the function that was called had been traced before.",
                                                     "0 % of the time in kernels, 100 % in calls of functions."}));
  made.span(Kind::call, "g", 0, 1);
  EXPECT_EQ(verdict(made)[0], "No traces: the 2 functions that were called had been traced before.");
  HandMade eager(1 * s);
  eager.span(Kind::run, "add", 0, 1 * s);
  EXPECT_EQ(verdict(eager)[0], "No function was called.");
}

TEST(Verdict, OfTracesWhoseNotesAreLost) {
  HandMade made(1 * s);
  made.span(Kind::trace, "f", 0, 1 * s);
  EXPECT_EQ(verdict(made)[0], "1 trace. Of which functions and why is not in the recording.");
}

TEST(Verdict, KeepsReasonsApart) {
  HandMade made(10 * s);
  for (int number = 2; number <= 5; ++number) {
    trace(made, number, 0.25, text("argument 0 f32[", number, "] -> f32[", number + 1, "] another size"));
    trace(made, number + 10, 0.125, text("argument 1 f32[", number, "] -> f32[", number + 1, "] another size"));
  }
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  const std::vector<RetraceReason> reasons = retrace_reasons(summary);
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_EQ(reasons[0].count, 4);
  EXPECT_EQ(reasons[0].seconds, 1);
  EXPECT_EQ(reasons[0].cause, "argument 0 f32[5] -> f32[6] another size, called at train.cpp:57");
  EXPECT_EQ(reasons[1].seconds, 0.5);
}

TEST(Verdict, OfARunThatRetraces) {
  HandMade made(40 * s);
  trace(made, 1, 0.5);
  for (int number = 2; number <= 10; ++number)
    trace(
        made, number, 0.75,
        text("stet: tracing 'train_step' again (trace ", number, "), called at train.cpp:57\n",
             "  size            s0 == ", number, " does not hold any more;  host code asked for it at train.cpp:12\n"),
        "keep the size a Dim in host code (9 traces -> 1)");
  trace(made, 1, 0.5, "", "", "f");
  trace(made, 2, 1.65, "  argument 0 'x'  f32[2] -> f64[2]   dtype changed\n", "cast(x, f32) before the call", "f");
  made.span(Kind::wait, "data", 0, 4 * s);
  made.span(Kind::call, "f", 4 * s, 40 * s);
  made.span(Kind::step, "matmul", 4 * s, 36 * s);
  EXPECT_EQ(
      verdict(made),
      (std::vector<std::string>{
          "12 traces of 2 functions, 10 retraces: 8.4 s = 21 % of the run; the top cause, of 'train_step(x, y)': size "
          "s0 == 10 does not "
          "hold any more; host code asked for it at train.cpp:12, called at train.cpp:57. The fix saves about 6.8 s.",
          "80 % of the time in kernels.", "4.0 s = 10 % of the time waiting for data."}));
  const std::vector<Finding> all = findings(made);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].text,
            "'train_step(x, y)' was traced again 9 times, which took 6.8 s = 17 % of the run: size s0 == 10 does not "
            "hold any more; host code asked for it at train.cpp:12, called at train.cpp:57. Fix: keep the size a Dim "
            "in host code (9 traces -> 1).");
  EXPECT_EQ(all[0].function, "train_step(x, y)");
  EXPECT_NEAR(all[0].weight, 6.75 / 40, 1e-9);
  EXPECT_EQ(all[1].text,
            "4.0 s = 10 % of the time went into waiting for data. Put .prefetch(2) at the end of the dataset, give its "
            "map .num_parallel_calls, or .cache() what is the same in every epoch.");
  EXPECT_EQ(all[2].text,
            "'f' was traced again, which took 1.6 s = 4.1 % of the run: argument 0 'x' f32[2] -> f64[2] dtype changed, "
            "called at train.cpp:57. Fix: cast(x, f32) before the call.");
}

TEST(Findings, NamesFilesShortlyAndEveryFix) {
  HandMade made(10 * s);
  trace(made, 1, 1);
  made.note({{"note", "trace"},
             {"id", 100'000},
             {"function", "train_step(x, y)"},
             {"number", 2},
             {"begin", static_cast<std::int64_t>(HandMade::began + 2 * s)},
             {"seconds", 0.5},
             {"compile_seconds", 0.5},
             {"call_file", "/home/me/train.cpp"},
             {"call_line", 57},
             {"cause", "size s0 == 5 does not hold any more; host code asked for it at /home/me/src/mean.cpp:12"},
             {"fixes", Json::List{"pad axis 1 of x to 7 (2 traces -> 1)",
                                  "perhaps keep the size a Dim at src/mean.cpp:12, where 1/2 and a/b: stay"}}});
  made.span(Kind::step, "matmul", 0, 9 * s);
  const std::string cause =
      "size s0 == 5 does not hold any more; host code asked for it at mean.cpp:12, called at train.cpp:57.";
  EXPECT_EQ(verdict(made)[0],
            text("2 traces of 1 function, 1 retrace: 1.0 s = 10 % of the run; the top cause, of 'train_step(x, y)': ",
                 cause, " The fix saves about 1.0 s."));
  EXPECT_EQ(findings(made)[0].text,
            text("'train_step(x, y)' was traced again, which took 1.0 s = 10 % of the run: ", cause,
                 " Fix: pad axis 1 of x to 7 (2 traces -> 1). Or perhaps keep the size a Dim at mean.cpp:12, where 1/2 "
                 "and a/b: stay."));
}

TEST(Verdict, PromisesNoMoreThanTheFixDoes) {
  auto first = [](const std::string& cause, const std::string& fix) {
    HandMade made(10 * s);
    trace(made, 1, 1);
    trace(made, 2, 1, cause, fix);
    return verdict(made)[0];
  };
  const std::string counts = "2 traces of 1 function, 1 retrace: 1.0 s = 10 % of the run";
  EXPECT_EQ(first("", ""), counts + ".");
  EXPECT_EQ(first("it changed", ""),
            counts + "; the top cause, of 'train_step(x, y)': it changed, called at train.cpp:57.");
  EXPECT_EQ(
      first("it changed", "perhaps pad x"),
      counts + "; the top cause, of 'train_step(x, y)': it changed, called at train.cpp:57. The fix may save 1.0 s.");
  EXPECT_EQ(first("it changed", "none is needed: a bool makes two traces at most"),
            counts + "; the top cause, of 'train_step(x, y)': it changed, called at train.cpp:57.");
}

TEST(Verdict, NamesWhatTookMoreThanKernels) {
  HandMade made(1 * s);
  made.span(Kind::call, "f", 0, 1 * s);
  made.span(Kind::step, "add", 0, 200 * ms);
  made.span(Kind::trace, "f", 200 * ms, 900 * ms);
  EXPECT_EQ(verdict(made)[1], "20 % of the time in kernels, 70 % in tracing.");
}

TEST(Verdict, SaysWhatTheEpochsWaited) {
  HandMade made(10 * s);
  made.note({{"note", "epoch"}, {"name", "mlp"}, {"epoch", 1}, {"seconds", 10.0}, {"waited", 1.5}});
  made.span(Kind::epoch, "epoch", 0, 10 * s);
  EXPECT_EQ(verdict(made)[2], "1.5 s = 15 % of the time waiting for data.");
}

TEST(Findings, FunctionsMadeInALoop) {
  HandMade made(10 * s);
  for (int i = 0; i < 5; ++i) trace(made, 1, 0.5, "", "", "step");
  const std::vector<Finding> all = findings(made);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].text,
            "First traces took 2.5 s = 25 % of the run. They are made once: a longer run, or one with the "
            "compiled code still in the cache (STET_CACHE_DIR), has less of them.");
  EXPECT_EQ(all[1].text,
            "5 functions 'step' were made at train.cpp:40, and each was traced: 2.0 s = 20 % of the run "
            "more than one takes. Make the function once, outside of the loop.");
  EXPECT_EQ(all[1].function, "step");
}

TEST(Findings, OpsOutsideOfFunctions) {
  HandMade made(1 * s);
  made.span(Kind::run, "add", 0, 500 * ms);
  made.span(Kind::step, "add", 100 * ms, 300 * ms);
  const std::vector<Finding> all = findings(made);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].text,
            "Ops outside of functions took 500 ms = 50 % of the run. Put them into a stet::function: then they are "
            "compiled together.");
}

TEST(Findings, WhatElseTakesTime) {
  HandMade made(1 * s);
  made.span(Kind::call, "f", 0, 300 * ms);
  made.span(Kind::bind, "bind", 0, 60 * ms);
  made.span(Kind::callback, "Log", 300 * ms, 400 * ms);
  made.span(Kind::audit, "f", 400 * ms, 480 * ms);
  made.span(Kind::stage, "map", 500 * ms, 570 * ms);
  const std::vector<Finding> all = findings(made);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(
      all[0].text,
      "24 % of the time passed in calls of functions and not in their kernels: a call does too little. Let a call "
      "do more: larger batches, or the loop inside of the function.");
  EXPECT_EQ(all[1].text,
            "Callbacks took 100 ms = 10 % of the run. The timeline says which: let it do less, or less often.");
  EXPECT_EQ(
      all[2].text,
      "Audits, which run host code again to compare it, took 80 ms = 8.0 % of the run. They grow rare as calls go "
      "on; .audit = Audit::never leaves them out.");
  EXPECT_EQ(all[3].text,
            "70 ms = 7.0 % of the time the program ran datasets' functions itself. Put .prefetch(2) at the end of the "
            "dataset: then another thread runs them meanwhile.");
  EXPECT_EQ(all[4].text,
            "6.0 % of the time went into binding programs to sizes: sizes change from call to call. Pad them to a few "
            "sizes, or give batches one size (.drop_remainder = true).");
}

TEST(Findings, TheDearestStage) {
  HandMade made(1 * s);
  made.span(Kind::wait, "data", 0, 500 * ms);
  made.note({{"note", "stages"},
             {"name", "train"},
             {"stages", Json::List{Json::Object{{"name", "batch(32)"}, {"seconds", 0.1}},
                                   Json::Object{{"name", "map(decode)"}, {"seconds", 0.4}}}}});
  const std::vector<Finding> all = findings(made);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_CONTAINS(all[0].text, "in every epoch. Its dearest stage is 'map(decode)', with 400 ms.");
}

TEST(Findings, ShortKernels) {
  HandMade made(1 * ms);
  for (std::uint64_t i = 0; i < 100; ++i) {
    made.span(Kind::call, "f", i * 10 * us, i * 10 * us + 4 * us);
    made.span(Kind::step, "add", i * 10 * us, i * 10 * us + 4 * us);
  }
  const std::vector<Finding> all = findings(made);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].text,
            "100 of 100 runs of kernels took less than 5.0 µs, too little for more than one thread. Larger "
            "batches make them longer.");
}

TEST(Findings, WhatTheMachineCouldDo) {
  auto found = [](double bytes, double flops, bool is_shared) {
    HandMade made(1 * s);
    made.span(Kind::call, "f", 0, 1 * s);
    made.span(Kind::step, "add", 0, 1 * s, bytes, flops);
    if (is_shared) made.span(Kind::region, "add", 0, 1 * s, 0, 0, 1);
    std::vector<Finding> all = findings(made, MachineLimits{.bytes = 100e9, .flops = 1e12});
    return all.empty() ? std::string() : all[0].text;
  };
  EXPECT_EQ(found(85e9, 1e9, true),
            "'add' moves 85.0 GB/s, 85 % of what this machine's memory gives, for 100 % of the time. Only fewer bytes "
            "make it faster: a smaller dtype, or more fused into it.");
  EXPECT_EQ(found(10e9, 1e9, false),
            "'add' moves 10.0 GB/s, 10 % of what this machine's memory gives, for 100 % of the time, on one thread. "
            "Larger operands would be shared among threads.");
  EXPECT_EQ(found(10e9, 1e9, true), "");     // it has them already
  EXPECT_EQ(found(50e9, 1e9, true), "");     // in between
  EXPECT_EQ(found(150e9, 1e9, true), "");    // from a cache
  EXPECT_EQ(found(80e9, 0.9e12, true), "");  // the processor is the limit
  EXPECT_EQ(found(0, 0, true), "");
}

TEST(Findings, WhatIsWrongWithTheRecording) {
  HandMade made(1 * s, 1234);
  made.poke(offsetof(recording::Head, version), std::uint32_t{7});
  made.span(Kind::user, "mine", 0, 10);
  const std::vector<Finding> all = findings(made);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].text,
            "The recording had no room for 1,234 spans, the oldest. Give it more room, or record less of "
            "the run.");
  EXPECT_EQ(all[0].weight, 0);
  EXPECT_EQ(all[1].text,
            "The recording has version 7 of its format, and this stet reads version 1: parts may be missing. Read it "
            "with the stet that wrote it, 0.1.0.");
}

}  // namespace
}  // namespace stet::reporting
