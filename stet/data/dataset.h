// Dataset: input pipelines whose elements have types.
//
//   auto train = data::from_tensor_slices(images, labels).shuffle(10'000).map(augment).batch(64).prefetch(2);
//   for (auto [image, label] : train) train_step(image, label);
//
// A Dataset says what to do; nothing is done before somebody iterates. It is an immutable value: every method gives a
// new one, copies share, every iteration stands alone, and several threads may each iterate one Dataset. A callable
// given to map or from_range is then called by several threads.
//
// Wrong arguments are a UserError with your line. Exceptions of a callable come out where the element that it was
// called for would have come; then that iteration is over. Iterating while a function is being traced is a TraceError:
// the trace would keep the elements of this one time.
#pragma once
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/function.h"
#include "stet/data/element.h"

namespace stet::data {

struct ShuffleOptions {
  /// Without one, each iteration draws its own from the process's generator (random::seed) when it begins.
  std::optional<std::uint64_t> seed = {};
  /// Another order in each iteration, and in each repetition of repeat().
  bool reshuffle_each_iteration = true;
};
struct MapOptions {
  /// How explanations of retraces call the function: "augment", or with its arguments, "augment(image, label)".
  std::string name = "map";
};
struct BatchOptions {
  bool drop_remainder = false;  // no last batch that is smaller than the others
};

/// The cardinality of a dataset that never ends.
inline constexpr std::int64_t infinite = INT64_MAX;

class Stage;  // one step of a pipeline, and those before it
using StagePointer = std::shared_ptr<const Stage>;

/// One pass over a dataset, with elements as flat lists of tensors. One thread at a time may use it. Ending it early
/// stops and joins the threads that worked for it.
class STET_API Iteration {
 public:
  Iteration(Iteration&&) noexcept;
  Iteration& operator=(Iteration&&) noexcept;
  ~Iteration();

  /// Goes on to the next element; false at the end, and from then on.
  bool next();
  /// Of the element that next() went to; a UserError before the first and after the last.
  const Tensors& tensors() const;
  bool at_end() const;

 private:
  friend class DatasetBase;
  struct State;
  explicit Iteration(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A dataset without its types.
class STET_API DatasetBase {
 public:
  /// The number of elements; `infinite`; empty when only iterating can tell.
  std::optional<std::int64_t> cardinality() const;
  Iteration iterate(Where where = Where::here()) const;

 protected:
  using ElementFunction = std::function<void(const Tensors& element, Tensors& result)>;
  explicit DatasetBase(StagePointer stage) : stage_(std::move(stage)) {}
  StagePointer shuffled(std::int64_t buffer_size, ShuffleOptions options, Where where) const;
  StagePointer mapped(ElementFunction function, Where where) const;
  StagePointer batched(std::int64_t batch_size, BatchOptions options, Where where) const;
  StagePointer prefetched(std::int64_t buffer_size, Where where) const;
  StagePointer repeated(std::int64_t count, Where where) const;
  StagePointer taken(std::int64_t count, Where where) const;
  StagePointer skipped(std::int64_t count, Where where) const;

 private:
  StagePointer stage_;
};

template <class... T>
class Dataset;
/// A tuple's or pair's parts are the components of an element; anything else is one component.
template <class R>
struct DatasetOf {
  using type = Dataset<typename element::Of<R>::Type>;
};
template <class... T>
struct DatasetOf<std::tuple<T...>> {
  using type = Dataset<typename element::Of<T>::Type...>;
};
template <class A, class B>
struct DatasetOf<std::pair<A, B>> {
  using type = Dataset<typename element::Of<A>::Type, typename element::Of<B>::Type>;
};

/// Elements of the components T: tuples, or T itself if there is only one.
template <class... T>
class Dataset : public DatasetBase {
  static_assert(sizeof...(T) > 0 && (element::Known<T> && ...),
                "a component of a dataset's elements is a Tensor, or a tuple, pair or aggregate (with STET_FIELDS) of "
                "them");

 public:
  using Element = std::conditional_t<sizeof...(T) == 1, std::tuple_element_t<0, std::tuple<T...>>, std::tuple<T...>>;

  /// Elements in random order: each is drawn from a buffer that holds the next `buffer_size` ones. A buffer as large as
  /// the dataset shuffles it completely; right after from_tensor_slices or from_range it holds positions only. The
  /// order is a function of the seed, the same on every machine.
  Dataset shuffle(std::int64_t buffer_size, ShuffleOptions options = {}, Where where = Where::here()) const {
    return Dataset(shuffled(buffer_size, options, where));
  }

  /// f(element) for each element; f takes the components. It runs as a traced function: host code in it runs while
  /// tracing only, and elements of other sizes need no other trace. What f returns are the new components. A Function
  /// is called as it is.
  template <class F>
  auto map(F f, MapOptions options = {}, Where where = Where::here()) const {
    static_assert(std::is_invocable_v<F&, T...>,
                  "map's callable takes the components of an element, each by value or const&");
    using R = std::remove_cvref_t<std::invoke_result_t<F&, T...>>;
    static_assert(element::Known<R>,
                  "map's callable returns a Tensor, or a tuple, pair or aggregate (with STET_FIELDS) of them");
    using Mapped = typename DatasetOf<R>::type;
    if constexpr (std::is_base_of_v<FunctionBase, F>)
      return Mapped(mapped(element_function<R>(std::move(f), where), where));
    else
      return Mapped(mapped(
          element_function<R>(Function<R(T...)>(options.name, std::move(f), FunctionOptions{}, where), where), where));
  }

  /// `batch_size` elements stacked along a new first axis; the last batch may be smaller. Elements of one batch have
  /// one shape.
  Dataset batch(std::int64_t batch_size, BatchOptions options = {}, Where where = Where::here()) const {
    return Dataset(batched(batch_size, options, where));
  }
  /// Up to `buffer_size` elements are made ahead of time, by a thread of its own. Batch first: handing an element over
  /// costs microseconds.
  Dataset prefetch(std::int64_t buffer_size, Where where = Where::here()) const {
    return Dataset(prefetched(buffer_size, where));
  }
  /// All elements `count` times over; -1: without end (but an empty dataset stays empty).
  Dataset repeat(std::int64_t count = -1, Where where = Where::here()) const { return Dataset(repeated(count, where)); }
  /// The first `count` elements.
  Dataset take(std::int64_t count, Where where = Where::here()) const { return Dataset(taken(count, where)); }
  /// All but the first `count` elements.
  Dataset skip(std::int64_t count, Where where = Where::here()) const { return Dataset(skipped(count, where)); }

  /// For one pass: it cannot be copied or begun anew.
  class iterator {
   public:
    using value_type = Element;
    using difference_type = std::ptrdiff_t;
    explicit iterator(Iteration iteration) : iteration_(std::move(iteration)) { iteration_.next(); }
    Element operator*() const {
      const Tensor* at = iteration_.tensors().data();
      return element::Of<Element>::read(at);
    }
    iterator& operator++() {
      iteration_.next();
      return *this;
    }
    void operator++(int) { iteration_.next(); }
    bool operator==(std::default_sentinel_t) const { return iteration_.at_end(); }

   private:
    Iteration iteration_;
  };
  iterator begin(Where where = Where::here()) const { return iterator(iterate(where)); }
  std::default_sentinel_t end() const { return {}; }

  /// For functions that make datasets.
  explicit Dataset(StagePointer stage) : DatasetBase(std::move(stage)) {}

 private:
  template <class R, class Traced>
  static ElementFunction element_function(Traced traced, Where where) {
    return [traced = std::move(traced), where](const Tensors& element, Tensors& result) {
      const Tensor* at = element.data();
      std::tuple<T...> arguments{element::Of<T>::read(at)...};
      result.clear();
      element::Of<R>::write(
          std::apply([&](T&... argument) { return traced(std::move(argument)..., where); }, arguments), result);
    };
  }
};

// --- sources

/// What the functions below are made of.
namespace source {

/// `arguments`: for each tensor, the argument that it is (a part of).
STET_API StagePointer slices(Tensors tensors, const std::vector<int>& arguments, Where where);
STET_API StagePointer indexed(std::int64_t count, std::function<void(std::int64_t position, Tensors&)> element,
                              Where where);
/// `open` gives a function that writes the next element, or returns false. `count` is -1 if it is not known.
STET_API StagePointer walked(std::int64_t count, std::function<std::function<bool(Tensors&)>()> open, Where where);

template <class A>
using Sliced = typename std::conditional_t<element::Writable<A>, element::Of<A>, element::Of<Tensor>>::Type;
template <class... A>
Dataset<Sliced<A>...> sliced(Where where, const A&... arguments) {
  Tensors tensors;
  std::vector<int> owners;
  int number = 0;
  auto one = [&](const auto& argument) {
    using Argument = std::remove_cvref_t<decltype(argument)>;
    if constexpr (element::Writable<Argument>)
      element::Of<Argument>::write(argument, tensors);
    else
      tensors.push_back(argument);
    owners.resize(tensors.size(), number++);
  };
  (one(arguments), ...);
  return Dataset<Sliced<A>...>(slices(std::move(tensors), owners, where));
}

}  // namespace source

/// One element per position of the first axis, which must have the same size in all arguments: their slices there. An
/// argument is a Tensor, or a tuple, pair or aggregate of Tensors. Nothing is copied (but views that are not dense,
/// once).
template <class A>
auto from_tensor_slices(const A& a, Where where = Where::here()) {
  return source::sliced(where, a);
}
template <class A, class B>
requires(!std::is_same_v<B, Where>) auto from_tensor_slices(const A& a, const B& b, Where where = Where::here()) {
  return source::sliced(where, a, b);
}
template <class A, class B, class C>
requires(!std::is_same_v<C, Where>) auto from_tensor_slices(const A& a, const B& b, const C& c,
                                                            Where where = Where::here()) {
  return source::sliced(where, a, b, c);
}
template <class A, class B, class C, class D>
requires(!std::is_same_v<D, Where>) auto from_tensor_slices(const A& a, const B& b, const C& c, const D& d,
                                                            Where where = Where::here()) {
  return source::sliced(where, a, b, c, d);
}

/// f(value) for each value of a range, of which the dataset keeps a copy (move it in to have none). f is ordinary host
/// code, called whenever an element is needed; it returns tensors or numbers, alone or in a tuple, pair or aggregate.
template <class Range, class F>
auto from_range(Range&& range, F f, Where where = Where::here()) {
  using Stored = std::remove_cvref_t<Range>;
  using Value = decltype(*std::begin(std::declval<const Stored&>()));
  static_assert(std::is_invocable_v<const F&, Value>,
                "from_range's callable takes a value of the range and is not mutable: several threads may call it");
  using R = std::remove_cvref_t<std::invoke_result_t<const F&, Value>>;
  static_assert(element::Writable<R>,
                "from_range's callable returns a Tensor or a number, or a tuple, pair or "
                "aggregate (with STET_FIELDS) of them");
  auto kept = std::make_shared<const Stored>(std::forward<Range>(range));
  StagePointer stage;
  if constexpr (requires { std::begin(*kept)[0], std::size(*kept); }) {
    auto count = static_cast<std::int64_t>(std::size(*kept));
    stage = source::indexed(
        count,
        [kept, f = std::move(f)](std::int64_t position, Tensors& out) {
          auto first = std::begin(*kept);
          element::Of<R>::write(f(first[static_cast<std::iter_difference_t<decltype(first)>>(position)]), out);
        },
        where);
  } else {
    std::int64_t count = -1;
    if constexpr (requires { std::size(*kept); }) count = static_cast<std::int64_t>(std::size(*kept));
    auto shared = std::make_shared<const F>(std::move(f));
    stage = source::walked(
        count,
        [kept, shared]() -> std::function<bool(Tensors&)> {
          return [kept, shared, at = std::begin(*kept)](Tensors& out) mutable {
            if (at == std::end(*kept)) return false;
            element::Of<R>::write((*shared)(*at), out);
            ++at;
            return true;
          };
        },
        where);
  }
  return typename DatasetOf<R>::type(std::move(stage));
}

}  // namespace stet::data
