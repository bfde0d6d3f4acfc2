// Which libraries generate code and compute beside it.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace stet::cpu {

/// Names and versions: {"LLVM", "19.1.7"}.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace stet::cpu
