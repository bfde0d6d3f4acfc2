// What is behind a Profile. Private to report/.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/report/profile.h"
#include "stet/report/recorded.h"
#include "stet/runtime/recording.h"
#include "stet/runtime/recording_format.h"

namespace stet {

struct Profile::State {
  std::string path;
  bool file_is_ours = false;  // it is written as the program runs; otherwise when this ends
  std::uint64_t number = 0;   // of the recording; 0: it was ended
  std::uint64_t begin = 0;
  std::vector<recording::Count> counts_at_begin = {};
  std::uint64_t generation = 0;  // of the process that it was begun in
  std::string ended = {};        // what was recorded, where no file has it

  /// What was recorded between its beginning and now: another Profile may have begun before.
  std::string contents() const;
  reporting::Recorded recorded() const;
  /// UserError in a child of fork(): what is recorded is the parent's. `call`: what was asked for.
  void require_owner(const char* call, Where where) const;
};

}  // namespace stet
