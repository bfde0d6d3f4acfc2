// What --json prints has the fields of docs/command.md, and no others.
#include <fstream>
#include <set>

#include "stet/cpu/object_cache.h"
#include "tests/report/recordings.h"
#include "tests/tools/command.h"

namespace stet::tools {
namespace {

using files::Json;
using Fields = std::set<std::string>;

/// Members whose names are no fields, and what the page says for them.
std::string field_name(const std::string& path, const std::string& member) {
  if (path == "libraries") return "<name>";
  if (path == "kinds") return "<kind>";
  if (path == "sources") return "<place>";
  if (path == "training[].epochs[].values") return "<name>";
  return member;
}

void collect(const Json& json, const std::string& path, Fields& fields) {
  if (const Json::Object* object = json.if_object()) {
    for (const auto& [name, value] : *object) {
      const std::string field = field_name(path, name);
      collect(value, path.empty() ? field : path + "." + field, fields);
    }
  } else if (const Json::List* list = json.if_list()) {
    for (const Json& value : *list) collect(value, path + "[]", fields);
  } else {
    fields.insert(path);
  }
}

std::vector<std::string> words_of(const std::string& text, char between) {
  std::vector<std::string> out(1);
  for (char c : text) {
    if (c == between)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

/// "| `call` | `field`, `field` (words) |".
struct Row {
  std::vector<std::string> call;
  Fields fields;
};

std::vector<Row> documented() {
  std::vector<Row> out;
  std::ifstream page("docs/command.md");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `stet ")) continue;
    std::vector<std::string> parts = words_of(line, '`');
    Row row{words_of(parts[1], ' '), {}};
    for (std::size_t i = 3; i < parts.size(); i += 2) row.fields.insert(parts[i]);
    out.push_back(row);
  }
  return out;
}

class JsonTest : public CommandTest {};

TEST_F(JsonTest, HasTheFieldsThatThePageNames) {
  const std::vector<Row> rows = documented();
  ASSERT_EQ(rows.size(), 15u);
  for (const Row& row : rows) {
    // There is something of everything.
    ASSERT_EQ(stet({"ops", "relu"}).code, 0);
    std::ofstream(cache() + "/junk.o") << "junk";
    std::vector<std::string> words(row.call.begin() + 1, row.call.end());
    words.push_back("--json");
    for (std::string& word : words)
      if (word.ends_with(".stet-profile")) {
        word = folder() / word;
        files::write_whole(word, reporting::whole_recording().bytes());
      }
    Ran ran = stet(words);
    EXPECT_EQ(ran.err, "");
    Fields fields;
    if (row.call.size() > 2 && row.call[2] == "names") {
      const Json json = json_of(ran);
      ASSERT_TRUE(json.if_object());
      EXPECT_GT(json.if_object()->size(), 300u);
      for (const auto& [name, value] : *json.if_object()) collect(value, "<name>", fields);
    } else {
      collect(json_of(ran), "", fields);
    }
    EXPECT_EQ(fields, row.fields) << row.call.back();
  }
}

TEST_F(JsonTest, HasThemWhateverTheStateOfTheCache) {
  Environment off = environment(), unusable = environment();
  off["STET_CACHE_DIR"] = "";
  unusable["STET_CACHE_DIR"] = "/etc";
  for (const Row& row : documented()) {
    if (row.call[1] != "cache") continue;
    Fields expected;
    for (const std::string& field : row.fields)
      if (field.find("[]") == field.npos) expected.insert(field);
    for (const Environment& one : {environment(), off, unusable}) {
      Fields fields;
      collect(json_of(stet({"cache", row.call[2], "--json"}, one)), "", fields);
      EXPECT_EQ(fields, expected) << row.call[2];
    }
  }
}

TEST_F(JsonTest, EveryCommandThatTakesItIsOnThePage) {
  Fields calls;
  for (const Row& row : documented()) calls.insert(row.call[1]);
  const Json help = json_of(stet({"help", "--json"}));
  for (const Json& command : *help.find("commands")->if_list())
    for (const Json& option : *command.find("options")->if_list()) {
      const std::string name = *member(command, "name").if_string();
      if (*member(option, "name").if_string() == "--json") {
        EXPECT_TRUE(calls.contains(name)) << name;
      }
    }
}

}  // namespace
}  // namespace stet::tools
