// The man page: it has all that help has, and roff that prints.
#include <algorithm>

#include "stet/tools/checks.h"
#include "stet/tools/commands.h"
#include "tests/tools/command.h"

namespace stet::tools {
namespace {

class ManualTest : public CommandTest {
 protected:
  /// The words of a text, with one blank between them: lines are broken anywhere.
  static std::string on_one_line(const std::string& text) {
    std::string out;
    for (char c : text) {
      if (c == '\n' || c == ' ') {
        if (!out.empty() && out.back() != ' ') out += ' ';
      } else {
        out += c;
      }
    }
    return out;
  }
};

TEST_F(ManualTest, HasEveryCommandOptionAndVariable) {
  if (shell("command -v groff").code != 0) GTEST_SKIP() << "there is no groff";
  Ran ran = shell("\"$STET\" manual | groff -k -man -Tutf8 -ww -rHY=0 -P-cbou");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");  // no warnings
  const std::string page = on_one_line(ran.out);
  for (const char* section : {" SYNOPSIS ", " COMMANDS ", " EXIT STATUS ", " ENVIRONMENT ", " FILES "})
    EXPECT_CONTAINS(page, section);
  for (const Command& command : commands()) {
    if (command.hidden) {
      EXPECT_EQ(page.find(command.name), std::string::npos);
      continue;
    }
    EXPECT_CONTAINS(page, " stet " + std::string(command.name) + " " + std::string(command.help) + ". ");
    for (const Form& form : command.forms) EXPECT_CONTAINS(page, on_one_line(std::string(form.help)) + ".");
    for (const Option& option : command.options) EXPECT_CONTAINS(page, " " + std::string(option.name) + " ");
  }
  for (const Variable& variable : variables()) EXPECT_CONTAINS(page, " " + std::string(variable.name) + " ");
  EXPECT_CONTAINS(page, "eval \"$(stet completion bash)\" in ~/.bashrc.");
  EXPECT_CONTAINS(page, " stet cache clear --older-than 30 ");
}

TEST_F(ManualTest, IsTheSameEveryTime) {
  Ran ran = stet({"manual"});
  EXPECT_EQ(ran.code, 0);
  Environment other = environment();
  other["COLUMNS"] = "40";
  other["STET_VERIFY"] = "1";
  EXPECT_EQ(stet({"manual"}, other).out, ran.out);
}

}  // namespace
}  // namespace stet::tools
