// Recordings where things go wrong: threads that come and go, processes that end in every way, forks, disks that are
// full, two that write to one file, damaged files. What a recording says must be true all the same, and the program
// must not notice.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "stet/base/text.h"
#include "stet/report/chrome_trace.h"
#include "stet/report/json_members.h"
#include "stet/report/profile.h"
#include "stet/report/report_data.h"
#include "stet/report/summary.h"
#include "stet/report/summary_text.h"
#include "stet/report/xspace.h"
#include "stet/runtime/log.h"
#include "stet/stet.h"
#include "tests/public/forks.h"
#include "tests/public/profile_files.h"
#include "tests/report/recordings.h"
#include "tests/sampling.h"
#include "tests/scale.h"

namespace stet {
namespace {

using namespace reporting;
using files::contents_of;
using files::TemporaryFolder;
using files::user_error_of;
using recording::Kind;

std::int64_t count_of(const Recorded& recorded, Kind kind, const std::string& name) {
  return std::count_if(recorded.spans.begin(), recorded.spans.end(), [&](const RecordedSpan& span) {
    return recorded.kind_of(span) == kind && recorded.names[span.name] == name;
  });
}
const FunctionSummary* function_of(const Summary& summary, const std::string& name) {
  for (const FunctionSummary& one : summary.functions)
    if (one.name == name) return &one;
  return nullptr;
}
std::int64_t user_spans(const Recorded& recorded) {
  return std::count_if(recorded.spans.begin(), recorded.spans.end(),
                       [&](const RecordedSpan& span) { return recorded.kind_of(span) == Kind::user; });
}
/// What a profile has, as its file would have it.
Recorded recorded_of(const Profile& profile, const TemporaryFolder& folder) {
  profile.save(folder / "copy.stet-profile");
  return read_recording(folder / "copy.stet-profile");
}

/// No part is more than the whole.
void expect_sums(const Summary& summary) {
  constexpr double inexact = 1e-6;
  double shares = 0;
  for (double share : summary.shares) {
    EXPECT_GE(share, -1e-9);
    shares += share;
  }
  EXPECT_NEAR(shares, summary.seconds, inexact);
  for (const FunctionSummary& function : summary.functions) {
    EXPECT_LE(function.self_seconds, function.seconds + inexact) << function.name;
    EXPECT_GE(function.self_seconds, -inexact) << function.name;
    EXPECT_LE(function.lost_seconds, function.trace_seconds) << function.name;
  }
  for (const KernelSummary& kernel : summary.kernels) EXPECT_GE(kernel.seconds, -inexact) << kernel.name;
}

// --- threads

TEST(RecordingAttacks, EightThreadsTraceCallAndProfileAtOnce) {
  on_retrace([](const RetraceEvent&) {});
  TemporaryFolder folder;
  constexpr int threads = 8, calls = 30;
  const int sizes = 3;
  Function shared = function("attacked_shared(x, n)", [](Tensor x, int n) { return tanh(x) * n; });
  Profile profile;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      Function own = function("attacked_own(x)", [](Tensor x) { return sum(x * x); });
      std::optional<Profile> mine;
      mine.emplace(folder / text("thread-", t, ".stet-profile"));
      for (int call = 0; call < calls; ++call) {
        ProfileSpan span("attacked turn");
        shared(ones({8 + call % sizes}), call % 2);
        if (own(ones({4, t + 1})).item<float>() != static_cast<float>(4 * (t + 1))) ++wrong;
        if (call == calls / 2 && t % 2 == 0) mine->stop();
        if (call % 10 == t) static_cast<void>(mine->table());
      }
      mine.reset();
    });
  for (std::thread& one : all) one.join();
  profile.stop();
  on_retrace({});
  EXPECT_EQ(wrong, 0);
  const Recorded recorded = recorded_of(profile, folder);
  EXPECT_EQ(recorded.lost_spans, 0u);
  EXPECT_EQ(recorded.lost_text, 0u);
  EXPECT_EQ(recorded.damaged, 0u);
  EXPECT_EQ(user_spans(recorded), threads * calls);
  const Summary summary = summarize(recorded);
  expect_sums(summary);
  ASSERT_NE(function_of(summary, "attacked_shared"), nullptr);
  EXPECT_EQ(function_of(summary, "attacked_shared")->calls, threads * calls);
  EXPECT_EQ(function_of(summary, "attacked_shared")->traces_within(), 2) << "one for each number";
  EXPECT_EQ(function_of(summary, "attacked_own")->calls, threads * calls);
  EXPECT_EQ(function_of(summary, "attacked_own")->traces_within(), threads);
  for (int t = 0; t < threads; ++t) {
    const Recorded own = read_recording(folder / text("thread-", t, ".stet-profile"));
    EXPECT_TRUE(own.complete);
    EXPECT_GE(user_spans(own), t % 2 == 0 ? calls / 2 : calls - 1);
  }
}

TEST(RecordingAttacks, AProfileMayEndOnAnotherThread) {
  TemporaryFolder folder;
  const std::string path = folder / "run.stet-profile";
  auto profile = std::make_unique<Profile>(path);
  { ProfileSpan span("here"); }
  std::thread([&profile, taken = std::move(profile)]() mutable {
    { ProfileSpan span("there"); }
    taken.reset();
  }).join();
  EXPECT_FALSE(recording::on());
  const Recorded recorded = read_recording(path);
  EXPECT_TRUE(recorded.complete);
  EXPECT_EQ(count_of(recorded, Kind::user, "here"), 1);
  EXPECT_EQ(count_of(recorded, Kind::user, "there"), 1);
}

/// Each file has what its Profile saw, in whatever order they end.
TEST(RecordingAttacks, ProfilesThatOverlapHaveFilesOfTheirOwn) {
  for (const bool first_ends_first : {true, false}) {
    TemporaryFolder folder;
    const std::string path = folder / "first.stet-profile", other_path = folder / "other.stet-profile";
    auto first = std::make_unique<Profile>(path);
    { ProfileSpan span("alone"); }
    auto other = std::make_unique<Profile>(other_path);
    { ProfileSpan span("of both"); }
    auto& ends = first_ends_first ? first : other;
    ends->stop();
    { ProfileSpan span("of the one that goes on"); }
    const Recorded of_ended = recorded_of(*ends, folder);
    for (const Recorded& recorded : {read_recording(first_ends_first ? path : other_path), of_ended}) {
      EXPECT_TRUE(recorded.complete);
      EXPECT_EQ(count_of(recorded, Kind::user, "alone"), first_ends_first);
      EXPECT_EQ(count_of(recorded, Kind::user, "of both"), 1);
      EXPECT_EQ(count_of(recorded, Kind::user, "of the one that goes on"), 0);
    }
    first.reset();
    other.reset();
    EXPECT_FALSE(recording::on());
    const Recorded recorded = read_recording(first_ends_first ? other_path : path);
    EXPECT_TRUE(recorded.complete);
    EXPECT_EQ(count_of(recorded, Kind::user, "alone"), !first_ends_first);
    EXPECT_EQ(count_of(recorded, Kind::user, "of both"), 1);
    EXPECT_EQ(count_of(recorded, Kind::user, "of the one that goes on"), 1);
  }
}

/// Recordings begin, are joined and end at all moments.
TEST(RecordingAttacks, ProfilesThatOverlapOnThreads) {
  TemporaryFolder folder;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&, t] {
      const std::string path = folder / text(t, ".stet-profile"), name = text("of ", t);
      for (std::uint64_t round = 0; round < scaled(400); ++round) {
        Profile profile(path);
        { ProfileSpan span(name); }
        profile.stop();
        const Recorded recorded = read_recording(path);
        wrong += !recorded.complete || count_of(recorded, Kind::user, name) != 1;
      }
    });
  for (std::thread& one : all) one.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(recording::on());
}

/// The first one's file stays its own; the last one that ends has the name.
TEST(RecordingAttacks, ProfilesOfOneName) {
  for (const bool first_ends_first : {true, false}) {
    TemporaryFolder folder;
    const std::string path = folder / "run.stet-profile";
    auto first = std::make_unique<Profile>(path);
    { ProfileSpan span("alone"); }
    auto second = std::make_unique<Profile>(path);
    { ProfileSpan span("of both"); }
    (first_ends_first ? first : second)->stop();
    EXPECT_EQ(count_of(recorded_of(*second, folder), Kind::user, "alone"), 0);
    EXPECT_EQ(count_of(recorded_of(*second, folder), Kind::user, "of both"), 1);
    first.reset();
    second.reset();
    const Recorded recorded = read_recording(path);
    EXPECT_TRUE(recorded.complete);
    EXPECT_EQ(count_of(recorded, Kind::user, "alone"), !first_ends_first);
    EXPECT_EQ(count_of(recorded, Kind::user, "of both"), 1);
  }
}

TEST(RecordingAttacks, ManyThreadsInALittleRoom) {
  TemporaryFolder folder;
  constexpr int threads = 24, spans = 4000;
  Profile profile(ProfileOptions{.max_bytes = 1});
  std::atomic<int> ready = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      { ProfileSpan span("first"); }
      for (++ready; ready < threads;) std::this_thread::yield();  // all have a chunk, or found none
      for (int i = 1; i < spans; ++i) ProfileSpan span("more");
    });
  for (std::thread& one : all) one.join();
  profile.stop();
  const Recorded recorded = recorded_of(profile, folder);
  EXPECT_GT(recorded.lost_spans, 0u);
  EXPECT_EQ(static_cast<std::uint64_t>(user_spans(recorded)) + recorded.lost_spans, std::uint64_t{threads} * spans);
  EXPECT_LE(std::filesystem::file_size(folder / "copy.stet-profile"), std::uintmax_t{20} * recording::chunk_bytes);
  expect_sums(summarize(recorded));
  EXPECT_CONTAINS(profile.table(), "The recording had no room for ");
}

/// Records have 16 bits for a thread.
TEST(RecordingAttacks, MoreThreadsThanThereAreNumbers) {
  if (!full_tests()) GTEST_SKIP() << "it takes seconds: STET_TEST_FULL=1";
  TemporaryFolder folder;
  constexpr int threads = 66'000;
  Profile profile;
  { ProfileSpan span("of the main thread"); }
  for (int t = 0; t < threads; ++t) std::thread([] { ProfileSpan span("of a thread"); }).join();
  { ProfileSpan span("of the main thread"); }
  const Recorded recorded = recorded_of(profile, folder);
  EXPECT_EQ(user_spans(recorded) + static_cast<std::int64_t>(recorded.lost_spans), threads + 2);
  for (const RecordedSpan& span : recorded.spans) {
    if (recorded.kind_of(span) != Kind::user) continue;
    ASSERT_EQ(recorded.threads[span.thread] == "main", recorded.names[span.name] == "of the main thread");
  }
}

// --- more than one that records

TEST(RecordingAttacks, SavesOverItsOwnFile) {
  TemporaryFolder folder;
  const std::string path = folder / "run.stet-profile", other = folder / "./run.stet-profile";
  Profile profile(path);
  { ProfileSpan span("before"); }
  profile.save(path);
  profile.save(other);
  {
    Profile inner(other);  // the same file, which goes on
    ProfileSpan span("inside");
  }
  for (int i = 0; i < 5000; ++i) ProfileSpan span("after");  // more than a chunk: the file is written on
  profile.stop();
  profile.save(path);
  const Recorded recorded = read_recording(path);
  EXPECT_TRUE(recorded.complete);
  EXPECT_EQ(count_of(recorded, Kind::user, "before"), 1);
  EXPECT_EQ(count_of(recorded, Kind::user, "inside"), 1);
  EXPECT_EQ(count_of(recorded, Kind::user, "after"), 5000);
}

TEST(RecordingAttacks, AnotherProcessTakesItsFile) {
  SKIP_WITHOUT_FORK();
  TemporaryFolder folder;
  const std::string path = folder / "run.stet-profile";
  Profile profile(path);
  { ProfileSpan span("of the parent"); }
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      Profile other(path);
      { ProfileSpan span("of the child"); }
      other.stop();
      ::_exit(0);
    } catch (const std::exception& error) {
      ::_exit(1);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 5000; ++i) ProfileSpan span("of the parent");  // into a file that was cut this would be SIGBUS
  profile.stop();
  const Recorded recorded = read_recording(path);
  EXPECT_EQ(recorded.process, static_cast<std::uint64_t>(child)) << "the last one that began has the name";
  EXPECT_EQ(count_of(recorded, Kind::user, "of the child"), 1);
}

TEST(RecordingAttacks, AnotherProcessesFileStaysWhereOthersGoOn) {
  TemporaryFolder folder;
  const std::string path = folder / "run.stet-profile";
  Profile profile(path), other;
  ASSERT_TRUE(std::filesystem::remove(path));  // as another process does, before it writes its own
  std::ofstream(path) << "another's";
  profile.stop();
  EXPECT_EQ(contents_of(path), "another's");
  EXPECT_TRUE(recorded_of(profile, folder).complete);
}

TEST(RecordingAttacks, AChildHasNothingOfItsParentsProfile) {
  SKIP_WITHOUT_FORK();
  TemporaryFolder folder;
  const std::string path = folder / "child.stet-profile", inner_path = folder / "inner.stet-profile";
  auto profile = std::make_unique<Profile>();
  auto inner = std::make_unique<Profile>(inner_path);  // is written when it ends
  const pid_t child = ::fork();
  if (child == 0) {
    int wrong = 0;
    const char* expected =
        ": this Profile was begun before fork(), and records the parent\n"
        "  fix: make a Profile in the child: it records that one";
    wrong |= user_error_of([&] { static_cast<void>(profile->table()); }) == text("Profile::table", expected) ? 0 : 1;
    wrong |= user_error_of([&] { static_cast<void>(profile->json()); }) == text("Profile::json", expected) ? 0 : 2;
    wrong |= user_error_of([&] { profile->save("x.html", {}); }) == text("Profile::save", expected) ? 0 : 4;
    profile->stop();
    profile.reset();
    inner.reset();
    {
      Profile own(path);
      ProfileSpan span("of the child");
    }
    wrong |= std::filesystem::exists(inner_path) ? 8 : 0;
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(count_of(read_recording(path), Kind::user, "of the child"), 1);
  EXPECT_TRUE(recording::on());
  inner.reset();
  EXPECT_TRUE(read_recording(inner_path).complete);
}

TEST(RecordingAttacks, WhatWasLostBeforeIsNotLostLater) {
  TemporaryFolder folder;
  Profile outer(ProfileOptions{.max_bytes = 1});
  for (int i = 0; i < 60'000; ++i) ProfileSpan span("old");
  Profile inner;
  for (int i = 0; i < 10; ++i) ProfileSpan span("new");
  inner.stop();
  EXPECT_GT(recorded_of(outer, folder).lost_spans, 0u);
  const Recorded recorded = recorded_of(inner, folder);
  EXPECT_EQ(recorded.lost_spans, 0u);
  EXPECT_EQ(user_spans(recorded), 10);
}

TEST(RecordingAttacks, LookingDoesNotFillIt) {
  TemporaryFolder folder;
  std::vector<Function<Tensor(Tensor)>> functions;
  for (int i = 0; i < 40; ++i)
    functions.push_back(function(text("attacked_looked_", i, "(x)"), [](Tensor x) { return x + 1; }));
  for (auto& f : functions) f(ones({2}));
  Profile profile(ProfileOptions{.max_bytes = 1});
  for (int look = 0; look < 200; ++look) static_cast<void>(profile.save(folder / "look.stet-profile"));
  { ProfileSpan span("a name that is told last"); }
  const Recorded recorded = recorded_of(profile, folder);
  EXPECT_EQ(recorded.lost_text, 0u);
  EXPECT_EQ(count_of(recorded, Kind::user, "a name that is told last"), 1);
  std::int64_t told = 0;
  for (const files::Json& note : recorded.notes) told += string_in(note, "note") == "trace_calls";
  EXPECT_GE(told, 40);
  EXPECT_LT(told, 40 + 1000) << "as it is now, and not as it was at each look";
}

TEST(RecordingAttacks, AGraphThatFindsNoRoomIsLeftOut) {
  TemporaryFolder folder;
  Profile profile(ProfileOptions{.max_bytes = 1});
  Function large = function("attacked_large(x)", [](Tensor x) {
    for (int i = 0; i < 1200; ++i) x = x * 0.5f + 1.f / static_cast<float>(i + 1);
    return x;
  });
  large(ones({2}));
  const Recorded recorded = recorded_of(profile, folder);
  EXPECT_GT(recorded.lost_text, 0u);
  const Summary summary = summarize(recorded);
  ASSERT_NE(function_of(summary, "attacked_large"), nullptr);
  ASSERT_EQ(function_of(summary, "attacked_large")->traces.size(), 1u) << "that it was traced is told";
  EXPECT_GT(function_of(summary, "attacked_large")->traces[0].seconds, 0);
  EXPECT_CONTAINS(profile.table(), "had no room for");
}

// --- sums

TEST(RecordingAttacks, BytesAndArithmeticAreThoseByHand) {
  TemporaryFolder folder;
  struct Case {
    const char* name;
    Function<Tensor(Tensor, Tensor)> f;
    Shape x, y;
    double flops, bytes;
  };
  auto made = [](const char* name, auto body) { return function<Tensor(Tensor, Tensor)>(name, body); };
  const Case cases[] = {
      {"by_hand_product",
       made("by_hand_product(x, y)", [](Tensor x, Tensor y) { return matmul(x, y); }),
       {6, 5},
       {5, 7},
       2. * 6 * 5 * 7,
       4. * (30 + 35 + 42)},
      {"by_hand_map",
       made("by_hand_map(x, y)", [](Tensor x, Tensor y) { return exp(x) * y + 1; }),
       {9, 11},
       {9, 11},
       3. * 99,
       4. * 3 * 99},
      {"by_hand_row",
       made("by_hand_row(x, y)", [](Tensor x, Tensor y) { return x * y; }),
       {9, 11},
       {11},
       99.,
       4. * (99 + 11 + 99)},
      {"by_hand_sum",
       made("by_hand_sum(x, y)", [](Tensor x, Tensor y) { return sum(x * y, {1}); }),
       {12, 13},
       {12, 13},
       2. * 156,
       4. * (2 * 156 + 12)},
      {"by_hand_convolution",
       made("by_hand_convolution(x, y)", [](Tensor x, Tensor y) { return conv2d(x, y); }),
       {2, 8, 9, 3},
       {3, 3, 3, 4},
       2. * (2 * 6 * 7 * 4) * (3 * 3 * 3),
       4. * (2 * 8 * 9 * 3 + 3 * 3 * 3 * 4 + 2 * 6 * 7 * 4)},
  };
  constexpr int calls = 7;
  Profile profile;
  for (const Case& one : cases)
    for (int call = 0; call < calls; ++call) one.f(ones(one.x), ones(one.y));
  profile.stop();
  const Recorded recorded = recorded_of(profile, folder);
  const Summary summary = summarize(recorded);
  expect_sums(summary);
  for (const Case& one : cases) {
    double flops = 0, bytes = 0, seconds = 0;
    std::string kernels;
    for (const KernelSummary& kernel : summary.kernels) {
      if (!kernel.function || summary.functions[*kernel.function].name != one.name) continue;
      EXPECT_EQ(kernel.count, calls) << one.name;
      flops += kernel.flops;
      bytes += kernel.bytes;
      seconds += kernel.seconds;
      kernels += kernel.name + "\n";
    }
    EXPECT_EQ(flops, calls * one.flops) << one.name << "\n" << kernels;
    EXPECT_EQ(bytes, calls * one.bytes) << one.name << "\n" << kernels;
    ASSERT_NE(function_of(summary, one.name), nullptr);
    EXPECT_EQ(function_of(summary, one.name)->calls, calls);
    EXPECT_LE(seconds, function_of(summary, one.name)->seconds) << "kernels are a part of the calls";
  }
}

std::vector<float> trained(bool recorded) {
  random::seed(7);
  std::optional<Profile> profile;
  if (recorded) profile.emplace();
  keras::Sequential model{keras::Input({6}), keras::Dense(16, {.activation = "relu"}), keras::Dropout(0.2),
                          keras::Dense(1)};
  model.compile({.optimizer = "adam", .loss = "mse"});
  const Tensor x = random::normal({96, 6}), y = sum(x * x, {1}, {.keepdims = true});
  auto batches = data::from_tensor_slices(x, y).shuffle(96).batch(20);
  model.fit(batches, {.epochs = 3, .verbose = 0});
  std::vector<float> out = model.predict(x).to_vector<float>();
  for (const Variable& variable : model.trainable_variables())
    for (float weight : variable.read().to_vector<float>()) out.push_back(weight);
  return out;
}

TEST(RecordingAttacks, RecordedOrNotTheBitsAreTheSame) {
  const std::vector<float> off = trained(false), on = trained(true), off_again = trained(false);
  ASSERT_EQ(off, off_again);
  EXPECT_EQ(on, off);
}

TEST(RecordingAttacks, WhatExceptionsLeave) {
  TemporaryFolder folder;
  Profile profile;
  Function called = function("attacked_callback(x)", [](Tensor x) { return x + 1; });
  int turns = 0;
  auto deep = [&](auto& self, int depth) -> void {
    ProfileSpan span("deep");
    called(ones({2}));
    if (depth == 0) throw std::runtime_error("from the bottom");
    self(self, depth - 1);
  };
  for (; turns < 50; ++turns) EXPECT_THROW(deep(deep, 9), std::runtime_error);
  { ProfileSpan span("behind"); }
  const Recorded recorded = recorded_of(profile, folder);
  EXPECT_EQ(count_of(recorded, Kind::user, "deep"), 500);
  EXPECT_EQ(count_of(recorded, Kind::call, "attacked_callback"), 500);
  const Summary summary = summarize(recorded);
  expect_sums(summary);
  for (const RecordedSpan& span : recorded.spans) {
    if (recorded.names[span.name] != "behind") continue;
    for (const RecordedSpan& other : recorded.spans) {
      ASSERT_TRUE(recorded.names[other.name] != "deep" || other.end() <= span.begin);
    }
  }
}

// --- files that are not as they were written

/// All that is made of a recording; it need not mean anything, but must come to an end.
void use(const Recorded& recorded) {
  const Summary summary = summarize(recorded);
  double shares = 0;
  for (double share : summary.shares) shares += share;
  ASSERT_NEAR(shares, summary.seconds, 1e-6 * std::max(summary.seconds, 1.0));
  ASSERT_FALSE(summary_text(recorded, summary, std::nullopt).empty());
  ASSERT_GT(files::to_text(report_data(recorded, summary, std::nullopt)).size(), 2u);
  std::ostringstream trace;
  write_chrome_trace(trace, recorded);
  ASSERT_NO_THROW(files::parse_json(trace.str(), {"trace", "", {}}));
  ASSERT_NO_THROW(profile_files::parse(xspace_of(recorded, {})));
}

constexpr std::size_t small_chunk = 4096;

TEST(RecordingAttacks, EveryTruncationIsRead) {
  const std::string whole = whole_recording().bytes(small_chunk);
  ASSERT_LT(whole.size(), 100'000u);
  std::size_t last = 0;
  for (std::size_t size = sizeof recording::magic; size <= whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);  // its own memory: a sanitizer sees what is read behind it
    const Recorded recorded = parse_recording(cut, "cut");
    ASSERT_GE(recorded.spans.size(), last);
    last = recorded.spans.size();
    if (size % 97 == 0 || size == whole.size()) use(recorded);
  }
  EXPECT_EQ(last, parse_recording(whole_recording().bytes(), "whole").spans.size());
}

TEST(RecordingAttacks, EveryFlippedByteIsRead) {
  const std::string whole = whole_recording().bytes(small_chunk);
  std::mt19937 random(3);
  for (std::size_t at = sizeof recording::magic; at < whole.size(); at += 1 + random() % 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    const Recorded recorded = parse_recording(damaged, "flipped");
    if (random() % 8 == 0) use(recorded);
  }
}

TEST(RecordingAttacks, AnotherVersionIsReadAndSaid) {
  for (std::uint32_t version : {0u, 2u, 4'000'000'000u}) {
    HandMade made = whole_recording();
    made.poke(offsetof(recording::Head, version), version);
    const Recorded recorded = made.read();
    EXPECT_EQ(recorded.version, version);
    EXPECT_FALSE(recorded.spans.empty());
    use(recorded);
    EXPECT_CONTAINS(summary_text(recorded, summarize(recorded), std::nullopt),
                    text("The recording has version ", version,
                         " of its format, and this stet reads version 1: parts may be missing. Read it with the stet "
                         "that wrote it, 0.1.0."));
  }
}

// --- processes, each in a way of its own

constexpr const char *what_variable = "STET_RECORDING_ATTACK", *folder_variable = "STET_RECORDING_ATTACK_FOLDER";

std::unique_ptr<Profile>& static_profile() {
  static std::unique_ptr<Profile> one;
  return one;
}

void work(int calls) {
  Function f = function("attacked_process(x)", [](Tensor x) { return x * 2; });
  const Tensor x = ones({8});
  for (int call = 0; call < calls; ++call) f(x);
}

/// Not a test: what the processes run that are looked at below.
/// How many recordings this process has open.
std::ptrdiff_t open_recordings() {
  std::ptrdiff_t out = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;  // as the one by which the folder is read
    out += std::filesystem::read_symlink(entry.path(), closed).string().find(".stet-profile") != std::string::npos;
  }
  return out;
}

TEST(AttackedProcess, DISABLED_Runs) {
  const char *given = std::getenv(what_variable), *folder = std::getenv(folder_variable);
  ASSERT_TRUE(given && folder) << "this is run by RecordingAttacks";
  const std::string what = given, path = text(folder, "/mine.stet-profile");
  if (what == "static profile") {
    static_profile() = std::make_unique<Profile>(path);
    work(100);
  } else if (what == "leaked profile") {
    new Profile(path);
    work(100);
    std::exit(0);
  } else if (what == "exit on a thread") {
    static_profile() = std::make_unique<Profile>(path);
    std::atomic<bool> begun = false;
    for (int t = 0; t < 4; ++t)
      std::thread([&] {
        for (;;) {
          ProfileSpan span("for ever");
          begun = true;
        }
      }).detach();
    while (!begun) std::this_thread::yield();
    std::thread([] {
      work(100);
      std::exit(0);
    }).join();
  } else if (what == "exception") {
    static_profile() = std::make_unique<Profile>(path);
    work(100);
    std::thread([] { throw std::runtime_error("nobody catches it"); }).join();
  } else if (what == "exec") {
    work(100);
    ::setenv(what_variable, "after exec", 1);
    ::execl("/proc/self/exe", "attacked", "--gtest_also_run_disabled_tests",
            "--gtest_filter=AttackedProcess.DISABLED_Runs", static_cast<char*>(nullptr));
    ::_exit(127);
  } else if (what == "after exec") {
    work(10);
  } else if (what == "forks") {
    work(50);
    ASSERT_EQ(open_recordings(), 1);
    for (int child = 0; child < 3; ++child) {
      if (::fork() == 0) {
        work(1000);
        std::exit(static_cast<int>(open_recordings()));
      }
      int status = -1;
      ASSERT_GT(::wait(&status), 0);
      ASSERT_EQ(status, 0);
    }
    work(50);
  } else if (what == "limited") {
    // More than the disk takes: half a megabyte, which are some thousand spans.
    work(10'000);
    std::printf("it went on\n");
  } else if (what == "retraces" || what == "retraces before fork") {
    on_retrace([](const RetraceEvent&) {});
    Function slow = function("attacked_slow(x, n)", [](Tensor x, int n) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));  // what tracing a large model takes
      return x * n;
    });
    for (int n = 0; n < 6; ++n) slow(ones({2}), n);
    if (what == "retraces") return;
    if (::fork() == 0) std::exit(0);
    ::wait(nullptr);
    ::_exit(0);
  } else if (what == "fit that is traced again") {
    keras::Sequential model{keras::Input({4}), keras::Dense(1)};
    model.compile({.optimizer = keras::SGD(0.01), .loss = "mse"});
    auto batches = data::from_tensor_slices(ones({24, 4}), ones({24, 1})).batch(4);
    model.fit(batches, {.epochs = 1, .verbose = 1});
    model.layers().back().set_trainable(false);
    model.fit(data::from_tensor_slices(cast(ones({24, 4}), f64), ones({24, 1})).batch(4), {.epochs = 1, .verbose = 1});
  } else if (what == "until killed") {
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t)
      all.emplace_back([] {
        for (;;) work(1000);
      });
    for (std::thread& one : all) one.join();
  } else {
    FAIL() << what;
  }
}

/// The program that runs this test becomes one that runs that.
[[noreturn]] void become(const std::string& what, const TemporaryFolder& folder, const std::string& profiles) {
  ::setenv(what_variable, what.c_str(), 1);
  ::setenv(folder_variable, folder.path().c_str(), 1);
  if (profiles.empty())
    ::unsetenv("STET_PROFILE");
  else
    ::setenv("STET_PROFILE", profiles.c_str(), 1);
  for (const char* shard : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE"}) ::unsetenv(shard);
  ::execl("/proc/self/exe", "attacked", "--gtest_also_run_disabled_tests",
          "--gtest_filter=AttackedProcess.DISABLED_Runs", static_cast<char*>(nullptr));
  ::_exit(127);
}

/// A process that records itself into the folder `profiles`, where one is named. `limit`: of the size of files.
pid_t start(const std::string& what, const TemporaryFolder& folder, const std::string& profiles,
            rlim_t limit = RLIM_INFINITY) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int file = ::open((folder / "told").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  const rlimit most{limit, limit};
  if (limit != RLIM_INFINITY) {
    ::setenv("STET_CACHE_DIR", "", 1);  // its files have a size, too
    ::setrlimit(RLIMIT_FSIZE, &most);
  }
  become(what, folder, profiles);
}
int status_of(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}
std::vector<std::string> recordings_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}
std::int64_t calls_in(const Recorded& recorded) { return count_of(recorded, Kind::call, "attacked_process"); }

TEST(RecordingAttacks, AProcessEndsWithAProfileThatLives) {
  for (const char* what : {"static profile", "leaked profile", "exit on a thread", "exception"}) {
    TemporaryFolder folder;
    const int status = status_of(start(what, folder, ""));
    const bool throws = what == std::string("exception");
    EXPECT_TRUE(throws ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT : status == 0)
        << what << "\n"
        << contents_of(folder / "told");
    const Recorded recorded = read_recording(folder / "mine.stet-profile");
    EXPECT_EQ(calls_in(recorded), 100) << what;
    EXPECT_EQ(recorded.complete, what == std::string("static profile") || what == std::string("exit on a thread"))
        << what;
    EXPECT_FALSE(is_being_written(recorded)) << what;
    EXPECT_EQ(recorded.damaged, 0u) << what;
    use(recorded);
    EXPECT_EQ(summary_text(recorded, summarize(recorded), std::nullopt).find(", ended before its recording") !=
                  std::string::npos,
              !recorded.complete);
  }
}

TEST(RecordingAttacks, ARecordingOutlivesExec) {
  TemporaryFolder folder;
  const pid_t child = start("exec", folder, folder / "profiles");
  EXPECT_EQ(status_of(child), 0) << contents_of(folder / "told");
  const std::vector<std::string> files = recordings_in(folder / "profiles");
  ASSERT_EQ(files.size(), 2u) << "the process has one number, and the second program does not write over the first's";
  EXPECT_TRUE(files[0].ends_with(text("-", child, "-2.stet-profile"))) << files[0];
  EXPECT_TRUE(files[1].ends_with(text("-", child, ".stet-profile"))) << files[1];
  EXPECT_EQ(calls_in(read_recording(files[1])), 100);
  EXPECT_FALSE(read_recording(files[1]).complete);
  EXPECT_EQ(calls_in(read_recording(files[0])), 10);
  EXPECT_TRUE(read_recording(files[0]).complete);
}

TEST(RecordingAttacks, ChildrenEndWithoutTheirParentsRecording) {
  SKIP_WITHOUT_FORK();
  TemporaryFolder folder;
  EXPECT_EQ(status_of(start("forks", folder, folder / "profiles")), 0) << contents_of(folder / "told");
  const std::vector<std::string> files = recordings_in(folder / "profiles");
  ASSERT_EQ(files.size(), 1u);
  const Recorded recorded = read_recording(files[0]);
  EXPECT_TRUE(recorded.complete);
  EXPECT_EQ(calls_in(recorded), 100);
}

TEST(RecordingAttacks, ADiskThatIsFullAtOnce) {
  TemporaryFolder folder;
  EXPECT_EQ(status_of(start("after exec", folder, folder / "profiles", recording::head_bytes - 1)), 0);
  EXPECT_CONTAINS(contents_of(folder / "told"),
                  text("stet: STET_PROFILE: a recording cannot be written to '", folder / "profiles"));
  EXPECT_CONTAINS(contents_of(folder / "told"), ".stet-profile': File too large\n");
  EXPECT_TRUE(recordings_in(folder / "profiles").empty()) << "nothing is left behind";
}

TEST(RecordingAttacks, ADiskThatBecomesFull) {
  TemporaryFolder folder;
  const std::uintmax_t room = recording::head_bytes + 6 * recording::chunk_bytes + 100;
  EXPECT_EQ(status_of(start("limited", folder, folder / "profiles", room)), 0);
  const std::string told = contents_of(folder / "told");
  const std::vector<std::string> files = recordings_in(folder / "profiles");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_CONTAINS(told, text("stet: the recording '", files[0],
                             "' finds no more room: File too large\n"
                             "  from here on the oldest spans make room for new ones, and are counted\n"));
  EXPECT_CONTAINS(told, "it went on");
  EXPECT_LE(std::filesystem::file_size(files[0]), room);
  const Recorded recorded = read_recording(files[0]);
  EXPECT_TRUE(recorded.complete);
  EXPECT_GT(recorded.lost_spans, 0u);
  EXPECT_LT(calls_in(recorded), 10'000);
  EXPECT_GE(recorded.spans.size() + recorded.lost_spans, 20'000u) << "calls and their kernels";
  use(recorded);
}

TEST(RecordingAttacks, AFolderThatCannotBeWrittenTo) {
  TemporaryFolder folder;
  EXPECT_EQ(status_of(start("after exec", folder, "/proc")), 0);
  EXPECT_CONTAINS(contents_of(folder / "told"), "stet: STET_PROFILE: a recording cannot be written to '/proc/");
}

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(RecordingAttacks, OneParagraphWhereRetracesTookTheTime) {
  TemporaryFolder folder;
  EXPECT_EQ(status_of(start("retraces", folder, "")), 0);
  const std::string told = contents_of(folder / "told");
  EXPECT_EQ(times_in(told, "stet: "), 1u) << told;
  EXPECT_CONTAINS(told, "stet: 5 retraces took 0.");
  EXPECT_CONTAINS(told, " of this run. Most of it was lost by 'attacked_slow' at ");
  EXPECT_CONTAINS(told, ": 6 traces\n  cause           argument 1 'n' ");
  TemporaryFolder quiet;
  EXPECT_EQ(status_of(start("after exec", quiet, "")), 0);
  EXPECT_EQ(times_in(contents_of(quiet / "told"), "stet: "), 0u) << "others say nothing";
}

TEST(RecordingAttacks, AChildDoesNotTellWhatItsParentLost) {
  SKIP_WITHOUT_FORK();
  TemporaryFolder folder;
  EXPECT_EQ(status_of(start("retraces before fork", folder, "")), 0);
  EXPECT_EQ(times_in(contents_of(folder / "told"), "stet: "), 0u) << contents_of(folder / "told");
}

/// What a process writes that has a terminal for stdout and stderr.
std::string told_in_terminal(const std::string& what) {
  TemporaryFolder folder;
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    ::setenv("TERM", "xterm", 1);
    ::setenv("COLUMNS", "60", 1);
    become(what, folder, "");
  }
  std::string out;
  char bytes[4096];
  for (ssize_t count = 0; (count = ::read(terminal, bytes, sizeof bytes)) > 0;)
    out.append(bytes, static_cast<std::size_t>(count));
  ::close(terminal);
  EXPECT_EQ(status_of(child), 0) << out;
  return out;
}

TEST(RecordingAttacks, WhatIsSaidDuringFitBeginsALine) {
  const std::string told = told_in_terminal("fit that is traced again");
  EXPECT_CONTAINS(told, "tracing train_step …");
  EXPECT_CONTAINS(told, "stet: tracing 'train_step' again (trace 2)");
  for (std::size_t at = told.find("stet: "); at != std::string::npos; at = told.find("stet: ", at + 1))
    EXPECT_TRUE(at > 0 && told[at - 1] == '\n') << told.substr(at > 80 ? at - 80 : 0, 160);
}

TEST(RecordingAttacks, KilledInTheMiddle) {
  for (int round = 0; round < 3; ++round) {
    TemporaryFolder folder;
    const pid_t child = start("until killed", folder, folder / "profiles");
    // Some chunks of spans, so that it is killed while four threads write.
    const std::uintmax_t enough =
        recording::head_bytes + static_cast<std::size_t>(8 + 3 * round) * recording::chunk_bytes;
    std::vector<std::string> files;
    while (files.empty() || std::filesystem::file_size(files[0]) < enough) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (std::filesystem::exists(folder / "profiles")) files = recordings_in(folder / "profiles");
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << contents_of(folder / "told");
    }
    EXPECT_TRUE(is_being_written(read_recording(files[0])));
    ::kill(child, SIGKILL);
    status_of(child);
    const Recorded recorded = read_recording(files[0]);
    EXPECT_FALSE(recorded.complete);
    EXPECT_FALSE(is_being_written(recorded));
    EXPECT_EQ(recorded.damaged, 0u);
    EXPECT_GT(calls_in(recorded), 1000);
    use(recorded);
    EXPECT_CONTAINS(summary_text(recorded, summarize(recorded), std::nullopt), ", ended before its recording");
  }
}

}  // namespace
}  // namespace stet
