#include "stet/core/structure.h"

#include <limits>
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
  // The least integer stands for none: it is no size, and as a number it only misses the shortest way.
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
  return {.bits = static_cast<std::uint64_t>(size.is_constant() ? size.constant() : none)};
}

}  // namespace stet::structure
