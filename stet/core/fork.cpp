#include "stet/core/fork.h"

#include <algorithm>
#include <set>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/compiler/pipeline.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/core/host_code_run.h"
#include "stet/core/replay.h"
#include "stet/core/scope.h"
#include "stet/core/tensor_node.h"

namespace stet {
namespace {

constexpr std::size_t most_paths = 64;
constexpr std::size_t most_decisions = 64;  // on one path: a loop that does not end takes one after the other

}  // namespace

void ForkScope::flatten(const Path& path, std::size_t begin, std::size_t end, const std::exception_ptr& error,
                        std::vector<ValueId>& out) {
  for (std::size_t i = begin; i < end; ++i) {
    if (path[i].kind == PathItem::node || path[i].kind == PathItem::hoisted) out.push_back(path[i].id);
    if (path[i].kind != PathItem::scope) continue;
    const InnerScope& inner = *path[i].inner;
    std::exception_ptr ends_here = i + 1 == path.size() ? error : nullptr;
    if (!inner.enclosed) flatten(inner.prefix, 0, inner.prefix.size(), ends_here, out);
    if (!inner.raises || inner.raises == ends_here) out.insert(out.end(), inner.tail.begin(), inner.tail.end());
  }
}

/// Folds the paths of a scope into branches.
class BranchBuilder {
 public:
  /// `results`: what every path that does not raise gives, by path.
  BranchBuilder(Trace& trace, const std::vector<PathEnd>& ends, const std::vector<std::vector<ValueId>>& results,
                int symbols_before)
      : trace_(trace), ends_(ends), results_(results), symbols_before_(symbols_before) {}

  struct Piece {
    std::vector<ValueId> nodes, results;
    std::exception_ptr raises;
    std::string raised_text;
  };
  /// The paths [begin, end), which agree in their first `depth` decisions, from `position` on.
  Piece fold(std::size_t begin, std::size_t end, std::size_t depth, std::size_t position) {
    const PathEnd& first = ends_[begin];
    Piece piece;
    if (depth == first.decisions.size()) {
      ForkScope::flatten(first.path, position, first.path.size(), first.error, piece.nodes);
      piece.results = results_[begin];
      piece.raises = first.error;
      piece.raised_text = first.error_text;
      return piece;
    }
    const Decision& decision = first.decisions[depth];
    std::size_t middle = begin;
    while (middle < end && ends_[middle].decisions[depth].outcome == decision.outcome) ++middle;
    Piece yes = fold(begin, middle, depth + 1, decision.position), no = fold(middle, end, depth + 1, decision.position);
    if (!decision.outcome) std::swap(yes, no);
    ForkScope::flatten(first.path, position, decision.position, nullptr, piece.nodes);
    add_branch(decision.condition, yes, no, piece);
    if (yes.raises && no.raises) {
      piece.raises = yes.raises;
      piece.raised_text = yes.raised_text;
    }
    return piece;
  }
  ValueId last_branch = -1;

 private:
  void add_branch(ValueId condition, const Piece& yes, const Piece& no, Piece& into) {
    std::vector<ValueId> captures = captured(yes, no);
    BranchAttributes attributes{closed(yes, captures), closed(no, captures)};
    Node node{.op = &cond_row,
              .inputs = {condition},
              .attributes = Attributes(view_of(attributes)),
              .label = "cond",
              .where = trace_.graph.node(condition).where,
              .name_scope = trace_.graph.node(condition).name_scope};
    node.inputs.insert(node.inputs.end(), captures.begin(), captures.end());
    std::size_t count = std::max(yes.results.size(), no.results.size());
    for (std::size_t r = 0; r < count; ++r)
      node.results.push_back(yes.raises  ? common_type(no.results[r], no.results[r])
                             : no.raises ? common_type(yes.results[r], yes.results[r])
                                         : common_type(yes.results[r], no.results[r]));
    // A node has a result; this one says nothing.
    if (count == 0) node.results.push_back({DType::i64, Shape()});
    trace_.bury(yes.nodes);
    trace_.bury(no.nodes);
    last_branch = trace_.graph.add(node);
    into.nodes.push_back(last_branch);
    if (count == 1) into.results.push_back(last_branch);
    if (count < 2) return;
    for (std::size_t r = 0; r < count; ++r) {
      PartAttributes part{static_cast<int>(r)};
      into.results.push_back(trace_.graph.add({.op = &part_row,
                                               .inputs = {last_branch},
                                               .attributes = Attributes(view_of(part)),
                                               .results = {node.results[r]},
                                               .where = node.where}));
      into.nodes.push_back(into.results.back());
    }
  }

  bool is_constant(ValueId id) const { return trace_.graph.node(id).op == &constant_row; }

  /// What the two use from outside, in the order in which they use it. Constants go inside.
  std::vector<ValueId> captured(const Piece& yes, const Piece& no) const {
    std::set<ValueId> inside;
    for (const Piece* piece : {&yes, &no}) inside.insert(piece->nodes.begin(), piece->nodes.end());
    std::vector<ValueId> out;
    auto use = [&](const std::vector<ValueId>& used) {
      for (ValueId id : used)
        if (!is_constant(id) && inside.insert(id).second) out.push_back(id);
    };
    for (const Piece* piece : {&yes, &no}) {
      for (ValueId id : piece->nodes) use(trace_.graph.node(id).inputs);
      use(piece->results);
    }
    return out;
  }

  GraphPointer closed(const Piece& piece, const std::vector<ValueId>& captures) const {
    auto child = std::make_shared<Graph>(trace_.closed(captures, piece.nodes, piece.results));
    child->raises = piece.raises;
    child->raised_text = piece.raised_text;
    if (!piece.raises && piece.results.empty())
      child->results.push_back(child->add_constant({DType::i64, Shape()}, std::string(8, '\0')));
    return child;
  }

  /// A side finds the size out while it runs: outside it has another name.
  bool found_inside(const Dim& dim) const {
    if (dim.is_constant()) return false;
    std::vector<int> symbols = dim.symbols();
    return std::any_of(symbols.begin(), symbols.end(),
                       [&](int symbol) { return symbol >= symbols_before_ && !trace_.symbols_->symbol_hint(symbol); });
  }

  /// The type of a result that both sides give. Sizes that are equal in this call are taken to be so in all that this
  /// trace is for; others are known when the side is.
  ValueType common_type(ValueId yes, ValueId no) {
    const ValueType &a = trace_.graph.type(yes), &b = trace_.graph.type(no);
    if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank())
      throw TraceError(error_text(
          text("tracing '", trace_.function(), "': the two sides of an if (tensor) give different types: ", a.str(),
               at_line(trace_.graph.node(yes).where), " and ", b.str(), at_line(trace_.graph.node(no).where)),
          {}, "give both the same dtype and rank, with cast or reshape"));
    ValueType out{a.dtype, {}};
    for (int axis = 0; axis < a.shape.rank(); ++axis) {
      const Dim &x = a.shape[axis], &y = b.shape[axis];
      bool common = !found_inside(x) && !found_inside(y) && are_equal(x, y, yes, no);
      out.shape.push_back(!common ? trace_.symbols_->symbol("side", std::nullopt) : y.is_constant() ? y : x);
    }
    return out;
  }

  bool are_equal(const Dim& x, const Dim& y, ValueId yes, ValueId no) {
    if (prove_equal(x, y) == Proof::yes) return true;
    if (!x.hint() || !y.hint() || trace_.symbols_->sizes_are_unknown()) return false;
    if (x.hint() != y.hint()) {
      trace_.apart.push_back({x, Relation::not_equal, y, {}});
      return false;
    }
    Where where = trace_.graph.node(no).where;
    if (!where.known()) where = trace_.graph.node(yes).where;
    return trace_.symbols_->require(x, Relation::equal, y, {"if", "sizes of both sides", where});
  }

  Trace& trace_;
  const std::vector<PathEnd>& ends_;
  const std::vector<std::vector<ValueId>>& results_;
  int symbols_before_;
};

// --- ForkScope

ForkScope::ForkScope(Trace& trace)
    : trace_(trace),
      outer_(trace.innermost_),
      first_value_(trace.graph.nodes.size()),
      watched_(trace.watched_),
      met_(trace.met_),
      plain_readings_(trace.plain_readings_),
      readings_(trace.readings_),
      tapes_(mark_tapes()),
      checks_(trace.symbols_->checks().size()),
      symbols_(trace.symbols_->symbol_count()) {
  for (const auto& [id, variable] : trace.variables_) variables_[id] = {variable.current, variable.written};
  trace.innermost_ = this;
}

ForkScope::~ForkScope() {
  trace_.innermost_ = outer_;
  if (!dug_up_.empty()) trace_.bury(dug_up_);
}

void ForkScope::did_something_else(Where where) const {
  throw TraceError(error_text(
      text("tracing '", trace_.function(),
           "': host code did something else when it was run again for the other side of "
           "an if (tensor)"),
      where, "what traced code does may depend on its arguments only; keep random numbers, clocks and counters out"));
}

const PathItem& ForkScope::next_item(PathItem::Kind kind, Where where) {
  if (cursor_ >= path_.size() || path_[cursor_].kind != kind) did_something_else(where);
  return path_[cursor_++];
}

std::shared_ptr<const InnerScope> ForkScope::next_scope(std::map<Reading, ValueId>& hoisted, Where where) {
  while (cursor_ < path_.size() && path_[cursor_].kind == PathItem::hoisted) {
    hoisted.emplace(path_[cursor_].reading, path_[cursor_].id);
    dig_up(path_[cursor_].id);
    ++cursor_;
  }
  return next_item(PathItem::scope, where).inner;
}

ValueId ForkScope::replayed(const OpDef& op, const std::vector<ValueId>& inputs, const Attributes& attributes,
                            Where where) {
  if (!must_follow()) return -1;
  ValueId id = next_item(PathItem::node, where).id;
  const Node& node = trace_.graph.node(id);
  bool same = node.inputs == inputs;
  if (node.op == &map_row && op.kind == Kind::map)
    same = same && std::string_view(node.label) == op.name &&
           (op.body || node.attributes.as<MapAttributes>().body == attributes.as<MapAttributes>().body);
  else
    same = same && node.op == &op && (op.kind == Kind::loop || node.attributes == attributes);
  if (!same) did_something_else(where);
  dig_up(id);
  return id;
}

void ForkScope::dig_up(ValueId id) {
  auto at = static_cast<std::size_t>(id);
  if (at >= trace_.buried_.size() || !trace_.buried_[at]) return;
  trace_.buried_[at] = false;
  dug_up_.push_back(id);
}

ValueId ForkScope::captured_again(ValueId known, const Tensor& dense, Where where) {
  const PathItem& item = next_item(PathItem::capture, where);
  if (known >= 0 ? item.id != known : !same_elements(item.captured, dense)) did_something_else(where);
  return item.id;
}

ValueId ForkScope::hoisted(const Reading& reading, const std::function<ValueId()>& make) {
  auto found = hoisted_.find(reading);
  if (found != hoisted_.end()) return found->second;
  if (follows_) did_something_else({});
  ValueId id = make();
  outer_->add({.kind = PathItem::hoisted, .id = id, .reading = reading});
  return hoisted_[reading] = id;
}

bool ForkScope::seen_by_tapes() const {
  return std::any_of(tapes_.begin(), tapes_.end(), [](const TapeMark& mark) { return mark.recording; });
}

bool ForkScope::was_there(ValueId value) const {
  return static_cast<std::size_t>(value) < first_value_ || trace_.graph.node(value).op == &input_row;
}

bool ForkScope::is_hoisted(ValueId value) const {
  for (const ForkScope* scope = this; scope; scope = scope->outer_)
    for (const auto& [reading, id] : scope->hoisted_)
      if (id == value) return true;
  return false;
}

const bool* ForkScope::known(ValueId condition) const {
  auto found = known_.find(condition);
  return found == known_.end() ? nullptr : &found->second;
}

/// What was recorded up to here on the tapes outside stays when the paths have become a branch.
void ForkScope::mark_first_decision() {
  tapes_at_decision_.clear();
  for (const TapeMark& mark : mark_tapes())
    if (std::any_of(tapes_.begin(), tapes_.end(), [&](const TapeMark& outside) { return outside.tape == mark.tape; }))
      tapes_at_decision_.push_back(mark);
  watched_at_decision_ = trace_.watched_;
  met_at_decision_ = trace_.met_;
  plain_readings_at_decision_ = trace_.plain_readings_;
  checks_at_decision_ = trace_.symbols_->checks().size();
}

/// What a tape follows from a decision on is a matter of one side, but the tape is outside of both.
void ForkScope::refuse_outer_watch(Where where) const {
  std::vector<TapeMark> now = mark_tapes();
  for (const TapeMark& before : tapes_at_decision_)
    for (const TapeMark& mark : now)
      if (mark.tape == before.tape && mark.watched > before.watched)
        throw TraceError(error_text(text("tracing '", trace_.function(),
                                         "': a tape that was made before an if (tensor) is told to watch a tensor on "
                                         "one side of it"),
                                    where, "watch the tensor before the decision, or make the tape on that side"));
}

bool ForkScope::decide(ValueId condition) {
  if (next_decision_ == 0) mark_first_decision();
  if (next_decision_ < decisions_.size()) {
    const Decision& decision = decisions_[next_decision_++];
    if (decision.condition != condition || decision.position != cursor_)
      did_something_else(trace_.graph.node(condition).where);
    return known_[condition] = decision.outcome;
  }
  if (must_follow()) did_something_else(trace_.graph.node(condition).where);
  check_limits(condition);
  decisions_.push_back({condition, cursor_, trace_.yes_first()});
  ++next_decision_;
  return known_[condition] = trace_.yes_first();
}

void ForkScope::check_limits(ValueId condition) const {
  if (decisions_.size() < most_decisions && ends_ < most_paths) return;
  Where line = trace_.graph.node(condition).where;
  auto here = std::count_if(decisions_.begin(), decisions_.end(), [&](const Decision& decision) {
    Where other = trace_.graph.node(decision.condition).where;
    return other.line == line.line && other.known() && line.known() && std::string_view(other.file) == line.file;
  });
  if (here >= 4)
    throw TraceError(
        error_text(text("tracing '", trace_.function(),
                        "': a loop decides by the value of a tensor, over and over: ", here + 1, " times on one path"),
                   line,
                   "in a loop over numbers or sizes put what a turn does into stet::scope(f): it becomes one branch a "
                   "turn; a loop that ends by the value of a tensor is while_loop(condition, body, state)"));
  throw TraceError(error_text(text("tracing '", trace_.function(), "': more than ", most_paths,
                                   " paths lead through one scope, because decisions by tensors follow each other"),
                              line, "put parts that decide by themselves into stet::scope(f), or use where(c, a, b)"));
}

void ForkScope::restore(const std::vector<TapeMark>& tapes, std::size_t checks) {
  for (auto& [id, variable] : trace_.variables_) {
    auto mark = variables_.find(id);
    variable.current = mark == variables_.end() ? variable.initial : mark->second.current;
    variable.written = mark != variables_.end() && mark->second.written;
  }
  trace_.watched_ = watched_;
  trace_.met_ = met_;
  trace_.plain_readings_ = plain_readings_;
  return_tapes_to(tapes);
  trace_.symbols_->keep_checks(checks);
}

void ForkScope::forget_sides() {
  trace_.watched_ = watched_at_decision_;
  trace_.met_ = met_at_decision_;
  trace_.plain_readings_ = plain_readings_at_decision_;
}

void ForkScope::begin_run(std::size_t prefix) {
  path_.resize(prefix);
  replayed_ = prefix;
  cursor_ = 0;
  next_decision_ = 0;
  known_.clear();
  trace_.readings_ = readings_;
}

PathEnd ForkScope::run_path(const std::function<Leaves()>& body, Where where) {
  PathEnd end;
  try {
    end.results = body();
    for (Leaf& leaf : end.results)
      if (leaf.kind == Leaf::tensor)
        end.result_ids.push_back(leaf.value.defined() ? trace_.lift(leaf.value, where) : -1);
  } catch (const TraceError&) {
    throw;
  } catch (const RetraceError&) {
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    end.error = std::current_exception();
    end.error_text = error.what();
  } catch (...) {
    end.error = std::current_exception();
    end.error_text = "an exception";
  }
  if (cursor_ < replayed_ || next_decision_ < decisions_.size()) did_something_else(where);
  if (!decisions_.empty()) refuse_outer_watch(where);
  end.path = path_;
  end.decisions = decisions_;
  end.readings = trace_.readings_;
  for (const auto& [id, variable] : trace_.variables_) {
    auto mark = variables_.find(id);
    ValueId before = mark == variables_.end() ? variable.initial : mark->second.current;
    bool was_written = mark != variables_.end() && mark->second.written;
    if (variable.written && (!was_written || variable.current != before)) end.written[id] = variable.current;
  }
  return end;
}

/// To the next path: false when there is none.
bool ForkScope::turn_last_decision() {
  while (!decisions_.empty() && decisions_.back().outcome != trace_.yes_first()) decisions_.pop_back();
  if (decisions_.empty()) return false;
  std::vector<ValueId> left;
  flatten(path_, decisions_.back().position, path_.size(), nullptr, left);
  trace_.bury(left);
  decisions_.back().outcome = !trace_.yes_first();
  return true;
}

Leaves ForkScope::explore(const std::function<Leaves()>& body, Where where) {
  body_ = &body;
  std::vector<PathEnd> ends;
  for (;;) {
    PathEnd end = run_path(body, where);
    if (decisions_.empty()) {
      Leaves results = std::move(end.results);
      std::exception_ptr error = end.error;
      unforked(std::move(end));
      if (error) std::rethrow_exception(error);  // it ends a path of a scope further out, or the trace
      return results;
    }
    ends.push_back(std::move(end));
    ends_ = ends.size();
    bool more = turn_last_decision();
    if (more)
      restore(tapes_, checks_);
    else
      restore(tapes_at_decision_, checks_at_decision_);
    if (!more) break;
    if (ends_ >= most_paths) check_limits(decisions_.back().condition);
    begin_run(decisions_.back().position);
  }
  return merged(std::move(ends), where);
}

std::shared_ptr<InnerScope> ForkScope::enclose(const std::function<Leaves()>& body, Where where) {
  PathEnd end = run_path(body, where);
  if (!decisions_.empty()) throw InternalError("a loop's own scope has decided something");
  std::vector<TapeMark> now = mark_tapes();
  for (const TapeMark& before : tapes_)
    for (const TapeMark& mark : now)
      if (mark.tape == before.tape && mark.watched > before.watched)
        throw TraceError(error_text(text("tracing '", trace_.function(),
                                         "': a tape that was made outside of a loop is told to watch "
                                         "a tensor inside of it"),
                                    where, "watch the tensor before the loop, or make the tape inside"));
  for (const TapeMark& before : tapes_)
    for (const TapeMark& mark : now)
      if (mark.tape == before.tape && mark.asked > before.asked)
        throw TraceError(error_text(text("tracing '", trace_.function(),
                                         "': a tape that was made outside of a loop is asked for a gradient inside of "
                                         "it, where it sees one turn of many"),
                                    where, "make the tape inside, or ask it behind the loop"));
  auto inner = std::make_shared<InnerScope>();
  inner->enclosed = true;
  inner->prefix = end.path;
  inner->first_value = first_value_;
  inner->readings = readings_inside_;
  inner->reading_counts = end.readings;
  inner->last = std::move(end);
  restore(tapes_, checks_);
  return inner;
}

void ForkScope::take_back(std::size_t length) {
  std::vector<ValueId> left;
  for (std::size_t i = length; i < path_.size(); ++i) {
    if (path_[i].kind == PathItem::node || path_[i].kind == PathItem::hoisted) left.push_back(path_[i].id);
    if (path_[i].kind != PathItem::scope) continue;
    flatten(path_[i].inner->prefix, 0, path_[i].inner->prefix.size(), nullptr, left);
    left.insert(left.end(), path_[i].inner->tail.begin(), path_[i].inner->tail.end());
  }
  trace_.bury(left);
  path_.resize(length);
  cursor_ = std::min(cursor_, length);
}

void ForkScope::unforked(PathEnd end) {
  if (!outer_) return;
  auto inner = std::make_shared<InnerScope>();
  inner->prefix = end.path;
  inner->first_value = first_value_;
  end.results.clear();
  inner->last = std::move(end);
  outer_->add({.kind = PathItem::scope, .inner = std::move(inner)});
}

namespace {

/// Paths must give the same structure; only tensors may differ.
void check_structure(const std::string& function, const PathEnd& a, const PathEnd& b, Where where) {
  auto fail = [&](const std::string& what) {
    throw TraceError(error_text(text("tracing '", function, "': the sides of an if (tensor) give ", what), where,
                                "return the same structure on every path; what differs must be a Tensor"));
  };
  if (a.results.size() != b.results.size()) fail("different numbers of values");
  std::size_t tensor = 0;
  for (std::size_t i = 0; i < a.results.size(); ++i) {
    const Leaf &x = a.results[i], &y = b.results[i];
    if (x.kind != y.kind) fail("different kinds of values");
    if (x.kind == Leaf::tensor) {
      if ((a.result_ids[tensor] < 0) != (b.result_ids[tensor] < 0))
        fail("a tensor on one, and an undefined one on another");
      ++tensor;
    } else if (x.kind == Leaf::variable ? x.state.id() != y.state.id()
               : x.kind == Leaf::size   ? !identical(x.length, y.length)
                                        : x.bits != y.bits) {
      fail(x.kind == Leaf::number   ? "different C++ numbers"
           : x.kind == Leaf::size   ? "different sizes"
           : x.kind == Leaf::text   ? "different texts"
           : x.kind == Leaf::count  ? "vectors of different lengths"
           : x.kind == Leaf::object ? "different objects"
                                    : "different Variables");
    }
  }
}

}  // namespace

/// What a branch gives: all that its paths do not have in common.
struct ForkScope::BranchResults {
  std::vector<std::size_t> tensors;      // among the tensors of the scope's results
  std::vector<std::uint64_t> variables;  // that are written
  std::vector<std::pair<std::uint64_t, ValueId>> written_alike;
  std::vector<std::vector<ValueId>> by_path;  // tensors, then variables
};

ForkScope::BranchResults ForkScope::branch_results(const std::vector<PathEnd>& ends, const PathEnd& model,
                                                   const std::vector<ValueId>& prefix) const {
  // What is from before the first decision, and the same on every path, is no business of the branch. But a tensor that
  // host code makes anew on every path, and that a tape watches, is another one on each.
  auto is_common = [&](ValueId value, const auto& on) {
    bool outside = was_there(value) || is_hoisted(value) || trace_.graph.node(value).op == &constant_row ||
                   std::find(prefix.begin(), prefix.end(), value) != prefix.end();
    return outside && !trace_.tensor_of(value).node()->made_in_trace &&
           std::all_of(ends.begin(), ends.end(), [&](const PathEnd& end) { return end.error || on(end) == value; });
  };
  BranchResults out;
  std::set<std::uint64_t> written;
  for (const PathEnd& end : ends)
    if (!end.error)
      for (const auto& [id, value] : end.written) written.insert(id);
  for (std::uint64_t id : written) {
    auto on = [id](const PathEnd& end) {
      auto own = end.written.find(id);
      return own == end.written.end() ? -1 : own->second;
    };
    if (ValueId value = on(model); value >= 0 && is_common(value, on))
      out.written_alike.emplace_back(id, value);
    else
      out.variables.push_back(id);
  }
  for (std::size_t r = 0; r < model.result_ids.size(); ++r) {
    ValueId value = model.result_ids[r];
    if (value >= 0 && !is_common(value, [r](const PathEnd& end) { return end.result_ids[r]; }))
      out.tensors.push_back(r);
  }
  out.by_path.resize(ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].error) continue;
    for (std::size_t r : out.tensors) out.by_path[i].push_back(ends[i].result_ids[r]);
    for (std::uint64_t id : out.variables) {
      auto own = ends[i].written.find(id);
      out.by_path[i].push_back(own != ends[i].written.end() ? own->second : trace_.variables_.at(id).current);
    }
  }
  return out;
}

Leaves ForkScope::merged(std::vector<PathEnd> ends, Where where) {
  const PathEnd nothing, *model = nullptr;
  for (const PathEnd& end : ends) {
    if (end.error) continue;
    if (model) check_structure(trace_.function(), *model, end, where);
    model = model ? model : &end;
  }
  auto forked = std::make_shared<InnerScope>();
  if (!model) {
    forked->raises = (trace_.yes_first() ? ends.front() : ends.back()).error;
    model = &nothing;
    // Host code may catch it, and then finds what was written.
    const auto& written = ends.front().written;
    if (outer_ && std::any_of(ends.begin(), ends.end(), [&](const PathEnd& end) { return end.written != written; }))
      throw TraceError(error_text(text("tracing '", trace_.function(),
                                       "': every side of an if (tensor) throws, and they wrote Variables differently"),
                                  where, "write Variables before the decision, or throw before they are written"));
  }
  forked->first_value = first_value_;
  forked->readings = readings_inside_;
  std::size_t first_decision = ends.front().decisions.front().position;
  forked->prefix.assign(ends.front().path.begin(),
                        ends.front().path.begin() + static_cast<std::ptrdiff_t>(first_decision));
  std::vector<ValueId> before;
  flatten(forked->prefix, 0, forked->prefix.size(), nullptr, before);
  BranchResults given = branch_results(ends, *model, before);
  BranchBuilder builder(trace_, ends, given.by_path, symbols_);
  BranchBuilder::Piece piece = builder.fold(0, ends.size(), 0, 0);
  forked->tail.assign(piece.nodes.begin() + static_cast<std::ptrdiff_t>(before.size()), piece.nodes.end());
  forked->branch = builder.last_branch;
  for (ValueId id : piece.results) forked->outputs.push_back(trace_.tensor_of(id));
  forked->results = model->results;
  std::size_t next = 0, tensor = 0;
  for (std::size_t i = 0; i < forked->results.size(); ++i) {
    Leaf& leaf = forked->results[i];
    if (leaf.kind != Leaf::tensor) continue;
    const std::size_t number = tensor++;
    if (model->result_ids[number] < 0) continue;
    // A number on all sides is a number; beside a tensor of its type on another side it is that tensor's equal.
    bool weak = std::all_of(ends.begin(), ends.end(),
                            [&](const PathEnd& end) { return end.error || end.results[i].value.node()->weak; });
    bool from_branch = next < given.tensors.size() && given.tensors[next] == number;
    if (weak && !from_branch) continue;
    leaf.value = from_branch ? forked->outputs[next++] : trace_.tensor_of(model->result_ids[number]);
    if (weak) creation::as_number(leaf.value);
  }
  forked->written = std::move(given.written_alike);
  if (forked->raises) forked->written.assign(ends.front().written.begin(), ends.front().written.end());
  for (std::uint64_t id : given.variables) forked->written.emplace_back(id, piece.results[next++]);
  if (outer_ && trace_.repeats_sides()) repeat(ends, *forked, where);
  // The next reading is not one of any path, whichever was run last.
  for (const PathEnd& end : ends)
    for (const auto& [what, count] : end.readings)
      forked->reading_counts[what] = std::max(forked->reading_counts[what], count);
  trace_.readings_ = forked->reading_counts;
  forked->last = std::move(ends.back());
  forked->last.results.clear();
  forget_sides();
  if (outer_) outer_->add({.kind = PathItem::scope, .inner = forked});
  trace_.publish(*forked);
  if (forked->raises) {
    trace_.bury(forked->tail);  // the paths that end in it have it
    std::rethrow_exception(forked->raises);
  }
  return forked->results;
}

void ForkScope::repeat(const std::vector<PathEnd>& ends, const InnerScope& forked, Where where) {
  InnerScope once = forked;
  known_.clear();
  for (const PathEnd& end : ends) {
    once.last = end;
    return_tapes_to(tapes_);
    trace_.watched_ = watched_;
    trace_.met_ = met_;
    trace_.plain_readings_ = plain_readings_;
    trace_.readings_ = readings_;
    ForkScope again(trace_);
    again.follow(once, hoisted_, *body_, where);
  }
}

Leaves ForkScope::follow(const InnerScope& known, std::map<Reading, ValueId> hoisted,
                         const std::function<Leaves()>& body, Where where) {
  follows_ = true;
  path_ = known.last.path;
  decisions_ = known.last.decisions;
  first_value_ = known.first_value;
  hoisted_ = std::move(hoisted);
  begin_run(path_.size());
  Leaves results;
  try {
    results = body();
    // Results are lifted on the path; a captured one is met there.
    for (const Leaf& leaf : results)
      if (leaf.kind == Leaf::tensor && leaf.value.defined()) trace_.lift(leaf.value, where);
    if (cursor_ < path_.size() || next_decision_ < decisions_.size() || known.last.error) did_something_else(where);
  } catch (const TraceError&) {
    throw;
  } catch (...) {
    if (!known.last.error || !known.forked()) throw;
  }
  if (known.enclosed) {
    restore(tapes_, checks_);
    trace_.readings_ = known.reading_counts;
    return results;
  }
  if (!known.forked()) return results;
  restore(tapes_at_decision_, checks_at_decision_);
  forget_sides();
  trace_.readings_ = known.reading_counts;
  return known.results;
}

// --- Trace

Leaves Trace::run_scope(const std::function<Leaves()>& body, Where where) {
  if (!innermost_ || !innermost_->must_follow()) {
    ForkScope scope(*this);
    return scope.explore(body, where);
  }
  std::map<Reading, ValueId> hoisted;
  std::shared_ptr<const InnerScope> inner = innermost_->next_scope(hoisted, where);
  Leaves results;
  {
    ForkScope again(*this);
    results = again.follow(*inner, std::move(hoisted), body, where);
  }
  // What it recorded is as open as what stands around it; when the inner scope ended, it was buried again.
  std::vector<ValueId> recorded;
  ForkScope::flatten(inner->prefix, 0, inner->prefix.size(), nullptr, recorded);
  for (ValueId id : recorded) innermost_->dig_up(id);
  if (inner->forked()) publish(*inner);
  if (inner->raises) std::rethrow_exception(inner->raises);
  for (ValueId id : inner->tail) innermost_->dig_up(id);
  return results;
}

void Trace::note_readings(const std::set<ValueId>& readings) {
  if (!tapes_open()) return;
  for (ValueId id : readings) {
    const auto& alias = graph.node(id).attributes.as<AliasAttributes>();
    if (alias.trainable) note_reading(tensor_of(id), alias.variable);
  }
}

void Trace::publish(const InnerScope& forked) {
  for (const auto& [id, value] : forked.written) {
    variables_.at(id).current = value;
    variables_.at(id).written = true;
  }
  if (!tapes_open()) return;
  // What the sides read of Variables is seen from here on: the tapes have forgotten what happened on the sides.
  note_readings(forked.readings);
  if (forked.outputs.empty()) return;
  const Node& node = graph.node(forked.branch);
  std::vector<Tensor> inputs;
  for (ValueId id : node.inputs) inputs.push_back(tensor_of(id));
  tell_tapes(*node.op, std::move(inputs), node.attributes.view(), forked.outputs);
}

Graph Trace::closed(std::span<const ValueId> inputs, std::span<const ValueId> nodes,
                    std::span<const ValueId> results) const {
  Graph child;
  child.scope = graph.scope;
  std::unordered_map<ValueId, ValueId> to;
  for (ValueId id : inputs) to[id] = child.add_input(graph.type(id));
  auto inside = [&](ValueId id) {
    auto found = to.find(id);
    if (found != to.end()) return found->second;
    return to[id] = child.add(graph.node(id));  // a constant
  };
  for (ValueId id : nodes) {
    if (to.contains(id)) continue;  // a parameter
    Node node = graph.node(id);
    for (ValueId& input : node.inputs) input = inside(input);
    to[id] = child.add(std::move(node));
    if (auto range = checks_of_.find(id); range != checks_of_.end())
      for (std::size_t i = range->second.begin; i < range->second.end; ++i) child.checks.push_back(graph.checks[i]);
  }
  for (ValueId id : results) child.results.push_back(inside(id));
  return child;
}

bool Trace::decide(const Tensor& given) {
  Tensor condition = given;
  Where where = graph.node(given.node()->traced->id).where;
  for (int axis = 0; axis < given.rank(); ++axis)
    if (!require(given.dim(axis), Relation::equal, 1, {"if", "one element to decide by", where}))
      throw UserError(error_text(text("bool: the truth of ", given.dtype(), given.shape(),
                                      " with more or less than one element is not defined"),
                                 where, "reduce it to one element first, for example any(x) or all(x)"));
  if (given.rank() > 0) condition = core_ops.sum_to(condition, Shape());
  if (condition.dtype() != DType::bool_) condition = core_ops.cast(In(condition, where), DType::bool_);
  ValueId id = lift(condition, where);
  for (const ForkScope* scope = innermost_; scope; scope = scope->outer())
    if (const bool* outcome = scope->known(id)) return *outcome;
  if (!innermost_) throw InternalError("a decision outside of any scope");
  return innermost_->decide(id);
}

void Trace::bury(const std::vector<ValueId>& nodes) {
  buried_.resize(graph.nodes.size(), false);
  for (ValueId id : nodes) buried_[static_cast<std::size_t>(id)] = true;
}

Graph Trace::finished() {
  bury({});
  Graph out;
  out.scope = graph.scope;
  std::vector<ValueId> to(graph.nodes.size(), -1);
  std::vector<bool> inside(graph.checks.size(), false);
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    if (buried_[id]) {
      if (auto range = checks_of_.find(static_cast<ValueId>(id)); range != checks_of_.end())
        for (std::size_t i = range->second.begin; i < range->second.end; ++i) inside[i] = true;
      continue;
    }
    Node node = graph.nodes[id];
    for (ValueId& input : node.inputs) {
      if (to[static_cast<std::size_t>(input)] < 0)
        throw InternalError(
            text("%", id, " of '", function(), "' uses what lies inside of a branch: %", input, "\n", graph.str()));
      input = to[static_cast<std::size_t>(input)];
    }
    to[id] = out.add(std::move(node));
  }
  for (ValueId id : graph.inputs) out.inputs.push_back(to[static_cast<std::size_t>(id)]);
  for (ValueId id : graph.results) {
    if (to[static_cast<std::size_t>(id)] < 0)
      throw InternalError(text("a result of '", function(), "' lies inside of a branch: %", id, "\n", graph.str()));
    out.results.push_back(to[static_cast<std::size_t>(id)]);
  }
  out.updates = graph.updates;
  for (std::size_t i = 0; i < graph.checks.size(); ++i)
    if (!inside[i]) out.checks.push_back(graph.checks[i]);
  return drop_dead(out);
}

// --- the gradient of a branch

std::vector<bool> inputs_reached(const Graph& side, const std::vector<bool>& asked) {
  std::vector<bool> reached(side.nodes.size(), false);
  for (std::size_t r = 0; r < side.results.size() && r < asked.size(); ++r)
    if (asked[r]) reached[static_cast<std::size_t>(side.results[r])] = true;
  for (std::size_t id = side.nodes.size(); id-- > 0;) {
    const Node& node = side.nodes[id];
    if (!reached[id]) continue;
    std::vector<bool> used(node.inputs.size(), true);
    if (node.op == &alias_row) {
      const AliasAttributes::Kind kind = node.attributes.as<AliasAttributes>().kind;
      used[0] = kind != AliasAttributes::stop && kind != AliasAttributes::attached;
    }
    if (node.op->kind == Kind::branch) {
      const auto& branch = node.attributes.as<BranchAttributes>();
      const std::vector<bool> all(node.results.size(), true);
      std::vector<bool> yes = inputs_reached(*branch.yes, all), no = inputs_reached(*branch.no, all);
      for (std::size_t i = 1; i < used.size(); ++i) used[i] = yes[i - 1] || no[i - 1];
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      const std::vector<ValueType>& types = side.node(node.inputs[i]).results;
      if (used[i] && (types.size() > 1 || is_floating(types[0].dtype)))
        reached[static_cast<std::size_t>(node.inputs[i])] = true;
    }
  }
  std::vector<bool> out;
  for (ValueId id : side.inputs) out.push_back(reached[static_cast<std::size_t>(id)]);
  return out;
}

void branch_gradient(GradientCall& call) {
  const auto& branch = call.attributes<BranchAttributes>();
  refuse_again(*branch.yes);
  refuse_again(*branch.no);
  // Zeros for what neither side computes from would be zeros times whatever was computed before.
  std::vector<bool> asked;
  for (const Tensor& d : call.ds()) asked.push_back(d.defined());
  std::vector<bool> yes = inputs_reached(*branch.yes, asked), no = inputs_reached(*branch.no, asked);
  auto wants = [&](int i) {
    auto at = static_cast<std::size_t>(i - 1);
    return call.wants(i) && (yes[at] || no[at]);
  };
  std::vector<Tensor> gradients = scope([&] {
    const Graph& chosen = call.in(0) ? *branch.yes : *branch.no;
    GradientTape tape;
    std::vector<Tensor> inputs, wanted;
    for (int i = 1; i < call.input_count(); ++i) {
      inputs.push_back(same_value(call.in(i)));
      if (!wants(i)) continue;
      tape.watch(inputs.back());
      wanted.push_back(inputs.back());
    }
    std::vector<Tensor> results = replay(chosen, inputs, Effects::have_happened);
    std::vector<Tensor> out = gradients_of(tape, results, call.ds(), {wanted.begin(), wanted.end()});
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!out[i].defined()) out[i] = zeros_like(wanted[i]);
    return out;
  });
  std::size_t next = 0;
  for (int i = 1; i < call.input_count(); ++i)
    if (wants(i)) call.set(i, gradients[next++]);
}

}  // namespace stet
