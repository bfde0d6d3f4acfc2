// The table of what `stet` can do. A command is one row of it: help, the man page, completion and the reading of words
// are made from the same texts.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stet::tools {

class Words;

/// A way to call a command, and what it does then: {"list", "every file, the latest used first"}.
struct Form {
  std::string_view words;  // behind the command's name
  std::string_view help;
};

struct Option {
  std::string_view name;   // "--json"
  std::string_view value;  // what stands behind it: "DAYS"; empty: nothing
  std::string_view help;
};

/// A word that may stand somewhere, for completion.
struct Candidate {
  std::string word, help;
};

struct Command {
  std::string_view name;
  std::string_view help;  // one line, without a full stop
  std::vector<Form> forms;
  std::vector<Option> options;  // besides --help
  /// Paragraphs with empty lines between them; a line that begins with two spaces is an example and stays as it is.
  std::string_view text;
  /// Gives the exit code: 0 fine, 1 found a problem. Throws UsageError for what ends with 2.
  int (*run)(const Words& words);
  /// What may stand behind the plain words that are there; null: the first words of the forms. Where it gives none,
  /// shells offer files.
  std::vector<Candidate> (*candidates)(std::span<const std::string> before) = nullptr;
  bool hidden = false;
};

/// In the order in which help lists them.
std::span<const Command> commands();
/// Null if there is none of that name.
const Command* find_command(std::string_view name);
/// UsageError with the nearest name if there is none of that name.
const Command& known_command(std::string_view name);

// A row each, in <name>_command.cpp; version stands beside help, and what completion asks beside completion.
extern const Command report_command, top_command, doctor_command, cache_command, ops_command, dump_command,
    help_command, version_command, manual_command, completion_command, complete_command;

inline constexpr Option json_option{"--json", "", "print JSON, with the fields of docs/command.md"};

}  // namespace stet::tools
