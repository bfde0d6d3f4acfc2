// What stands behind `stet <command>`: plain words, and options that the command has.
#pragma once
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "stet/tools/commands.h"

namespace stet::tools {

/// The command was called in a wrong way: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Words {
 public:
  /// UsageError for options that the command does not have, or that lack their value. Behind `--` all are plain.
  Words(const Command& command, std::span<const std::string> given);

  const Command& command() const { return command_; }
  const std::vector<std::string>& plain() const { return plain_; }
  bool has(std::string_view option) const { return value(option).has_value(); }
  /// Of an option that takes none: "".
  std::optional<std::string> value(std::string_view option) const;
  /// Of an option that may be given more than once, in the order in which it was.
  std::vector<std::string> values(std::string_view option) const;
  /// The first word, which must be one of these; empty if there is none. Behind it stand at most `more` words.
  std::string one_of(std::span<const std::string_view> words, std::size_t more = 0) const;
  /// UsageError if there are more plain words.
  void at_most(std::size_t count) const;

 private:
  struct Given {
    std::string option, value;
  };
  const Command& command_;
  std::vector<std::string> plain_;
  std::vector<Given> options_;
};

/// "there is no <what> '<word>'; the nearest is '…' (<see> lists all)".
UsageError unknown_word(std::string_view what, std::string_view word, std::span<const std::string> known,
                        std::string_view see);
/// That of `known` which differs from `word` in the fewest letters, if they are few; else empty.
std::string nearest(std::string_view word, std::span<const std::string> known);

}  // namespace stet::tools
