#include <chrono>
#include <sstream>
#include <thread>

#include "stet/base/text.h"
#include "stet/tools/output.h"
#include "tests/public/profile_files.h"
#include "tests/report/recordings.h"
#include "tests/tools/command.h"

namespace stet::tools {
namespace {

using files::Json;
using reporting::HandMade;

class ReportCommandTest : public CommandTest {
 protected:
  std::string recording(const HandMade& made = reporting::whole_recording(),
                        const std::string& name = "run.stet-profile") {
    const std::string path = folder() / name;
    files::write_whole(path, made.bytes());
    return path;
  }
  std::string contents(const std::string& name) { return files::contents_of(folder() / name); }
};

TEST_F(ReportCommandTest, PrintsTheVerdictAndTables) {
  const Ran ran = stet({"report", recording()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out.find("train, 3.0 s\n"
                         "2 traces of 1 function, 1 retrace: 312 ms = 10 % of the run; the top cause, of "
                         "'train_step(x, y)': argument 0 'x' "
                         "f32[b,5] -> f64[b,5] dtype changed, called at train.cpp:57. The fix saves about 312 ms.\n"
                         "52 % of the time in kernels.\n"
                         "250 ms = 8.3 % of the time waiting for data.\n"
                         "\n"
                         "Where the time went\n"),
            0u)
      << ran.out;
  EXPECT_CONTAINS(ran.out, "\nKernels\n");
  EXPECT_CONTAINS(ran.out, "\nWhat to do\n");
}

TEST_F(ReportCommandTest, KeepsToTheTerminal) {
  Environment narrow = environment();
  narrow["TERM"] = "xterm";
  const Ran ran = in_terminal({"report", recording()}, 50, narrow);
  EXPECT_CONTAINS(ran.out, "\33[1mKernels\33[0m");
  narrow["NO_COLOR"] = "1";
  const Ran plain = in_terminal({"report", recording()}, 50, narrow);
  EXPECT_EQ(plain.out.find('\33'), std::string::npos);
  std::istringstream lines(plain.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 51u) << line;  // with its '\r'
}

TEST_F(ReportCommandTest, WritesThePage) {
  const Ran ran = stet({"report", recording(), "-o", folder() / "report.html"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.find("2 traces of 1 function, 1 retrace: "), 0u) << ran.out;
  EXPECT_EQ(ran.out.find("Kernels"), std::string::npos);
  const std::string page = contents("report.html");
  EXPECT_CONTAINS(page, "train_step(x, y)");
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0u);
  EXPECT_EQ(stet({"report", recording(), "-o", "-"}).out, page);
}

TEST_F(ReportCommandTest, WritesJson) {
  const Ran ran = stet({"report", recording(), "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Json data = json_of(ran);
  EXPECT_EQ(member(data, "program.name"), Json("train"));
  EXPECT_EQ(member(data, "spans.count"), Json(122));
  EXPECT_TRUE(member(data, "limits").is_null());  // it is of another machine
}

TEST_F(ReportCommandTest, WritesTheTimeline) {
  const Ran ran = stet({"report", recording(), "--chrome", folder() / "trace.json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  const Json trace = files::parse_json(contents("trace.json"), files::test_reading());
  EXPECT_GT(trace.find("traceEvents")->if_list()->size(), 160u);
  EXPECT_EQ(stet({"report", recording(), "--chrome", "-"}).out, contents("trace.json"));
}

TEST_F(ReportCommandTest, WritesTensorBoardsProfile) {
  const Ran ran = stet({"report", recording(), "--tensorboard", folder() / "logs"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::vector<std::string> files = profile_files::files_below(folder() / "logs");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(ran.out, files[0] + "\n");
  EXPECT_EQ(files[0].find(folder() / "logs/plugins/profile/2023_11_1"), 0u) << files[0];  // when it began
  EXPECT_EQ(profile_files::read(files[0]).of_kind("call").size(), 40u);
  // Beside what goes to stdout it says nothing.
  const Ran beside = stet({"report", recording(), "--json", "--tensorboard", folder() / "logs"});
  EXPECT_EQ(beside.out, stet({"report", recording(), "--json"}).out);
  EXPECT_EQ(profile_files::files_below(folder() / "logs").size(), 2u);
  const Ran refused = stet({"report", recording(), "--tensorboard", folder() / "run.stet-profile"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_CONTAINS(refused.err, "stet report: '" + (folder() / "run.stet-profile/plugins/profile") +
                                   "': the folder cannot be made: Not a directory");
}

TEST_F(ReportCommandTest, BoundsTraces) {
  const std::string path = recording();
  auto ran = [&](std::vector<std::string> bounds) {
    std::vector<std::string> words = {"report", path};
    for (const std::string& bound : bounds) {
      words.push_back("--max-traces");
      words.push_back(bound);
    }
    return stet(words);
  };
  EXPECT_EQ(ran({"2"}).code, 0);
  EXPECT_EQ(ran({"train_step=2"}).code, 0);
  EXPECT_EQ(ran({"train_step(x, y)=2", "9"}).code, 0);
  const Ran exceeded = ran({"1"});
  EXPECT_EQ(exceeded.code, 1);
  EXPECT_EQ(exceeded.err,
            "stet: 'train_step(x, y)' was traced 2 times, 1 is allowed: argument 0 'x' f32[b,5] -> f64[b,5] dtype "
            "changed, called at train.cpp:57; fix: cast(x, f32) before the call\n");
  EXPECT_CONTAINS(exceeded.out, "Where the time went");  // the report is there all the same
  EXPECT_EQ(ran({"9", "train_step=0"}).err.substr(0, 61),
            "stet: 'train_step(x, y)' was traced 2 times, 0 are allowed: a");
  EXPECT_EQ(ran({"train_step=1", "train_step=2"}).code, 1);
  const Ran wrong = ran({"train_stpe=1"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.err, "stet: there is no function 'train_stpe'; stet report without --max-traces lists all\n");
  for (const char* bound : {"many", "", "-1", "1x", "=3", "f=", "f=-2", "99999999999999999999"}) {
    const Ran refused = ran({bound});
    EXPECT_EQ(refused.code, 2) << bound;
    EXPECT_EQ(refused.err, text("stet: stet report: '", bound,
                                "' is no number of traces: --max-traces 3 bounds every function, --max-traces "
                                "train_step=3 one\n"));
  }
}

TEST_F(ReportCommandTest, RefusesWhatItCannotDo) {
  auto refused = [&](std::vector<std::string> words, int code) {
    words.insert(words.begin(), "report");
    const Ran ran = stet(words);
    EXPECT_EQ(ran.code, code) << ran.out;
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  EXPECT_EQ(refused({}, 2),
            "stet: stet report: of which recording? stet report run.stet-profile, for one; a program writes it where "
            "STET_PROFILE or Profile says\n");
  EXPECT_CONTAINS(refused({"a", "b"}, 2), "stet report: 'b' is one word too many");
  EXPECT_CONTAINS(refused({folder() / "none"}, 1), "/none': cannot be opened: No such file or directory");
  files::write_whole(folder() / "other", "something else");
  EXPECT_CONTAINS(refused({folder() / "other"}, 1), "it is no recording of stet, which begins with 'stetrec'");
  const std::string path = recording();
  EXPECT_EQ(refused({path, "-o", "-", "--json"}, 2),
            "stet: stet report: --json, -o - and --chrome - all write to stdout: choose one of them\n");
  EXPECT_EQ(refused({path, "-o", path}, 2),
            text("stet: stet report: '", path, "' is the recording, which would be overwritten\n"));
  EXPECT_EQ(
      refused({path, "--chrome",
               folder() / "../" + std::filesystem::path(folder().path()).filename().string() + "/run.stet-profile"},
              2)
          .substr(0, 20),
      "stet: stet report: '");
  EXPECT_CONTAINS(refused({path, "-o", folder() / "no/folder.html"}, 1), "No such file or directory");
  EXPECT_EQ(files::contents_of(path), reporting::whole_recording().bytes());
  EXPECT_FALSE(std::filesystem::exists(folder() / "no"));
}

TEST_F(ReportCommandTest, LeavesNothingHalfWritten) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  const Ran ran = shell("$STET report " + recording() + " --json > /dev/full");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "stet: the output cannot be written: No space left on device\n");
  const Ran pipe = shell("$STET report " + recording() + " -o - | head -c 10");
  EXPECT_EQ(pipe.err, "");
  EXPECT_EQ(pipe.out.size(), 10u);
}

TEST_F(ReportCommandTest, TakesNamesThatTerminalsWouldObey) {
  HandMade made(1'000'000'000);
  made.span(recording::Kind::call, "\33[2J\33]0;x\7", 0, 500'000'000);
  made.span(recording::Kind::step, "</script><script>alert(1)</script>", 0, 400'000'000);
  const std::string path = recording(made);
  EXPECT_EQ(stet({"report", path}).out.find('\33'), std::string::npos);
  stet({"report", path, "-o", folder() / "report.html"});
  EXPECT_EQ(contents("report.html").find("<script>alert"), std::string::npos);
}

class TopCommandTest : public ReportCommandTest {};

HandMade running(std::uint64_t process) {
  HandMade made = reporting::whole_recording();
  made.poke(offsetof(recording::Head, ended), std::uint64_t{0});
  made.poke(offsetof(recording::Head, process), process);
  return made;
}

TEST_F(TopCommandTest, LooksOnceWhereThereIsNoTerminal) {
  const Ran ran = stet({"top", recording()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.find("train, 3.0 s\n2 traces of 1 function"), 0u);
  EXPECT_TRUE(ran.out.ends_with("\nthe program has ended its recording\n")) << ran.out;
  EXPECT_EQ(ran.out.find('\33'), std::string::npos);
}

TEST_F(TopCommandTest, SaysWhetherTheProgramLives) {
  const Ran died = stet({"top", recording(running(0))});
  EXPECT_EQ(died.code, 1);
  EXPECT_CONTAINS(died.out, "train, 2.5 s, ended before its recording\n");
  EXPECT_TRUE(died.out.ends_with("\nthe program has died: its recording was not ended\n")) << died.out;
  EXPECT_EQ(stet({"top", recording(), "--json"}).code, 0);
  EXPECT_EQ(stet({"top", recording(running(0)), "--json"}).code, 1);

  const std::string path = folder() / "live.stet-profile";
  const std::uint64_t number = recording::begin({.file = path});
  { recording::Span span(recording::Kind::user, recording::name_of("mine")); }
  const Ran live = stet({"top", path});
  EXPECT_EQ(live.code, 0);
  EXPECT_CONTAINS(live.out, ", still running\n");
  EXPECT_TRUE(live.out.ends_with("\nit runs; Ctrl-C ends this view, and not the program\n")) << live.out;
  EXPECT_EQ(member(json_of(stet({"top", path, "--json"})), "running"), Json(true));
  recording::end(number);
  EXPECT_EQ(member(json_of(stet({"top", path, "--json"})), "running"), Json(false));
}

/// A program that this test is, in the terminal of a command that watches it.
TEST_F(TopCommandTest, WatchesUntilTheProgramEnds) {
  Environment terminal = environment();
  terminal["TERM"] = "xterm";
  const std::string path = folder() / "live.stet-profile";
  const std::uint64_t number = recording::begin({.file = path});
  std::thread program([&] {
    { recording::Span span(recording::Kind::user, recording::name_of("mine")); }
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    recording::end(number);
  });
  const Ran ran = in_terminal({"top", path}, 60, terminal);
  program.join();
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.find("\33[2J"), 0u);
  EXPECT_CONTAINS(ran.out, "still running");
  EXPECT_CONTAINS(ran.out, "it runs; Ctrl-C ends this view, and not the program");
  EXPECT_CONTAINS(ran.out, "the program has ended its recording");
  EXPECT_EQ(in_terminal({"top", path, "--once"}, 60, terminal).out.find("\33[2J"), std::string::npos);
}

TEST_F(TopCommandTest, EndsWhereTheRecordingGoes) {
  Environment terminal = environment();
  const std::string path = folder() / "live.stet-profile";
  const std::uint64_t number = recording::begin({.file = path});
  std::thread remover([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::filesystem::remove(path);
  });
  const Ran ran = in_terminal({"top", path}, 60, terminal);
  remover.join();
  recording::end(number);
  EXPECT_EQ(ran.code, 0);
  EXPECT_CONTAINS(ran.out, "the recording is gone");
}

TEST_F(TopCommandTest, RefusesWhatIsNoRecording) {
  EXPECT_EQ(stet({"top"}).err,
            "stet: stet top: of which recording? stet top run.stet-profile, for one; a program writes it where "
            "STET_PROFILE or Profile says\n");
  const Ran none = stet({"top", folder() / "none"});
  EXPECT_EQ(none.code, 1);
  EXPECT_CONTAINS(none.err, "/none': cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace stet::tools
