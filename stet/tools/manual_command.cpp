// stet manual: the man page, in roff.
#include <iostream>

#include "stet/base/text.h"
#include "stet/base/version.h"
#include "stet/tools/checks.h"
#include "stet/tools/commands.h"
#include "stet/tools/help.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

/// As roff prints it: a backslash begins its escapes, a minus would be a hyphen, and a point or a quote at the
/// beginning of a line begins a request.
std::string escaped(std::string_view words) {
  std::string out;
  for (char c : words) {
    if ((out.empty() || out.back() == '\n') && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '`')
      out += "\\(ga";
    else if (c == '~')
      out += "\\(ti";
    else if (c == '^')
      out += "\\(ha";
    else
      out += c;
  }
  return out;
}

std::string quoted(std::string_view words) {
  std::string out;
  for (char c : escaped(words)) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return "\"" + out + "\"";
}

/// A name in bold, and a paragraph that stands in from the margin.
std::string entry(std::string_view name, std::string_view help) {
  return text(".TP\n.B ", quoted(name), "\n", escaped(help), ".\n");
}

/// Paragraphs; lines that begin with two blanks stay as they are.
std::string paragraphs(std::string_view words) {
  std::string out;
  bool example = false;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('\n'), words.size());
    const std::string_view line = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (line.starts_with("  ") != example) {
      out += example ? ".EE\n.RE\n" : ".RS\n.EX\n";
      example = !example;
    }
    if (line.empty())
      out += ".PP\n";
    else
      out += escaped(example ? line.substr(2) : line) + "\n";
  }
  return out + (example ? ".EE\n.RE\n" : "");
}

std::string manual() {
  std::string out = text(".TH STET 1 \"\" ", quoted(text("stet ", STET_VERSION)), " \"User Commands\"\n",
                         ".SH NAME\nstet \\- looks after compiled code, the machine and the table of ops\n",
                         ".SH SYNOPSIS\n.B stet\n.I command\n.RI [ word \\&... ]\n.RI [ \\-\\-option \\&... ]\n",
                         ".SH DESCRIPTION\nThe command that comes with the library stet: tensors, traced functions and "
                         "neural networks in C++.\n.SH COMMANDS\n");
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    out += text(".SS ", quoted(text("stet ", command.name)), "\n", escaped(command.help), ".\n");
    for (const Form& form : command.forms) out += entry(call_of(command, form), form.help);
    for (const Option& option : command.options)
      out += entry(option.value.empty() ? std::string(option.name) : text(option.name, " ", option.value), option.help);
    if (!command.text.empty()) out += ".PP\n" + paragraphs(command.text);
  }
  out += text(".SH OPTIONS\n", entry("--help", "how stet, or a command, is called"),
              entry("--version", "which stet this is"), ".SH EXIT STATUS\n");
  for (const ExitCode& code : exit_codes) out += entry(text(code.code), code.help);
  out += ".SH ENVIRONMENT\n";
  for (const Variable& variable : variables()) out += entry(variable.name, variable.help);
  out += entry("NO_COLOR", "set to anything: no colours");
  out += entry("COLUMNS", "how wide the terminal is");
  return out + text(".SH FILES\n", entry("~/.cache/stet", "compiled code, where no variable names another folder"));
}

int run(const Words& words) {
  words.at_most(0);
  std::cout << manual();
  return 0;
}

}  // namespace

const Command manual_command{.name = "manual",
                             .help = "the man page's source",
                             .forms = {{"", "in roff: stet manual | man -l -"}},
                             .options = {},
                             .text = "make install installs it: man stet.",
                             .run = run};

}  // namespace stet::tools
