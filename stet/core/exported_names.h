// Names in exported files: short, of ordinary characters, each once. Not a public header.
#pragma once
#include <set>
#include <string>

#include "stet/core/variable.h"

namespace stet::exported {

/// Letters, digits, '_', '.', '-', '/' and ':'; up to 200 of them, and at least one.
bool is_name(const std::string& name);
/// The name with other characters replaced, or `otherwise` where nothing is left of it.
std::string clean_name(const std::string& name, const char* otherwise);

class UniqueNames {
 public:
  /// The name, cleaned; with a number behind it if it is taken.
  std::string made(const std::string& name, const char* otherwise);

 private:
  std::set<std::string> taken_;
};

/// The Variable of the process's generator: a function that draws from it draws from that of the process which loads
/// it. Defined in ops/.
Variable process_generator();

}  // namespace stet::exported
