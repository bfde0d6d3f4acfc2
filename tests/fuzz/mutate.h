// Changes to bytes that readers of files trip over.
#pragma once
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace stet::fuzz {

/// One of the seeds with one to several changes.
std::string mutated(const std::vector<std::string>& seeds, Random& random);

}  // namespace stet::fuzz
