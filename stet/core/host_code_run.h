// How host code is run and recorded: behind print, assert_that and host_call. Private to core/.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/inside.h"
#include "stet/core/tensor.h"
#include "stet/ir/graph.h"
#include "stet/ir/host_code.h"

namespace stet {

extern const OpDef print_row, assert_row, host_call_row;

/// Records a node in the open trace, or runs the code now; tells the tapes where there are results. Problem if an
/// assertion fails.
std::vector<Tensor> do_on_host(const OpDef& row, const HostCodeAttributes& attributes, std::span<const Tensor> inputs,
                               Where where);

/// What print() and assert_that() do, as data.
struct SavedEffect {
  bool asserts = false;
  std::string message = {};             // of an assertion
  std::vector<std::string> texts = {};  // text 0, value 0, text 1, …: one more than values
  Where where = {};                     // of an assertion
};
/// Nothing of a callback, which is code.
std::optional<SavedEffect> saved_effect(const HostCode& code);
HostCodePointer effect_of(SavedEffect saved);

/// What a graph that is replayed has its effects do.
enum class Effects : bool {
  happen,
  have_happened,  // the same values were computed before: a gradient computes them again
};
/// NoGradient if a result of a graph whose effects have happened needs what host code gave: it would have to run again.
void refuse_again(const Graph& graph);
/// The graph without its effects, and those of children; NoGradient if something else needs what host code gave.
Graph without_effects(const Graph& graph);

/// A gradient that does not exist was asked for.
class NoGradient : public UserError {
 public:
  using UserError::UserError;
};

/// While it lives, print() on this thread shows nothing: code is run only to be compared.
class MutedPrint {
 public:
  explicit MutedPrint(bool mutes = true);
  ~MutedPrint();
  MutedPrint(const MutedPrint&) = delete;
  MutedPrint& operator=(const MutedPrint&) = delete;

 private:
  const bool before_;
};

}  // namespace stet
