// SaveFrequency: how often callbacks save.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

namespace stet::keras {

/// After a batch that ends so many seconds, or more, after the last time.
struct EverySeconds {
  double seconds = 0;
};

/// "epoch": at the end of each; a number: after every so many batches; EverySeconds{0.5}.
struct SaveFrequency {
  SaveFrequency(const char* word) : word(word) {}
  SaveFrequency(std::string word) : word(std::move(word)) {}
  template <std::integral I>
  requires(!std::same_as<I, bool>) SaveFrequency(I batches) : batches(static_cast<std::int64_t>(batches)) {}
  SaveFrequency(EverySeconds every) : seconds(every.seconds) {}

  std::string word = {};
  std::int64_t batches = 0;
  double seconds = 0;
};

}  // namespace stet::keras
