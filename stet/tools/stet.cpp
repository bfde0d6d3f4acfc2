// The `stet` command: what commands.h has a row for.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "stet/tools/commands.h"
#include "stet/tools/help.h"
#include "stet/tools/words.h"

namespace {

using namespace stet::tools;

int run(std::vector<std::string> words) {
  if (words.empty()) {
    std::cout << help_text();
    return 2;
  }
  if (words[0] == "--help" || words[0] == "-h") words[0] = "help";
  if (words[0] == "--version") words[0] = "version";
  const Command& command = known_command(words[0]);
  std::span<const std::string> rest = std::span(words).subspan(1);
  if (!command.hidden) {
    auto end = std::find(rest.begin(), rest.end(), "--");
    if (std::find_if(rest.begin(), end, [](const std::string& word) { return word == "--help" || word == "-h"; }) !=
        end) {
      std::cout << help_text(command);
      return 0;
    }
  }
  return command.run(Words(command, rest));
}

}  // namespace

int main(int argc, char** argv) {
  // Output that nobody can take is an exception at the place where it is written.
  std::cout.exceptions(std::ios::badbit);
  try {
    const int code = run({argv + std::min(argc, 1), argv + argc});
    std::cout.flush();
    return code;
  } catch (const std::ios::failure&) {
    const int error = errno;
    std::cout.exceptions(std::ios::goodbit);  // it is flushed once more at the end
    // Whoever read it has seen enough. As the signal ends a program that does not ignore it.
    if (error == EPIPE) return 128 + SIGPIPE;
    std::cerr << "stet: the output cannot be written: " << std::strerror(error) << "\n";
    return 1;
  } catch (const UsageError& error) {
    std::cerr << "stet: " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "stet: " << error.what() << "\n";
    return 1;
  }
}
