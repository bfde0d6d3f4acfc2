#include "stet/report/recorded.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "stet/base/text.h"
#include "stet/report/json_members.h"
#include "tests/report/recordings.h"

namespace stet::reporting {
namespace {

using files::TemporaryFolder;
using files::user_error_of;
using recording::Kind;

const std::string& name_of(const Recorded& recorded, const RecordedSpan& span) { return recorded.names[span.name]; }

/// What readers rely on, whatever the file was.
void expect_sound(const Recorded& recorded) {
  ASSERT_LE(recorded.kinds.size(), 256u);
  const RecordedSpan* last = nullptr;
  std::vector<std::int64_t> ends;
  for (const RecordedSpan& span : recorded.spans) {
    ASSERT_LT(span.name, recorded.names.size());
    ASSERT_LT(span.thread, recorded.threads.size());
    ASSERT_LT(span.kind, recorded.kinds.size());
    ASSERT_GE(span.begin, 0);
    ASSERT_GE(span.duration, 0);
    ASSERT_LE(span.end(), recorded.length);
    ASSERT_GE(span.bytes, 0);
    if (last && last->thread == span.thread) {
      ASSERT_LE(last->begin, span.begin);
      if (last->begin == span.begin) {
        ASSERT_GE(last->duration, span.duration);
      }
    } else {
      ASSERT_TRUE(!last || last->thread < span.thread);
      ends.clear();
    }
    while (!ends.empty() && ends.back() <= span.begin) ends.pop_back();
    ASSERT_TRUE(ends.empty() || span.end() <= ends.back());
    ends.push_back(span.end());
    last = &span;
  }
  for (const RecordedCounter& counter : recorded.counters) {
    ASSERT_LT(counter.name, recorded.names.size());
    ASSERT_GE(counter.time, 0);
    ASSERT_LE(counter.time, recorded.length);
  }
  for (const files::Json& note : recorded.notes) ASSERT_NE(note.if_object(), nullptr);
  for (const std::string& name : recorded.names) ASSERT_TRUE(files::to_text(name).size() > 1);
}

/// Some chunks of spans of two threads, counters and notes.
std::string usual_bytes() {
  return recorded_bytes([] {
    auto work = [](int count) {
      const recording::Name call = recording::name_of("train(x)"), step = recording::name_of("add + mul");
      for (int i = 0; i < count; ++i) {
        recording::Span outer(Kind::call, call);
        const std::uint64_t begin = recording::now();
        recording::span(Kind::step, step, begin, recording::now(), 12, 34);
      }
    };
    std::thread other(work, 1000);
    work(1000);
    other.join();
    recording::counter(recording::name_of("memory of tensors"), 12.5);
    for (int i = 0; i < 300; ++i)
      recording::note({{"note", "event"}, {"kind", "note"}, {"text", std::string(200, 'x')}, {"number", i}});
  });
}

TEST(Recorded, HasWhatWasTold) {
  const Recorded recorded =
      parse_recording(recorded_bytes([] {
                        recording::Span outer(Kind::call, recording::name_of("train(x)"));
                        { recording::Span inner(Kind::user, recording::name_of("schön 🙂")); }
                        const std::uint64_t now = recording::now();
                        recording::span(Kind::step, recording::name_of("add"), now, now + 5, 8, 2);
                        recording::counter(recording::name_of("hits"), 3);
                        recording::note({{"note", "event"}, {"text", "hello"}});
                      }),
                      "told");
  expect_sound(recorded);
  ASSERT_EQ(recorded.spans.size(), 3u);
  EXPECT_EQ(name_of(recorded, recorded.spans[0]), "train(x)");
  EXPECT_EQ(name_of(recorded, recorded.spans[1]), "schön 🙂");
  EXPECT_EQ(name_of(recorded, recorded.spans[2]), "add");
  EXPECT_EQ(recorded.kind_of(recorded.spans[0]), Kind::call);
  EXPECT_EQ(recorded.kind_of(recorded.spans[2]), Kind::step);
  EXPECT_EQ(recorded.spans[2].bytes, 8);
  EXPECT_EQ(recorded.spans[2].flops, 2);
  std::vector<double> hits;  // beside what the library counts
  for (const RecordedCounter& counter : recorded.counters)
    if (recorded.names[counter.name] == "hits") hits.push_back(counter.value);
  EXPECT_EQ(hits, std::vector<double>{3});
  EXPECT_FALSE(recorded.complete);  // contents() are taken before the end
  EXPECT_EQ(recorded.damaged, 0u);
  EXPECT_EQ(recorded.lost_spans, 0u);
  EXPECT_EQ(recorded.process, static_cast<std::uint64_t>(getpid()));
  EXPECT_EQ(recorded.threads.size(), 1u);
  EXPECT_FALSE(recorded.program.empty());
  EXPECT_GT(recorded.thread_count, 0);
  EXPECT_TRUE(std::any_of(recorded.notes.begin(), recorded.notes.end(),
                          [](const files::Json& note) { return string_in(note, "text") == "hello"; }));
  EXPECT_TRUE(is_being_written(recorded));
}

TEST(Recorded, OfAFileIsThatOfMemory) {
  TemporaryFolder folder;
  const std::string path = folder / "a.stet-profile";
  const std::uint64_t number = recording::begin({.file = path});
  { recording::Span span(Kind::user, recording::name_of("mine")); }
  const Recorded live = read_recording(path);
  EXPECT_FALSE(live.complete);
  EXPECT_TRUE(is_being_written(live));
  ASSERT_EQ(live.spans.size(), 1u);
  EXPECT_EQ(name_of(live, live.spans[0]), "mine");
  recording::end(number);
  const Recorded ended = read_recording(path);
  expect_sound(ended);
  EXPECT_TRUE(ended.complete);
  EXPECT_FALSE(is_being_written(ended));
  EXPECT_EQ(ended.spans.size(), 1u);
  EXPECT_GE(ended.length, ended.spans[0].end());
}

TEST(Recorded, WithoutASpanIsNotEmpty) {
  const Recorded recorded = parse_recording(recorded_bytes([] {}), "empty");
  expect_sound(recorded);
  EXPECT_TRUE(recorded.spans.empty());
  EXPECT_FALSE(recorded.program.empty());
  EXPECT_GE(recorded.length, 0);
  EXPECT_EQ(recorded.damaged, 0u);
}

TEST(Recorded, SaysWhatARecordingIsNot) {
  auto error = [](std::string_view bytes) { return user_error_of([&] { parse_recording(bytes, "x.stet-profile"); }); };
  EXPECT_EQ(error(""),
            "recording: 'x.stet-profile': it is empty, and no recording of stet\n"
            "  fix: name the file that Profile or STET_PROFILE wrote; it ends with .stet-profile");
  EXPECT_EQ(error("PK\3\4 some archive or other"),
            "recording: 'x.stet-profile': it is no recording of stet, which begins with 'stetrec': it begins with "
            "'PK\\x03\\x04 some archiv'\n"
            "  fix: name the file that Profile or STET_PROFILE wrote; it ends with .stet-profile");
  EXPECT_CONTAINS(error("stetre"), "it is no recording of stet");
  TemporaryFolder folder;
  EXPECT_CONTAINS(user_error_of([&] { read_recording(folder / "none"); }),
                  "/none': cannot be opened: No such file or directory\n  fix: check the path");
  EXPECT_CONTAINS(user_error_of([&] { read_recording(folder.path()); }), "': is a folder");
  files::write_whole(folder / "other", "<!doctype html>");
  EXPECT_CONTAINS(user_error_of([&] { read_recording(folder / "other"); }), "it begins with '<!doctype html>'");
}

TEST(Recorded, IsReadHoweverItIsCut) {
  const std::string bytes = usual_bytes();
  ASSERT_GT(bytes.size(), recording::head_bytes + 4 * recording::chunk_bytes);
  std::set<std::size_t> places;
  for (std::size_t at = sizeof recording::magic; at < 200; ++at) places.insert(at);
  for (std::size_t at = recording::head_bytes; at <= bytes.size(); at += recording::chunk_bytes)
    for (int beside : {-1, 0, 1, 15, 16, 17}) places.insert(at + static_cast<std::size_t>(beside));
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) places.insert(8 + random() % (bytes.size() - 8));
  const std::size_t all = parse_recording(bytes, "whole").spans.size();
  std::size_t before = 0;
  for (std::size_t at : places) {
    const std::string cut = bytes.substr(0, at);  // its own memory: a sanitizer sees what is read behind it
    const Recorded recorded = parse_recording(std::string_view(cut), "cut");
    expect_sound(recorded);
    EXPECT_GE(recorded.spans.size(), before);
    before = recorded.spans.size();
  }
  EXPECT_EQ(before, all);
}

TEST(Recorded, IsReadHoweverItIsDamaged) {
  const std::string bytes = usual_bytes();
  const Recorded whole = parse_recording(bytes, "whole");
  std::mt19937 random(2);
  std::size_t kept = 0, rounds = 2000;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::string damaged = bytes;
    for (std::uint32_t i = 0, count = 1 + random() % 8; i < count; ++i) {
      // Heads more often than what they stand before.
      const std::size_t chunk = recording::head_bytes + random() % 6 * recording::chunk_bytes;
      const std::size_t at = random() % 3 == 0   ? 8 + random() % 64
                             : random() % 2 == 0 ? chunk + random() % 64
                                                 : 8 + random() % (bytes.size() - 8);
      damaged[std::min(at, damaged.size() - 1)] = static_cast<char>(random() % 4 == 0 ? 0xFF : random());
    }
    const Recorded recorded = parse_recording(damaged, "damaged");
    expect_sound(recorded);
    kept += recorded.spans.size() * 2 > whole.spans.size();
  }
  EXPECT_GT(kept, rounds / 3);  // it is not that nothing is read
}

TEST(Recorded, KeepsWhatStandsBehindDamagedText) {
  HandMade made(1 * s);
  made.note({{"note", "event"}, {"text", "before"}});
  made.entry(recording::TextHead::note, "{\"note\": \"event\", ");  // no JSON
  made.entry(77, "an entry of a kind that nobody knows");
  made.note({{"note", "event"}, {"text", "behind"}});
  made.span(Kind::user, "a name", 0, 10);
  const Recorded recorded = made.read();
  ASSERT_EQ(recorded.notes.size(), 3u);
  EXPECT_EQ(string_in(recorded.notes[1], "text"), "before");
  EXPECT_EQ(string_in(recorded.notes[2], "text"), "behind");
  EXPECT_EQ(name_of(recorded, recorded.spans.at(0)), "a name");
  EXPECT_EQ(recorded.damaged, 1u);
}

TEST(Recorded, ReplacesWhatIsNoText) {
  HandMade made(1 * s);
  made.span(Kind::user,
            "a\xff\xfe"
            "b",
            0, 10);
  made.entry(recording::TextHead::note, "{\"note\": \"event\", \"text\": \"c\xff\"}");
  const Recorded recorded = made.read();
  EXPECT_EQ(name_of(recorded, recorded.spans.at(0)), "a\uFFFD\uFFFDb");
  EXPECT_EQ(string_in(recorded.notes.at(1), "text"), "c\uFFFD");
}

TEST(Recorded, NamesWhatNobodyNamed) {
  HandMade made(1 * s);
  made.record({recording::SpanRecord::span, 6, 3, 4'000'000'000, HandMade::began, 10, 0, 0});
  made.record({recording::SpanRecord::span, 6, 3, 500, HandMade::began + 20, 10, 0, 0});
  made.record({recording::SpanRecord::span, 200, 3, 500, HandMade::began + 40, 10, 0, 0});
  const Recorded recorded = made.read();
  ASSERT_EQ(recorded.spans.size(), 3u);
  for (const RecordedSpan& span : recorded.spans) EXPECT_EQ(name_of(recorded, span), "(unknown)");
  EXPECT_EQ(recorded.threads, (std::vector<std::string>{"thread 3"}));
  EXPECT_EQ(recorded.kind_of(recorded.spans[0]), Kind::step);
  EXPECT_EQ(recorded.kind_of(recorded.spans[2]), std::nullopt);
  EXPECT_EQ(recorded.kinds[recorded.spans[2].kind], "(unknown)");
}

TEST(Recorded, HasTheKindsThatTheFileNames) {
  HandMade made(1 * s);
  made.span(Kind::call, "f", 0, 10);
  Recorded recorded = made.read();
  std::string bytes = made.bytes();
  // Of a version with other kinds in front.
  const std::size_t at = bytes.find("\"call\", \"trace\"");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 15, "\"dive\", \"call\" ");
  recorded = parse_recording(bytes, "another version");
  EXPECT_EQ(recorded.kinds[0], "dive");
  EXPECT_EQ(recorded.kind_of(recorded.spans.at(0)), std::nullopt);
  made.span(Kind::trace, "f", 20, 30);  // number 1, which is a call there
  bytes = made.bytes();
  bytes.replace(bytes.find("\"call\", \"trace\""), 15, "\"dive\", \"call\" ");
  recorded = parse_recording(bytes, "another version");
  EXPECT_EQ(recorded.kind_of(recorded.spans.at(1)), Kind::call);
}

TEST(Recorded, DropsTimesThatCannotBe) {
  HandMade made(1 * s);
  auto add = [&](std::uint64_t begin, std::uint64_t duration) {
    made.record({recording::SpanRecord::span, 0, 0, 0, begin, duration, 0, 0});
  };
  add(HandMade::began + 10, 20);
  add(0, 1);                               // ended before the recording began
  add(HandMade::began - 5, 15);            // began before
  add(HandMade::began + 2 * s, 1);         // begins behind the end
  add(HandMade::began + 999 * ms, 5 * s);  // ends behind the end
  add(HandMade::began, UINT64_MAX);
  add(UINT64_MAX, 1);
  made.record({9, 0, 0, 0, HandMade::began, 1, 0, 0});
  const Recorded recorded = made.read();
  expect_sound(recorded);
  ASSERT_EQ(recorded.spans.size(), 3u);
  EXPECT_EQ(recorded.spans[0].begin, 0);
  EXPECT_EQ(recorded.spans[0].duration, 10);
  EXPECT_EQ(recorded.spans[1].begin, 10);
  EXPECT_EQ(recorded.spans[2].end(), static_cast<std::int64_t>(1 * s));
  EXPECT_EQ(recorded.damaged, 5u);
  EXPECT_EQ(recorded.seconds(), 1);
}

TEST(Recorded, DropsCountersBehindTheEnd) {
  HandMade made(1 * s);
  for (std::uint64_t time : {std::uint64_t{0}, 1 * s, 1 * s + 1, 2 * s}) made.counter("hits", time, 7);
  const Recorded recorded = made.read();
  expect_sound(recorded);
  EXPECT_EQ(recorded.counters.size(), 2u);
  EXPECT_EQ(recorded.damaged, 2u);
}

TEST(Recorded, DropsChunksThatAreBegunAgain) {
  HandMade made(1 * s);
  made.span(Kind::user, "f", 0, 10);
  std::string bytes = made.bytes();
  EXPECT_EQ(parse_recording(bytes, "whole").spans.size(), 1u);
  files::poke(bytes, recording::head_bytes + recording::chunk_bytes, std::uint64_t{0});  // as its writer does first
  EXPECT_EQ(parse_recording(bytes, "begun again").spans.size(), 0u);
}

TEST(Recorded, CountsWhatTheRingLost) {
  constexpr std::size_t chunks = 20, count = 3 * chunks * recording::spans_in_chunk;
  const Recorded recorded = parse_recording(recorded_bytes(
                                                [] {
                                                  const recording::Name name = recording::name_of("tick");
                                                  for (std::size_t i = 0; i < count; ++i) {
                                                    const std::uint64_t now = recording::now();
                                                    recording::span(Kind::user, name, now, now + 1);
                                                  }
                                                },
                                                recording::head_bytes + chunks * recording::chunk_bytes),
                                            "ring");
  expect_sound(recorded);
  EXPECT_GT(recorded.lost_spans, 0u);
  EXPECT_EQ(recorded.lost_spans + recorded.spans.size(), count);
}

TEST(Recorded, OfAProgramThatWasKilledIsReadToItsEnd) {
  TemporaryFolder folder;
  const std::string path = folder / "killed.stet-profile";
  const pid_t child = fork();
  if (child == 0) {
    recording::begin({.file = path});
    const std::uint64_t now = recording::now();
    for (int i = 0; i < 5000; ++i) recording::span(Kind::step, recording::name_of("step"), now, now + 10);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Recorded recorded = read_recording(path);
  expect_sound(recorded);
  EXPECT_EQ(recorded.spans.size(), 5000u);
  EXPECT_FALSE(recorded.complete);
  EXPECT_FALSE(is_being_written(recorded));
  EXPECT_EQ(recorded.process, static_cast<std::uint64_t>(child));
}

TEST(Recorded, KnowsAZombieFromAProgramThatRuns) {
  HandMade made(0);
  made.poke(offsetof(recording::Head, ended), std::uint64_t{0});
  made.poke(offsetof(recording::Head, began), recording::now());
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);  // ended, and not forgotten
  made.poke(offsetof(recording::Head, process), static_cast<std::uint64_t>(child));
  EXPECT_FALSE(is_being_written(made.read()));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  made.poke(offsetof(recording::Head, process), static_cast<std::uint64_t>(getpid()));
  EXPECT_TRUE(is_being_written(made.read()));
  made.poke(offsetof(recording::Head, began), std::uint64_t{1});  // long before this process
  EXPECT_FALSE(is_being_written(made.read()));
  made.poke(offsetof(recording::Head, began), recording::now() + 3600 * s);  // before the machine was started anew
  EXPECT_FALSE(is_being_written(made.read()));
}

/// A small ring, so that chunks are begun again all the time; spans that say what they should be.
TEST(Recorded, IsReadWhileThreadsWrite) {
  TemporaryFolder folder;
  const std::string path = folder / "live.stet-profile";
  const std::uint64_t number =
      recording::begin({.file = path, .most_bytes = recording::head_bytes + 16 * recording::chunk_bytes});
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer)
    writers.emplace_back([&, writer] {
      for (std::uint64_t i = 0; !stop; ++i) {
        const recording::Name name = recording::name_of(text("name ", writer, " ", i / 4000 % 500));
        const std::uint64_t now = recording::now();
        recording::span(Kind::user, name, now, now + i % 100, static_cast<double>(name), static_cast<double>(name));
      }
    });
  std::size_t seen = 0;
  const std::uint64_t patience = recording::now() + 60'000'000'000;  // where other programs keep the writers waiting
  for (int round = 0; round < 40 || (seen == 0 && recording::now() < patience); ++round) {
    const Recorded recorded = read_recording(path);
    expect_sound(recorded);
    EXPECT_FALSE(recorded.complete);
    for (const RecordedSpan& span : recorded.spans) {
      ASSERT_EQ(span.bytes, span.flops);
      ASSERT_EQ(name_of(recorded, span).substr(0, 5), "name ");
    }
    seen += recorded.spans.size();
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  recording::end(number);
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace stet::reporting
