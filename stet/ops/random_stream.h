// Random numbers that do not come from where the program's do. Private to the library.
#pragma once
#include <cstdint>
#include <memory>

#include "stet/core/variable_state.h"
#include "stet/core/variable_watch.h"

namespace stet {

/// What numbers follow from: those of the process's generator, and, together with their own seeds, those of others.
struct StreamSeeds {
  std::uint64_t process = 0, others = 0;
};

/// Generators for a part of the program. While a Use of it lives, everything that is drawn on this thread, eagerly or
/// by traced functions, follows from the seeds alone: how far the program's generators are does not matter, and they
/// are not moved. Generators that are made meanwhile are left alone: their numbers follow from their seeds.
class RandomStream {
 public:
  RandomStream();
  ~RandomStream();
  RandomStream(RandomStream&&) noexcept;

  class Use {
   public:
    /// One at a time. `newest` is the id of the last Variable that is no part of what is done.
    Use(RandomStream& stream, StreamSeeds seeds, std::uint64_t newest = latest_variable_id());
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    StandIns* const before_;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stet
