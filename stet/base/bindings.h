// The sizes of a call, as values of symbols.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace stet {

/// Values of symbols by index.
class Bindings {
 public:
  Bindings() = default;
  explicit Bindings(std::vector<std::int64_t> values) : values_(std::move(values)) {}
  void bind(int symbol, std::int64_t value) {
    if (static_cast<std::size_t>(symbol) >= values_.size())
      values_.resize(static_cast<std::size_t>(symbol) + 1, unbound);
    values_[static_cast<std::size_t>(symbol)] = value;
  }
  std::optional<std::int64_t> find(int symbol) const {
    if (static_cast<std::size_t>(symbol) >= values_.size() || values_[static_cast<std::size_t>(symbol)] == unbound)
      return std::nullopt;
    return values_[static_cast<std::size_t>(symbol)];
  }

  bool operator==(const Bindings&) const = default;

 private:
  static constexpr std::int64_t unbound = INT64_MIN;
  std::vector<std::int64_t> values_;
};

}  // namespace stet
