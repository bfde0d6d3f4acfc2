// Why a function is traced again, told to people. Private to core/.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "stet/core/function.h"
#include "stet/core/function_entry.h"

namespace stet {

/// The names of a function's arguments, as messages use them.
struct ArgumentNames {
  std::vector<std::string> names;    // empty where the function gave none
  std::string of(int number) const;  // "argument 0 'x'"
  std::string in(int number) const;  // "x", "a0": as code would name it
};

/// A call that no trace fits.
struct MissedCall {
  const std::string& function;
  const ArgumentNames& arguments;
  const Leaves& leaves;
  const std::vector<int>& owners;  // by leaf, the argument that it belongs to
  const std::vector<LeafKey>& key;
  const std::vector<Tensor>& tensors;
  Where where;
  const RunDifference* stale = nullptr;  // the trace that fits was dropped because of it
};

struct RetraceCause {
  std::string cause;     // the same for the same kind of change of the same argument
  std::string headline;  // up to the cost
  std::string fix;
  std::shared_ptr<Entry> nearest;
};
/// Compares the call with the trace that it differs least from.
RetraceCause cause_of(const MissedCall& call, const std::vector<std::shared_ptr<Entry>>& entries, int trace);
/// "  cost            8.1 ms to trace…".
std::string cost_line(const Entry& made, const Entry& nearest);
/// "  label           what".
std::string explanation_line(const std::string& label, const std::string& what);
std::string milliseconds_text(double milliseconds);

/// What an audit found.
std::string stale_explanation(const MissedCall& call, const RunDifference& found, std::uint64_t number);
/// To the listener, or to stderr.
void tell_stale(const StaleEvent& event);

/// NoRetrace lives on this thread.
bool retraces_forbidden();
/// To the listener; without one, and if it is news, to stderr. With no lock held: a listener may call functions.
void tell_retrace(const RetraceEvent& event, bool is_news);

}  // namespace stet
