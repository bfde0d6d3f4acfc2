#include "stet/ops/loops.h"

#include <utility>

#include "stet/base/text.h"
#include "stet/core/flat_loop.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/ops/ops.h"

namespace stet::inside {
namespace {

[[noreturn]] void fail(const Loop& loop, const std::string& problem, const std::string& advice) {
  throw UserError(error_text(text(loop.name, ": ", problem), loop.where, advice));
}

/// The tensors among leaves. An undefined one stands for none, in every turn.
std::vector<Tensor> tensors_in(const Loop& loop, const Leaves& leaves, const char* what) {
  std::vector<Tensor> out;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind == Leaf::number)
      fail(loop, text(what, leaf.path.empty() ? "" : " ", leaf.path, " is a C++ number, the same in every turn"),
           "make it a tensor: tensor(value)");
    if (leaf.kind == Leaf::variable)
      fail(loop, text(what, leaf.path.empty() ? "" : " ", leaf.path, " is a Variable"),
           "use the Variable in the body without handing it over, or hand over what it holds");
    if (leaf.kind != Leaf::tensor || !leaf.value.defined()) continue;
    // A number that takes the type of what it meets would take another one in every turn.
    out.push_back(leaf.value.node()->weak ? same_value(leaf.value) : leaf.value);
  }
  return out;
}

/// The same leaves with other tensors.
Leaves with_tensors(Leaves form, std::span<const Tensor> tensors) {
  std::size_t next = 0;
  for (Leaf& leaf : form)
    if (leaf.kind == Leaf::tensor && leaf.value.defined()) leaf.value = tensors[next++];
  return form;
}

/// The leaves as a form to be filled: a tensor that is defined is one to come.
Leaves without_tensors(Leaves leaves) {
  for (Leaf& leaf : leaves) {
    if (leaf.kind != Leaf::tensor) continue;
    leaf.undefined = !leaf.value.defined();
    leaf.value = {};
  }
  return leaves;
}
Leaves filled(Leaves form, std::span<const Tensor> tensors) {
  std::size_t next = 0;
  for (Leaf& leaf : form)
    if (leaf.kind == Leaf::tensor && !std::exchange(leaf.undefined, false)) leaf.value = tensors[next++];
  return form;
}

void ensure_same_structure(const Loop& loop, const Leaves& before, const Leaves& after) {
  bool same = before.size() == after.size();
  for (std::size_t i = 0; same && i < before.size(); ++i) {
    const Leaf &a = before[i], &b = after[i];
    same = a.kind == b.kind;
    if (a.kind == Leaf::tensor)
      same = same && a.value.defined() == b.value.defined();
    else
      same = same && a.bits == b.bits;
  }
  if (!same)
    fail(loop, "a turn leaves a state of another structure than it began with",
         "return as many tensors as the state has; what is none at first stays none");
}

/// How many turns there are, by what was said and by the sequences.
void count_turns(const Loop& loop, FlatLoop& flat) {
  if (loop.condition) {
    flat.count = LoopAttributes::by_condition;
    return;
  }
  if (loop.turns && loop.turns->kind() == In::Kind::tensor) {
    const Tensor& count = loop.turns->tensor();
    if (!count.defined() || is_floating(count.dtype()) || count.dtype() == DType::bool_)
      fail(loop, text("the number of turns is ", count.defined() ? type_text(count) : "undefined", ", not an integer"),
           "cast it to i64");
    for (int axis = 0; axis < count.rank(); ++axis)
      if (!require(count.dim(axis), Relation::equal, 1, {loop.name, "one number of turns", loop.where}))
        fail(loop, text("the number of turns is ", type_text(count), ", not one number"), "take one of its elements");
    flat.count = LoopAttributes::by_value;
    flat.count_value = cast(In(count.rank() > 0 ? reshape(In(count, loop.where), {}) : count, loop.where), i64);
    return;
  }
  std::optional<Dim> turns;
  if (loop.turns && loop.turns->kind() == In::Kind::real)
    fail(loop, text("the number of turns is ", loop.turns->real(), ", not an integer"), "cast it to an integer");
  if (loop.turns) turns = loop.turns->kind() == In::Kind::size ? loop.turns->size() : Dim(loop.turns->integer());
  for (std::size_t i = 0; i < flat.sequences.size(); ++i) {
    const Tensor& sequence = flat.sequences[i];
    if (sequence.rank() == 0)
      fail(loop, text("what is scanned is ", type_text(sequence), ", which has no axis to scan"),
           "give it a first axis; what is the same in every turn can be used in the body as it is");
    if (turns && !require(sequence.dim(0), Relation::equal, *turns, {loop.name, "elements to scan", loop.where}))
      fail(loop,
           text("sequences of different lengths: ", size_text(*turns), " and ", size_text(sequence.dim(0)), " in ",
                type_text(sequence)),
           "make them equally long");
    if (!turns) turns = sequence.dim(0);
  }
  if (!turns) fail(loop, "neither a sequence nor a length says how many turns there are", "give a length");
  flat.turns = *turns;
}

Tensor part_of(const Tensor& x, const Dim& begin, const Dim& size) {
  std::vector<Dim> begins(static_cast<std::size_t>(x.rank()), 0), sizes;
  begins[0] = begin;
  for (int axis = 0; axis < x.rank(); ++axis) sizes.push_back(axis == 0 ? size : x.dim(axis));
  return slice(x, begins, sizes);
}

/// The first axis as two, and back.
Tensor in_groups(const Tensor& x, const Dim& groups, const Dim& each) {
  std::vector<Dim> sizes{groups, each};
  for (int axis = 1; axis < x.rank(); ++axis) sizes.push_back(x.dim(axis));
  return reshape(x, Shape(sizes));
}
Tensor without_groups(const Tensor& x) {
  std::vector<Dim> sizes{x.dim(0) * x.dim(1)};
  for (int axis = 2; axis < x.rank(); ++axis) sizes.push_back(x.dim(axis));
  return reshape(x, Shape(sizes));
}

// Checkpoints: turns in groups of k, each group a turn of a loop that keeps only what it begins with; what is left over
// is a loop of its own.

/// Some turns of the loop: those from place `first` on, which begin with this state. How many is left to say.
FlatLoop turns_from(const FlatLoop& flat, std::span<const Tensor> carried, const Tensor& first) {
  FlatLoop out = flat;
  out.carried.assign(carried.begin(), carried.end());
  out.body = [&flat, first](std::span<const Tensor> state, std::span<const Tensor> elements, const Tensor& place) {
    return flat.body(state, elements, place + first);
  };
  return out;
}

FlatTurn grouped_by_size(const FlatLoop& flat, std::int64_t k) {
  const Dim groups = flat.turns / k, whole = groups * k;
  auto inner = [&](std::span<const Tensor> carried, std::vector<Tensor> sequences, const Dim& turns,
                   const Tensor& first) {
    FlatLoop group = turns_from(flat, carried, first);
    group.sequences = std::move(sequences);
    group.turns = turns;
    return run_flat_loop(group);
  };
  FlatLoop outer = flat;
  outer.turns = groups;
  outer.recompute = true;
  for (Tensor& sequence : outer.sequences) sequence = in_groups(part_of(sequence, 0, whole), groups, k);
  outer.body = [&](std::span<const Tensor> carried, std::span<const Tensor> elements, const Tensor& place) {
    return inner(carried, {elements.begin(), elements.end()}, k, place * k);
  };
  auto run_rest = [&](std::span<const Tensor> carried) {
    std::vector<Tensor> sequences;
    for (const Tensor& sequence : flat.sequences) sequences.push_back(part_of(sequence, whole, flat.turns - whole));
    return inner(carried, std::move(sequences), flat.turns - whole, tensor(whole, flat.where));
  };
  FlatTurn first, last;
  if (flat.reverse) {
    last = run_rest(flat.carried);
    outer.carried = last.carried;
    first = run_flat_loop(outer);
  } else {
    first = run_flat_loop(outer);
    last = run_rest(first.carried);
  }
  FlatTurn out{flat.reverse ? first.carried : last.carried, {}, first.form ? first.form : last.form};
  for (std::size_t r = 0; r < first.stacked.size(); ++r)
    out.stacked.push_back(concat({without_groups(first.stacked[r]), last.stacked[r]}, 0));
  return out;
}

FlatTurn grouped_by_value(const FlatLoop& flat, std::int64_t k) {
  Tensor turns = maximum(flat.count_value, 0), groups = floor_divide(turns, k);
  auto inner = [&](std::span<const Tensor> carried, const Tensor& count, const Tensor& first) {
    FlatLoop group = turns_from(flat, carried, first);
    group.count_value = count;
    return run_flat_loop(group);
  };
  FlatLoop outer = flat;
  outer.count_value = groups;
  outer.recompute = true;
  outer.body = [&](std::span<const Tensor> carried, std::span<const Tensor>, const Tensor& place) {
    return inner(carried, tensor(k), place * k);
  };
  FlatTurn whole = run_flat_loop(outer);
  return inner(whole.carried, turns - groups * k, groups * k);
}

FlatTurn grouped_by_condition(const FlatLoop& flat, std::int64_t k) {
  FlatLoop outer = flat;
  outer.recompute = true;
  outer.body = [&](std::span<const Tensor> carried, std::span<const Tensor>, const Tensor&) {
    FlatLoop turns = flat;
    turns.carried.assign(carried.begin(), carried.end());
    turns.condition = [&](std::span<const Tensor> state, const Tensor& place) {
      return logical_and(place < k, flat.condition(state, place));
    };
    return run_flat_loop(turns);
  };
  return run_flat_loop(outer);
}

FlatTurn run_with_checkpoints(const FlatLoop& flat, std::int64_t k) {
  // Eagerly a tape keeps what the ops of every turn need.
  if (k == 0 || !branches::may_fork()) return run_flat_loop(flat);
  if (flat.count == LoopAttributes::by_size) return grouped_by_size(flat, k);
  return flat.count == LoopAttributes::by_value ? grouped_by_value(flat, k) : grouped_by_condition(flat, k);
}

}  // namespace

Leaves run_associative(const Leaves& given, bool reverse, const std::function<Leaves(const Leaves&, const Leaves&)>& f,
                       Where where) {
  Loop loop{.name = "associative_scan", .where = where, .sequences = given};
  FlatLoop sizes;
  sizes.sequences = tensors_in(loop, given, "what is scanned");
  count_turns(loop, sizes);
  if (reverse)
    for (Tensor& x : sizes.sequences) x = flip(x, {0});
  // Every turn doubles how far an element has looked back.
  Tensor place = arange(sizes.turns);
  loop.state = with_tensors(given, sizes.sequences);
  loop.sequences.clear();
  loop.state.push_back({.kind = Leaf::tensor, .value = tensor(std::int64_t{1}), .path = "the distance"});
  loop.condition = [&](const Leaves& state) { return state.back().value < sizes.turns; };
  loop.body = [&](const Leaves& state, const Leaves&, const Tensor&) {
    Tensor distance = state.back().value, reaches = place >= distance,
           from = stet::where(reaches, place - distance, place);
    Leaves now(state.begin(), state.end() - 1), before = now;
    for (Leaf& leaf : before)
      if (leaf.kind == Leaf::tensor && leaf.value.defined()) leaf.value = gather(leaf.value, from);
    Leaves next = f(before, now);
    ensure_same_structure(loop, now, next);
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (next[i].kind != Leaf::tensor || !next[i].value.defined()) continue;
      std::vector<Dim> column(static_cast<std::size_t>(now[i].value.rank()), 1);
      column[0] = sizes.turns;
      next[i].value = stet::where(reshape(reaches, Shape(column)), next[i].value, now[i].value);
    }
    next.push_back({.kind = Leaf::tensor, .value = distance * 2});
    return Turn{std::move(next), {}};
  };
  Leaves out = run_loop(loop).state;
  out.pop_back();
  if (reverse)
    for (Leaf& leaf : out)
      if (leaf.kind == Leaf::tensor && leaf.value.defined()) leaf.value = flip(leaf.value, {0});
  return out;
}

void no_cases(Where where) {
  throw UserError(error_text("switch_case: there is no case to choose", where, "give at least one callable"));
}

Tensor is_below(const Tensor& index, std::int64_t number, Where where) {
  if (!index.defined() || is_floating(index.dtype()) || index.dtype() == DType::bool_)
    throw UserError(error_text(
        text("switch_case: the index is ", index.defined() ? type_text(index) : "undefined", ", not an integer"), where,
        "cast it to i64"));
  return In(index, where) < number;
}

Turn run_loop(const Loop& loop) {
  FlatLoop flat;
  flat.name = loop.name;
  flat.where = loop.where;
  flat.reverse = loop.reverse;
  flat.stacks = loop.gives_results;
  flat.carried = tensors_in(loop, loop.state, "the state");
  flat.sequences = tensors_in(loop, loop.sequences, "what is scanned");
  for (const Leaf& leaf : loop.state)
    if (leaf.kind == Leaf::tensor && leaf.value.defined()) flat.carried_names.push_back(leaf.path);
  count_turns(loop, flat);
  if (loop.checkpoint_every < 0)
    fail(loop, text("checkpoint_every is ", loop.checkpoint_every), "0 keeps every turn, k one of k");
  flat.body = [&](std::span<const Tensor> carried, std::span<const Tensor> elements, const Tensor& place) {
    Turn turn = loop.body(with_tensors(loop.state, carried), with_tensors(loop.sequences, elements), place);
    ensure_same_structure(loop, loop.state, turn.state);
    FlatTurn left{tensors_in(loop, turn.state, "the state"), tensors_in(loop, turn.results, "a result of a turn")};
    left.form = std::make_shared<const Leaves>(without_tensors(std::move(turn.results)));
    return left;
  };
  if (loop.condition)
    flat.condition = [&](std::span<const Tensor> carried, const Tensor&) {
      return loop.condition(with_tensors(loop.state, carried));
    };
  FlatTurn end = run_with_checkpoints(flat, loop.checkpoint_every);
  const Leaves form = end.form ? *static_cast<const Leaves*>(end.form.get()) : Leaves{};
  return {with_tensors(loop.state, end.carried), filled(form, end.stacked)};
}

}  // namespace stet::inside
