// Loops that a trace holds as one op, for any number of turns: while_loop, for_loop, scan and what is made of them.
// Eagerly the same code runs turn by turn.
//
// A state, a sequence and a result are a Tensor, or a structure of Tensors as arguments of traced functions are:
// tuples, pairs, arrays, vectors, aggregates with STET_FIELDS. A turn must leave a state of the dtypes and sizes it
// began with (UserError). What a body writes of Variables, what it draws and what it throws happens turn by turn.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/core/in.h"
#include "stet/core/scope.h"
#include "stet/core/structure.h"
#include "stet/core/tensor.h"

namespace stet {

struct LoopOptions {
  /// 0: the gradient keeps what it needs of every turn. k: it keeps the state before every k-th turn, and runs the
  /// turns between again.
  std::int64_t checkpoint_every = 0;
};

struct ScanLoopOptions {
  bool reverse = false;               // from the last element to the first; results stay beside their elements
  std::optional<Dim> length = {};     // turns, where there is no sequence
  std::int64_t checkpoint_every = 0;  // as LoopOptions::checkpoint_every
};

namespace inside {

struct Turn {
  Leaves state, results;
};
/// A loop over leaves.
struct Loop {
  const char* name;
  Where where;
  std::optional<In> turns = {};  // a number, a size, or a tensor; none: as the sequences have elements
  Leaves state = {}, sequences = {};
  bool reverse = false;
  bool gives_results = true;  // beside the state
  std::int64_t checkpoint_every = 0;
  std::function<Turn(const Leaves& state, const Leaves& elements, const Tensor& place)> body = {};
  std::function<Tensor(const Leaves& state)> condition = {};
};
STET_API Turn run_loop(const Loop& loop);
STET_API Leaves run_associative(const Leaves& given, bool reverse,
                                const std::function<Leaves(const Leaves&, const Leaves&)>& f, Where where);

[[noreturn]] STET_API void no_cases(Where where);
STET_API Tensor is_below(const Tensor& index, std::int64_t number, Where where);

template <class T>
Leaves leaves_of(const T& value) {
  Leaves out;
  structure::Of<T>::write(value, out);
  return out;
}
template <class T>
T from_leaves(const Leaves& leaves) {
  LeafReader reader(leaves);
  return structure::Of<T>::read(reader);
}

template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};

/// f(first…, state), or f(first…, parts of the state…) where the state is a tuple and f takes its parts.
template <class F, class State, class... First>
decltype(auto) call_with_state(F& f, State&& state, First&&... first) {
  if constexpr (std::is_invocable_v<F&, First..., State>)
    return f(std::forward<First>(first)..., std::forward<State>(state));
  else
    return std::apply(
        [&](auto&&... part) -> decltype(auto) {
          return f(std::forward<First>(first)..., std::forward<decltype(part)>(part)...);
        },
        std::forward<State>(state));
}

/// f takes the state, or its parts, and nothing before.
template <class F, class State>
struct TakesState : std::is_invocable<F&, State> {};
template <class F, class... T>
struct TakesState<F, std::tuple<T...>>
    : std::disjunction<std::is_invocable<F&, std::tuple<T...>>, std::is_invocable<F&, T...>> {};

template <class T>
constexpr void check_state() {
  static_assert(!std::is_arithmetic_v<T>,
                "the state of a loop is a Tensor or a structure of Tensors: a C++ number cannot change from turn to "
                "turn; write tensor(0.f)");
  static_assert(structure::Known<T>, "the state of a loop is a Tensor or a structure of Tensors");
}

}  // namespace inside

/// Runs state = body(state) as long as condition(state), a tensor with one element, is true.
template <class Condition, class Body, class State>
State while_loop(Condition&& condition, Body&& body, State state, LoopOptions options = {},
                 Where where = Where::here()) {
  inside::check_state<State>();
  inside::Loop loop{.name = "while_loop", .where = where, .state = inside::leaves_of(state), .gives_results = false};
  loop.checkpoint_every = options.checkpoint_every;
  loop.condition = [&](const inside::Leaves& leaves) -> Tensor {
    return inside::call_with_state(condition, inside::from_leaves<State>(leaves));
  };
  loop.body = [&](const inside::Leaves& leaves, const inside::Leaves&, const Tensor&) {
    State next = inside::call_with_state(body, inside::from_leaves<State>(leaves));
    return inside::Turn{inside::leaves_of(next), {}};
  };
  return inside::from_leaves<State>(inside::run_loop(loop).state);
}

/// Runs state = body(i, state), or body(state), for i = 0, 1, …, n - 1, where i is an i64 scalar. `n` is a number, a
/// size or an integer tensor with one element: one trace serves all of them.
template <class Body, class State>
State for_loop(const In& n, Body&& body, State state, LoopOptions options = {}, Where where = Where::here()) {
  inside::check_state<State>();
  inside::Loop loop{
      .name = "for_loop", .where = where, .turns = n, .state = inside::leaves_of(state), .gives_results = false};
  loop.checkpoint_every = options.checkpoint_every;
  loop.body = [&](const inside::Leaves& leaves, const inside::Leaves&, const Tensor& place) {
    auto next = [&]() -> State {
      if constexpr (inside::TakesState<Body, State>::value)
        return inside::call_with_state(body, inside::from_leaves<State>(leaves));
      else
        return inside::call_with_state(body, inside::from_leaves<State>(leaves), place);
    };
    return inside::Turn{inside::leaves_of(next()), {}};
  };
  return inside::from_leaves<State>(inside::run_loop(loop).state);
}

namespace inside {

/// What a body of scan gives, as the next state and a result.
template <class Carry, class Given>
Turn turn_of(const Given& given) {
  if constexpr (std::is_convertible_v<Given, Carry>) {
    return {leaves_of<Carry>(given), {}};
  } else {
    const auto& [carry, result] = given;
    return {leaves_of<Carry>(carry), leaves_of(result)};
  }
}
template <class Carry, class Given>
struct Scanned {
  using Result = std::remove_cvref_t<decltype(std::get<1>(std::declval<Given>()))>;
  using Type = std::pair<Carry, Result>;
  static Type read(const Turn& end) { return {from_leaves<Carry>(end.state), from_leaves<Result>(end.results)}; }
};
template <class Carry, class Given>
requires std::is_convertible_v<Given, Carry>
struct Scanned<Carry, Given> {
  using Type = Carry;
  static Type read(const Turn& end) { return from_leaves<Carry>(end.state); }
};

}  // namespace inside

/// Runs (carry, y) = body(carry, x) for the elements x of `xs` along their first axis. Gives the last carry and the ys,
/// stacked along a new first axis. A body may also give the carry alone, and then so does scan.
template <class Body, class Carry, class Xs>
auto scan(Body&& body, Carry carry, const Xs& xs, ScanLoopOptions options = {}, Where where = Where::here()) {
  using Given = std::remove_cvref_t<std::invoke_result_t<Body&, Carry, Xs>>;
  inside::check_state<Carry>();
  static_assert(structure::Known<Xs>, "what is scanned is a Tensor or a structure of Tensors");
  inside::Loop loop{
      .name = "scan", .where = where, .state = inside::leaves_of(carry), .sequences = inside::leaves_of(xs)};
  if (options.length) loop.turns.emplace(*options.length, where);
  loop.reverse = options.reverse;
  loop.gives_results = !std::is_convertible_v<Given, Carry>;
  loop.checkpoint_every = options.checkpoint_every;
  loop.body = [&](const inside::Leaves& leaves, const inside::Leaves& elements, const Tensor&) {
    return inside::turn_of<Carry, Given>(body(inside::from_leaves<Carry>(leaves), inside::from_leaves<Xs>(elements)));
  };
  return inside::Scanned<Carry, Given>::read(inside::run_loop(loop));
}

/// The same without a sequence: options.length turns of body(carry).
template <class Body, class Carry>
auto scan(Body&& body, Carry carry, ScanLoopOptions options, Where where = Where::here()) {
  using Given = std::remove_cvref_t<std::invoke_result_t<Body&, Carry>>;
  inside::check_state<Carry>();
  inside::Loop loop{.name = "scan", .where = where, .state = inside::leaves_of(carry)};
  if (options.length) loop.turns.emplace(*options.length, where);
  loop.reverse = options.reverse;
  loop.gives_results = !std::is_convertible_v<Given, Carry>;
  loop.checkpoint_every = options.checkpoint_every;
  loop.body = [&](const inside::Leaves& leaves, const inside::Leaves&, const Tensor&) {
    return inside::turn_of<Carry, Given>(body(inside::from_leaves<Carry>(leaves)));
  };
  return inside::Scanned<Carry, Given>::read(inside::run_loop(loop));
}

/// f of every element of `xs` along their first axis, one after the other, stacked along a new first axis.
template <class F, class Xs>
auto map_fn(F&& f, const Xs& xs, LoopOptions options = {}, Where where = Where::here()) {
  using Result = std::remove_cvref_t<std::invoke_result_t<F&, Xs>>;
  static_assert(structure::Known<Xs> && structure::Known<Result>, "map_fn maps Tensors or structures of Tensors");
  inside::Loop loop{.name = "map_fn", .where = where, .sequences = inside::leaves_of(xs)};
  loop.checkpoint_every = options.checkpoint_every;
  loop.body = [&](const inside::Leaves&, const inside::Leaves& elements, const Tensor&) {
    return inside::Turn{{}, inside::leaves_of(f(inside::from_leaves<Xs>(elements)))};
  };
  return inside::from_leaves<Result>(inside::run_loop(loop).results);
}

struct AssociativeScanOptions {
  bool reverse = false;  // from the last element to the first
};

/// The running combinations of the elements of `xs` along their first axis: x[0], f(x[0], x[1]), f(f(x[0], x[1]), x[2])
/// … with as few turns as the length has binary digits. f must be associative; it is given many elements at once, along
/// the first axis, and combines them one by one. In reverse it is f(f(x[n-1], x[n-2]), …): the element that is further
/// on comes first, as in JAX.
template <class F, class Xs>
Xs associative_scan(F&& f, const Xs& xs, AssociativeScanOptions options = {}, Where where = Where::here()) {
  static_assert(structure::Known<Xs>, "what is scanned is a Tensor or a structure of Tensors");
  return inside::from_leaves<Xs>(inside::run_associative(
      inside::leaves_of(xs), options.reverse,
      [&](const inside::Leaves& a, const inside::Leaves& b) {
        Xs combined = f(inside::from_leaves<Xs>(a), inside::from_leaves<Xs>(b));
        return inside::leaves_of(combined);
      },
      where));
}

/// What the callable with this number gives: the first if the index, an integer with one element, is 0 or less, the
/// last if it is larger than there are callables. Traced, all are recorded, and one runs.
template <class Result>
Result switch_case(const Tensor& index, const std::vector<std::function<Result()>>& cases,
                   Where where = Where::here()) {
  if (cases.empty()) inside::no_cases(where);
  auto choose = [&](auto&& self, std::size_t begin, std::size_t end) -> Result {
    if (end - begin == 1) return cases[begin]();
    const std::size_t middle = begin + (end - begin) / 2;
    return cond(
        inside::is_below(index, static_cast<std::int64_t>(middle), where), [&] { return self(self, begin, middle); },
        [&] { return self(self, middle, end); }, where);
  };
  return choose(choose, 0, cases.size());
}
template <class First, class... More>
requires std::is_invocable_v<First>
auto switch_case(const Tensor& index, First&& first, More&&... more) {
  using Result = std::invoke_result_t<First>;
  return switch_case<Result>(index, std::vector<std::function<Result()>>{std::ref(first), std::ref(more)...});
}

}  // namespace stet
