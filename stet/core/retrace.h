// Why a function is traced again, told to people. Private to core/.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stet/base/inside.h"
#include "stet/core/function.h"
#include "stet/core/function_entry.h"

namespace stet {

/// The names of a function's arguments, as messages use them. `part` is the path of a leaf within its argument.
struct ArgumentNames {
  std::vector<std::string> names;  // empty where the function gave none
  /// `path` leads from an argument to a part of it, ".rate" or "[2]".
  std::string of(int number, const std::string& path = {}) const;  // "argument 0 'x.rate'"
  std::string in(int number, const std::string& path = {}) const;  // "x.rate", "a0.rate": as code would name it
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

/// A call that was traced, as explanations replay it.
struct CallRecord {
  std::vector<LeafKey> key;
  std::vector<std::vector<std::int64_t>> sizes;  // of its tensors
  std::weak_ptr<const Entry> trace;              // that it made
};
CallRecord record_of(const MissedCall& call, const std::shared_ptr<const Entry>& made);

struct RetraceCause {
  std::string cause;               // the same for the same kind of change of the same argument
  std::string headline;            // up to the cost
  std::vector<std::string> fixes;  // the first is the one to try
  std::shared_ptr<Entry> nearest;
  std::string fix_lines() const;
  /// The lines below the headline's own, without the labels' room: "argument 0 'x' f32[2] -> f64[2] …".
  std::vector<std::string> reasons() const;
};
/// Compares the call with the trace that it differs least from. What is printed as a fix was tried on the calls that
/// were traced before (`earlier`) and this one: fewer traces would have been made. What cannot be tried is worded as a
/// guess.
RetraceCause cause_of(const MissedCall& call, std::span<const std::shared_ptr<Entry>> entries,
                      std::span<const CallRecord> earlier, int trace);
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
/// To the listener; without one, and if it is news, to stderr. With no lock held: a listener may call functions. What a
/// listener throws is written to stderr: the call that was traced is served.
void tell_retrace(const RetraceEvent& event, bool is_news);

/// A function that was traced has ended / is traced for the first time. When many that were made at one line have come
/// and gone, they are made anew in a loop: that is told once for a line.
void note_function_ended(Where where);
void note_function_traced(const std::string& name, Where where);

}  // namespace stet
