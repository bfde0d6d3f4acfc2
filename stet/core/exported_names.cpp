#include "stet/core/exported_names.h"

#include <algorithm>

namespace stet::exported {
namespace {

constexpr std::size_t longest = 200;

bool is_ordinary(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '/' || c == ':';
}

}  // namespace

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= longest && std::all_of(name.begin(), name.end(), is_ordinary);
}

std::string clean_name(const std::string& name, const char* otherwise) {
  std::string out = name.substr(0, longest - 16);
  for (char& c : out)
    if (!is_ordinary(c)) c = '_';
  return out.empty() ? otherwise : out;
}

std::string UniqueNames::made(const std::string& name, const char* otherwise) {
  const std::string clean = clean_name(name, otherwise);
  std::string out = clean;
  for (int number = 1; !taken_.insert(out).second; ++number) out = clean + "_" + std::to_string(number);
  return out;
}

}  // namespace stet::exported
