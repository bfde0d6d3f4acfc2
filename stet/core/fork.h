// Forked tracing: how `if (tensor)` in host code becomes a branch of the graph.
//
// A scope's body is run once for every path through its decisions. The first run takes the same side of every decision
// (Trace::yes_first); then the last decision that has a side left is turned, and the body is run again: up to that
// decision it must record what it recorded before, from there on it records new nodes. When all paths are known, they
// are folded from the last decision to the first into closed branches. All nodes of all paths stand in the trace's one
// list while it records; those that went into a branch are buried: nothing outside may use them, and the finished graph
// leaves them out.
//
// A scope inside of what is run again is not explored again but followed: its body runs once more along the path that
// it was run along last, so that host code after it finds what it found the first time.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "stet/base/inside.h"
#include "stet/core/tape.h"
#include "stet/core/trace.h"

namespace stet {

/// One thing that happened on a path.
struct PathItem {
  enum Kind : std::uint8_t {
    node,
    capture,  // a tensor from outside of the trace was met for the first time on this path
    hoisted,  // a reading of a Variable by the scope that follows, see Trace::read_value
    scope,
  } kind = node;
  ValueId id = -1;
  Tensor captured = {};
  Reading reading = {};
  std::shared_ptr<const InnerScope> inner = {};
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
  ReadingCounts readings;    // up to there
  std::exception_ptr error;  // the path ends in it
  std::string error_text;
};

/// A scope that has ended, as the scope around it sees it.
struct InnerScope {
  bool forked() const { return branch >= 0; }
  Path prefix;                // up to the first decision; all of it where there was none
  std::vector<ValueId> tail;  // the branch and its parts
  PathEnd last;               // to run the body again by
  std::size_t first_value;    // of those made inside
  /// All that it recorded lies inside of a loop. The last such scope of a loop recorded nothing: its `tail` is the loop
  /// and its parts.
  bool enclosed = false;
  std::vector<std::uint64_t> carried_variables;
  std::vector<bool> needed_further;  // see FlatLoop
  std::shared_ptr<const void> form;  // see FlatTurn
  // Of one that forked, and of a loop:
  ValueId branch = -1;
  std::exception_ptr raises;  // all of its paths do: what host code around it gets
  Leaves results;
  std::vector<Tensor> outputs;  // of the branch
  std::vector<std::pair<std::uint64_t, ValueId>> written;
  std::set<ValueId> readings;  // of Variables, that stand outside for what was read inside
  ReadingCounts reading_counts;
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
  /// Runs the body once, for a child graph: nothing that it does counts outside. What it throws is in the scope.
  std::shared_ptr<InnerScope> enclose(const std::function<Leaves()>& body, Where where);
  /// Takes back the last thing of this path.
  void take_back(std::size_t length);
  std::size_t length() const { return path_.size(); }
  /// Runs the body of a scope that has ended again, for what it does to the host. Gives what the body gives.
  Leaves follow(const InnerScope& known, std::map<Reading, ValueId> hoisted, const std::function<Leaves()>& body,
                Where where);

  /// What happens next has happened before.
  bool must_follow() const { return follows_ || cursor_ < replayed_; }
  /// The inner scope that began at this point the last time, and the readings that stand before it for it.
  std::shared_ptr<const InnerScope> next_scope(std::map<Reading, ValueId>& hoisted, Where where);
  /// The node that was recorded at this point the last time; none when the path is new.
  ValueId replayed(const OpDef& op, const std::vector<ValueId>& inputs, const Attributes& attributes, Where where);
  /// The value that the tensor captured at this point was the last time. `known`: the tensor's own, if it has one;
  /// otherwise its elements are given. It must be the tensor of the last time, or have its elements.
  ValueId captured_again(ValueId known, const Tensor& dense, Where where);
  /// The value of a reading that stands before this scope; `make` adds it to the graph when it is new.
  ValueId hoisted(const Reading& reading, const std::function<ValueId()>& make);
  /// The reading was made inside of this scope, wherever it stands.
  void note_reading_inside(ValueId id) { readings_inside_.insert(id); }
  /// A node of the path that is followed lives again until the scope ends, though it went into a branch.
  void dig_up(ValueId id);
  /// Tapes from outside record.
  bool seen_by_tapes() const;
  /// The value is from before this scope.
  bool was_there(ValueId value) const;
  /// The value is a reading that stands before this scope, though it may have been made inside.
  bool is_hoisted(ValueId value) const;
  void add(PathItem item) {
    path_.push_back(std::move(item));
    cursor_ = path_.size();
  }
  /// The outcome if the path has it already.
  const bool* known(ValueId condition) const;
  bool decide(ValueId condition);
  ForkScope* outer() const { return outer_; }
  [[noreturn]] void did_something_else(Where where) const;

  /// The nodes of a part of a path, those of forked scopes as their branches, those of loops as one. A branch that can
  /// only raise belongs to a path that ends there; where host code caught what it raised, only what was recorded before
  /// it happened.
  static void flatten(const Path& path, std::size_t begin, std::size_t end, const std::exception_ptr& error,
                      std::vector<ValueId>& out);

 private:
  struct VariableMark {
    ValueId current;
    bool written;
  };
  void begin_run(std::size_t prefix);
  PathEnd run_path(const std::function<Leaves()>& body, Where where);
  bool turn_last_decision();
  void restore(const std::vector<TapeMark>& tapes, std::size_t checks);
  /// After the sides: what was met and watched on one of them is not, for what follows.
  void forget_sides();
  void mark_first_decision();
  void check_limits(ValueId condition) const;
  void refuse_outer_watch(Where where) const;
  const PathItem& next_item(PathItem::Kind kind, Where where);
  Leaves merged(std::vector<PathEnd> ends, Where where);
  struct BranchResults;
  /// `prefix`: the nodes up to the first decision.
  BranchResults branch_results(const std::vector<PathEnd>& ends, const PathEnd& model,
                               const std::vector<ValueId>& prefix) const;
  /// Runs the body along all paths once more. Eagerly it runs once, along one: host code that is none the wiser does
  /// the same however often it has run.
  void repeat(const std::vector<PathEnd>& ends, const InnerScope& forked, Where where);
  void unforked(PathEnd end);

  Trace& trace_;
  ForkScope* outer_;
  const std::function<Leaves()>* body_ = nullptr;
  Path path_;
  std::size_t cursor_ = 0, replayed_ = 0;
  std::vector<Decision> decisions_;
  std::size_t next_decision_ = 0;
  std::unordered_map<ValueId, bool> known_;
  bool follows_ = false;         // a path that is known in full
  std::vector<ValueId> dug_up_;  // buried nodes on the path that is followed
  std::map<Reading, ValueId> hoisted_;
  std::set<ValueId> readings_inside_;
  std::size_t ends_ = 0;
  // As it was when the scope began.
  std::size_t first_value_;
  std::map<const TensorNode*, ValueId> watched_;
  std::set<ValueId> met_;
  std::map<std::pair<std::uint64_t, ValueId>, ValueId> plain_readings_;
  ReadingCounts readings_;
  std::unordered_map<std::uint64_t, VariableMark> variables_;
  std::vector<TapeMark> tapes_;
  std::vector<TapeMark> tapes_at_decision_;  // at the first one of this run
  std::size_t checks_at_decision_ = 0;
  std::map<const TensorNode*, ValueId> watched_at_decision_;
  std::set<ValueId> met_at_decision_;
  std::map<std::pair<std::uint64_t, ValueId>, ValueId> plain_readings_at_decision_;
  std::size_t checks_;
  int symbols_;
};

}  // namespace stet
