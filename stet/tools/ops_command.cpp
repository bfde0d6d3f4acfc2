// stet ops: what ops and functions there are.
#include <algorithm>
#include <iostream>
#include <iterator>

#include "stet/base/text.h"
#include "stet/ops/table.h"
#include "stet/tools/commands.h"
#include "stet/tools/functions.h"
#include "stet/tools/output.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

using files::Json;

/// A row has a gradient if its result can be floating: comparisons and logic have none.
bool has_gradient(const OpDef& row) {
  bool floating =
      row.kind != Kind::map || (row.dtypes.result != DTypeRule::compared && row.dtypes.result != DTypeRule::logical);
  return row.gradient && floating;
}

/// Each name once: cast has a row per type.
std::vector<const OpDef*> rows_by_name() {
  std::vector<const OpDef*> out;
  for (const OpDef* row : all_rows())
    if (out.empty() || std::string_view(out.back()->name) != row->name) out.push_back(row);
  return out;
}

/// As a cell of a table of Markdown: a bar would end it.
std::string cell(std::string_view words) {
  std::string out;
  for (char c : words) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

Json row_json(const OpDef& row) {
  return Json::Object{
      {"name", row.name}, {"kind", name(row.kind)}, {"summary", row.summary}, {"has_gradient", has_gradient(row)}};
}

void print_rows() {
  if (terminal_width() > 0) {
    Table table;
    for (const OpDef* row : rows_by_name())
      table.row({row->name, name(row->kind), has_gradient(*row) ? "gradient" : "", row->summary});
    std::cout << table.str();
    return;
  }
  std::cout << "| op | kind | what it gives | gradient |\n|---|---|---|---|\n";
  for (const OpDef* row : rows_by_name())
    std::cout << "| `" << row->name << "` | " << name(row->kind) << " | " << cell(row->summary) << " | "
              << (has_gradient(*row) ? "yes" : "") << " |\n";
}

Json function_json(const FunctionRow& row) {
  Json::List elsewhere;
  for (const std::string& one : names_elsewhere(row)) elsewhere.push_back(one);
  Json::Object out{{"name", std::string(row.name)},
                   {"family", std::string(row.family)},
                   {"signatures", std::string(row.signatures)},
                   {"summary", std::string(row.words)},
                   {"elsewhere", elsewhere}};
  out.push_back({"example", row.result ? Json(std::string(row.example)) : Json()});
  out.push_back({"result", row.result ? Json(row.result()) : Json()});
  return out;
}

Json names_json() {
  Json out = Json::Object();
  for (const FunctionRow& row : function_rows())
    for (const std::string& one : names_elsewhere(row)) {
      Json& here = out[one];
      const Json name = std::string(row.name);
      const Json::List* known = here.if_list();
      if (!known || std::find(known->begin(), known->end(), name) == known->end()) here.push_back(name);
    }
  return out;
}

/// Whether somebody who writes `word` may mean this function: its name, or a whole last part of one elsewhere.
bool is_known_as(const FunctionRow& row, std::string_view word) {
  auto ends_so = [&](std::string_view name, char before) {
    return name == word ||
           (name.size() > word.size() && name.ends_with(word) && name[name.size() - word.size() - 1] == before);
  };
  if (ends_so(row.name, ':')) return true;
  std::vector<std::string> elsewhere = names_elsewhere(row);
  return std::any_of(elsewhere.begin(), elsewhere.end(), [&](const std::string& one) { return ends_so(one, '.'); });
}

/// Without the marks of Markdown's code.
std::string plain(std::string_view markdown) {
  std::string out(markdown);
  std::erase(out, '`');
  return out;
}

void print_function(const FunctionRow& row) {
  std::cout << in_color(Color::bold, row.name) << "  " << plain(row.signatures) << "\n"
            << wrapped(row.words, help_width(), 2);
  if (row.result) std::cout << "  " << row.example << "  →  " << row.result() << "\n";
  if (!row.elsewhere.empty()) std::cout << wrapped(text("elsewhere: ", row.elsewhere), help_width(), 2);
}

/// Functions and rows of a name, here or elsewhere.
void print_named(const std::string& word, bool json) {
  std::vector<const FunctionRow*> functions;
  for (const FunctionRow& row : function_rows())
    if (row.name == word) functions.push_back(&row);
  std::vector<const OpDef*> rows;
  for (const OpDef* row : rows_by_name())
    if (word == row->name) rows.push_back(row);
  if (functions.empty())
    for (const FunctionRow& row : function_rows())
      if (is_known_as(row, word)) functions.push_back(&row);
  if (functions.empty() && rows.empty()) {
    std::vector<std::string> known;
    for (const FunctionRow& row : function_rows()) known.emplace_back(row.name);
    for (const OpDef* row : rows_by_name()) known.emplace_back(row->name);
    throw unknown_word("op or function", word, known, "stet ops functions");
  }
  if (json) {
    Json out = Json::Object{{"functions", Json::List()}, {"ops", Json::List()}};
    for (const FunctionRow* row : functions) out["functions"].push_back(function_json(*row));
    for (const OpDef* row : rows) out["ops"].push_back(row_json(*row));
    print_json(out);
    return;
  }
  for (const FunctionRow* row : functions) print_function(*row);
  for (const OpDef* row : rows)
    std::cout << "op " << in_color(Color::bold, row->name) << ", kind " << name(row->kind)
              << (has_gradient(*row) ? ", with a gradient" : "") << ": " << row->summary << "\n";
}

int run(const Words& words) {
  const bool json = words.has("--json");
  words.at_most(1);
  const std::string what = words.plain().empty() ? "" : words.plain()[0];
  if (what == "functions" && json) {
    Json out = Json::List();
    for (const FunctionRow& row : function_rows()) out.push_back(function_json(row));
    print_json(out);
  } else if (what == "functions") {
    std::cout << functions_page();
  } else if (what == "names" && json) {
    print_json(names_json());
  } else if (what == "names") {
    std::cout << names_page();
  } else if (!words.plain().empty()) {
    print_named(what, json);
  } else if (json) {
    Json out = Json::List();
    for (const OpDef* row : rows_by_name()) out.push_back(row_json(*row));
    print_json(out);
  } else {
    print_rows();
  }
  return 0;
}

std::vector<Candidate> candidates(std::span<const std::string> before) {
  if (!before.empty()) return {};
  std::vector<Candidate> out = {{"functions", "every documented function"}, {"names", "their names elsewhere"}};
  for (const FunctionRow& row : function_rows())
    if (out.back().word != row.name) out.push_back({std::string(row.name), plain(row.words)});
  return out;
}

}  // namespace

const Command ops_command{
    .name = "ops",
    .help = "what ops and functions there are",
    .forms = {{"", "the table of ops"},
              {"<name>", "one function or op: what it gives, and an example"},
              {"functions", "every documented function with an example, as Markdown"},
              {"names", "what other libraries call them, as Markdown"}},
    .options = {json_option},
    .text =
        "A name may be one of another library: torch.cat, or only cat. Examples are computed when they are printed. "
        "The table is Markdown where it does not go to a terminal.\n"
        "\n"
        "  stet ops softmax\n"
        "  stet ops numpy.linalg.norm",
    .run = run,
    .candidates = candidates};

}  // namespace stet::tools
