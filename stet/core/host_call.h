// What a program has the host do while it runs: print, assert, call back. Eagerly all of it happens at once.
//
// In a traced function each of these is an op with an effect: it happens in every call, in the order of the program,
// and on a side of a branch only when that side is taken. Where code is run only to be compared with itself (tracing,
// audits, verify), nothing is printed.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/shape.h"
#include "stet/base/where.h"
#include "stet/core/in.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"

namespace stet {

/// A part of what is printed: a text, a tensor, the value of a Variable, a number, a size, a shape or a dtype.
class STET_API PrintPart {
 public:
  PrintPart(const char* text, Where where = Where::here());
  PrintPart(const std::string& text, Where where = Where::here());
  PrintPart(std::string_view text, Where where = Where::here());
  PrintPart(const Tensor& value, Where where = Where::here());
  PrintPart(const Variable& value, Where where = Where::here());
  PrintPart(const Scalar& value, Where where = Where::here());
  PrintPart(const Dim& size, Where where = Where::here());
  PrintPart(const Shape& shape, Where where = Where::here());
  PrintPart(DType dtype, Where where = Where::here());
  template <inside::Number T>
  PrintPart(T number, Where where = Where::here()) : PrintPart(number_text(Tensor(number)), where) {}

  /// Texts and values, one after the other, with nothing between them.
  struct Piece {
    std::string text = {};
    Tensor value = {};  // defined: stands instead of the text
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  Where where() const { return where_; }
  /// Undefined for what is no tensor.
  const Tensor& tensor() const { return tensor_; }

 private:
  static std::string number_text(const Tensor& number);
  void add_size(const Dim& size);

  std::vector<Piece> pieces_;
  Tensor tensor_;
  Where where_;
};

namespace inside {

STET_API Tensor print_parts(std::span<const PrintPart> parts);
STET_API void assert_parts(const In& condition, const std::string& message, std::span<const PrintPart> values);

/// A callback without its types.
struct HostCallback {
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> run;
  const std::type_info* type = nullptr;  // of the callable: what one run of host code is compared with another by
  int gives = -1;                        // so many tensors; -1: as many as are declared
};

}  // namespace inside

/// Writes the parts to stdout, a space between any two, and a new line: tensors as `std::cout << x` writes them, as
/// print_options() of the thread say that runs the call. Gives back the last tensor among the parts, so that it may
/// stand inside of an expression: `y = print("x is", x) * 2`.
template <std::convertible_to<PrintPart>... More>
Tensor print(const PrintPart& first, const More&... more) {
  const PrintPart parts[] = {first, PrintPart(more)...};
  return inside::print_parts(parts);
}
/// Called with each text instead of writing it to stdout; what it throws ends the call. An empty function brings stdout
/// back.
STET_API void on_print(std::function<void(const std::string&)> listener);

/// UserError with the message and the values, written as print() writes them, unless every element of the condition, a
/// bool tensor, is true. In a traced function it is thrown by the call, which then has changed nothing.
template <std::convertible_to<PrintPart>... Values>
void assert_that(const In& condition, const std::string& message, const Values&... values) {
  if constexpr (sizeof...(Values) == 0) {
    inside::assert_parts(condition, message, {});
  } else {
    const PrintPart parts[] = {PrintPart(values)...};
    inside::assert_parts(condition, message, parts);
  }
}

/// The type of a tensor that a callback gives.
struct ResultSpec {
  DType dtype = DType::f32;
  Shape shape = {};
};
/// The tensors that a callback gives: {f32, x.shape()}, {{f32, {2, 3}}, {i64, {}}}, or {} for none.
class STET_API ResultSpecs {
 public:
  ResultSpecs(std::initializer_list<ResultSpec> results, Where where = Where::here())
      : results_(results), where_(where) {}
  ResultSpecs(std::vector<ResultSpec> results, Where where = Where::here())
      : results_(std::move(results)), where_(where) {}
  ResultSpecs(DType dtype, Shape shape, Where where = Where::here())
      : results_{{dtype, std::move(shape)}}, where_(where) {}

  const std::vector<ResultSpec>& results() const { return results_; }
  Where where() const { return where_; }

 private:
  std::vector<ResultSpec> results_;
  Where where_;
};

namespace inside {

STET_API std::vector<Tensor> call_host(HostCallback callback, const ResultSpecs& results, std::span<const In> operands);

template <class R>
struct Given;  // what a callback may give: `count` tensors (-1: any number), list(R) and from(list) -> R
template <>
struct Given<void> {
  static constexpr int count = 0;
};
template <>
struct Given<Tensor> {
  static constexpr int count = 1;
  static std::vector<Tensor> list(Tensor given) { return {std::move(given)}; }
  static Tensor from(std::vector<Tensor> list) { return std::move(list[0]); }
};
template <>
struct Given<std::vector<Tensor>> {
  static constexpr int count = -1;
  static std::vector<Tensor> list(std::vector<Tensor> given) { return given; }
  static std::vector<Tensor> from(std::vector<Tensor> list) { return list; }
};
/// Tuples, pairs and arrays of tensors.
template <class R>
struct GivenTuple {
  static constexpr int count = static_cast<int>(std::tuple_size_v<R>);
  static std::vector<Tensor> list(R given) {
    return std::apply([](auto&... each) { return std::vector<Tensor>{each...}; }, given);
  }
  static R from(std::vector<Tensor> list) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return R{std::move(list[i])...}; }
    (std::make_index_sequence<std::tuple_size_v<R>>());
  }
};
template <std::same_as<Tensor>... T>
struct Given<std::tuple<T...>> : GivenTuple<std::tuple<T...>> {};
template <>
struct Given<std::pair<Tensor, Tensor>> : GivenTuple<std::pair<Tensor, Tensor>> {};
template <std::size_t n>
struct Given<std::array<Tensor, n>> : GivenTuple<std::array<Tensor, n>> {};
template <class R>
concept IsGiven = requires {
  Given<R>::count;
};

template <class>
using AsTensor = Tensor;

}  // namespace inside

/// Calls `callback` on the arguments when the program comes to it, and gives what it gives: a Tensor, a tuple, pair,
/// array or vector of them, or nothing. What it gives is declared; anything else is a UserError, and so is the use of a
/// Variable that the call which runs it holds. The arguments come as tensors in the host's memory, which it may keep.
/// What it throws passes through the call, which then has changed nothing. It has no gradient, and tapes do not see
/// what it does. Like all host code of a trace it must not die before the function does: capture by value.
///
///   Tensor median = host_call([](Tensor x) { return my_median(x); }, {f32, {}}, x);
template <class F, class... A>
auto host_call(F&& callback, const ResultSpecs& results, const A&... arguments) {
  static_assert(std::is_invocable_v<std::decay_t<F>&, inside::AsTensor<A>...>,
                "the callback of host_call takes one Tensor for each argument");
  using R = std::remove_cvref_t<std::invoke_result_t<std::decay_t<F>&, inside::AsTensor<A>...>>;
  static_assert(inside::IsGiven<R>,
                "the callback of host_call gives a Tensor, a tuple, pair, array or vector of Tensors, or nothing");
  auto run = [f = std::decay_t<F>(std::forward<F>(callback))](const std::vector<Tensor>& given) mutable {
    return [&]<std::size_t... i>(std::index_sequence<i...>)->std::vector<Tensor> {
      (void)given;
      if constexpr (std::is_void_v<R>) {
        f(given[i]...);
        return {};
      } else {
        return inside::Given<R>::list(f(given[i]...));
      }
    }
    (std::index_sequence_for<A...>());
  };
  inside::HostCallback erased{std::move(run), &typeid(std::decay_t<F>), inside::Given<R>::count};
  const std::array<In, sizeof...(A)> operands{In(arguments, results.where())...};
  [[maybe_unused]] std::vector<Tensor> given = inside::call_host(std::move(erased), results, operands);
  if constexpr (!std::is_void_v<R>) return inside::Given<R>::from(std::move(given));
}

}  // namespace stet
