#include "stet/core/structure.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "stet/base/dim_inside.h"

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

Leaf leaf_of_size(const Dim& size) {
  if (size.is_constant() && size.constant() < 0)
    return {.kind = Leaf::number, .dtype = DType::i64, .bits = static_cast<std::uint64_t>(size.constant())};
  return {.kind = Leaf::size, .length = size};
}

LeafView view_of_size(const Dim& size) {
  if (!size.is_constant()) return {.bits = UINT64_MAX, .is_size = true};
  return {.bits = static_cast<std::uint64_t>(size.constant()), .is_size = size.constant() >= 0};
}

}  // namespace stet::structure
