// How the stet command is called: help, messages of wrong calls, exit codes, and where its output goes.
#include "stet/files/utf8.h"
#include "stet/tools/commands.h"
#include "stet/tools/output.h"
#include "tests/tools/command.h"

namespace stet::tools {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out(1);
  for (char c : text) {
    if (c == '\n')
      out.emplace_back();
    else if (c != '\r')
      out.back() += c;
  }
  out.pop_back();
  return out;
}

std::vector<std::string> visible_commands() {
  std::vector<std::string> out;
  for (const Command& command : commands())
    if (!command.hidden) out.emplace_back(command.name);
  return out;
}

class UsageTest : public CommandTest {
 protected:
  /// Of a call that is wrong.
  void expect_usage_error(const std::vector<std::string>& words, const std::string& message) const {
    Ran ran = stet(words);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err, "stet: " + message + "\n");
    EXPECT_EQ(ran.out, "");
  }
};

TEST_F(UsageTest, WithoutWordsItIsHelpAndAWrongCall) {
  Ran ran = stet({});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, stet({"help"}).out);
  EXPECT_EQ(ran.err, "");
}

TEST_F(UsageTest, HelpHasALineForEveryCommand) {
  Ran ran = stet({"help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_CONTAINS(ran.out, "usage: stet <command> [word…] [--option…]\n");
  EXPECT_CONTAINS(ran.out, "\n  doctor      whether all works on this machine, and what it can do at most\n");
  EXPECT_CONTAINS(ran.out, "\nExit codes: 0: all is fine; 1: something is wrong, and was said; 2: the command");
  for (const std::string& name : visible_commands()) EXPECT_CONTAINS(ran.out, "\n  " + name + " ");
  EXPECT_EQ(ran.out.find("__complete"), std::string::npos);
  for (const char* word : {"--help", "-h"}) EXPECT_EQ(stet({word}).out, ran.out);
}

TEST_F(UsageTest, EveryCommandHasHelpInTwoWays) {
  for (const std::string& name : visible_commands()) {
    Ran ran = stet({"help", name});
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out.find("stet " + name + ": "), 0u) << ran.out;
    EXPECT_CONTAINS(ran.out, "\noptions:\n");
    EXPECT_EQ(stet({name, "--help"}).out, ran.out);
    EXPECT_EQ(stet({name, "whatever", "-h"}).out, ran.out);
    EXPECT_EQ(stet({"--help", name}).out, ran.out);
  }
}

TEST_F(UsageTest, HelpIsAsWideAsColumnsSay) {
  Environment narrow = environment(), wide = environment(), silly = environment();
  narrow["COLUMNS"] = "60";
  wide["COLUMNS"] = "1000000";
  silly["COLUMNS"] = "60; rm -rf /";
  for (const std::string& name : visible_commands()) {
    for (const std::string& line : lines_of(stet({"help", name}, narrow).out)) EXPECT_LE(columns_of(line), 60u) << line;
    for (const std::string& line : lines_of(stet({"help", name}, wide).out)) EXPECT_LE(columns_of(line), 100u) << line;
    EXPECT_EQ(stet({"help", name}, silly).out, stet({"help", name}).out);
  }
}

TEST_F(UsageTest, AWrongCommandNamesTheNearest) {
  expect_usage_error({"dotcor"}, "there is no command 'dotcor'; the nearest is 'doctor' (stet help lists all)");
  expect_usage_error({"hel"}, "there is no command 'hel'; the nearest is 'help' (stet help lists all)");
  expect_usage_error({"train"}, "there is no command 'train'; stet help lists all");
  expect_usage_error({""}, "there is no command ''; stet help lists all");
  expect_usage_error({"--verison"}, "there is no command '--verison'; the nearest is 'version' (stet help lists all)");
  expect_usage_error({"help", "cahce"}, "there is no command 'cahce'; the nearest is 'cache' (stet help lists all)");
}

TEST_F(UsageTest, AWrongOptionNamesTheNearest) {
  expect_usage_error({"cache", "--jsno"},
                     "there is no option of stet cache '--jsno'; the nearest is '--json' (stet help cache lists all)");
  expect_usage_error({"doctor", "-x"}, "there is no option of stet doctor '-x'; stet help doctor lists all");
  expect_usage_error({"cache", "clear", "--older-than"},
                     "stet cache: behind --older-than stands its value: --older-than DAYS");
  expect_usage_error({"cache", "--json=yes"}, "stet cache: --json takes no value, and got '--json=yes'");
}

TEST_F(UsageTest, AWordTooManyIsNamed) {
  expect_usage_error({"doctor", "me"},
                     "stet doctor: 'me' is one word too many; stet help doctor shows how it is called");
  expect_usage_error({"help", "help", "help"},
                     "stet help: 'help' is one word too many; stet help help shows how it is called");
  expect_usage_error({"version", "3"},
                     "stet version: '3' is one word too many; stet help version shows how it is called");
  expect_usage_error({"manual", "ops"},
                     "stet manual: 'ops' is one word too many; stet help manual shows how it is called");
  expect_usage_error({"version", "--", "--json"},
                     "stet version: '--json' is one word too many; stet help version shows how it is called");
}

TEST_F(UsageTest, WordsCannotWriteToTheTerminal) {
  expect_usage_error({"\033[31mred\n"}, "there is no command '\\x1b[31mred\\x0a'; stet help lists all");
  expect_usage_error({"ops", "\xff\xfe"}, "there is no op or function '\\xff\\xfe'; stet ops functions lists all");
  Ran ran = stet({std::string(100'000, 'x')});
  EXPECT_EQ(ran.code, 2);
  EXPECT_LT(ran.err.size(), 300u);
}

TEST_F(UsageTest, Version) {
  Ran ran = stet({"version"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.find("stet 0."), 0u) << ran.out;
  EXPECT_EQ(stet({"--version"}).out, ran.out);
  files::Json json = json_of(stet({"version", "--json"}));
  EXPECT_EQ("stet " + *member(json, "version").if_string() + "\n", ran.out);
  EXPECT_TRUE(member(json, "libraries.LLVM").if_string());
}

TEST_F(UsageTest, HelpAsJsonHasWhatTheTableHas) {
  files::Json json = json_of(stet({"help", "--json"}));
  const files::Json::List& list = *json.find("commands")->if_list();
  std::vector<std::string> names;
  for (const files::Json& one : list) names.push_back(*member(one, "name").if_string());
  EXPECT_EQ(names, visible_commands());
  EXPECT_EQ(json_of(stet({"help", "cache", "--json"})), list[3]);
}

TEST_F(UsageTest, AReaderThatGoesAwayEndsItQuietly) {
  // More than a pipe holds, so that it is still writing when head has ended.
  for (const char* prepare : {"", "trap '' PIPE; "}) {
    Ran ran = shell(std::string(prepare) + "{ \"$STET\" ops functions; echo \"code $?\" >&2; } | head -n 2");
    EXPECT_EQ(lines_of(ran.out).size(), 2u);
    EXPECT_EQ(ran.err, "code 141\n");
  }
}

TEST_F(UsageTest, OutputThatCannotBeWrittenIsAnError) {
  for (const char* words : {"help", "ops", "ops --json", "manual", "completion bash", "cache list --json", "version"}) {
    Ran ran = shell(std::string("\"$STET\" ") + words + " > /dev/full");
    EXPECT_EQ(ran.code, 1) << words;
    EXPECT_EQ(ran.err, "stet: the output cannot be written: No space left on device\n") << words;
  }
  Ran ran = shell("\"$STET\" help >&-");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "stet: the output cannot be written: Bad file descriptor\n");
}

TEST_F(UsageTest, ColoursOnlyOnATerminalThatHasThemAndWhereTheyAreWanted) {
  Environment plain = environment();
  plain["TERM"] = "xterm";
  auto colored = [&](const Ran& ran) { return ran.out.find('\033') != std::string::npos; };
  EXPECT_TRUE(colored(in_terminal({"help"}, 80, plain)));
  EXPECT_FALSE(colored(stet({"help"}, plain)));
  Environment no_color = plain, dumb = plain, empty = plain;
  no_color["NO_COLOR"] = "1";
  dumb["TERM"] = "dumb";
  empty["NO_COLOR"] = "";  // as if it were not set, says no-color.org
  EXPECT_FALSE(colored(in_terminal({"help"}, 80, no_color)));
  EXPECT_FALSE(colored(in_terminal({"help"}, 80, dumb)));
  EXPECT_FALSE(colored(in_terminal({"help"}, 80, environment())));
  EXPECT_TRUE(colored(in_terminal({"help"}, 80, empty)));
}

TEST_F(UsageTest, TablesAreCutWhereTheTerminalEnds) {
  auto longest = [](const Ran& ran) {
    std::size_t out = 0;
    for (const std::string& line : lines_of(ran.out)) out = std::max(out, columns_of(line));
    return out;
  };
  Ran ran = in_terminal({"ops"}, 50, environment());
  EXPECT_EQ(longest(ran), 50u);
  EXPECT_CONTAINS(ran.out, "…");
  EXPECT_TRUE(files::is_utf8(ran.out));
  Environment narrow = environment();
  narrow["COLUMNS"] = "33";
  EXPECT_EQ(longest(in_terminal({"ops"}, 50, narrow)), 33u);
  narrow["COLUMNS"] = "1";
  EXPECT_EQ(in_terminal({"ops"}, 50, narrow).code, 0);
  // A pipe has no width.
  narrow["COLUMNS"] = "33";
  EXPECT_EQ(stet({"ops"}, narrow).out, stet({"ops"}).out);
}

}  // namespace
}  // namespace stet::tools
