// What shells complete, asked directly and through the shells.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "stet/tools/commands.h"
#include "tests/tools/command.h"

namespace stet::tools {
namespace {

using Words = std::vector<std::string>;

class CompletionTest : public CommandTest {
 protected:
  /// The words that may stand in the place of the last one.
  Words candidates(Words words) const {
    words.insert(words.begin(), {"__complete", "--"});
    Ran ran = stet(words);
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.err, "");
    return first_fields(ran.out);
  }
  static Words first_fields(const std::string& text) {
    Words out;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      out.push_back(text.substr(at, text.find_first_of("\t\n", at) - at));
    return out;
  }
  static bool has(const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }
  bool is_there(const std::string& program) const { return shell("command -v " + program).code == 0; }
  /// A folder in which `stet` is the command.
  std::string bin() const {
    const std::string out = folder() / "bin";
    std::filesystem::create_directory(out);
    if (!std::filesystem::exists(out + "/stet")) std::filesystem::create_symlink(command_path(), out + "/stet");
    return out;
  }
  Environment environment_of_shell() const {
    Environment out = environment();
    out["PATH"] = bin() + ":" + out["PATH"];
    return out;
  }
};

TEST_F(CompletionTest, CommandsAreCompleted) {
  Words expected;
  for (const Command& command : commands())
    if (!command.hidden) expected.emplace_back(command.name);
  EXPECT_EQ(candidates({""}), expected);
  EXPECT_EQ(candidates({}), expected);
  EXPECT_EQ(candidates({"d"}), (Words{"doctor", "dump"}));
  EXPECT_EQ(candidates({"--"}), (Words{"--help", "--version"}));
  EXPECT_EQ(candidates({"x"}), Words());
  EXPECT_EQ(candidates({"nothing", ""}), Words());
}

TEST_F(CompletionTest, WordsOfACommandAreCompleted) {
  EXPECT_EQ(candidates({"cache", ""}), (Words{"list", "size", "clear", "verify"}));
  EXPECT_EQ(candidates({"cache", "cl"}), Words{"clear"});
  EXPECT_EQ(candidates({"cache", "clear", ""}), Words());
  EXPECT_EQ(candidates({"cache", "--older-than", "30", "c"}), Words{"clear"});
  EXPECT_EQ(candidates({"completion", ""}), (Words{"bash", "zsh", "fish"}));
  EXPECT_EQ(candidates({"help", "ca"}), Words{"cache"});
  EXPECT_EQ(candidates({"help", "cache", ""}), Words());
  EXPECT_EQ(candidates({"doctor", ""}), Words());
}

TEST_F(CompletionTest, OptionsAndTheirValues) {
  EXPECT_EQ(candidates({"cache", "-"}), (Words{"--json", "--older-than", "--other-builds", "--remove", "--help"}));
  EXPECT_EQ(candidates({"cache", "clear", "--o"}), (Words{"--older-than", "--other-builds"}));
  EXPECT_EQ(candidates({"cache", "clear", "--older-than", ""}), Words());
  EXPECT_EQ(candidates({"cache", "--", "-"}), Words());
}

TEST_F(CompletionTest, OpsAndStagesAreCompleted) {
  EXPECT_TRUE(has(candidates({"ops", "soft"}), "softmax"));
  EXPECT_TRUE(has(candidates({"ops", "random::n"}), "random::normal"));
  EXPECT_TRUE(has(candidates({"dump", "rel"}), "relu"));
  EXPECT_FALSE(has(candidates({"dump", "soft"}), "softmax"));  // no elementwise op
  EXPECT_EQ(candidates({"dump", "relu", "bf"}), Words{"bf16"});
  EXPECT_EQ(candidates({"dump", "relu", "bf16", "bf"}), Words());
  EXPECT_EQ(candidates({"dump", "relu", "bf16", "as"}), Words{"assembly"});
}

TEST_F(CompletionTest, EveryCandidateIsAcceptedWhereItIsOffered) {
  for (const std::string& stage : candidates({"dump", "relu", "f32", ""}))
    EXPECT_EQ(stet({"dump", "relu", "f32", stage}).code, 0) << stage;
  for (const std::string& word : candidates({"dump", "relu", ""}))
    EXPECT_NE(stet({"dump", "relu", word, "row"}).code, 2) << word;
}

TEST_F(CompletionTest, CandidatesAreALineEach) {
  for (const Words& words : {Words{""}, Words{"ops", ""}, Words{"dump", ""}, Words{"cache", "-"}}) {
    Words all = words;
    all.insert(all.begin(), {"__complete", "--"});
    const std::string out = stet(all).out;
    EXPECT_EQ(std::count(out.begin(), out.end(), '\t'), std::count(out.begin(), out.end(), '\n')) << out;
    for (const std::string& word : first_fields(out)) EXPECT_EQ(word.find(' '), std::string::npos) << word;
  }
}

TEST_F(CompletionTest, OfAnUnknownShell) {
  Ran none = stet({"completion"}), other = stet({"completion", "zhs"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.err, "stet: stet completion: of which shell? bash, zsh, fish\n");
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err,
            "stet: there is no word of stet completion 'zhs'; the nearest is 'zsh' (stet help completion lists all)\n");
}

TEST_F(CompletionTest, BashCompletes) {
  if (!is_there("bash")) GTEST_SKIP() << "there is no bash";
  auto completed = [&](const std::string& line) {
    // As bash calls it: what it has already stands before the last ':' of the word.
    Ran ran = shell(
        "bash -c 'set -u; eval \"$(stet completion bash)\"; COMP_LINE=\"$1\"; COMP_POINT=${#1}; "
        "_stet stet; printf \"%s\\n\" \"${COMPREPLY[@]-}\"' - '" +
            line + "'",
        environment_of_shell());
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(ran.code, 0);
    return first_fields(ran.out);
  };
  EXPECT_EQ(completed("stet d"), (Words{"doctor", "dump"}));
  EXPECT_EQ(completed("stet cache cl"), Words{"clear"});
  EXPECT_EQ(completed("stet cache "), (Words{"list", "size", "clear", "verify"}));
  EXPECT_EQ(completed("stet cache clear --ot"), Words{"--other-builds"});
  EXPECT_TRUE(has(completed("stet ops random::nor"), "normal"));
  EXPECT_EQ(completed("stet nothing "), Words{""});
  EXPECT_EQ(completed("stet cache \"$(touch " + folder().path() + "/owned)"), Words{""});
  EXPECT_FALSE(std::filesystem::exists(folder() / "owned"));
}

TEST_F(CompletionTest, ZshCompletes) {
  if (!is_there("zsh")) GTEST_SKIP() << "there is no zsh";
  auto completed = [&](const std::string& words) {
    // compdef and _describe stand for zsh's own.
    Ran ran = shell(
        "zsh -fc 'compdef() { :; }; _files() { print files; }; "
        "_describe() { print -l -- \"${(@P)2}\"; }; source <(stet completion zsh); "
        "words=(\"$@\"); CURRENT=$#; _stet' - " +
            words,
        environment_of_shell());
    EXPECT_EQ(ran.err, "");
    return ran.out;
  };
  EXPECT_CONTAINS(completed("stet d"), "doctor:whether all works");
  EXPECT_CONTAINS(completed("stet ops random::nor"), "random\\:\\:normal:");
  EXPECT_EQ(completed("stet nothing ''"), "files\n");
}

TEST_F(CompletionTest, FishCompletes) {
  if (!is_there("fish")) GTEST_SKIP() << "there is no fish";
  auto completed = [&](const std::string& line) {
    Ran ran = shell("fish -c 'stet completion fish | source; complete -C \"" + line + "\"'", environment_of_shell());
    EXPECT_EQ(ran.err, "");
    return first_fields(ran.out);
  };
  EXPECT_EQ(completed("stet d"), (Words{"doctor", "dump"}));
  EXPECT_EQ(completed("stet cache cl"), Words{"clear"});
  EXPECT_TRUE(has(completed("stet ops random::nor"), "random::normal"));
}

}  // namespace
}  // namespace stet::tools
