#include "stet/report/summary.h"

#include <numeric>

#include "tests/report/recordings.h"

namespace stet::reporting {
namespace {

using files::Json;
using recording::Kind;

double sum_of_shares(const Summary& summary) {
  return std::accumulate(std::begin(summary.shares), std::end(summary.shares), 0.0);
}
void expect_share(const Summary& summary, Share share, double milliseconds) {
  EXPECT_NEAR(summary.share_of(share), milliseconds * 1e-3, 1e-12) << share_name(share);
}

Json::Object trace_note(std::int64_t id, const std::string& function, int number, std::int64_t begin, double seconds,
                        double compile_seconds) {
  return {{"note", "trace"},
          {"id", id},
          {"function", function},
          {"file", "train.cpp"},
          {"line", 40},
          {"number", number},
          {"begin", static_cast<std::int64_t>(HandMade::began) + begin},
          {"seconds", seconds},
          {"compile_seconds", compile_seconds}};
}

TEST(Summary, SharesAreWhatEachKindTookItself) {
  HandMade made(100 * ms);
  made.span(Kind::epoch, "epoch", 0, 90 * ms);
  made.span(Kind::batch, "batch", 0, 60 * ms);
  made.span(Kind::wait, "data", 0, 10 * ms);
  made.span(Kind::call, "augment", 1 * ms, 9 * ms);  // the data that is waited for
  made.span(Kind::step, "crop", 2 * ms, 8 * ms);
  made.span(Kind::call, "train", 10 * ms, 50 * ms);
  made.span(Kind::trace, "train", 11 * ms, 31 * ms);
  made.span(Kind::step, "constant", 12 * ms, 13 * ms);  // host code runs eagerly in a trace
  made.span(Kind::pass, "fuse", 20 * ms, 24 * ms);
  made.span(Kind::pass, "code", 24 * ms, 30 * ms);
  made.span(Kind::compile, "kernel", 25 * ms, 29 * ms);
  made.span(Kind::bind, "bind", 31 * ms, 33 * ms);
  made.span(Kind::step, "matmul", 33 * ms, 48 * ms);
  made.span(Kind::callback, "Checkpoint", 60 * ms, 70 * ms);
  made.span(Kind::run, "add", 62 * ms, 65 * ms);
  made.span(Kind::step, "add", 63 * ms, 64 * ms);
  made.span(Kind::audit, "train", 70 * ms, 75 * ms);
  made.span(Kind::stage, "map", 80 * ms, 82 * ms);
  made.span(Kind::user, "mine", 91 * ms, 95 * ms);
  // Another thread works meanwhile, and is not counted.
  made.span(Kind::region, "matmul", 34 * ms, 47 * ms, 0, 0, 1);
  made.span(Kind::compile, "kernel 2", 25 * ms, 29 * ms, 0, 0, 2);
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  EXPECT_EQ(summary.main_thread, 0);
  expect_share(summary, Share::waiting, 10);
  expect_share(summary, Share::tracing, 10);
  expect_share(summary, Share::compiling, 10);
  expect_share(summary, Share::binding, 2);
  expect_share(summary, Share::kernels, 15 + 1);
  expect_share(summary, Share::calls, 3);
  expect_share(summary, Share::callbacks, 7);
  expect_share(summary, Share::eager, 2);
  expect_share(summary, Share::audits, 5);
  expect_share(summary, Share::stages, 2);
  expect_share(summary, Share::host, 10 + 13 + 10);
  expect_share(summary, Share::forgotten, 0);
  EXPECT_NEAR(sum_of_shares(summary), 0.1, 1e-12);
  EXPECT_EQ(summary.waits, 1);
}

TEST(Summary, SharesOfWhatARingForgotAreNobodys) {
  HandMade made(100 * ms, 1000);
  made.span(Kind::epoch, "epoch", 0, 80 * ms);  // its first batches are gone
  made.span(Kind::call, "train", 40 * ms, 60 * ms);
  made.span(Kind::step, "matmul", 45 * ms, 60 * ms);
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  expect_share(summary, Share::forgotten, 45);
  expect_share(summary, Share::kernels, 15);
  expect_share(summary, Share::calls, 0);  // it began before
  expect_share(summary, Share::host, 40);
  EXPECT_NEAR(sum_of_shares(summary), 0.1, 1e-12);
}

TEST(Summary, OfNothingHasOnlyHostCode) {
  const Recorded recorded = HandMade(2 * s).read();
  const Summary summary = summarize(recorded);
  EXPECT_EQ(summary.main_thread, std::nullopt);
  EXPECT_TRUE(summary.functions.empty());
  EXPECT_TRUE(summary.kernels.empty());
  EXPECT_EQ(summary.share_of(Share::host), 2);
}

TEST(Summary, TheMainThreadIsTheOneThatCalls) {
  HandMade made(1 * s);
  made.span(Kind::region, "matmul", 0, 900 * ms, 0, 0, 0);
  made.span(Kind::stage, "map", 0, 800 * ms, 0, 0, 1);
  made.span(Kind::call, "f", 0, 100 * ms, 0, 0, 5);
  made.span(Kind::call, "g", 0, 90 * ms, 0, 0, 6);
  const Recorded recorded = made.read();
  EXPECT_EQ(recorded.threads[summarize(recorded).main_thread.value()], "thread 5");
}

TEST(Summary, CountsCallsOnceWhereTheyNest) {
  HandMade made(1 * s);
  made.span(Kind::call, "outer", 0, 100 * ms);
  made.span(Kind::call, "inner", 10 * ms, 40 * ms);
  made.span(Kind::call, "inner", 20 * ms, 30 * ms);  // of itself
  made.span(Kind::call, "inner", 50 * ms, 60 * ms);
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  ASSERT_EQ(summary.functions.size(), 2u);
  const FunctionSummary &outer = summary.functions[0], &inner = summary.functions[1];
  EXPECT_EQ(outer.name, "outer");
  EXPECT_EQ(outer.calls, 1);
  EXPECT_NEAR(outer.seconds, 0.1, 1e-12);
  EXPECT_NEAR(outer.self_seconds, 0.06, 1e-12);
  EXPECT_EQ(inner.calls, 3);
  EXPECT_NEAR(inner.seconds, 0.04, 1e-12);
  EXPECT_NEAR(inner.self_seconds, 0.04, 1e-12);
}

TEST(Summary, TellsTracesApart) {
  HandMade made(10 * s);
  made.note(trace_note(1, "f", 1, -5'000'000, 1, 1));  // before the recording
  made.note(trace_note(2, "f", 2, 1'000'000'000, 0.25, 0.5));
  made.note(trace_note(3, "f", 3, 2'000'000'000, 0.5, 0.25));
  made.note(trace_note(3, "f", 3, 2'000'000'000, 0.5, 0.5));  // told again
  made.note(trace_note(4, "g", 1, 3'000'000'000, 2, 1));
  made.note({{"note", "trace_calls"}, {"id", 3}, {"calls", 5}});
  made.note({{"note", "trace_calls"}, {"id", 3}, {"calls", 7}});
  made.note({{"note", "evicted"}, {"id", 2}});
  made.note({{"note", "event"}, {"kind", "warning"}, {"function", "g"}, {"text", "slow"}}, 5 * s);
  made.note({{"note", "event"}, {"kind", "retrace"}, {"function", "f"}, {"text", "why"}}, 4 * s);
  made.note({{"note", "what nobody knows yet"}, {"members", 3}});
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  ASSERT_EQ(summary.functions.size(), 2u);
  const FunctionSummary &g = summary.functions[0], &f = summary.functions[1];
  EXPECT_EQ(g.name, "g");
  EXPECT_EQ(g.retraces, 0);
  EXPECT_EQ(g.trace_seconds, 3);
  EXPECT_EQ(g.lost_seconds, 0);
  EXPECT_EQ(g.file, "train.cpp");
  EXPECT_EQ(g.line, 40);
  EXPECT_EQ(g.warnings, std::vector<std::string>{"slow"});
  ASSERT_EQ(f.traces.size(), 3u);
  EXPECT_EQ(f.traces_within(), 2);
  EXPECT_EQ(f.retraces, 2);
  EXPECT_EQ(f.trace_seconds, 1.75);
  EXPECT_EQ(f.lost_seconds, 1.75);
  EXPECT_LT(f.traces[0].begin, 0);
  EXPECT_TRUE(f.traces[1].evicted);
  EXPECT_FALSE(f.traces[2].evicted);
  EXPECT_EQ(f.traces[2].calls, 7);
  EXPECT_EQ(f.traces[2].seconds, 1);
  EXPECT_EQ(f.traces[2].compiling, 0.5);
  EXPECT_EQ(summary.traces(), 3);
  EXPECT_EQ(summary.traced_functions(), 2);
  EXPECT_EQ(summary.retraces(), 2);
  EXPECT_EQ(summary.lost_seconds(), 1.75);
  ASSERT_EQ(summary.events.size(), 2u);
  EXPECT_EQ(summary.events[0].text, "why");
  EXPECT_EQ(summary.events[0].time, 4);
}

TEST(Summary, KernelsHaveTheTimeThatNoStepInsideOfThemHas) {
  HandMade made(1 * s);
  made.span(Kind::call, "f", 0, 100 * ms);
  made.span(Kind::step, "loop", 0, 50 * ms);
  made.span(Kind::step, "body", 10 * ms, 20 * ms, 1000, 500);
  made.span(Kind::step, "body", 20 * ms, 30 * ms, 1000, 500);
  made.span(Kind::step, "body", 60 * ms, 60 * ms + 2 * us, 10, 5);
  made.span(Kind::step, "body", 200 * ms, 201 * ms);  // outside of every call: another kernel
  // Two workers have a part of a body, one of them in both; what nobody runs then is nobody's.
  made.span(Kind::region, "body", 11 * ms, 12 * ms, 0, 0, 1);
  made.span(Kind::region, "body", 21 * ms, 22 * ms, 0, 0, 1);
  made.span(Kind::region, "body", 11 * ms, 12 * ms, 0, 0, 2);
  made.span(Kind::region, "body", 150 * ms, 151 * ms, 0, 0, 3);
  made.span(Kind::region, "another", 11 * ms, 12 * ms, 0, 0, 4);
  made.note(
      {{"note", "kernel"}, {"name", "body"}, {"made_of", Json::List{"add", 3, "mul"}}, {"not_fused", "too many"}});
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  ASSERT_EQ(summary.kernels.size(), 3u);
  const KernelSummary &loop = summary.kernels[0], &body = summary.kernels[1], &eager = summary.kernels[2];
  EXPECT_EQ(loop.name, "loop");
  EXPECT_NEAR(loop.seconds, 0.03, 1e-12);
  EXPECT_EQ(loop.threads, 1);
  EXPECT_EQ(body.name, "body");
  EXPECT_EQ(summary.functions.at(body.function.value()).name, "f");
  EXPECT_EQ(body.count, 3);
  EXPECT_NEAR(body.seconds, 0.020002, 1e-12);
  EXPECT_EQ(body.bytes, 2010);
  EXPECT_EQ(body.flops, 1005);
  EXPECT_EQ(body.threads, 3);
  EXPECT_EQ(body.made_of, (std::vector<std::string>{"add", "mul"}));
  EXPECT_EQ(body.not_fused, "too many");
  EXPECT_EQ(eager.function, std::nullopt);
  EXPECT_EQ(eager.count, 1);
  EXPECT_EQ(summary.runs, 5);
  EXPECT_EQ(summary.short_runs, 1);
  EXPECT_NEAR(summary.short_seconds, 2e-6, 1e-12);
}

TEST(Summary, KernelsKnowTheirFunctionsWhereTheseAreSorted) {
  HandMade made(1 * s);
  for (std::uint64_t i = 0; i < 9; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    made.span(Kind::call, name, i * 100 * ms, i * 100 * ms + (i * 7 % 9 + 1) * ms);
    made.span(Kind::step, "step of " + name, i * 100 * ms, i * 100 * ms + 500 * us);
  }
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  for (std::size_t i = 1; i < summary.functions.size(); ++i)
    EXPECT_GE(summary.functions[i - 1].seconds, summary.functions[i].seconds);
  for (const KernelSummary& kernel : summary.kernels)
    EXPECT_EQ(kernel.name, "step of " + summary.functions.at(kernel.function.value()).name);
}

TEST(Summary, EpochsAreThoseOfTheirFit) {
  HandMade made(10 * s);
  auto epoch = [&](const std::string& name, int number, double loss) {
    made.note({{"note", "epoch"},
               {"name", name},
               {"epoch", number},
               {"epochs", 2},
               {"begin", static_cast<std::int64_t>(HandMade::began + 1 * s)},
               {"seconds", 0.5},
               {"waited", 0.25},
               {"batches", 10},
               {"values", Json::Object{{"loss", loss}}}});
  };
  epoch("mlp", 1, 3);
  epoch("mlp", 2, 2);
  epoch("cnn", 1, 9);
  epoch("mlp", 1, 1);  // fit again
  epoch("mlp", 2, 0.5);
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  ASSERT_EQ(summary.training.size(), 3u);
  EXPECT_EQ(summary.training[0].epochs.size(), 2u);
  EXPECT_EQ(summary.training[1].name, "cnn");
  EXPECT_EQ(summary.training[2].name, "mlp");
  EXPECT_EQ(summary.training[2].epochs.size(), 2u);
  EXPECT_EQ(summary.training[2].epochs[1].begin, 1);
  EXPECT_EQ(*summary.training[2].epochs[1].values->find("loss")->if_real(), 0.5);
}

TEST(Summary, StagesAreThoseOfTheLastPass) {
  HandMade made(10 * s);
  auto stages = [&](const std::string& name, int elements) {
    made.note({{"note", "stages"},
               {"name", name},
               {"stages",
                Json::List{Json::Object{{"name", "batch(32)"}, {"depth", 0}, {"elements", elements}, {"seconds", 0.5}},
                           Json::Object{{"name", "map"}, {"depth", 1}}}}});
  };
  stages("train", 10);
  stages("train", 20);
  {
    const Recorded recorded = made.read();
    const Summary summary = summarize(recorded);
    ASSERT_EQ(summary.stages.size(), 2u);
    EXPECT_EQ(summary.stages[0].elements, 20);
    EXPECT_EQ(summary.stages[0].seconds, 0.5);
    EXPECT_EQ(summary.stages[1].seconds, std::nullopt);
  }
  stages("validation", 5);
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  ASSERT_EQ(summary.stages.size(), 6u);  // each below its dataset's name
  EXPECT_EQ(summary.stages[3].name, "validation");
  EXPECT_EQ(summary.stages[3].depth, 0);
  EXPECT_EQ(summary.stages[5].depth, 2);
}

/// Deep nesting and many spans take time in proportion: what would be quadratic would not end.
TEST(Summary, TakesDeepRecordings) {
  HandMade made(1 * s);
  constexpr std::uint64_t depth = 200'000;
  for (std::uint64_t i = 0; i < depth; ++i) made.span(Kind::call, i % 2 ? "f" : "g", i, 1 * s - i);
  const Recorded recorded = made.read();
  const Summary summary = summarize(recorded);
  ASSERT_EQ(summary.functions.size(), 2u);
  EXPECT_EQ(summary.functions[0].calls + summary.functions[1].calls, static_cast<std::int64_t>(depth));
  EXPECT_NEAR(sum_of_shares(summary), 1, 1e-9);
}

}  // namespace
}  // namespace stet::reporting
