// Help, made from the table of commands.
#pragma once
#include <string>
#include <string_view>

#include "stet/tools/commands.h"

namespace stet::tools {

/// All commands, one line each.
std::string help_text();
/// One command: how it is called, its options, and what it is for.
std::string help_text(const Command& command);
/// "stet cache clear".
std::string call_of(const Command& command, const Form& form);

/// What an exit code says.
struct ExitCode {
  int code;
  std::string_view help;
};
inline constexpr ExitCode exit_codes[] = {
    {0, "all is fine"}, {1, "something is wrong, and was said"}, {2, "the command was called in a wrong way"}};

}  // namespace stet::tools
