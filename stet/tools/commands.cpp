#include "stet/tools/commands.h"

#include "stet/base/text.h"
#include "stet/files/utf8.h"
#include "stet/tools/words.h"

namespace stet::tools {

std::span<const Command> commands() {
  static const std::vector<Command> all = {report_command, top_command,        doctor_command,  cache_command,
                                           ops_command,    dump_command,       help_command,    version_command,
                                           manual_command, completion_command, complete_command};
  return all;
}

const Command* find_command(std::string_view name) {
  for (const Command& command : commands())
    if (command.name == name) return &command;
  return nullptr;
}

const Command& known_command(std::string_view name) {
  if (const Command* found = find_command(name)) return *found;
  std::vector<std::string> known;
  for (const Command& command : commands())
    if (!command.hidden) known.emplace_back(command.name);
  throw unknown_word("command", name, known, "stet help");
}

}  // namespace stet::tools
