// The ledger of what tracing cost, and traces.lock.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "expect_error.h"
#include "explanations.h"

using namespace stet;

namespace {

class Ledger : public WithExplanations {
 protected:
  void SetUp() override {
    WithExplanations::SetUp();
    folder = std::filesystem::temp_directory_path() / ("stet_ledger_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    path = (folder / "traces.lock").string();
  }
  void TearDown() override {
    std::filesystem::remove_all(folder);
    WithExplanations::TearDown();
  }
  std::string content() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::vector<std::string> about(const std::vector<std::string>& all, const std::string& name) {
    std::vector<std::string> out;
    for (const std::string& one : all)
      if (one.find("'" + name + "'") != std::string::npos) out.push_back(one);
    return out;
  }
  std::filesystem::path folder;
  std::string path;
};

LedgerLine line_of(const std::string& function) {
  for (const LedgerLine& line : ledger())
    if (line.function == function) return line;
  return {};
}

TEST_F(Ledger, counts_traces_calls_and_time) {
  int line = __LINE__ + 1;
  Function f = function("ledger_counts(x, n)", [](Tensor x, int n) { return x * n; });
  EXPECT_EQ(line_of("ledger_counts").traces, 0);
  for (int i = 0; i < 10; ++i) f(ones({2}), 1);
  LedgerLine before = line_of("ledger_counts");
  EXPECT_EQ(before.functions, 1);
  EXPECT_EQ(before.traces, 1);
  EXPECT_EQ(before.calls, 10u);
  EXPECT_GT(before.first_milliseconds, 0);
  EXPECT_EQ(before.lost_milliseconds, 0);
  EXPECT_EQ(before.cause, "");
  EXPECT_CONTAINS(before.made_at, "ledger_test.cpp:" + std::to_string(line));
  f(ones({2}), 2);
  f(ones({2}), 3);
  f.clear();  // what they served stays counted
  LedgerLine after = line_of("ledger_counts");
  EXPECT_EQ(after.traces, 3);
  EXPECT_EQ(after.calls, 12u);
  EXPECT_EQ(after.first_milliseconds, before.first_milliseconds);
  EXPECT_GT(after.lost_milliseconds, 0);
  EXPECT_CONTAINS(after.cause, "argument 1 'n' ");
  EXPECT_CONTAINS(after.cause, "the value of a C++ number changed");
}

TEST_F(Ledger, functions_of_one_line_are_one_line) {
  for (int i = 0; i < 3; ++i) function("ledger_again(x)", [](Tensor x) { return x; })(ones({1}));
  LedgerLine line = line_of("ledger_again");
  EXPECT_EQ(line.functions, 3);
  EXPECT_EQ(line.traces, 3);
  EXPECT_EQ(line.calls, 3u);
  EXPECT_EQ(line.lost_milliseconds, 0);
  EXPECT_CONTAINS(ledger_text(), "ledger_again at ");
  EXPECT_CONTAINS(ledger_text(), ", made 3 times");
}

TEST_F(Ledger, is_sorted_by_time_lost_and_summed_up) {
  Function f = function("ledger_sorted(x)", [](Tensor x) { return x + 1; });
  f(ones({1}));
  f(ones({1}, f64));
  std::vector<LedgerLine> lines = ledger();
  for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_GE(lines[i - 1].lost_milliseconds, lines[i].lost_milliseconds);
  std::string text = ledger_text();
  EXPECT_EQ(text.substr(0, 6), "stet: ");
  EXPECT_CONTAINS(text, " ms lost to ");
  EXPECT_CONTAINS(text, "lost ms  first ms  traces      calls  function");
  EXPECT_CONTAINS(text, "argument 0 'x' f32[x_0] -> f64[1] dtype changed");
}

TEST_F(Ledger, lock_holds_traces_and_facts) {
  Function f = function("locked(x, y)", [](Tensor x, Tensor y) { return x + y; });
  f(ones({2}), ones({2}));
  write_traces_lock(path);
  EXPECT_CONTAINS(content(), "function locked\n  1 x (f32[y_0], f32[y_0]) on x_0 == y_0\n");
  EXPECT_TRUE(about(check_traces_lock(path), "locked").empty());
  f(ones({9}), ones({9}));  // the same trace
  EXPECT_TRUE(about(check_traces_lock(path), "locked").empty());
  f(ones({2}, f64), ones({2}, f64));
  std::vector<std::string> broken = about(check_traces_lock(path), "locked");
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken[0], "'locked' was traced for (f64[y_0], f64[y_0]) on x_0 == y_0, which is not in " + path);
  write_traces_lock(path);
  EXPECT_TRUE(about(check_traces_lock(path), "locked").empty());
  f.clear();
  f(ones({2}), ones({2}));
  broken = about(check_traces_lock(path), "locked");
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken[0], "'locked' was traced 2 times for (f32[y_0], f32[y_0]) on x_0 == y_0; " + path + " allows 1");
  function("locked_new(x)", [](Tensor x) { return x; })(ones({1}));
  EXPECT_EQ(about(check_traces_lock(path), "locked_new"),
            (std::vector<std::string>{"'locked_new' is not in " + path + ", and was traced"}));
}

TEST_F(Ledger, lock_keeps_what_was_not_traced) {
  std::ofstream(path) << "# by hand\n\nfunction elsewhere\n  2 x (f32[])\n";
  function("locked_too(x)", [](Tensor x) { return x; })(ones({1}));
  write_traces_lock(path);
  EXPECT_CONTAINS(content(), "function elsewhere\n  2 x (f32[])\n");
  EXPECT_CONTAINS(content(), "function locked_too\n  1 x (f32[x_0])\n");
}

TEST_F(Ledger, lock_refuses_what_it_cannot_read_or_write) {
  int line = __LINE__ + 1;
  std::string text = error_of([&] { check_traces_lock(path + ".none"); });
  EXPECT_CONTAINS(text, "check_traces_lock: '" + path + ".none' cannot be read");
  EXPECT_CONTAINS(text, "ledger_test.cpp:" + std::to_string(line));
  EXPECT_CONTAINS(error_of([&] { write_traces_lock((folder / "no" / "folder").string()); }), "cannot be written");
  for (const char* bad : {"nonsense\n", "  1 x before a function\n", "function f\n  x (f32[])\n"}) {
    std::ofstream(path) << "# first\n" << bad;
    EXPECT_CONTAINS(error_of([&] { check_traces_lock(path); }), "is no line of a traces.lock: ");
    EXPECT_CONTAINS(error_of([&] { write_traces_lock(path); }), "write the file anew");
  }
}

// What the environment asks for at the end of a process. A child that is forked here has traced what this process has.
class LedgerDeathTest : public Ledger {};

TEST_F(LedgerDeathTest, the_end_of_a_process) {
  Function f = function("at_the_end(x)", [](Tensor x) { return x * 5; });
  f(ones({1}));
  auto run = [&](const char* asked, DType dtype) {
    setenv("STET_TRACES_LOCK", asked, 1);
    setenv("STET_TRACES_LOCK_FILE", path.c_str(), 1);
    on_retrace([](const RetraceEvent&) {});
    f(ones({1}, dtype));
    std::exit(0);
  };
  EXPECT_EXIT(run("check", f32), testing::ExitedWithCode(1), "cannot be read");
  EXPECT_EXIT(run("update", f32), testing::ExitedWithCode(0), "");
  EXPECT_CONTAINS(content(), "function at_the_end\n  1 x (f32[x_0])\n");
  EXPECT_EXIT(run("check", f32), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(run("check", f64), testing::ExitedWithCode(1),
              "this run does not keep to its traces.lock\n  'at_the_end' was traced for .f64.x_0.., which is not in");
  EXPECT_EXIT(run("sometimes", f32), testing::ExitedWithCode(1), "STET_TRACES_LOCK=sometimes means nothing");
  EXPECT_EXIT(
      {
        setenv("STET_LEDGER", "1", 1);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "stet: .* trace.* of .* function.*; .* ms lost to");
}

TEST(LedgerWarning, says_what_was_lost_where_much_was) {
  const LedgerLine step{.function = "train_step",
                        .made_at = "train.cpp:57",
                        .functions = 1,
                        .traces = 13,
                        .calls = 900,
                        .first_milliseconds = 200,
                        .lost_milliseconds = 3100,
                        .cause = "argument 1 'rate' 0.5 -> 0.25"};
  const LedgerLine other{.function = "other", .functions = 2, .traces = 3, .calls = 3, .lost_milliseconds = 100};
  EXPECT_EQ(
      ledger_warning({other, step}, 15),
      "stet: 13 retraces took 3.2 s of 15.0 s, 21 % of this run. Most of it was lost by 'train_step' at train.cpp:57: "
      "13 traces\n"
      "  cause           argument 1 'rate' 0.5 -> 0.25\n"
      "  more            STET_LEDGER=1 prints all functions; STET_PROFILE=folder records every trace for `stet "
      "report`\n");
}

TEST(LedgerWarning, names_others_that_lost_a_part_of_it) {
  const LedgerLine step{.function = "f", .made_at = "a.cpp:1", .functions = 1, .traces = 5, .lost_milliseconds = 2000};
  const LedgerLine other{.function = "g",
                         .made_at = "a.cpp:9",
                         .functions = 1,
                         .traces = 3,
                         .lost_milliseconds = 900,
                         .cause = "argument 0 f32[2] -> f64[2] dtype changed"};
  const LedgerLine little{.function = "h", .functions = 1, .traces = 2, .lost_milliseconds = 100};
  EXPECT_EQ(ledger_warning({little, other, step}, 10),
            "stet: 7 retraces took 3.0 s of 10.0 s, 30 % of this run. Most of it was lost by 'f' at a.cpp:1: 5 traces\n"
            "  also            0.9 s by 'g' at a.cpp:9: 3 traces, argument 0 f32[2] -> f64[2] dtype changed\n"
            "  more            STET_LEDGER=1 prints all functions; STET_PROFILE=folder records every trace for `stet "
            "report`\n");
}

TEST(LedgerWarning, says_nothing_otherwise) {
  EXPECT_EQ(ledger_warning({}, 10), "");
  EXPECT_EQ(ledger_warning({{.function = "once", .functions = 1, .traces = 1, .first_milliseconds = 5000}}, 6), "");
  const LedgerLine often{.function = "f", .functions = 1, .traces = 9, .lost_milliseconds = 490};
  EXPECT_EQ(ledger_warning({often}, 1), "") << "less than half a second";
  const LedgerLine slow{.function = "f", .functions = 1, .traces = 9, .lost_milliseconds = 900};
  EXPECT_EQ(ledger_warning({slow}, 20), "") << "less than a twentieth";
  EXPECT_NE(ledger_warning({slow}, 17), "");
}

}  // namespace
