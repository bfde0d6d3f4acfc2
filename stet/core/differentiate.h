// Differentiation of functions: gradients, products with Jacobians, Jacobians and Hessians of callables; functions with
// gradients of their own. All of it works eagerly, under tapes, while a function is traced, and to any order.
//
// A callable is a lambda or function whose parameters are spelled out, as for function(); its arguments and results are
// structures of tensors (core/structure.h).
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/function.h"
#include "stet/core/structure.h"
#include "stet/core/tape.h"

namespace stet {

namespace inside {

using HostBody = std::function<Leaves(const Leaves&)>;
/// From the gradients of a function's floating results to those of its arguments' tensors and Variables.
using Backward = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
struct ValueAndBackward {
  Leaves value;
  Backward backward;
};
using CustomFunction = std::function<ValueAndBackward(const Leaves&)>;

STET_API Leaves without_gradient(Leaves leaves);
STET_API Leaves run_with_gradient(const Leaves& leaves, const CustomFunction& f, Where where);
STET_API Leaves run_recomputed(const Leaves& leaves, const HostBody& f, Where where);

// --- types of callables

/// A signature without the caller's line, which our own callables take last.
template <class R, class Kept, class... Rest>
struct WithoutWhere;
template <class R, class... Kept>
struct WithoutWhere<R, std::tuple<Kept...>> {
  using type = R(Kept...);
};
template <class R, class... Kept>
struct WithoutWhere<R, std::tuple<Kept...>, Where> {
  using type = R(Kept...);
};
template <class R, class... Kept, class Next, class... Rest>
struct WithoutWhere<R, std::tuple<Kept...>, Next, Rest...> : WithoutWhere<R, std::tuple<Kept..., Next>, Rest...> {};
template <class Signature>
struct PlainSignature;
template <class R, class... A>
struct PlainSignature<R(A...)> : WithoutWhere<R, std::tuple<>, A...> {};
template <class F>
using SignatureOf = typename PlainSignature<typename CallSignature<std::decay_t<F>>::type>::type;

template <class Signature>
struct Call;
template <class R, class... A>
struct Call<R(A...)> {
  using Result = R;
  using Arguments = std::tuple<std::remove_cvref_t<A>...>;
  static constexpr std::size_t count = sizeof...(A);
  static_assert(count > 0, "a function that is differentiated has arguments");
  static_assert(
      (structure::Known<std::remove_cvref_t<A>> && ...) && structure::Known<R>,
      "arguments and results of a function that is differentiated are Tensors, Variables, numbers, or tuples, "
      "pairs, vectors, arrays, optionals or aggregates (with STET_FIELDS) of them");
  /// All arguments are a tensor or a Variable each.
  static constexpr bool plain =
      ((std::is_same_v<std::remove_cvref_t<A>, Tensor> || std::is_same_v<std::remove_cvref_t<A>, Variable>)&&...);
};
template <class F>
using CallOf = Call<SignatureOf<F>>;

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

/// A callable over leaves.
template <class F>
HostBody host_body(F f) {
  using Types = CallOf<F>;
  return [f = std::move(f)](const Leaves& leaves) mutable {
    LeafReader reader(leaves);
    auto arguments = structure::Of<typename Types::Arguments>::read(reader);
    Leaves out;
    structure::Of<typename Types::Result>::write(std::apply(f, std::move(arguments)), out);
    return out;
  };
}

/// Arguments as leaves, and of each leaf the number of its argument.
struct ArgumentLeaves {
  Leaves leaves;
  std::vector<int> owners;
};
template <class... A>
ArgumentLeaves argument_leaves(const std::tuple<A...>& arguments) {
  ArgumentLeaves out;
  int number = 0;
  auto one = [&](const auto& argument) {
    structure::Of<std::remove_cvref_t<decltype(argument)>>::write(argument, out.leaves);
    out.owners.resize(out.leaves.size(), number++);
  };
  std::apply([&](const A&... each) { (one(each), ...); }, arguments);
  return out;
}

/// A function that has been run under a tape of its own: its value, and the two ways over the tape.
class STET_API Linearized {
 public:
  /// `chosen`: the arguments that are differentiated by. `once`: one walk back at most, which frees the tape.
  Linearized(const char* what, const ArgumentLeaves& arguments, const std::vector<int>& chosen, const HostBody& f,
             bool once, Where where);

  const Leaves& value() const { return value_; }
  /// The tensors of the value, as leaves have them.
  std::vector<Tensor> tensors() const;
  /// From the gradients of the value's tensors (undefined: 0) to those of the chosen arguments' tensors and Variables;
  /// zeros where nothing depends on them, undefined of those that are not floating.
  std::vector<Tensor> pulled(const std::vector<Tensor>& ds, Where where) const;
  /// From changes of the chosen arguments to that of the value; undefined of what is not floating.
  std::vector<Tensor> pushed(const std::vector<Tensor>& tangents, Where where) const;
  /// The gradients of the first tensor of the value, which has no axes (UserError).
  std::vector<Tensor> gradients_of_scalar(Where where) const;
  /// Of the value, one tensor, by every chosen tensor.
  std::vector<Tensor> jacobians(bool batched, bool forward, Where where) const;

 private:
  const char* what_;
  std::shared_ptr<GradientTape> tape_;
  std::vector<Source> sources_;
  std::vector<std::string> places_;
  Leaves value_;
};

/// Which arguments: by number when the program is compiled,
template <std::size_t... at>
struct At {
  static constexpr bool known = true;
  std::vector<int> numbers(std::size_t, const char*, Where) const { return {static_cast<int>(at)...}; }
  /// `gradients` as the chosen arguments have them.
  template <class... A>
  auto result(const std::tuple<A...>& arguments, std::vector<Tensor> gradients, Where where) const {
    auto next = gradients.begin();
    auto one = [&](const auto& argument) {
      Leaves leaves;
      structure::Of<std::remove_cvref_t<decltype(argument)>>::write(argument, leaves);
      std::vector<Tensor> own(next, next + static_cast<std::ptrdiff_t>(sources_of(leaves).size()));
      next += static_cast<std::ptrdiff_t>(own.size());
      return gradients_like(argument, std::move(own), where);
    };
    if constexpr (sizeof...(at) == 1)
      return (one(std::get<at>(arguments)), ...);
    else
      return std::tuple<GradientsOf<std::tuple_element_t<at, std::tuple<A...>>>...>{one(std::get<at>(arguments))...};
  }
};
STET_API void check_number(int number, std::size_t count, const char* what, Where where);
/// by a number that is known when it runs,
struct OneOf {
  static constexpr bool known = false;
  int argument = 0;
  std::vector<int> numbers(std::size_t count, const char* what, Where where) const {
    check_number(argument, count, what, where);
    return {argument};
  }
  template <class Arguments>
  Tensor result(const Arguments&, std::vector<Tensor> gradients, Where) const {
    return gradients[0];
  }
};
/// or by several.
struct SomeOf {
  static constexpr bool known = false;
  std::vector<int> arguments;
  std::vector<int> numbers(std::size_t count, const char* what, Where where) const {
    for (int number : arguments) check_number(number, count, what, where);
    return arguments;
  }
  template <class Arguments>
  std::vector<Tensor> result(const Arguments&, std::vector<Tensor> gradients, Where) const {
    return gradients;
  }
};

}  // namespace inside

// --- no gradient, another gradient, and less memory

/// The same values, through which no gradient passes: of a Tensor, what a Variable holds, or any structure of them.
template <structure::Known T>
GradientsOf<T> stop_gradient(const T& x, Where where = Where::here()) {
  inside::Leaves leaves;
  structure::Of<T>::write(x, leaves);
  std::vector<Tensor> tensors;
  for (const inside::Source& source : inside::sources_of(leaves))
    tensors.push_back(source.variable.defined() ? source.variable.read(where) : source.tensor);
  inside::Leaves out = inside::without_gradient(inside::with_tensors(std::move(leaves), std::move(tensors)));
  inside::LeafReader reader(out);
  return structure::Of<GradientsOf<T>>::read(reader);
}

namespace inside {
template <class Signature>
class CustomGradient;
template <class Value, class Back, class... A>
class CustomGradient<std::pair<Value, Back>(A...)> {
 public:
  explicit CustomGradient(std::function<std::pair<Value, Back>(A...)> f) : f_(std::move(f)) {}

  Value operator()(A... arguments, Where where = Where::here()) const {
    Leaves leaves;
    (structure::Of<std::remove_cvref_t<A>>::write(arguments, leaves), ...);
    Leaves out = run_with_gradient(
        leaves, [f = f_](const Leaves& given) { return called(f, given); }, where);
    LeafReader reader(out);
    return structure::Of<Value>::read(reader);
  }

 private:
  static ValueAndBackward called(const std::function<std::pair<Value, Back>(A...)>& f, const Leaves& given) {
    LeafReader reader(given);
    auto arguments = structure::Of<std::tuple<std::remove_cvref_t<A>...>>::read(reader);
    std::pair<Value, Back> both = std::apply(f, std::move(arguments));
    ValueAndBackward out;
    structure::Of<Value>::write(both.first, out.value);
    std::vector<bool> has_gradient;
    for (const Source& source : sources_of(out.value))
      has_gradient.push_back(source.tensor.defined() && is_floating(source.tensor.dtype()));
    // The form without its tensors: the value is not kept.
    Leaves form = with_tensors(out.value, std::vector<Tensor>(has_gradient.size()));
    out.backward = [back = std::move(both.second), form, has_gradient](const std::vector<Tensor>& ds) mutable {
      std::vector<Tensor> all;
      std::size_t next = 0;
      for (bool one : has_gradient) all.push_back(one ? ds[next++] : Tensor());
      Leaves filled = with_tensors(form, std::move(all));
      LeafReader in(filled);
      return gradients(back, structure::Of<GradientsOf<Value>>::read(in));
    };
    return out;
  }

  static std::vector<Tensor> gradients(Back& back, GradientsOf<Value> ds) {
    auto flat = [](const auto& given) {
      Leaves leaves;
      structure::Of<std::remove_cvref_t<decltype(given)>>::write(given, leaves);
      std::vector<Tensor> out;
      for (const Source& source : sources_of(leaves)) out.push_back(source.tensor);
      return out;
    };
    if constexpr (std::is_invocable_v<Back&, GradientsOf<Value>>)
      return flat(back(std::move(ds)));
    else
      return flat(std::apply(back, std::move(ds)));
  }

  std::function<std::pair<Value, Back>(A...)> f_;
};

template <class Signature>
class Recomputed;
template <class R, class... A>
class Recomputed<R(A...)> {
 public:
  explicit Recomputed(HostBody f) : f_(std::move(f)) {}
  R operator()(A... arguments, Where where = Where::here()) const {
    Leaves leaves;
    (structure::Of<std::remove_cvref_t<A>>::write(arguments, leaves), ...);
    Leaves out = run_recomputed(leaves, f_, where);
    LeafReader reader(out);
    return structure::Of<R>::read(reader);
  }

 private:
  HostBody f_;
};
}  // namespace inside

/// A function with a gradient of its own. `f` gives its value and, as the second of a pair, a function from the
/// gradient of the value (of its structure; of a tuple also one parameter for each) to those of the arguments: one, or
/// a tuple, pair or vector of as many as there are tensors and Variables among the arguments; undefined for none.
/// Second derivatives are those of that function. It may use what `f` computed; `f` may not use tensors that a tape
/// follows, or Variables, that are no arguments (UserError).
///
///   auto log1pexp = custom_gradient([](Tensor x) {
///     Tensor e = exp(x);
///     return std::pair(log(1 + e), [e](Tensor d) { return d * (1 - 1 / (1 + e)); });
///   });
template <PlainCallable F>
auto custom_gradient(F f) {
  return inside::CustomGradient<inside::SignatureOf<F>>(std::move(f));
}

/// The function, of which tapes keep the arguments alone: on the way back it is run once more, on the state of
/// Variables that it began with, with the same random numbers, and without changing any. Gradients also reach the
/// Variables that it reads. What it costs is its time once more; what it saves is all that its own gradient would keep
/// meanwhile.
template <PlainCallable F>
auto recompute(F f) {
  return inside::Recomputed<inside::SignatureOf<F>>(inside::host_body(std::move(f)));
}

// --- gradients of functions

/// Which argument: grad(f, {.argument = 1}).
struct ArgumentOption {
  int argument = 0;
};
/// Which arguments: grad(f, {.arguments = {0, 2}}).
struct ArgumentsOption {
  std::vector<int> arguments;
};
struct JacobianOptions {
  int argument = 0;
  /// "reverse": one walk back for each element of the result; "forward": one way forward for each of the argument.
  std::string mode = "reverse";
};

namespace inside {
enum class Derived { gradient, value_and_gradient, jacobian, batch_jacobian, hessian };
constexpr const char* name(Derived derived) {
  switch (derived) {
    case Derived::gradient:
      return "grad";
    case Derived::value_and_gradient:
      return "value_and_grad";
    case Derived::jacobian:
      return "jacobian";
    case Derived::batch_jacobian:
      return "batch_jacobian";
    default:
      return "hessian";
  }
}
STET_API bool is_forward(const std::string& mode, const char* what, Where where);
/// The derivatives of the gradients of a scalar.
STET_API std::vector<Tensor> second_derivatives(const char* what, const ArgumentLeaves& arguments,
                                                const std::vector<int>& chosen, const HostBody& f, bool forward,
                                                Where where);
STET_API std::vector<Tensor> hessian_products(const char* what, const ArgumentLeaves& arguments, const HostBody& f,
                                              const std::vector<Tensor>& tangents, Where where);

/// What grad and its relatives give: a function of the arguments.
template <Derived derived, class Signature, class Choice>
class Derivative;
template <Derived derived, class R, class... A, class Choice>
class Derivative<derived, R(A...), Choice> {
  using Types = Call<R(A...)>;
  static_assert(Choice::known || Types::plain,
                "arguments that are structures are chosen when the program is compiled: grad<1>(f), jacobian<0>(f)");

 public:
  Derivative(HostBody f, Choice choice, std::string mode = "reverse")
      : f_(std::move(f)), choice_(std::move(choice)), mode_(std::move(mode)) {}

  auto operator()(A... given, Where where = Where::here()) const {
    constexpr const char* what = inside::name(derived);
    typename Types::Arguments arguments(std::move(given)...);
    std::vector<int> chosen = choice_.numbers(sizeof...(A), what, where);
    ArgumentLeaves leaves = argument_leaves(arguments);
    const bool forward = is_forward(mode_, what, where);
    if constexpr (derived == Derived::hessian) {
      return choice_.result(arguments, second_derivatives(what, leaves, chosen, f_, forward, where), where);
    } else if constexpr (derived == Derived::jacobian || derived == Derived::batch_jacobian) {
      Linearized function(what, leaves, chosen, f_, false, where);
      return choice_.result(arguments, function.jacobians(derived == Derived::batch_jacobian, forward, where), where);
    } else {
      Linearized function(what, leaves, chosen, f_, true, where);
      LeafReader reader(function.value());
      R value = structure::Of<R>::read(reader);
      auto gradients = choice_.result(arguments, function.gradients_of_scalar(where), where);
      if constexpr (derived == Derived::gradient)
        return gradients;
      else
        return std::pair<R, decltype(gradients)>(std::move(value), std::move(gradients));
    }
  }

 private:
  HostBody f_;
  Choice choice_;
  std::string mode_;
};

template <Derived derived, class Choice, class F>
auto derivative_of(F f, Choice choice, std::string mode = "reverse") {
  return Derivative<derived, SignatureOf<F>, Choice>(host_body(std::move(f)), std::move(choice), std::move(mode));
}
}  // namespace inside

/// The gradient of a function by its first argument, as a function. `f` gives a floating tensor without axes, or a pair
/// or tuple that begins with one. The gradient has the argument's structure, with zeros where the result does not
/// depend on it. grad<1>(f) is by the second argument, grad<0, 2>(f) by two, as a tuple; if all arguments are Tensors
/// or Variables, they can also be numbers of the running program: grad(f, {.argument = 1}), grad(f, {.arguments = {0,
/// 2}}).
template <PlainCallable F>
auto grad(F f) {
  return inside::derivative_of<inside::Derived::gradient>(std::move(f), inside::At<0>());
}
template <std::size_t at, std::size_t... more, PlainCallable F>
auto grad(F f) {
  return inside::derivative_of<inside::Derived::gradient>(std::move(f), inside::At<at, more...>());
}
template <PlainCallable F>
auto grad(F f, ArgumentOption option) {
  return inside::derivative_of<inside::Derived::gradient>(std::move(f), inside::OneOf{option.argument});
}
template <PlainCallable F>
auto grad(F f, ArgumentsOption option) {
  return inside::derivative_of<inside::Derived::gradient>(std::move(f), inside::SomeOf{std::move(option.arguments)});
}

/// The same with the value: a function that gives a pair of what `f` gives and the gradient.
template <PlainCallable F>
auto value_and_grad(F f) {
  return inside::derivative_of<inside::Derived::value_and_gradient>(std::move(f), inside::At<0>());
}
template <std::size_t at, std::size_t... more, PlainCallable F>
auto value_and_grad(F f) {
  return inside::derivative_of<inside::Derived::value_and_gradient>(std::move(f), inside::At<at, more...>());
}
template <PlainCallable F>
auto value_and_grad(F f, ArgumentOption option) {
  return inside::derivative_of<inside::Derived::value_and_gradient>(std::move(f), inside::OneOf{option.argument});
}
template <PlainCallable F>
auto value_and_grad(F f, ArgumentsOption option) {
  return inside::derivative_of<inside::Derived::value_and_gradient>(std::move(f),
                                                                    inside::SomeOf{std::move(option.arguments)});
}

/// The derivative of every element of the result, one tensor, by every element of an argument, as a function: of the
/// shape [result's…, argument's…], in the argument's structure. A way over what was recorded for each element of the
/// result (or of the argument, {.mode = "forward"}), all of them at once, as by vmap.
template <PlainCallable F>
auto jacobian(F f) {
  return inside::derivative_of<inside::Derived::jacobian>(std::move(f), inside::At<0>());
}
template <std::size_t at, std::size_t... more, PlainCallable F>
auto jacobian(F f) {
  return inside::derivative_of<inside::Derived::jacobian>(std::move(f), inside::At<at, more...>());
}
template <PlainCallable F>
auto jacobian(F f, JacobianOptions options) {
  return inside::derivative_of<inside::Derived::jacobian>(std::move(f), inside::OneOf{options.argument}, options.mode);
}

/// The same of a function whose result's rows, along the first axis, depend on those rows of the argument alone: of
/// [b, n…] to [b, m…] the shape [b, m…, n…], by one way back for each of the m, all at once.
template <PlainCallable F>
auto batch_jacobian(F f) {
  return inside::derivative_of<inside::Derived::batch_jacobian>(std::move(f), inside::At<0>());
}

/// The second derivatives of a function that gives a tensor without axes, by its first argument, one tensor: of the
/// shape [argument's…, argument's…]. The gradient is recorded once, and gone over once for each of its elements, for
/// all of them at once.
template <PlainCallable F>
auto hessian(F f) {
  return inside::derivative_of<inside::Derived::hessian>(std::move(f), inside::At<0>());
}
template <PlainCallable F>
auto hessian(F f, JacobianOptions options) {
  return inside::derivative_of<inside::Derived::hessian>(std::move(f), inside::OneOf{options.argument}, options.mode);
}

// --- products with Jacobians

namespace inside {
template <class Types>
std::vector<int> all_arguments() {
  std::vector<int> out;
  for (std::size_t i = 0; i < Types::count; ++i) out.push_back(static_cast<int>(i));
  return out;
}
template <class T>
std::vector<Tensor> flat_tensors(const T& nest) {
  Leaves leaves;
  structure::Of<T>::write(nest, leaves);
  std::vector<Tensor> out;
  for (const Source& source : sources_of(leaves)) out.push_back(source.tensor);
  return out;
}
template <class Types>
auto single_or_tuple(const typename Types::Arguments& arguments, std::vector<Tensor> gradients, Where where) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return At<i...>().result(arguments, std::move(gradients), where);
  }
  (std::make_index_sequence<Types::count>());
}

/// From the gradient of a function's result to those of its arguments.
template <class Signature>
class Pullback {
  using Types = Call<Signature>;

 public:
  Pullback(std::shared_ptr<const Linearized> function, typename Types::Arguments arguments)
      : function_(std::move(function)), arguments_(std::move(arguments)) {}
  /// Of one argument its gradient, of several a tuple. May be called as often as wanted.
  auto operator()(const GradientsOf<typename Types::Result>& d, Where where = Where::here()) const {
    return single_or_tuple<Types>(arguments_, function_->pulled(flat_tensors(d), where), where);
  }

 private:
  std::shared_ptr<const Linearized> function_;
  typename Types::Arguments arguments_;
};
}  // namespace inside

template <class Signature>
struct Vjp {
  typename inside::Call<Signature>::Result value;
  inside::Pullback<Signature> pullback;
};

/// What the function gives, and its pullback: a function from the gradient of the result to those of all arguments.
///
///   auto [y, pullback] = vjp(f, x);
///   Tensor dx = pullback(dy);
template <PlainCallable F, class... Given>
Vjp<inside::SignatureOf<F>> vjp(F f, Given&&... given) {
  using Types = inside::CallOf<F>;
  static_assert(sizeof...(Given) == Types::count, "vjp(f, arguments…) is given all arguments of f");
  typename Types::Arguments arguments(std::forward<Given>(given)...);
  auto function = std::make_shared<const inside::Linearized>(
      "vjp", inside::argument_leaves(arguments), inside::all_arguments<Types>(), inside::host_body(f), false, Where{});
  inside::LeafReader reader(function->value());
  return {structure::Of<typename Types::Result>::read(reader), {function, std::move(arguments)}};
}

/// What the function gives, and how it changes when its arguments change along `tangents`: the Jacobian times a vector.
/// Of one argument `primals` and `tangents` are that argument and something of its structure, of several tuples.
/// Forward over the tape of one run: about the cost of the function once more, whatever the number of arguments and
/// results; rows that are neither maps nor linear cost two gradients.
template <PlainCallable F>
auto jvp(F f, const auto& primals, const auto& tangents, Where where = Where::here()) {
  using Types = inside::CallOf<F>;
  using R = typename Types::Result;
  typename Types::Arguments arguments(primals);
  inside::Linearized function("jvp", inside::argument_leaves(arguments), inside::all_arguments<Types>(),
                              inside::host_body(std::move(f)), false, where);
  inside::LeafReader reader(function.value());
  R value = structure::Of<R>::read(reader);
  std::vector<Tensor> moved = function.pushed(inside::flat_tensors(tangents), where);
  GradientsOf<R> tangent = inside::gradients_like(value, std::move(moved), where);
  return std::pair<R, GradientsOf<R>>(std::move(value), std::move(tangent));
}

/// The Hessian of a function that gives a tensor without axes, times a vector: forward over its gradient. Arguments and
/// vectors as in jvp; the result is one, or a tuple.
template <PlainCallable F>
auto hvp(F f, const auto& primals, const auto& vectors, Where where = Where::here()) {
  using Types = inside::CallOf<F>;
  typename Types::Arguments arguments(primals);
  return inside::single_or_tuple<Types>(
      arguments,
      inside::hessian_products("hvp", inside::argument_leaves(arguments), inside::host_body(std::move(f)),
                               inside::flat_tensors(vectors), where),
      where);
}

// --- checking

struct CheckGradsOptions {
  int order = 2;
  std::vector<std::string> modes = {"reverse", "forward"};
  /// What derivatives may be off by, of the larger of 1 and their size; 0: 1e-6 in f64, 2e-2 in f32, 0.2 in f16 and
  /// bf16, for every order once more by ten.
  double tolerance = 0;
  /// Of the central differences, relative to the larger of 1 and the element; 0: as fits the type.
  double step = 0;
  /// Elements of every input that are tried: the first ones, and others evenly.
  int elements = 32;
  /// Differences are taken of the function in f64: floating inputs are cast to it first. Set it to false for functions
  /// that insist on a type.
  bool cast = true;
};

namespace inside {
STET_API void check_gradients_of(const ArgumentLeaves& arguments, const HostBody& f, const CheckGradsOptions& options,
                                 Where where);
}

/// Compares the derivatives of a function with central differences: of every floating result, by every floating tensor
/// of the arguments, in both modes, and then those of the gradient, up to `order`. UserError names the argument, the
/// element, the mode, the order and both values. `inputs` are the one argument, or a tuple of all of them.
template <PlainCallable F>
void check_grads(F f, const auto& inputs, const CheckGradsOptions& options = {}, Where where = Where::here()) {
  using Types = inside::CallOf<F>;
  typename Types::Arguments arguments(inputs);
  inside::check_gradients_of(inside::argument_leaves(arguments), inside::host_body(std::move(f)), options, where);
}
/// Of arguments that are Tensors: check_grads(f, {x, y}).
template <PlainCallable F>
void check_grads(F f, std::initializer_list<Tensor> inputs, const CheckGradsOptions& options = {},
                 Where where = Where::here()) {
  inside::ArgumentLeaves arguments;
  for (const Tensor& input : inputs) {
    structure::Of<Tensor>::write(input, arguments.leaves);
    arguments.owners.push_back(static_cast<int>(arguments.owners.size()));
  }
  inside::check_number(static_cast<int>(inputs.size()) - 1, inside::CallOf<F>::count, "check_grads", where);
  inside::check_gradients_of(arguments, inside::host_body(std::move(f)), options, where);
}

}  // namespace stet
