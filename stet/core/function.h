// Function: ordinary C++ traced once into a graph, compiled with symbolic sizes, and reused.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/audit.h"
#include "stet/core/signature.h"
#include "stet/core/structure.h"

namespace stet {

/// What a call does that no trace fits when as many are kept as may be.
enum class OnLimit : std::uint8_t {
  evict,  // it is traced; a trace that is cheap to make again and has not served for long is forgotten, with a warning
  eager,  // its host code runs eagerly, as if the function were not traced; a warning says so once
  error   // it is a RetraceError
};

struct FunctionOptions {
  /// A promise about the tensor arguments, one per tensor: then there is one trace, calls that break the promise are
  /// UserErrors, and host code may not decide by sizes that it leaves unknown (TraceError).
  std::vector<TensorSpec> signature = {};
  /// Traces kept, and the memory that they may take together, roughly: programs, code and what they captured.
  int max_traces = 64;
  std::int64_t max_bytes = std::int64_t{512} << 20;
  OnLimit on_limit = OnLimit::evict;
  /// When host code is run again to see whether it would still do the same.
  Audit audit = {};
  OnStale on_stale = OnStale::warn;
};

/// A traced function without its types. Copies share; any number of threads may call one.
class STET_API FunctionBase {
 public:
  /// Traces made so far (not counting comparing runs and audits).
  int trace_count() const;
  /// What was traced, on which facts, what it cost and served.
  std::string explain() const;
  /// The graph of a trace, as text.
  std::string graph(int trace = 0) const;
  /// Forgets all traces.
  void clear() const;

  struct State;

 protected:
  /// Runs the callable on leaves and flattens what it returns.
  using HostCode = std::function<inside::Leaves(const inside::Leaves&)>;
  FunctionBase(std::string_view name, std::size_t arity, HostCode body, FunctionOptions options, Where where);
  /// What a call gave: the structure of the results, and the tensors in it.
  struct Results {
    const inside::Leaves* form = nullptr;
    inside::ResultTensors tensors = {};
    std::shared_ptr<const void> owner = {};  // of the form, where it is not kept otherwise until the next call
  };
  /// Serves a call whose like this thread has served just before. False: nothing was done.
  bool hit(const inside::LeafViews& arguments, Results& results, Where where) const;
  void call(inside::Leaves arguments, std::vector<int> leaf_arguments, Results& results, Where where) const;
  void check(inside::Leaves arguments, std::vector<int> leaf_arguments, Where where) const;

 private:
  /// UserError naming the operation if this Function was moved from.
  const std::shared_ptr<State>& state(const char* what, Where where = {}) const;
  /// What host code that ran in place gave.
  static void take_results(inside::Leaves given, Results& results);

  std::shared_ptr<State> state_;
};

template <class Signature>
class Function;

/// The call returns exactly what the callable returns. Host code runs only while tracing, never on a hit. Under an open
/// GradientTape the trace's ops run one by one, so that the tape sees them; inside another trace the callable is
/// inlined.
template <class R, class... A>
class Function<R(A...)> : public FunctionBase {
  static_assert((!(std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>)&&...),
                "a traced function takes its parameters by value or const&: writing to an argument would happen while "
                "tracing only; return the new value instead");
  static_assert((structure::Known<std::remove_cvref_t<A>> && ...),
                "an argument of a traced function is a Tensor, a Variable, a number, an enumerator, a std::string, a "
                "handle, or a tuple, pair, vector, array, optional or aggregate (with STET_FIELDS) of them");

 public:
  Function(std::string_view name, std::function<R(A...)> callable, FunctionOptions options = {},
           Where where = Where::here())
      : FunctionBase(name, sizeof...(A), erased(std::move(callable)), options, where) {}

  R operator()(A... arguments, Where where = Where::here()) const {
    inside::LeafViews views;
    (structure::Of<std::remove_cvref_t<A>>::view(arguments, views), ...);
    Results results;
    if (!hit(views, results, where)) miss(results, where, arguments...);
    if constexpr (!std::is_void_v<R>) {
      inside::LeafReader reader(*results.form, results.tensors.begin());
      return structure::Of<R>::read(reader);
    }
  }

  /// Runs the call both ways, traced and compiled, and eagerly, on the state as it is and without changing it, and
  /// compares results, Variables and gradients: VerifyError names what differs. For when you are in doubt;
  /// STET_VERIFY=1 in the environment does it for the first call of every trace and for every audited call.
  void verify(A... arguments, Where where = Where::here()) const {
    auto [leaves, owners] = flattened(arguments...);
    check(std::move(leaves), std::move(owners), where);
  }

 private:
  void miss(Results& results, Where where, const std::remove_cvref_t<A>&... arguments) const {
    auto [leaves, owners] = flattened(arguments...);
    call(std::move(leaves), std::move(owners), results, where);
  }
  /// The arguments as leaves, and for each leaf the number of its argument.
  static std::pair<inside::Leaves, std::vector<int>> flattened(const std::remove_cvref_t<A>&... arguments) {
    inside::Leaves leaves;
    std::vector<int> owners;
    int number = 0;
    [[maybe_unused]] auto one = [&](const auto& argument) {
      structure::Of<std::remove_cvref_t<decltype(argument)>>::write(argument, leaves);
      owners.resize(leaves.size(), number++);
    };
    (one(arguments), ...);
    return {std::move(leaves), std::move(owners)};
  }
  static HostCode erased(std::function<R(A...)> callable) {
    return [callable = std::move(callable)](const inside::Leaves& leaves) {
      inside::LeafReader reader(leaves);
      std::tuple<std::remove_cvref_t<A>...> arguments{structure::Of<std::remove_cvref_t<A>>::read(reader)...};
      inside::Leaves out;
      if constexpr (std::is_void_v<R>)
        std::apply(callable, std::move(arguments));
      else
        structure::Of<R>::write(std::apply(callable, std::move(arguments)), out);
      return out;
    };
  }
};

template <class F>
struct CallSignature {};
template <class F>
requires requires { &F::operator(); }
struct CallSignature<F> : CallSignature<decltype(&F::operator())> {};
template <class C, class R, class... A>
struct CallSignature<R (C::*)(A...) const> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct CallSignature<R (C::*)(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct CallSignature<R (*)(A...)> {
  using type = R(A...);
};
template <class F>
concept PlainCallable = requires {
  typename CallSignature<std::decay_t<F>>::type;
};

/// A traced function of a lambda or function pointer. The name may list the arguments: "train_step(x, y)".
template <PlainCallable F>
Function<typename CallSignature<std::decay_t<F>>::type> function(std::string_view name, F&& callable,
                                                                 FunctionOptions options = {},
                                                                 Where where = Where::here()) {
  return {name, std::forward<F>(callable), options, where};
}
/// Without a name, messages call it by its place: "function at train.cpp:12".
template <PlainCallable F>
Function<typename CallSignature<std::decay_t<F>>::type> function(F&& callable, FunctionOptions options = {},
                                                                 Where where = Where::here()) {
  return {"", std::forward<F>(callable), options, where};
}
/// For a generic or overloaded callable: function<Tensor(Tensor)>("f(x)", …).
template <class Signature, class F>
requires(!PlainCallable<F>) Function<Signature> function(std::string_view name, F&& callable,
                                                         FunctionOptions options = {}, Where where = Where::here()) {
  return {name, std::forward<F>(callable), options, where};
}

template <class Signature, class F>
requires(!PlainCallable<F>) Function<Signature> function(F&& callable, FunctionOptions options = {},
                                                         Where where = Where::here()) {
  return {"", std::forward<F>(callable), options, where};
}

/// f.verify(arguments…), which also names the line of the call.
template <class Signature, class... Given>
void verify(const Function<Signature>& f, Given&&... arguments) {
  f.verify(std::forward<Given>(arguments)..., Where{});
}

/// While it lives, a second or later trace on this thread throws RetraceError instead.
class STET_API NoRetrace {
 public:
  [[nodiscard]] NoRetrace();
  ~NoRetrace();
  NoRetrace(const NoRetrace&) = delete;
  NoRetrace& operator=(const NoRetrace&) = delete;
};

struct RetraceEvent {
  std::string function;
  int trace = 0;  // its number; 0: none was made, the call ran eagerly (OnLimit::eager)
  std::string explanation;
};
/// Called, instead of writing the explanation to stderr, after every retrace, and once when functions are made anew in
/// a loop. What it throws is written to stderr: the call is served. An empty function brings stderr back.
STET_API void on_retrace(std::function<void(const RetraceEvent&)> listener);

}  // namespace stet
