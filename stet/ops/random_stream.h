// Random numbers that do not come from the process's generator. Private to the library.
#pragma once
#include <cstdint>
#include <memory>

#include "stet/core/variable_state.h"

namespace stet {

/// A generator for a part of the program. While a Use of it lives, everything that is drawn on this thread, eagerly or
/// by traced functions, follows from the seed alone.
class RandomStream {
 public:
  RandomStream();
  ~RandomStream();
  RandomStream(RandomStream&&) noexcept;

  class Use {
   public:
    /// One at a time.
    Use(RandomStream& stream, std::uint64_t seed);

   private:
    StandIn generator_;
  };

 private:
  std::unique_ptr<VariableState> state_;
};

}  // namespace stet
