// Where the kernels of a recording come from: the ops, the layer and the line of the program. Private to report/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stet/report/recorded.h"
#include "stet/report/span_tree.h"

namespace stet::reporting {

struct KernelPlace {
  std::string scope;  // "sequential/dense"; empty where none is known
  std::string ops;    // "matmul+add+relu"
  std::string file;   // empty where none is known
  int line = 0;
  std::string not_fused;  // why what reads its results is another kernel
};

/// Of the steps of a recording. A kernel that a function runs several times (two layers that are alike) is told apart
/// by its order in the call.
class KernelPlaces {
 public:
  /// Both must outlive it.
  KernelPlaces(const Recorded& recorded, const SpanTree& tree);

  /// The place of the step of this number, in all().
  std::size_t of(std::size_t span) const { return places_[span]; }
  const std::vector<KernelPlace>& all() const { return all_; }

 private:
  struct Trace {
    double begin;  // seconds
    std::unordered_map<std::string_view, std::vector<std::size_t>> kernels;
  };
  void read_notes();
  void find_all(const SpanTree& tree);
  /// Those of its name, in their order, in the latest trace of a function that has it by then; null if none has.
  const std::vector<std::size_t>* in_function(const std::string& function, const RecordedSpan& span) const;
  /// What a step runs that is a branch or a loop is of its line: only outermost programs are told.
  std::size_t inside(std::size_t step, std::uint32_t name);
  std::size_t by_name(std::uint32_t name);

  const Recorded& recorded_;
  std::unordered_map<std::string_view, const files::Json*> kernels_;  // notes of kernels
  std::unordered_map<std::string, std::vector<Trace>> functions_;     // by begin
  std::unordered_map<std::uint32_t, std::size_t> named_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> inside_;
  std::vector<KernelPlace> all_;
  std::vector<std::size_t> places_;
};

}  // namespace stet::reporting
