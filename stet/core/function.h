// Function: ordinary C++ traced once into a graph, compiled with symbolic sizes, and reused.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
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

/// What a trace was made for, and what it has cost and served.
struct TraceInfo {
  std::vector<std::string> arguments = {};  // leaf by leaf: "f32[x_0,5]", "0.5"
  std::vector<std::string> facts = {};      // about sizes: "x_1 == 5, for matmul at train.cpp:12"
  std::vector<std::string> captured = {};   // "f32[3], a constant", "Variable 'w' f32[5,3]"
  std::uint64_t calls = 0;
  double trace_milliseconds = 0, compile_milliseconds = 0;
  std::size_t nodes = 0, steps = 0;  // of the graph as it was traced, and of the program
  std::size_t bytes = 0;             // of memory that it takes, roughly
  bool stale = false;                // an audit found it out of date
};

/// What a run of a program does, for given sizes. Of a branch the dearer side counts; what has sizes that are known
/// only when it runs does not.
struct TraceCost {
  std::int64_t flops = 0;  // additions, products and functions such as exp, one each; comparisons and copies are none
  std::int64_t bytes = 0;  // that kernels touch: each operand and each result of each of them once, constants aside
  std::int64_t kernels = 0;
  std::int64_t arena_bytes = 0;  // of memory for what lives from one kernel to another
  bool operator==(const TraceCost&) const = default;
};

/// Stands for a tensor argument where nothing is run: {f32, {dyn("batch"), 10}}, or a tensor, whose elements do not
/// matter. A size that is not known is one that the trace may not rely on.
class STET_API ArgumentSpec {
 public:
  ArgumentSpec(DType dtype, ShapeSpec shape, Where where = Where::here());
  ArgumentSpec(const TensorSpec& spec, Where where = Where::here());
  ArgumentSpec(const Tensor& like, Where where = Where::here());
  template <inside::Number T>
  ArgumentSpec(T number, Where where = Where::here()) : ArgumentSpec(Tensor(number), where) {}

  const TensorSpec& spec() const { return spec_; }
  /// Of one that was made from a tensor.
  const Tensor& like() const { return like_; }
  Where where() const { return where_; }

 private:
  TensorSpec spec_;
  Tensor like_;
  Where where_;
};

struct Entry;
struct FunctionProfile;  // report/profile.h

namespace inside {

/// What stands for an argument where nothing is run: for a tensor its spec, for all else the value.
template <class A>
struct SpecOf {
  using type = A;
};
template <>
struct SpecOf<Tensor> {
  using type = ArgumentSpec;
};

/// A call's arguments as leaves, and for each leaf the number of its argument.
struct CallLeaves {
  Leaves leaves = {};
  std::vector<int> owners = {};
  std::vector<TensorSpec> specs = {};         // of arguments that are known by their types
  std::vector<std::size_t> spec_leaves = {};  // by spec, the leaf that stands for it

  template <class A>
  void add(const A& argument) {
    structure::Of<A>::write(argument, leaves);
    owners.resize(leaves.size(), next_++);
  }
  /// A tensor that is known by its type alone.
  STET_API void add(const ArgumentSpec& argument);

 private:
  int next_ = 0;
  std::vector<std::string> names_ = {};
};

/// What a call gave: the structure of the results, and the tensors in it.
struct CallResults {
  const Leaves* form = nullptr;
  ResultTensors tensors = {};
  std::shared_ptr<const void> owner = {};  // of the form, where it is not kept otherwise until the next call
};

}  // namespace inside

/// A traced function without its types. Copies share; any number of threads may call one.
class STET_API FunctionBase {
 public:
  /// Traces made so far (not counting comparing runs and audits).
  int trace_count() const;
  /// What was traced, on which facts, what it cost and served.
  std::string explain() const;
  /// The traces that are kept, in the order in which they were made.
  std::vector<TraceInfo> traces() const;
  /// The graph of a trace, as text, and in the language of Graphviz.
  std::string graph(int trace = 0) const;
  std::string dot(int trace = 0) const;
  /// Forgets all traces.
  void clear() const;

  struct State;
  /// As an argument of another function: told apart by identity.
  std::shared_ptr<inside::Body> body() const;

 protected:
  FunctionBase() = default;
  /// Runs the callable on leaves and flattens what it returns.
  using HostCode = std::function<inside::Leaves(const inside::Leaves&)>;
  FunctionBase(std::string_view name, std::size_t arity, HostCode body, FunctionOptions options, Where where);
  using Results = inside::CallResults;
  /// Serves a call whose like this thread has served just before. False: nothing was done.
  bool hit(const inside::LeafViews& arguments, Results& results, Where where) const;
  void call(inside::Leaves arguments, std::vector<int> leaf_arguments, Results& results, Where where) const;
  void check(inside::Leaves arguments, std::vector<int> leaf_arguments, Where where) const;
  /// The trace for such a call, made if there is none; nothing is run.
  std::shared_ptr<Entry> trace_for(const inside::CallLeaves& call, const char* what, Where where) const;
  std::vector<TensorSpec> result_types(const inside::CallLeaves& call, Where where) const;
  std::string graph_of(const inside::CallLeaves& call, bool dot, Where where) const;
  TraceCost cost_of(const inside::CallLeaves& call, Where where) const;
  /// What the signature promises, as a call.
  inside::CallLeaves promised(const char* what, Where where) const;
  std::shared_ptr<State> shared_state(const char* what, Where where) const { return state(what, where); }
  void take_body(std::shared_ptr<inside::Body> body);

 private:
  /// UserError naming the operation if this Function was moved from.
  const std::shared_ptr<State>& state(const char* what, Where where = {}) const;
  /// What host code that ran in place gave.
  static void take_results(inside::Leaves given, Results& results);

  std::shared_ptr<State> state_;
};

/// One trace of a function, which serves its calls and no others.
class STET_API ConcreteBase {
 public:
  TraceInfo info() const;
  std::string graph() const;
  std::string dot() const;

 protected:
  ConcreteBase(std::shared_ptr<FunctionBase::State> function, std::shared_ptr<Entry> trace)
      : function_(std::move(function)), trace_(std::move(trace)) {}
  void call(inside::CallLeaves call, inside::CallResults& results, Where where) const;

 private:
  std::shared_ptr<FunctionBase::State> function_;
  std::shared_ptr<Entry> trace_;
};

template <class Signature>
class Function;
template <class Signature>
class ConcreteFunction;

/// Arguments that the trace was not made for are a UserError that says what differs: it is never traced again.
template <class R, class... A>
class ConcreteFunction<R(A...)> : public ConcreteBase {
 public:
  R operator()(A... arguments, Where where = Where::here()) const {
    inside::CallLeaves given;
    (given.add(static_cast<const std::remove_cvref_t<A>&>(arguments)), ...);
    inside::CallResults results;
    call(std::move(given), results, where);
    if constexpr (!std::is_void_v<R>) {
      inside::LeafReader reader(*results.form, results.tensors.begin());
      return structure::Of<R>::read(reader);
    }
  }

 private:
  friend class Function<R(A...)>;
  using ConcreteBase::ConcreteBase;
};

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
                "Dim, a Shape, a Function or another handle, or a tuple, pair, vector, array, optional, map by strings "
                "or aggregate (with STET_FIELDS) of them");
  template <class T>
  using Spec = typename inside::SpecOf<std::remove_cvref_t<T>>::type;

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

  /// The trace for such arguments, made now if there is none, without running it: for a tensor {dtype, {sizes}} with
  /// `dyn` where the size does not matter, or a tensor; for all else the value.
  ConcreteFunction<R(A...)> concrete(Spec<A>... specs, Where where = Where::here()) const {
    return {shared_state("concrete", where), trace_for(described(specs...), "concrete", where)};
  }
  /// The one trace of a function with a signature.
  ConcreteFunction<R(A...)> concrete(Where where = Where::here()) const requires(sizeof...(A) > 0) {
    return {shared_state("concrete", where), trace_for(promised("concrete", where), "concrete", where)};
  }
  using FunctionBase::dot;
  using FunctionBase::graph;
  /// The graph of the trace for such arguments, which is made if there is none, as text.
  std::string graph(Spec<A>... specs, Where where = Where::here()) const requires(sizeof...(A) > 0) {
    return graph_of(described(specs...), false, where);
  }
  /// The same in the language of Graphviz.
  std::string dot(Spec<A>... specs, Where where = Where::here()) const requires(sizeof...(A) > 0) {
    return graph_of(described(specs...), true, where);
  }
  /// Calls it with these arguments for half a second and tells what its kernels do: see stet::profile.
  FunctionProfile profile(A... arguments, Where where = Where::here()) const;
  /// What a call with such arguments does; all sizes are given.
  TraceCost cost(Spec<A>... specs, Where where = Where::here()) const { return cost_of(described(specs...), where); }
  /// What a call would give, tensor by tensor: see stet::eval_shape.
  std::vector<TensorSpec> eval_shape(std::initializer_list<ArgumentSpec> specs, Where where = Where::here()) const {
    static_assert((std::is_same_v<std::remove_cvref_t<A>, Tensor> && ...),
                  "eval_shape takes a function of tensors: wrap another one in a lambda that holds the rest");
    inside::CallLeaves call;
    for (const ArgumentSpec& spec : specs) call.add(spec);
    return result_types(call, where);
  }

  static Function from_body(std::shared_ptr<inside::Body> body) {
    Function out;
    out.take_body(std::move(body));
    return out;
  }

 private:
  Function() = default;
  static inside::CallLeaves described(const Spec<A>&... specs) {
    inside::CallLeaves call;
    (call.add(specs), ...);
    return call;
  }
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
template <class C, class R, class... A>
struct CallSignature<R (C::*)(A...) const noexcept> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct CallSignature<R (C::*)(A...) noexcept> {
  using type = R(A...);
};
template <class R, class... A>
struct CallSignature<R (*)(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct CallSignature<R (*)(A...) noexcept> {
  using type = R(A...);
};
template <class F>
concept PlainCallable = !std::is_member_pointer_v<std::decay_t<F>> && requires {
  typename CallSignature<std::decay_t<F>>::type;
};
template <class F>
concept Method = std::is_member_function_pointer_v<F> && requires {
  typename CallSignature<F>::type;
};
template <class F, class Signature>
struct IsCalledAs : std::false_type {};
template <class F, class R, class... A>
struct IsCalledAs<F, R(A...)> : std::is_invocable_r<R, std::decay_t<F>&, A...> {};

/// A traced function of a lambda, a function pointer or an object that can be called. The name may list the arguments:
/// "train_step(x, y)".
template <PlainCallable F>
requires(!std::is_function_v<F>) Function<typename CallSignature<std::decay_t<F>>::type> function(
    std::string_view name, F&& callable, FunctionOptions options = {}, Where where = Where::here()) {
  return {name, std::forward<F>(callable), options, where};
}
/// Without a name, messages call it by its place: "function at train.cpp:12".
template <PlainCallable F>
requires(!std::is_function_v<F>) Function<typename CallSignature<std::decay_t<F>>::type> function(
    F&& callable, FunctionOptions options = {}, Where where = Where::here()) {
  return {"", std::forward<F>(callable), options, where};
}
/// For a generic or overloaded callable, and for one whose last arguments keep their defaults:
/// function<Tensor(Tensor)>("f(x)", …).
template <class Signature, class F>
requires(std::is_function_v<Signature>&& IsCalledAs<F, Signature>::value) Function<Signature> function(
    std::string_view name, F&& callable, FunctionOptions options = {}, Where where = Where::here()) {
  return {name, std::forward<F>(callable), options, where};
}
template <class Signature, class F>
requires(std::is_function_v<Signature>&& IsCalledAs<F, Signature>::value) Function<Signature> function(
    F&& callable, FunctionOptions options = {}, Where where = Where::here()) {
  return {"", std::forward<F>(callable), options, where};
}
/// A method of an object: function("step(x)", &Model::step, model). The object is copied, as a captured one would be; a
/// pointer or std::shared_ptr is called through. What the object holds is host state: a number in it that changes is
/// not seen until the function is traced again.
template <Method M, class Object>
requires(!std::is_same_v<std::decay_t<Object>, FunctionOptions>) Function<typename CallSignature<M>::type> function(
    std::string_view name, M method, Object&& object, FunctionOptions options = {}, Where where = Where::here()) {
  return {name,
          [method, object = std::decay_t<Object>(std::forward<Object>(object))](auto&&... arguments) mutable {
            return std::invoke(method, object, std::forward<decltype(arguments)>(arguments)...);
          },
          options, where};
}

/// f.verify(arguments…), which also names the line of the call.
template <class Signature, class... Given>
void verify(const Function<Signature>& f, Given&&... arguments) {
  f.verify(std::forward<Given>(arguments)..., Where{});
}

/// What `f`, a callable or a Function of tensors, gives for such arguments, tensor by tensor, without computing
/// anything: eval_shape(f, {{f32, {dyn("batch"), 3}}}). Sizes that are not given come out by name, "f32[2*batch,3]" of
/// what is concatenated with itself, and `f` may not ask for them.
template <PlainCallable F>
requires(!std::is_base_of_v<FunctionBase, std::decay_t<F>>) std::vector<TensorSpec> eval_shape(
    F&& f, std::initializer_list<ArgumentSpec> specs, Where where = Where::here()) {
  return function("eval_shape", std::forward<F>(f), {}, where).eval_shape(specs, where);
}
template <class Signature>
std::vector<TensorSpec> eval_shape(const Function<Signature>& f, std::initializer_list<ArgumentSpec> specs,
                                   Where where = Where::here()) {
  return f.eval_shape(specs, where);
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
/// Called, instead of writing the explanation to stderr, after every retrace, and once for a line when functions are
/// made anew in a loop there, or a host loop there is unrolled into thousands of ops. What it throws is written to
/// stderr: the call is served. An empty function brings stderr back.
STET_API void on_retrace(std::function<void(const RetraceEvent&)> listener);

}  // namespace stet
