// The recorder alone under threads: it needs nothing of tensors, so that it can be looked at by a thread sanitizer in
// little time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "stet/base/text.h"
#include "stet/report/json_members.h"
#include "stet/report/recorded.h"
#include "stet/runtime/recording.h"
#include "stet/runtime/recording_format.h"
#include "tests/files/files.h"

namespace stet::reporting {
namespace {

using files::TemporaryFolder;
using recording::Kind;

constexpr int threads = 8;

template <class Body>
void on_threads(const Body& body) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back([&body, t] { body(t); });
  for (std::thread& one : all) one.join();
}

std::int64_t spans_of(const Recorded& recorded, const std::string& name) {
  return std::count_if(recorded.spans.begin(), recorded.spans.end(),
                       [&](const RecordedSpan& span) { return recorded.names[span.name] == name; });
}

/// Everything that a recorder can be asked for, at once: in a ring that is begun again all the time, and in one that
/// has room for all.
TEST(RecorderThreads, AllThatThereIsAtOnce) {
  TemporaryFolder folder;
  for (std::size_t room : {std::size_t{1}, std::size_t{64} << 20}) {
    constexpr int turns = 3000;
    const std::string path = folder / text(room, ".stet-profile");
    const std::uint64_t number = recording::begin({.file = path, .most_bytes = room});
    std::atomic<int> running = threads;
    std::thread reader([&] {
      while (running > 0) {
        static_cast<void>(parse_recording(recording::contents(), "contents"));
        static_cast<void>(read_recording(path));
        EXPECT_TRUE(recording::writes_to(path));
      }
    });
    on_threads([&](int t) {
      for (int turn = 0; turn < turns; ++turn) {
        recording::Span span(Kind::user, [&] { return text("thread ", t); });
        recording::counter(recording::name_of("turns"), turn);
        recording::sample_memory();
        if (turn % 100 == 0) recording::note({{"note", "event"}, {"kind", "note"}, {"text", text(t, " at ", turn)}});
        if (turn % 250 == t) {
          const std::uint64_t joined = recording::begin({});
          recording::end(joined);
        }
      }
      --running;
    });
    reader.join();
    recording::end(number);
    EXPECT_FALSE(recording::on());
    const Recorded recorded = read_recording(path);
    EXPECT_TRUE(recorded.complete);
    EXPECT_EQ(recorded.damaged, 0u);
    EXPECT_EQ(recorded.spans.size() + recorded.lost_spans, std::uint64_t{threads} * turns);
    for (int t = 0; t < threads && room > 1; ++t) EXPECT_EQ(spans_of(recorded, text("thread ", t)), turns);
  }
}

/// Recordings that end while others go on writing, and begin anew.
TEST(RecorderThreads, OneAfterTheOther) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (int t = 0; t < threads; ++t)
    writers.emplace_back([&] {
      while (!stop) {
        recording::Span span(Kind::user, [] { return "for ever"; });
      }
    });
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t number = recording::begin({.most_bytes = 1});
    const std::uint64_t now = recording::now();
    recording::span(Kind::step, recording::name_of("of this round"), now, now + 1);
    const Recorded recorded = parse_recording(recording::contents(), "round");
    EXPECT_EQ(recorded.damaged, 0u);
    EXPECT_LE(spans_of(recorded, "of this round"), 1) << "none of another round";
    recording::end(number);
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_FALSE(recording::on());
}

/// Two that end at the same moment: what there is to tell at the end is told once, and by the last.
TEST(RecorderThreads, TheLastOneEndsIt) {
  TemporaryFolder folder;
  for (int round = 0; round < 50; ++round) {
    const std::string path = folder / text(round, ".stet-profile");
    std::atomic<int> begun = 0;
    on_threads([&](int) {
      const std::uint64_t number = recording::begin({.file = path});
      for (++begun; begun < threads;) std::this_thread::yield();
      recording::end(number);
    });
    EXPECT_FALSE(recording::on());
    const Recorded recorded = read_recording(path);
    EXPECT_TRUE(recorded.complete);
    EXPECT_EQ(std::count_if(recorded.notes.begin(), recorded.notes.end(),
                            [](const files::Json& note) { return string_in(note, "note") == "counts"; }),
              1);
  }
}

}  // namespace
}  // namespace stet::reporting
