// Forked tracing: how `if (tensor)` in host code becomes a branch of the graph.
//
// A scope's body is run once for every path through its decisions. The first run takes every condition as true; then
// the last decision that has a side left is turned, and the body is run again: up to that decision it must record what
// it recorded before, from there on it records new nodes. When all paths are known, they are folded from the last
// decision to the first into closed branches. All nodes of all paths stand in the trace's one list while it records;
// those that went into a branch are buried: nothing outside may use them, and the finished graph leaves them out.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stet/core/tape.h"
#include "stet/core/trace.h"

namespace stet {

struct ForkedScope;

/// One thing that happened on a path.
struct PathItem {
  enum Kind : std::uint8_t { node, open, close, forked } kind = node;  // open, close: of an inner scope without forks
  ValueId id = -1;
  std::shared_ptr<const ForkedScope> inner = {};  // forked
};
using Path = std::vector<PathItem>;

struct Decision {
  ValueId condition;
  std::size_t position;  // in the path
  bool outcome;
};

/// A path from the scope's begin to its end.
struct PathEnd {
  Path path;
  std::vector<Decision> decisions;
  Leaves results;
  std::vector<ValueId> result_ids;  // of the tensors among the results; -1 for undefined ones
  std::unordered_map<std::uint64_t, ValueId> written;
  std::exception_ptr error;  // the path ends in it
  std::string error_text;
};

/// A scope that forked, as the scope around it sees it.
struct ForkedScope {
  Path prefix;                // up to the first decision
  std::vector<ValueId> tail;  // the branch and its parts
  PathEnd first;              // to run the body again by
  ValueId branch = -1;
  Leaves results;
  std::vector<Tensor> outputs;  // of the branch
  std::vector<std::pair<std::uint64_t, Tensor>> written;
};

/// A scope while its body runs.
class ForkScope {
 public:
  explicit ForkScope(Trace& trace);
  ~ForkScope();
  ForkScope(const ForkScope&) = delete;
  ForkScope& operator=(const ForkScope&) = delete;

  /// Runs the body along all paths.
  Leaves explore(const std::function<Leaves()>& body, Where where);
  /// Runs the body of a scope that forked again, along its first path, for what it does to the host.
  void follow(const ForkedScope& known, const std::function<Leaves()>& body);

  bool replaying() const { return cursor_ < replayed_; }
  PathItem next_item() { return path_[cursor_++]; }
  /// The node that was recorded at this point the last time; none when the path is new.
  ValueId replayed(const OpDef& op, const std::vector<ValueId>& inputs, const Attributes& attributes, Where where);
  void add(PathItem item) {
    path_.push_back(std::move(item));
    cursor_ = path_.size();
  }
  /// The outcome if the path has it already.
  const bool* known(ValueId condition) const;
  bool decide(ValueId condition);
  ForkScope* outer() const { return outer_; }
  [[noreturn]] void did_something_else(Where where) const;

 private:
  struct VariableMark {
    Tensor current;
    bool written;
  };
  void begin_run(std::size_t prefix);
  PathEnd run_path(const std::function<Leaves()>& body, Where where);
  bool turn_last_decision();
  void restore(const std::vector<TapeMark>& tapes);
  void mark_first_decision();
  void check_limits(ValueId condition) const;
  Leaves merged(std::vector<PathEnd> ends, Where where);

  Trace& trace_;
  ForkScope* outer_;
  Path path_;
  std::size_t cursor_ = 0, replayed_ = 0;
  std::vector<Decision> decisions_;
  std::size_t next_decision_ = 0;
  std::unordered_map<ValueId, bool> known_;
  bool follows_ = false;  // a path that is known in full
  std::size_t ends_ = 0;
  // As it was when the scope began.
  std::unordered_map<std::uint64_t, VariableMark> variables_;
  std::vector<TapeMark> tapes_;
  std::vector<TapeMark> tapes_at_decision_;  // at the first one of this run
  std::size_t checks_;
  int symbols_;
};

}  // namespace stet
