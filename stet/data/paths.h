// Files to read, one after the other.
#pragma once
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"

namespace stet::data {

/// One path or several: "a.txt", {"a.txt", "b.txt"}, files("*.txt").
struct Paths {
  Paths(std::string one) : list{std::move(one)} {}
  Paths(const char* one) : list{one} {}
  Paths(std::vector<std::string> several) : list(std::move(several)) {}
  Paths(std::initializer_list<std::string> several) : list(several) {}
  std::vector<std::string> list;
};

/// The files that a pattern names ("photos/*/*.jpg", with * ? and [a-z] as a shell has them), sorted by their bytes. No
/// folders. UserError if there is none.
STET_API std::vector<std::string> files(const std::string& pattern, Where where = Where::here());

}  // namespace stet::data
