// Profile and what the library tells it: programs that are recorded, and what is read back from that.
#include "stet/report/profile.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "stet/report/recorded.h"
#include "stet/report/summary.h"
#include "stet/stet.h"
#include "tests/public/expect_error.h"
#include "tests/public/forks.h"
#include "tests/public/profile_files.h"

namespace stet {
namespace {

using namespace reporting;
using files::Json;

/// A folder of its own that goes when the test does.
class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() {
    folder = std::filesystem::temp_directory_path() / ("stet-profile-" + std::to_string(getpid()) + "-" +
                                                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder);
    on_retrace([](const RetraceEvent&) {});
  }
  ~ProfileTest() override {
    on_retrace({});
    std::filesystem::remove_all(folder);
  }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  /// What a profile has so far.
  Recorded read(const Profile& profile) const {
    const std::string file = path("copy.stet-profile");
    profile.save(file);
    return read_recording(file);
  }
  std::filesystem::path folder;
};

std::int64_t count_of(const Recorded& recorded, recording::Kind kind, const std::string& name = "") {
  std::int64_t count = 0;
  for (const RecordedSpan& span : recorded.spans)
    count += recorded.kind_of(span) == kind && (name.empty() || recorded.names[span.name] == name);
  return count;
}

std::vector<const Json*> notes_of(const Recorded& recorded, const std::string& kind) {
  std::vector<const Json*> out;
  for (const Json& note : recorded.notes)
    if (const Json* which = note.find("note"); which && which->if_string() && *which->if_string() == kind)
      out.push_back(&note);
  return out;
}

const FunctionSummary& function_of(const Summary& summary, const std::string& name) {
  for (const FunctionSummary& one : summary.functions)
    if (one.name == name) return one;
  ADD_FAILURE() << "no function " << name;
  static const FunctionSummary none;
  return none;
}

TEST_F(ProfileTest, CallsTracesAndKernelsOfAFunction) {
  Function f = function("profiled_dense(x, w)", [](Tensor x, Tensor w) { return sum(relu(matmul(x, w) + 1), {1}); });
  const Tensor x = ones({6, 4}), w = ones({4, 8});
  Profile profile;
  for (int call = 0; call < 20; ++call) f(x, w);
  profile.stop();
  f(x, w);  // is not in it
  const Recorded recorded = read(profile);
  EXPECT_TRUE(recorded.complete);
  EXPECT_EQ(recorded.lost_spans, 0u);
  EXPECT_EQ(count_of(recorded, recording::Kind::call, "profiled_dense"), 20);
  EXPECT_EQ(count_of(recorded, recording::Kind::trace, "profiled_dense"), 1);
  EXPECT_GT(count_of(recorded, recording::Kind::pass), 5);
  const Summary summary = summarize(recorded);
  const FunctionSummary& told = function_of(summary, "profiled_dense");
  EXPECT_EQ(told.calls, 20);
  EXPECT_EQ(told.retraces, 0);
  ASSERT_EQ(told.traces.size(), 1u);
  EXPECT_NE(told.file.find("profile_test.cpp"), std::string::npos);
  double flops = 0;
  for (const KernelSummary& kernel : summary.kernels) {
    EXPECT_EQ(kernel.count % 20, 0) << kernel.name;
    EXPECT_GT(kernel.bytes, 0) << kernel.name;
    flops += kernel.flops;
  }
  const TraceCost cost = f.cost(x, w);
  EXPECT_EQ(flops, 20.0 * static_cast<double>(cost.flops));
  double shares = 0;
  for (double share : summary.shares) shares += share;
  EXPECT_NEAR(shares, summary.seconds, 1e-6);
}

TEST_F(ProfileTest, ARetraceWithItsCauseItsFixAndItsPlace) {
  Function f = function("profiled_scale(x, rate)", [](Tensor x, double rate) { return x * rate; });
  Profile profile;
  for (int step = 0; step < 4; ++step) f(ones({3}), 0.5 / (step + 1));
  const Recorded recorded = read(profile);
  const Summary summary = summarize(recorded);
  const FunctionSummary& told = function_of(summary, "profiled_scale");
  EXPECT_EQ(told.retraces, 3);
  ASSERT_EQ(told.traces.size(), 4u);
  EXPECT_GT(told.lost_seconds, 0);
  const Json& last = *told.traces.back().note;
  EXPECT_EQ(
      *last.find("cause")->if_string(),
      "argument 1 'rate' 0.16666666666666666 -> 0.125 the value of a C++ number changed, and is part of the trace")
      << files::to_text(last);
  ASSERT_FALSE(last.find("fixes")->if_list()->empty());
  EXPECT_CONTAINS(*last.find("fixes")->if_list()->front().if_string(), "(4 traces -> 1)");
  EXPECT_NE(last.find("call_file")->if_string()->find("profile_test.cpp"), std::string::npos);
  std::int64_t retraces = 0;
  for (const EventSummary& event : summary.events) retraces += event.kind == "retrace";
  EXPECT_EQ(retraces, 3);
}

TEST_F(ProfileTest, EventsOfEveryKind) {
  Function few = function("profiled_few(x, n)", [](Tensor x, int n) { return x * n; }, {.max_traces = 1});
  int captured = 1;
  Function stale = function("profiled_stale(x)", [&](Tensor x) { return x * captured; });
  on_stale([](const StaleEvent&) {});
  Profile profile;
  few(ones({3}), 1);
  few(ones({3}), 1);
  few(ones({3}), 2);
  stale(ones({3}));
  captured = 2;
  stale(ones({3}));
  testing::internal::CaptureStderr();
  Variable unused(ones({2}));
  keras::SGD(0.1).apply_gradients({Tensor(), ones({3})}, {unused, Variable(ones({3}))});
  EXPECT_CONTAINS(testing::internal::GetCapturedStderr(), "there is no gradient for ");
  on_stale({});
  const Recorded recorded = read(profile);
  const Summary summary = summarize(recorded);
  std::map<std::string, std::string> texts;
  for (const EventSummary& event : summary.events) texts[event.kind] += event.text;
  EXPECT_CONTAINS(texts["retrace"], "stet: tracing 'profiled_few' again (trace 2)");
  EXPECT_EQ(texts["eviction"],
            "stet: the trace of 'profiled_few' for (f32[x_0], 1) is forgotten, which served 2 calls: .max_traces or "
            ".max_bytes allow no more\n");
  EXPECT_CONTAINS(texts["audit"], "stet: 'profiled_stale' would be traced differently now");
  EXPECT_CONTAINS(texts["warning"], "stet: apply_gradients: there is no gradient for ");
  EXPECT_EQ(count_of(recorded, recording::Kind::audit, "profiled_stale"), 1);
  EXPECT_TRUE(function_of(summary, "profiled_few").traces[0].evicted);
}

TEST_F(ProfileTest, TracesThatWereThereBefore) {
  Function f = function("profiled_before(x)", [](Tensor x) { return x + 1; });
  f(ones({3}));
  f(ones({3, 2}));
  Profile profile;
  f(ones({3}));
  profile.stop();
  const Recorded recorded = read(profile);
  const Summary summary = summarize(recorded);
  const FunctionSummary& told = function_of(summary, "profiled_before");
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.retraces, 0) << "they were made before";
  EXPECT_EQ(told.traces.size(), 2u);
  EXPECT_EQ(told.lost_seconds, 0);
}

TEST_F(ProfileTest, WhatAKernelIsMadeOf) {
  Function f = function("profiled_chain(x)", [](Tensor x) {
    const Tensor shared = exp(x) * 2;
    return std::pair(shared + 1, sqrt(abs(x)) - shared);
  });
  Profile profile;
  f(ones({30}));
  const Recorded recorded = read(profile);
  std::map<std::string, int> seen;
  for (const Json* note : notes_of(recorded, "kernel"))
    for (const Json& op : *note->find("made_of")->if_list()) ++seen[*op.if_string()];
  for (const char* op : {"exp", "multiply", "add", "sqrt", "abs", "subtract"}) EXPECT_EQ(seen.count(op), 1u) << op;
}

TEST_F(ProfileTest, EachHasItsOwnTime) {
  Function f = function("profiled_twice(x)", [](Tensor x) { return x * 3; });
  const Tensor x = ones({5});
  f(x);
  Profile outer;
  f(x);
  {
    Profile inner;
    f(x);
    f(x);
    inner.stop();
    f(x);
    EXPECT_EQ(count_of(read(inner), recording::Kind::call, "profiled_twice"), 2);
  }
  EXPECT_EQ(count_of(read(outer), recording::Kind::call, "profiled_twice"), 4);
  outer.stop();
  outer.stop();
  EXPECT_FALSE(recording::on());
}

TEST_F(ProfileTest, WhatCachesFound) {
  Function f = function("profiled_cached(x)", [](Tensor x) { return x * 7 + 3; });
  const Tensor x = ones({6});
  auto of = [](const Summary& summary, const std::string& name) {
    for (const CacheSummary& cache : summary.caches)
      if (cache.name == name) return std::pair(cache.found, cache.of);
    return std::pair(std::int64_t{-1}, std::int64_t{-1});
  };
  Profile outer;
  for (int call = 0; call < 5; ++call) static_cast<void>(x + x);
  Profile inner;
  for (int call = 0; call < 20; ++call) f(ones({call < 10 ? 6 : 7}));  // traced, bound to another size, audited
  inner.stop();
  for (int call = 0; call < 5; ++call) f(x);
  outer.stop();
  const Recorded all = read(outer), part = read(inner);
  const auto [found, calls] = of(summarize(part), "calls, served at once");
  EXPECT_EQ(calls, 20);
  EXPECT_GE(found, 10);
  EXPECT_LE(found, 18) << "one was traced, and one bound anew";
  EXPECT_EQ(of(summarize(all), "calls, served at once"), std::pair(found + 5, calls + 5));
  EXPECT_EQ(of(summarize(all), "eager ops, served at once").second, 5);
  EXPECT_EQ(of(summarize(part), "eager ops, served at once").second, -1) << "none ran there";
  EXPECT_GT(of(summarize(all), "allocations, without the system").second, 20);
  const auto [loaded, kernels] = of(summarize(part), "kernels, from the object cache");
  EXPECT_GE(kernels, 1);
  EXPECT_EQ(kernels - loaded, count_of(part, recording::Kind::compile));
  EXPECT_CONTAINS(outer.table(), "\nCaches\n");
}

TEST_F(ProfileTest, WhatAnExceptionEnds) {
  Function fails = function("profiled_failing(x)", [](Tensor x) {
    if (x.shape()[0] == 3) throw std::runtime_error("host code gives up");
    return x;
  });
  Function checked = function("profiled_checked(x, i)", [](Tensor x, Tensor i) { return gather(x, i); });
  Profile profile;
  EXPECT_THROW(fails(ones({3})), std::runtime_error);
  EXPECT_THROW(checked(ones({3}), tensor({7})), std::exception);
  checked(ones({3}), tensor({2}));
  const Recorded recorded = read(profile);
  EXPECT_EQ(count_of(recorded, recording::Kind::call, "profiled_failing"), 1);
  EXPECT_EQ(count_of(recorded, recording::Kind::call, "profiled_checked"), 2);
}

TEST_F(ProfileTest, SpansByNamesOfTheUsers) {
  { ProfileSpan nobody("nobody records this"); }
  Profile profile;
  {
    ProfileSpan span("load \"data\"\n\xff");
    ProfileSpan inside("inside");
  }
  const Recorded recorded = read(profile);
  EXPECT_EQ(count_of(recorded, recording::Kind::user), 2);
  EXPECT_EQ(count_of(recorded, recording::Kind::user, "load \"data\"\n\xEF\xBF\xBD"), 1);
  EXPECT_EQ(count_of(recorded, recording::Kind::user, "nobody records this"), 0);
}

TEST_F(ProfileTest, FitWithEpochsBatchesCallbacksAndData) {
  keras::Sequential model{keras::Input({4}), keras::Dense(3, {.activation = "relu"}), keras::Dense(1)};
  model.compile({.optimizer = keras::SGD(0.01), .loss = "mse"});
  auto batches = data::from_tensor_slices(ones({24, 4}), ones({24, 1}))
                     .map([](Tensor a, Tensor b) { return std::pair(a * 2, b); }, {.name = "double"})
                     .batch(8);
  Profile profile;
  model.fit(batches, {.epochs = 2, .verbose = 0, .callbacks = {keras::TerminateOnNaN()}});
  const Recorded recorded = read(profile);
  EXPECT_EQ(count_of(recorded, recording::Kind::epoch), 2);
  EXPECT_EQ(count_of(recorded, recording::Kind::batch, "train_step"), 6);
  EXPECT_GT(count_of(recorded, recording::Kind::callback, "TerminateOnNaN"), 6);
  EXPECT_GE(count_of(recorded, recording::Kind::wait), 8);
  const Summary summary = summarize(recorded);
  ASSERT_EQ(summary.training.size(), 1u);
  ASSERT_EQ(summary.training[0].epochs.size(), 2u);
  EXPECT_EQ(summary.training[0].epochs[1].batches, 3);
  EXPECT_GT(summary.training[0].epochs[0].waited, 0);
  EXPECT_LT(summary.training[0].epochs[0].waited, summary.training[0].epochs[0].seconds);
  ASSERT_NE(summary.training[0].epochs[0].values, nullptr);
  EXPECT_NE(summary.training[0].epochs[0].values->find("loss"), nullptr);
  std::map<std::string, std::int64_t> elements;
  for (const StageSummary& stage : summary.stages) elements[stage.name] = stage.elements.value_or(-1);
  EXPECT_EQ(elements.count("map 'double'"), 1u);
}

TEST_F(ProfileTest, LayersInTheGraphOfATrace) {
  keras::Sequential model{keras::Input({4}), keras::Dense(3, {.name = "first"}), keras::Dense(1, {.name = "second"})};
  model.compile({.optimizer = keras::SGD(0.01), .loss = "mse"});
  Profile profile;
  model.fit(ones({8, 4}), ones({8, 1}), {.epochs = 1, .verbose = 0});
  const Recorded recorded = read(profile);
  std::map<std::string, int> scopes;
  for (const Json* trace : notes_of(recorded, "trace"))
    for (const Json& node : *trace->find("graph")->find("nodes")->if_list()) ++scopes[*node.find("scope")->if_string()];
  bool first = false, second = false;
  for (const auto& [scope, count] : scopes) {
    first = first || scope.find("first") != std::string::npos;
    second = second || scope.find("second") != std::string::npos;
  }
  EXPECT_TRUE(first && second);
}

TEST_F(ProfileTest, TheGraphOfATraceNamesWhatItIsMadeOf) {
  Variable weight(ones({4}), {.name = "weight"});
  Tensor many = ones({40});
  Function f = function("told_graph(x)", [=](Tensor x) {
    NameScope part("part");
    return sum(x * weight) + 1.01f + sum(many);
  });
  Profile profile;
  f(ones({4}));
  const Recorded recorded = read(profile);
  std::set<std::string> nodes, others;
  for (const Json* trace : notes_of(recorded, "trace"))
    for (const Json& node : *trace->find("graph")->find("nodes")->if_list())
      if (node.find("in")->if_list()->empty())
        nodes.insert(text(*node.find("op")->if_string(), ": ", *node.find("text")->if_string(), " in ",
                          *node.find("scope")->if_string()));
      else
        others.insert(text(*node.find("op")->if_string(), ": ", *node.find("text")->if_string()));
  EXPECT_EQ(nodes, (std::set<std::string>{"input: f32[x_0] in ", "variable: weight f32[4] in part",
                                          "captured: f32[40] in part"}));
  EXPECT_TRUE(others.contains("add: f32[], with 1.01")) << joined(others, "; ");
}

TEST_F(ProfileTest, ARetraceNamesTheTraceThatItIsComparedWithAndTheLimit) {
  on_retrace([](const RetraceEvent&) {});
  Function f = function("told_limit(x, y)", [](Tensor x, Tensor y) { return sum(x) + sum(cast(y, f32)); },
                        {.max_traces = 5, .on_limit = OnLimit::eager});
  Profile profile;
  f(ones({4}), ones({4}));
  f(ones({4}, i32), ones({4}, i32));
  f(ones({4}), ones({4}, i32));  // differs in one argument from both: the later one counts
  f(ones({4}, f64), ones({4}));  // from the first in one, from the others in two
  on_retrace(nullptr);
  const Recorded recorded = read(profile);
  std::vector<int> nearest;
  for (const Json* trace : notes_of(recorded, "trace")) {
    nearest.push_back(static_cast<int>(*trace->find("nearest")->if_integer()));
    EXPECT_EQ(*trace->find("max_traces"), Json(5));
    EXPECT_EQ(*trace->find("on_limit"), Json("eager"));
  }
  EXPECT_EQ(nearest, (std::vector<int>{0, 1, 2, 1}));
}

TEST_F(ProfileTest, ManyThreadsBeginAndEndWhileItRuns) {
  Function f = function("profiled_threads(x)", [](Tensor x) { return tanh(x) + 1; });
  constexpr int threads = 8, rounds = 3, calls = 40;
  f(ones({16}));
  Profile profile;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        const Tensor x = ones({16 + t % 2});
        for (int call = 0; call < calls; ++call) {
          f(x);
          ProfileSpan span(t % 2 ? "odd" : "even");
          if (call == calls / 2 && t == 3) {
            Profile other;
            f(x);
          }
        }
      });
    if (round == 1) static_cast<void>(profile.json());
    for (std::thread& one : all) one.join();
  }
  profile.stop();
  const Recorded recorded = read(profile);
  EXPECT_EQ(count_of(recorded, recording::Kind::call, "profiled_threads"), threads * rounds * calls + rounds);
  EXPECT_EQ(count_of(recorded, recording::Kind::user), threads * rounds * calls);
  EXPECT_EQ(recorded.lost_spans, 0u);
}

TEST_F(ProfileTest, TheOldestGoFirst) {
  Profile profile(ProfileOptions{.max_bytes = 1});  // the least that there is
  for (int i = 0; i < 60'000; ++i) ProfileSpan span(i % 2 ? "odd" : "even");
  { ProfileSpan last("the last one"); }
  const Recorded recorded = read(profile);
  EXPECT_GT(recorded.lost_spans, 0u);
  EXPECT_EQ(count_of(recorded, recording::Kind::user, "the last one"), 1);
  EXPECT_EQ(static_cast<std::uint64_t>(count_of(recorded, recording::Kind::user)) + recorded.lost_spans, 60'001u);
}

TEST_F(ProfileTest, WhatItRefuses) {
  EXPECT_CONTAINS(
      error_of([&] { Profile profile(path("none/run.stet-profile")); }),
      "a recording cannot be written to '" + path("none/run.stet-profile") + "': No such file or directory");
  EXPECT_CONTAINS(error_of([&] { Profile profile(folder.string()); }), "Is a directory");
  EXPECT_CONTAINS(error_of([&] { Profile profile(ProfileOptions{.max_bytes = 0}); }), "Profile: max_bytes = 0");
  Profile profile;
  EXPECT_CONTAINS(error_of([&] { profile.save(path("run.png")); }),
                  "Profile::save: '" + path("run.png") + "' has none of the endings that it knows");
  EXPECT_CONTAINS(error_of([&] { profile.save(path("none/run.html")); }),
                  "Profile::save: '" + path("none/run.html") + "': cannot be written: No such file or directory");
  std::filesystem::create_symlink("/dev/full", path("full.html"));
  EXPECT_CONTAINS(error_of([&] { profile.save(path("full.html")); }), "full.html': is not a regular file");
}

TEST_F(ProfileTest, AllThatItSaves) {
  Function f = function("profiled_saved(x)", [](Tensor x) { return x + 1; });
  Profile profile(path("run.stet-profile"));
  f(ones({3}));
  for (const char* moment : {"running", "stopped"}) {
    profile.save(path("run.html"));
    profile.save(path("run.json"));
    profile.save(path("other.stet-profile"));
    EXPECT_EQ(count_of(read_recording(path("other.stet-profile")), recording::Kind::call, "profiled_saved"), 1)
        << moment;
    std::ifstream page(path("run.html"));
    const std::string html((std::istreambuf_iterator<char>(page)), {});
    EXPECT_CONTAINS(html, "profiled_saved");
    EXPECT_CONTAINS(html, "</html>");
    std::ifstream trace(path("run.json"));
    const std::string json((std::istreambuf_iterator<char>(trace)), {});
    EXPECT_CONTAINS(json, "profiled_saved");
    EXPECT_CONTAINS(profile.table(), "profiled_saved");
    EXPECT_CONTAINS(profile.json(), "profiled_saved");
    profile.stop();
  }
  EXPECT_TRUE(read_recording(path("run.stet-profile")).complete);
}

TEST_F(ProfileTest, ForTensorBoardWithAllThatTheRecordingHas) {
  Variable total(zeros({8}));
  Function f = function("profiled_board(x, w)", [&](Tensor x, Tensor w) {
    Tensor y;
    {
      NameScope layer("a_layer");
      y = relu(matmul(x, w));
    }
    total.assign_add(sum(y, {0}));
    return while_loop([](Tensor v) { return v < 1000.f; }, [](Tensor v) { return v * 2 + 1; }, sum(y));
  });
  Profile profile;
  for (int call = 0; call < 5; ++call) f(ones({6, 4}), ones({4, 8}));
  const std::string running = profile.save_tensorboard(path("logs"));
  profile.stop();
  const std::string stopped = profile.save_tensorboard(path("logs/"), 7);
  EXPECT_EQ(profile_files::files_below(path("logs")).size(), 2u);
  EXPECT_NE(running, stopped);
  EXPECT_EQ(profile_files::read(running).of_kind("call").size(), 5u);
  const profile_files::Space space = profile_files::read(stopped);
  const Recorded recorded = read(profile);

  // Counts, names and times are the recording's.
  std::multiset<std::tuple<std::string, std::string, std::int64_t, std::int64_t>> expected, found;
  for (const RecordedSpan& span : recorded.spans)
    expected.emplace(recorded.kinds[span.kind], recorded.names[span.name], span.begin * 1000, span.duration * 1000);
  for (const std::string& kind : recorded.kinds)
    for (const profile_files::Event& event : space.of_kind(kind))
      found.emplace(kind, event.name, event.begin, event.duration);
  EXPECT_GT(expected.size(), 30u);
  EXPECT_EQ(found, expected);

  // Kernels know where they come from.
  std::int64_t in_layer = 0;
  for (const profile_files::Event& step : space.of_kind("step")) {
    EXPECT_CONTAINS(step.text("source"), "profile_test.cpp:");
    if (step.text("scope") != "a_layer") continue;
    ++in_layer;
    EXPECT_EQ(step.text("tf_op").find("a_layer/matmul"), 0u) << step.text("tf_op");
    EXPECT_GT(step.number("flops"), 0);
    EXPECT_GT(step.number("bytes_accessed"), 0);
  }
  EXPECT_EQ(in_layer, 5);
  const std::vector<profile_files::Event> calls = space.of_kind("call");
  ASSERT_EQ(calls.size(), 5u);
  for (std::size_t call = 0; call < 5; ++call) {
    EXPECT_EQ(calls[call].name, "profiled_board");
    EXPECT_EQ(calls[call].text("tf_function_call"), call == 0 ? "traced-nonXla" : "notTraced-nonXla");
    EXPECT_EQ(calls[call].number("tracing_count"), 1);
    EXPECT_CONTAINS(calls[call].text("source"), "profile_test.cpp:");
  }
}

TEST_F(ProfileTest, WhereTensorBoardFindsIt) {
  Profile profile;
  { ProfileSpan span("mine"); }
  profile.stop();
  const std::filesystem::path file = profile.save_tensorboard(path("logs"));
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  EXPECT_EQ(file.filename(), std::string(host) + ".xplane.pb");
  EXPECT_EQ(file.parent_path().parent_path(), path("logs/plugins/profile"));
  // The local time at which the recording began.
  const std::time_t began = read(profile).began_at / 1'000'000'000;
  std::tm parts;
  char time[64] = {};
  std::strftime(time, sizeof time, "%Y_%m_%d_%H_%M_%S", localtime_r(&began, &parts));
  EXPECT_EQ(file.parent_path().filename(), time);
  // Nothing is overwritten.
  EXPECT_EQ(std::filesystem::path(profile.save_tensorboard(path("logs"))).parent_path().filename(),
            std::string(time) + "_2");
  EXPECT_EQ(profile_files::read(file).hosts, std::vector<std::string>{host});

  EXPECT_CONTAINS(error_of([&] { profile.save_tensorboard(""); }),
                  "Profile::save_tensorboard: '': the path of the folder is empty\n");
  EXPECT_CONTAINS(error_of([&] { profile.save_tensorboard(""); }),
                  "fix: give the folder that TensorBoard is called with: tensorboard --logdir");
  EXPECT_CONTAINS(error_of([&] { profile.save_tensorboard(std::string("a\0b", 3)); }), "a zero byte is in the path");
  std::ofstream(path("file")) << "x";
  EXPECT_CONTAINS(error_of([&] { profile.save_tensorboard(path("file")); }),
                  "Profile::save_tensorboard: '" + path("file") +
                      "/plugins/profile': the folder cannot be made: Not a directory\n");
  EXPECT_CONTAINS(error_of([&] { profile.save_tensorboard(path("file")); }),
                  "fix: give a folder that you may write to, or that can be made");
}

// --- one function

TEST_F(ProfileTest, OneFunctionMeasured) {
  Variable total(zeros({64}));
  Function f = function("profiled_one(x, w)", [&](Tensor x, Tensor w) {
    Tensor y = relu(matmul(x, w) + 1);
    total.assign_add(sum(y, {0}));
    return y;
  });
  const FunctionProfile told = profile(f, ones({32, 48}), ones({48, 64}));
  EXPECT_EQ(told.function, "profiled_one");
  EXPECT_GE(told.calls, 3);
  EXPECT_EQ(told.updates, 1);
  EXPECT_EQ(told.updates_in_place, 1);
  EXPECT_GT(told.seconds, 0);
  EXPECT_GT(told.machine_bytes, 0);
  ASSERT_FALSE(told.kernels.empty());
  double flops = 0, seconds = 0;
  bool fused = false;
  for (const KernelProfile& kernel : told.kernels) {
    flops += kernel.flops;
    seconds += kernel.seconds;
    EXPECT_EQ(kernel.runs, 1);
    fused = fused ||
            (kernel.made_of == std::vector<std::string>{"matmul", "add", "relu"} &&
             kernel.not_fused.find("it is a result") != std::string::npos) ||
            kernel.made_of == std::vector<std::string>{"matmul", "add", "relu"};
  }
  EXPECT_TRUE(fused) << told.str();
  EXPECT_EQ(flops, static_cast<double>(f.cost(ones({32, 48}), ones({48, 64})).flops));
  EXPECT_LE(seconds, told.seconds);
  EXPECT_CONTAINS(told.str(), "made of matmul, add, relu");
  EXPECT_CONTAINS(told.str(), "1 of 1 Variable written in place");
  EXPECT_EQ(f.profile(ones({32, 48}), ones({48, 64})).kernels.size(), told.kernels.size());
}

TEST_F(ProfileTest, OneFunctionThatFails) {
  Function f = function("profiled_failing_call(x)", [](Tensor x) {
    assert_that(mean(x) > 5, "too small");
    return x;
  });
  const std::string error = error_of([&] { profile(f, ones({3})); }), own = error_of([&] { f.profile(ones({3})); });
  EXPECT_CONTAINS(error, "too small");
  EXPECT_EQ(error.find("profile.h"), std::string::npos) << error;
  EXPECT_CONTAINS(own, "in 'profiled_failing_call' called at tests/report/profile_test.cpp:");
  EXPECT_FALSE(recording::on());
  EXPECT_GT(profile(f, ones({3}) * 6).kernels.size(), 0u) << "and works then";
}

TEST_F(ProfileTest, OneFunctionWithALoopAndABranch) {
  Function f = function("profiled_turns(x)", [](Tensor x) {
    return for_loop(
        7, [](Tensor i, Tensor s) { return tanh(s) + cast(i, f32); }, x);
  });
  const FunctionProfile told = profile(f, ones({64}));
  double turns = 0, flops = 0, seconds = 0;
  for (const KernelProfile& kernel : told.kernels) {
    turns = std::max(turns, kernel.runs);
    flops += kernel.flops;
    seconds += kernel.seconds;
    EXPECT_GE(kernel.seconds, 0) << kernel.name;
  }
  EXPECT_EQ(turns, 7) << told.str();
  EXPECT_EQ(flops, 7 * 2 * 64) << told.str();
  EXPECT_LE(seconds, told.seconds);
  Function branch = function("profiled_branch(x)", [](Tensor x) {
    if (mean(x) > 0.5f) return relu(x) * 2;
    return exp(x);
  });
  EXPECT_CONTAINS(profile(branch, ones({64})).str(), "relu+multiply");
  EXPECT_EQ(profile(branch, zeros({64})).str().find("relu+multiply"), std::string::npos) << "it did not run";
}

TEST_F(ProfileTest, OneFunctionThatIsNotTraced) {
  Function f = function("profiled_eager(x, n)", [](Tensor x, int n) { return x * n; },
                        {.max_traces = 1, .on_limit = OnLimit::eager});
  f(ones({2}), 1);
  EXPECT_CONTAINS(error_of([&] { profile(f, ones({2}), 2); }),
                  "profile: the call of 'profiled_eager' is not served by a trace");
}

// --- whole processes

constexpr const char* what_variable = "STET_PROFILE_TEST_RUNS";

/// Not a test: what the processes run that are looked at below.
TEST(ProfiledProcess, DISABLED_Runs) {
  const char* what = std::getenv(what_variable);
  ASSERT_NE(what, nullptr) << "this is run by ProfileTest";
  Function f = function("profiled_process(x)", [](Tensor x) { return x * 2; });
  for (int call = 0; call < 1000; ++call) f(ones({8}));
  if (std::string(what) == "killed") ::kill(::getpid(), SIGKILL);
  if (std::string(what) == "aborts") std::abort();
  if (std::string(what) == "quick") ::_exit(0);
}

/// What it says on stderr goes to `told`.
int run_process(const std::string& what, const std::string& profiles, const std::string& told_file) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(what_variable, what.c_str(), 1);
    ::setenv("STET_PROFILE", profiles.c_str(), 1);
    for (const char* shard : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE"}) ::unsetenv(shard);
    const int told = ::open(told_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    ::dup2(told, STDOUT_FILENO);
    ::dup2(told, STDERR_FILENO);
    ::execl("/proc/self/exe", "profiled", "--gtest_also_run_disabled_tests",
            "--gtest_filter=ProfiledProcess.DISABLED_Runs", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

std::string only_file(const std::string& folder) {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) all.push_back(entry.path().string());
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? "" : all[0];
}

TEST_F(ProfileTest, AProcessByTheEnvironment) {
  EXPECT_EQ(run_process("ends", path("ends"), path("told")), 0);
  const std::string file = only_file(path("ends"));
  EXPECT_TRUE(file.ends_with(".stet-profile"));
  const Recorded recorded = read_recording(file);
  EXPECT_TRUE(recorded.complete);
  EXPECT_EQ(count_of(recorded, recording::Kind::call, "profiled_process"), 1000);
}

TEST_F(ProfileTest, AProcessThatIsKilled) {
  for (const char* what : {"killed", "aborts", "quick"}) {
    run_process(what, path(what), path("told"));
    const Recorded recorded = read_recording(only_file(path(what)));
    EXPECT_FALSE(recorded.complete) << what;
    EXPECT_EQ(count_of(recorded, recording::Kind::call, "profiled_process"), 1000) << what;
    const Summary summary = summarize(recorded);
    EXPECT_EQ(function_of(summary, "profiled_process").traces.size(), 1u) << what;
  }
}

TEST_F(ProfileTest, AFolderThatCannotBeMade) {
  EXPECT_EQ(run_process("ends", path("none/deeper"), path("told")), 0) << "it runs as it would";
  std::ifstream file(path("told"));
  const std::string told((std::istreambuf_iterator<char>(file)), {});
  EXPECT_CONTAINS(
      told, "stet: STET_PROFILE: a folder '" + path("none/deeper") + "' cannot be made: No such file or directory\n");
}

TEST_F(ProfileTest, AChildOfForkDoesNotWriteToItsParents) {
  SKIP_WITHOUT_FORK();
  Profile profile(path("run.stet-profile"));
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < 10; ++i) ProfileSpan span("of the child");
    ::_exit(recording::on() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  { ProfileSpan span("of the parent"); }
  profile.stop();
  const Recorded recorded = read_recording(path("run.stet-profile"));
  EXPECT_EQ(count_of(recorded, recording::Kind::user, "of the child"), 0);
  EXPECT_EQ(count_of(recorded, recording::Kind::user, "of the parent"), 1);
}

}  // namespace
}  // namespace stet
