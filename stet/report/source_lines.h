// The user's lines around places that a recording names. Private to report/.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stet/report/recorded.h"

namespace stet::reporting {

struct SourceLines {
  int first = 0;  // the number of the first line
  std::vector<std::string> lines;
};

/// Lines that the recording has itself; those of files that are here otherwise. Not of files that are no source, or
/// were changed after the recording began: a recording may come from elsewhere and name anything.
class Sources {
 public:
  explicit Sources(const Recorded& recorded);

  /// A few lines around this one.
  std::optional<SourceLines> around(const std::string& file, int line);

 private:
  const std::vector<std::string>* lines_of(const std::string& file);

  std::int64_t began_at_;
  std::map<std::string, std::vector<SourceLines>> told_;
  std::map<std::string, std::optional<std::vector<std::string>>> read_;
};

}  // namespace stet::reporting
