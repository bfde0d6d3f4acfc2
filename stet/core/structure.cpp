#include "stet/core/structure.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace stet::structure {
namespace {

struct Texts {
  std::shared_mutex guard;
  std::unordered_map<std::string, std::uint64_t> numbers;  // one for each text that a trace was made for
};
Texts& texts() {
  static Texts* const all = new Texts;  // outlives every thread's last call
  return *all;
}

}  // namespace

std::uint64_t known_text(std::string_view text) {
  std::shared_lock lock(texts().guard);
  auto found = texts().numbers.find(std::string(text));
  return found == texts().numbers.end() ? 0 : found->second;
}

std::uint64_t number_of_text(std::string_view text) {
  std::lock_guard lock(texts().guard);
  return texts().numbers.try_emplace(std::string(text), texts().numbers.size() + 1).first->second;
}

}  // namespace stet::structure
