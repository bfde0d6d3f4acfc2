// stet help, stet version.
#include <algorithm>
#include <iostream>

#include "stet/base/text.h"
#include "stet/base/version.h"
#include "stet/cpu/jit.h"
#include "stet/cpu/library_versions.h"
#include "stet/tools/commands.h"
#include "stet/tools/help.h"
#include "stet/tools/output.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

using files::Json;

/// Names in a column, and what is said of each beside it, over as many lines as that takes.
class Definitions {
 public:
  void add(std::string name, std::string_view help) { rows_.push_back({std::move(name), std::string(help)}); }
  std::string str() const {
    constexpr std::size_t widest = 30, indent = 2, gap = 2;
    std::size_t columns = 0;
    for (const Row& row : rows_)
      if (columns_of(row.name) <= widest) columns = std::max(columns, columns_of(row.name));
    const std::size_t margin = indent + columns + gap;
    std::string out;
    for (const Row& row : rows_) {
      const std::string help = wrapped(row.help, help_width(), margin);
      const bool beside = columns_of(row.name) <= columns && !help.empty();
      out += std::string(indent, ' ') + in_color(Color::bold, row.name);
      if (beside)
        out += std::string(margin - indent - columns_of(row.name), ' ') + help.substr(margin);
      else
        out += "\n" + help;
    }
    return out;
  }

 private:
  struct Row {
    std::string name, help;
  };
  std::vector<Row> rows_;
};

Json forms_json(const Command& command) {
  Json::List out;
  for (const Form& form : command.forms)
    out.push_back(Json::Object{{"call", call_of(command, form)}, {"help", std::string(form.help)}});
  return out;
}

Json command_json(const Command& command) {
  Json::List options;
  for (const Option& option : command.options)
    options.push_back(Json::Object{
        {"name", std::string(option.name)}, {"value", std::string(option.value)}, {"help", std::string(option.help)}});
  return Json::Object{{"name", std::string(command.name)},
                      {"help", std::string(command.help)},
                      {"forms", forms_json(command)},
                      {"options", options},
                      {"text", std::string(command.text)}};
}

int run_help(const Words& words) {
  words.at_most(1);
  const bool json = words.has(json_option.name);
  if (!words.plain().empty()) {
    const Command& command = known_command(words.plain()[0]);
    if (json)
      print_json(command_json(command));
    else
      std::cout << help_text(command);
    return 0;
  }
  if (!json) {
    std::cout << help_text();
    return 0;
  }
  Json::List list;
  for (const Command& command : commands())
    if (!command.hidden) list.push_back(command_json(command));
  print_json(Json::Object{{"commands", list}});
  return 0;
}

std::vector<Candidate> command_names(std::span<const std::string> before) {
  std::vector<Candidate> out;
  for (const Command& command : commands())
    if (before.empty() && !command.hidden) out.push_back({std::string(command.name), std::string(command.help)});
  return out;
}

int run_version(const Words& words) {
  words.at_most(0);
  if (words.has(json_option.name)) {
    Json::Object libraries;
    for (const auto& [name, version] : cpu::library_versions()) libraries.push_back({name, version});
    print_json(Json::Object{{"version", STET_VERSION}, {"build", cpu::code_build()}, {"libraries", libraries}});
    return 0;
  }
  std::cout << "stet " << STET_VERSION << "\n";
  return 0;
}

}  // namespace

std::string call_of(const Command& command, const Form& form) {
  return form.words.empty() ? text("stet ", command.name) : text("stet ", command.name, " ", form.words);
}

std::string help_text() {
  std::string out = "usage: stet <command> [word…] [--option…]\n\n";
  Definitions rows;
  for (const Command& command : commands())
    if (!command.hidden) rows.add(std::string(command.name), command.help);
  out += rows.str();
  std::string codes = "Exit codes: ";
  for (const ExitCode& code : exit_codes) {
    if (code.code != 0) codes += "; ";
    codes += text(code.code, ": ", code.help);
  }
  return out + "\n" +
         wrapped(text("stet help <command> says more of one, man stet of all.\n\n", codes, "."), help_width());
}

std::string help_text(const Command& command) {
  std::string out = wrapped(text("stet ", command.name, ": ", command.help), help_width()) + "\n";
  Definitions forms, options;
  for (const Form& form : command.forms) forms.add(call_of(command, form), form.help);
  for (const Option& option : command.options)
    options.add(option.value.empty() ? std::string(option.name) : text(option.name, " ", option.value), option.help);
  options.add("--help", "print this");
  out += forms.str() + "\noptions:\n" + options.str();
  if (!command.text.empty()) out += "\n" + wrapped(command.text, help_width());
  return out;
}

const Command help_command{.name = "help",
                           .help = "what commands there are, and how one is called",
                           .forms = {{"[command]", "of one command, or a line of each"}},
                           .options = {json_option},
                           .text = "stet --help and stet <command> --help are the same.",
                           .run = run_help,
                           .candidates = command_names};

const Command version_command{.name = "version",
                              .help = "which stet this is",
                              .forms = {{"", "its version; as JSON the libraries that it is built with, too"}},
                              .options = {json_option},
                              .text = "stet --version is the same.",
                              .run = run_version};

}  // namespace stet::tools
