// stet ops and stet dump: what they find, and what they say of what they do not.
#include <algorithm>

#include "stet/base/dtype.h"
#include "stet/base/text.h"
#include "stet/ops/table.h"
#include "tests/tools/command.h"

namespace stet::tools {
namespace {

using files::Json;

class OpsCommandTest : public CommandTest {
 protected:
  void expect_usage_error(const std::vector<std::string>& words, const std::string& message) const {
    Ran ran = stet(words);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, "stet: " + message + "\n");
  }
};

TEST_F(OpsCommandTest, TheTableIsMarkdownInAPipeAndColumnsOnATerminal) {
  Ran piped = stet({"ops"});
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(piped.out.find("| op | kind | what it gives | gradient |\n|---|---|---|---|\n"), 0u);
  EXPECT_CONTAINS(piped.out, "\n| `relu` | map | max(x, 0). | yes |\n");
  Ran terminal = in_terminal({"ops"}, 200, environment());
  EXPECT_EQ(terminal.out.find("|--"), std::string::npos);
  EXPECT_CONTAINS(terminal.out, "max(x, 0).");
  std::size_t names = 0;
  for (const OpDef* row : all_rows())
    if (piped.out.find(text("\n| `", row->name, "` |")) != std::string::npos) ++names;
  EXPECT_EQ(names, all_rows().size());
}

TEST_F(OpsCommandTest, AFunctionIsFoundByItsNameHereAndElsewhere) {
  Ran ran = stet({"ops", "concat"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_CONTAINS(ran.out, "concat  (const std::vector<Tensor>& parts, int axis = 0)\n");
  EXPECT_CONTAINS(ran.out, "  concat({tensor({1, 2}), tensor({3})})  →  [1 2 3]\n");
  EXPECT_CONTAINS(ran.out, "op concat, ");
  EXPECT_CONTAINS(stet({"ops", "torch.cat"}).out, "concat  (");
  EXPECT_CONTAINS(stet({"ops", "cat"}).out, "concat  (");
  EXPECT_CONTAINS(stet({"ops", "random::normal"}).out, "random::normal  (");
  EXPECT_CONTAINS(stet({"ops", "normal"}).out, "random::normal  (");
  Json json = json_of(stet({"ops", "torch.cat", "--json"}));
  EXPECT_EQ(member(json.find("functions")->if_list()->at(0), "name"), Json("concat"));
}

TEST_F(OpsCommandTest, WhatIsNotFound) {
  expect_usage_error({"ops", "sofmax"},
                     "there is no op or function 'sofmax'; the nearest is 'softmax' (stet ops "
                     "functions lists all)");
  expect_usage_error({"ops", "a", "b"}, "stet ops: 'b' is one word too many; stet help ops shows how it is called");
  expect_usage_error({"ops", ""}, "there is no op or function ''; stet ops functions lists all");
  expect_usage_error({"dump"}, "stet dump: which op? stet dump relu, for one; stet ops lists them");
  expect_usage_error({"dump", "rleu"}, "there is no elementwise op 'rleu'; the nearest is 'relu' (stet ops lists all)");
  expect_usage_error({"dump", "matmul"},
                     "stet dump shows the rows of elementwise.def, and matmul is none of them: its kind is contract");
  expect_usage_error({"dump", "relu", "f33"},
                     "there is no stage or dtype 'f33'; the nearest is 'f32' (stet help dump lists all)");
  expect_usage_error({"dump", "relu", "f32", "asembly"},
                     "there is no stage or dtype 'asembly'; the nearest is 'assembly' (stet help dump lists all)");
}

TEST_F(OpsCommandTest, DumpHasEveryStageOrThoseThatAreNamed) {
  Json json = json_of(stet({"dump", "tanh", "--json"}));
  std::vector<std::string> stages;
  for (const Json& part : *json.find("parts")->if_list()) {
    const std::string stage = *member(part, "stage").if_string();
    EXPECT_NE(*member(part, "text").if_string(), "");
    if (stages.empty() || stages.back() != stage) stages.push_back(stage);
  }
  EXPECT_EQ(stages,
            (std::vector<std::string>{"row", "expr", "gradient", "graph", "passes", "kernel", "llvm", "assembly"}));
  EXPECT_EQ(stet({"dump", "tanh", "expr"}).out, stet({"dump", "tanh", "f32", "expr"}).out);
  EXPECT_CONTAINS(stet({"dump", "relu", "f64", "row", "expr"}).out, "f64 gives f64.\nmax(x0:f64, 0:f64)\n");
  EXPECT_CONTAINS(stet({"dump", "relu", "llvm"}).out, "define ");
}

TEST_F(OpsCommandTest, DumpTakesOpsOfEveryFormAndTypeOrSaysWhyNot) {
  for (const char* op : {"add", "equal", "logical_not", "bitwise_and", "where", "clip", "relu", "digamma"})
    for (const char* type : {"bool", "i8", "f16"}) {
      Ran ran = stet({"dump", op, type, "row", "expr", "gradient", "graph"});
      if (ran.code == 0) {
        EXPECT_EQ(ran.out.find(text(op, ": ")), 0u) << ran.out;
      } else {
        EXPECT_EQ(ran.code, 1) << op << " " << type;
        EXPECT_EQ(ran.err.find(text("stet: ", op, " does not take ", type, "\n  fix: ")), 0u) << ran.err;
      }
    }
}

}  // namespace
}  // namespace stet::tools
