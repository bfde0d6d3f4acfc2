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
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/function.h"
#include "stet/core/signature.h"
#include "stet/data/element.h"
#include "stet/data/options.h"
#include "stet/data/position.h"

namespace stet::data {

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
  /// Where it stands, after the element that next() went to: DatasetBase::iterate_from goes on with the next one. In
  /// the middle of a `.deterministic = false`, whose order nobody can repeat, a UserError.
  IterationPosition position() const;

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

  /// Goes on where another iteration was, of this dataset or of one that was built alike, perhaps in another process:
  /// the elements that it would have given come, bit for bit, and iterations that are begun from here on have the
  /// numbers (and with a seed the orders) that they would have had. Elements before are skipped and, where that is
  /// possible, not made: slices, ranges, shuffles, batches and maps do without; what a filter decides about, and what a
  /// generator gives, must be made again. A UserError for the position of a dataset of other stages, and for one that
  /// has fewer elements than the position says.
  Iteration iterate_from(const IterationPosition& position, Where where = Where::here()) const;
  /// How many iterations were begun, which is the number of the next one: with a seed, its order follows from it.
  /// Copies count together. A process that goes on with another's work sets it.
  std::uint64_t next_iteration() const;
  void set_next_iteration(std::uint64_t number) const;

  /// Dtype and shape of each tensor of an element, "f32[?,10]" with ? for sizes that differ. What a function gives is
  /// not known before it is called: behind one, the first element is made and looked at, and sizes are those of it.
  std::vector<TensorSpec> element_spec(Where where = Where::here()) const;

  /// A table of the last iteration, or of the one that runs: elements and time of every stage, how full buffers were,
  /// how long the program waited, and what would help. Any thread may ask.
  std::string explain() const;

  /// For functions that make datasets.
  const StagePointer& stage() const { return stage_; }

  /// To move one is to copy it: no dataset is without stages.
  DatasetBase(const DatasetBase&) = default;
  DatasetBase& operator=(const DatasetBase&) = default;

 protected:
  using ElementFunction = std::function<void(const Tensors& element, Tensors& result)>;
  using Predicate = std::function<bool(const Tensors& element)>;
  using NumberFunction = std::function<std::int64_t(const Tensors& element)>;
  using OpenFunction = std::function<StagePointer(const Tensors& element)>;
  explicit DatasetBase(StagePointer stage) : stage_(std::move(stage)) {}
  StagePointer shuffled(std::int64_t buffer_size, ShuffleOptions options, Where where) const;
  StagePointer mapped(ElementFunction function, MapOptions options, bool host, Where where) const;
  StagePointer filtered(Predicate predicate, FilterOptions options, bool host, Where where) const;
  StagePointer taken_while(Predicate predicate, FilterOptions options, Where where) const;
  StagePointer scanned(Tensors initial, ElementFunction function, FilterOptions options, Where where) const;
  StagePointer batched(std::int64_t batch_size, BatchOptions options, Where where) const;
  StagePointer padded(std::int64_t batch_size, PaddedBatchOptions options, Where where) const;
  StagePointer ragged(std::int64_t batch_size, std::vector<bool> which, BatchOptions options, Where where) const;
  StagePointer bucketed(NumberFunction length, BucketOptions options, Where where) const;
  StagePointer unbatched(Where where) const;
  StagePointer windowed(std::int64_t size, WindowOptions options, Where where) const;
  StagePointer enumerated(std::int64_t start, Where where) const;
  StagePointer concatenated(const StagePointer& other, Where where) const;
  StagePointer interleaved(OpenFunction open, InterleaveOptions options, const char* name, Where where) const;
  StagePointer cached(std::optional<std::string> file, Where where) const;
  StagePointer sharded(std::int64_t shards, std::int64_t index, Where where) const;
  StagePointer resampled(NumberFunction class_of, std::vector<double> target, ResampleOptions options,
                         Where where) const;
  StagePointer prefetched(std::int64_t buffer_size, Where where) const;
  StagePointer repeated(std::int64_t count, Where where) const;
  StagePointer taken(std::int64_t count, Where where) const;
  StagePointer skipped(std::int64_t count, Where where) const;
  /// What a traced predicate says; UserError if that is not one bool.
  static bool truth(const Tensor& result, const char* call, Where where);
  /// UserError if it never ends.
  void require_end(const char* call, Where where) const;

 private:
  Iteration begin(std::uint64_t drawn, std::uint64_t number, Where where) const;
  StagePointer stage_;
};

/// Rows of different lengths one after the other: what ragged_batch makes of tensors.
struct Ragged {
  Tensor values;       // all rows, along axis 0
  Tensor row_lengths;  // i64[rows]
  STET_FIELDS(values, row_lengths)

  std::int64_t rows() const { return row_lengths.dim(0).value(); }
  /// One of them, a view; a UserError for a number that none has.
  STET_API Tensor row(std::int64_t number, Where where = Where::here()) const;
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
    ElementFunction function = traced<R>(std::move(f), options.name.empty() ? "map" : options.name, where);
    return typename DatasetOf<R>::type(mapped(std::move(function), std::move(options), false, where));
  }
  /// The same with host code that is called for every element, not traced: it may decode, look things up, use other
  /// libraries. It returns tensors, numbers or strings. With num_parallel_calls several threads call it.
  template <class F>
  auto map_host(F f, MapOptions options = {}, Where where = Where::here()) const {
    static_assert(std::is_invocable_v<const F&, T...>,
                  "map_host's callable takes the components of an element and is not mutable: several threads may call "
                  "it");
    using R = std::remove_cvref_t<std::invoke_result_t<const F&, T...>>;
    static_assert(element::Writable<R>,
                  "map_host's callable returns a Tensor, a number or a string, or a tuple, pair or aggregate (with "
                  "STET_FIELDS) of them");
    auto function = [f = std::make_shared<const F>(std::move(f))](const Tensors& element, Tensors& result) {
      result.clear();
      element::Of<R>::write(applied(*f, element), result);
    };
    return typename DatasetOf<R>::type(mapped(std::move(function), std::move(options), true, where));
  }

  /// The elements of which predicate(element), a traced function, gives true: a Tensor of one bool.
  template <class F>
  Dataset filter(F predicate, FilterOptions options = {}, Where where = Where::here()) const {
    Predicate keeps = traced_predicate(std::move(predicate), "filter", options, where);
    return Dataset(filtered(std::move(keeps), std::move(options), false, where));
  }
  /// The same with host code that is called for every element, and returns a C++ bool.
  template <class F>
  Dataset filter_host(F predicate, FilterOptions options = {}, Where where = Where::here()) const {
    static_assert(std::is_invocable_r_v<bool, const F&, T...>,
                  "filter_host's predicate takes the components of an element, returns bool and is not mutable");
    auto keeps = [f = std::make_shared<const F>(std::move(predicate))](const Tensors& element) -> bool {
      return applied(*f, element);
    };
    return Dataset(filtered(std::move(keeps), std::move(options), true, where));
  }
  /// The elements before the first of which predicate(element), a traced function, gives false.
  template <class F>
  Dataset take_while(F predicate, FilterOptions options = {}, Where where = Where::here()) const {
    Predicate keeps = traced_predicate(std::move(predicate), "take_while", options, where);
    return Dataset(taken_while(std::move(keeps), std::move(options), where));
  }
  /// A map that carries a state from element to element: (next state, result) = f(state, element), traced.
  template <class State, class F>
  auto scan(const State& initial, F f, FilterOptions options = {}, Where where = Where::here()) const {
    using S = typename element::Of<State>::Type;
    static_assert(std::is_invocable_v<F&, S, T...>, "scan's callable takes the state and the components of an element");
    using Both = std::remove_cvref_t<std::invoke_result_t<F&, S, T...>>;
    static_assert(element::Known<Both> && element::is_pair<Both> && std::is_same_v<std::tuple_element_t<0, Both>, S>,
                  "scan's callable returns a pair or tuple of the next state and the result");
    using R = std::tuple_element_t<1, Both>;
    Tensors state;
    element::Of<State>::write(initial, state);
    Function<Both(S, T...)> both(options.name.empty() ? "scan" : options.name, std::move(f), FunctionOptions{}, where);
    auto function = [both = std::move(both), where](const Tensors& given, Tensors& result) {
      const Tensor* at = given.data();
      std::tuple<S, T...> arguments{element::Of<S>::read(at), element::Of<T>::read(at)...};
      result.clear();
      element::Of<Both>::write(std::apply([&](auto&... each) { return both(std::move(each)..., where); }, arguments),
                               result);
    };
    return typename DatasetOf<R>::type(scanned(std::move(state), std::move(function), std::move(options), where));
  }

  /// `batch_size` elements stacked along a new first axis; the last batch may be smaller. Elements of one batch have
  /// one shape.
  Dataset batch(std::int64_t batch_size, BatchOptions options = {}, Where where = Where::here()) const {
    return Dataset(batched(batch_size, options, where));
  }
  /// The same of elements that differ in sizes, each padded at its end to the longest of the batch, or to a given size.
  Dataset padded_batch(std::int64_t batch_size, PaddedBatchOptions options = {}, Where where = Where::here()) const {
    return Dataset(padded(batch_size, std::move(options), where));
  }
  /// The same without padding: components become Ragged, rows one after the other. ragged_batch<0>(n): component 0
  /// only; the others are stacked.
  template <std::size_t... components>
  auto ragged_batch(std::int64_t batch_size, BatchOptions options = {}, Where where = Where::here()) const {
    static_assert(((components < sizeof...(T)) && ...), "ragged_batch<i>: an element has no component i");
    return ragged_of(std::index_sequence<components...>(), std::index_sequence_for<T...>(), batch_size, options, where);
  }
  /// Batches of elements of similar length: each element goes to the bucket of its length(element), host code that
  /// gives an integer, and a bucket that has enough for a batch becomes one, padded. At the end come the rests.
  template <class F>
  Dataset bucket_by_sequence_length(F length, BucketOptions options, Where where = Where::here()) const {
    return Dataset(bucketed(number_function(std::move(length)), std::move(options), where));
  }
  /// The slices of each element along its first axis as elements: what batch() put together.
  Dataset unbatch(Where where = Where::here()) const { return Dataset(unbatched(where)); }
  /// `size` elements that follow each other, stacked; each window begins `shift` elements after the one before it.
  Dataset window(std::int64_t size, WindowOptions options = {}, Where where = Where::here()) const {
    return Dataset(windowed(size, options, where));
  }
  /// Each element with its number before its components, an i64 that counts from `start`.
  Dataset<Tensor, T...> enumerate(std::int64_t start = 0, Where where = Where::here()) const {
    return Dataset<Tensor, T...>(enumerated(start, where));
  }

  /// These elements, and then those of another.
  Dataset concatenate(const Dataset& other, Where where = Where::here()) const {
    return Dataset(concatenated(other.stage(), where));
  }
  /// The elements of f(element), host code that makes a Dataset, for one element after the other.
  template <class F>
  auto flat_map(F f, Where where = Where::here()) const {
    using Inner = std::remove_cvref_t<std::invoke_result_t<const F&, T...>>;
    return Inner(interleaved(open_function(std::move(f)), {.cycle_length = 1}, "flat_map", where));
  }
  /// The same of several elements at a time, a few of each in turn.
  template <class F>
  auto interleave(F f, InterleaveOptions options = {}, Where where = Where::here()) const {
    using Inner = std::remove_cvref_t<std::invoke_result_t<const F&, T...>>;
    return Inner(interleaved(open_function(std::move(f)), options, "interleave", where));
  }

  /// The elements of the first iteration, also in later ones: kept in memory when an iteration has come to its end.
  Dataset cache(Where where = Where::here()) const { return Dataset(cached(std::nullopt, where)); }
  /// Kept in a file, which other processes read too. It appears when an iteration has come to its end, and not before.
  /// A file that is damaged, that is none of a cache, or that is one of a pipeline of other stages, is a UserError and
  /// is left as it is; what functions do is not seen: delete the file when you change one.
  Dataset cache(std::string file, Where where = Where::here()) const { return Dataset(cached(std::move(file), where)); }
  /// Every `shards`-th element, beginning with number `index`: one part of several that share the work.
  Dataset shard(std::int64_t shards, std::int64_t index, Where where = Where::here()) const {
    return Dataset(sharded(shards, index, where));
  }
  /// Leaves elements out at random so that classes come as often as `target_dist` says. class_of(element) is host code
  /// that gives a number from 0.
  template <class F>
  Dataset rejection_resample(F class_of, std::vector<double> target_dist, ResampleOptions options = {},
                             Where where = Where::here()) const {
    return Dataset(resampled(number_function(std::move(class_of)), std::move(target_dist), std::move(options), where));
  }

  /// Up to `buffer_size` elements are made ahead of time, by a thread of its own; data::autotune: as many as it turns
  /// out to take. Batch first: handing an element over costs microseconds.
  Dataset prefetch(std::int64_t buffer_size, Where where = Where::here()) const {
    return Dataset(prefetched(buffer_size, where));
  }
  /// All elements `count` times over; -1: without end (but an empty dataset stays empty).
  Dataset repeat(std::int64_t count = -1, Where where = Where::here()) const { return Dataset(repeated(count, where)); }
  /// The first `count` elements.
  Dataset take(std::int64_t count, Where where = Where::here()) const { return Dataset(taken(count, where)); }
  /// All but the first `count` elements, which are not made where that can be helped.
  Dataset skip(std::int64_t count, Where where = Where::here()) const { return Dataset(skipped(count, where)); }

  /// f(*this): for functions that put several stages together.
  template <class F>
  auto apply(F&& f) const {
    return std::invoke(std::forward<F>(f), *this);
  }
  /// All elements of one iteration.
  std::vector<Element> to_vector(Where where = Where::here()) const {
    require_end("to_vector", where);
    std::vector<Element> out;
    for (Iteration iteration = iterate(where); iteration.next();) {
      const Tensor* at = iteration.tensors().data();
      out.push_back(element::Of<Element>::read(at));
    }
    return out;
  }

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
  template <class F>
  static decltype(auto) applied(const F& f, const Tensors& element) {
    const Tensor* at = element.data();
    return std::apply(f, std::tuple<T...>{element::Of<T>::read(at)...});
  }
  template <class R, class F>
  static ElementFunction traced(F f, const std::string& name, Where where) {
    if constexpr (std::is_base_of_v<FunctionBase, F>)
      return [f = std::move(f), where](const Tensors& element, Tensors& result) {
        const Tensor* at = element.data();
        std::tuple<T...> arguments{element::Of<T>::read(at)...};
        result.clear();
        element::Of<R>::write(std::apply([&](T&... each) { return f(std::move(each)..., where); }, arguments), result);
      };
    else
      return traced<R>(Function<R(T...)>(name, std::move(f), FunctionOptions{}, where), name, where);
  }
  template <class F>
  static Predicate traced_predicate(F predicate, const char* call, const FilterOptions& options, Where where) {
    static_assert(std::is_invocable_v<F&, T...>, "a predicate takes the components of an element");
    static_assert(std::is_same_v<std::remove_cvref_t<std::invoke_result_t<F&, T...>>, Tensor>,
                  "a predicate is traced and returns a Tensor of one bool; host code that returns bool is for "
                  "filter_host");
    ElementFunction function = traced<Tensor>(std::move(predicate), options.name.empty() ? call : options.name, where);
    return [function = std::move(function), call, where](const Tensors& element) {
      Tensors result;
      function(element, result);
      return truth(result[0], call, where);
    };
  }
  template <class F>
  static NumberFunction number_function(F f) {
    static_assert(std::is_invocable_v<const F&, T...>,
                  "the callable takes the components of an element and is not mutable");
    using R = std::remove_cvref_t<std::invoke_result_t<const F&, T...>>;
    static_assert(std::is_integral_v<R> || std::is_same_v<R, Dim> || std::is_same_v<R, Tensor>,
                  "the callable returns an integer, a size or a Tensor of one integer");
    return [f = std::make_shared<const F>(std::move(f))](const Tensors& element) -> std::int64_t {
      if constexpr (std::is_same_v<R, Tensor>)
        return applied(*f, element).template item<std::int64_t>();
      else
        return static_cast<std::int64_t>(applied(*f, element));
    };
  }
  template <class F>
  static OpenFunction open_function(F f) {
    static_assert(std::is_invocable_v<const F&, T...>,
                  "the callable takes the components of an element and is not mutable: several threads may call it");
    static_assert(std::is_base_of_v<DatasetBase, std::remove_cvref_t<std::invoke_result_t<const F&, T...>>>,
                  "the callable returns a Dataset");
    return
        [f = std::make_shared<const F>(std::move(f))](const Tensors& element) { return applied(*f, element).stage(); };
  }
  /// Whether component i is among those named; none named: all are.
  template <std::size_t... chosen>
  static constexpr bool is_chosen(std::index_sequence<chosen...>, std::size_t i) {
    return sizeof...(chosen) == 0 || ((i == chosen) || ...);
  }
  template <class Chosen, std::size_t... all>
  auto ragged_of(Chosen, std::index_sequence<all...>, std::int64_t batch_size, BatchOptions options,
                 Where where) const {
    constexpr bool is_ragged[] = {is_chosen(Chosen(), all)...};
    static_assert(((!is_ragged[all] || std::is_same_v<T, Tensor>)&&...),
                  "a component that becomes ragged is a Tensor: name the others by ragged_batch<0, 2>(n)");
    std::vector<bool> which;
    (which.insert(which.end(), element::tensor_count<T>(), is_ragged[all]), ...);
    return Dataset<std::conditional_t<is_ragged[all], Ragged, T>...>(
        ragged(batch_size, std::move(which), options, where));
  }
};

// --- sources

/// What the functions below are made of.
namespace source {

/// `arguments`: for each tensor, the argument that it is (a part of).
STET_API StagePointer slices(Tensors tensors, const std::vector<int>& arguments, Where where);
STET_API StagePointer indexed(std::int64_t count, std::function<void(std::int64_t position, Tensors&)> element,
                              Where where, const char* name = "from_range");
/// `name` is what messages call it. `open` gives a function that writes the next element, or returns false. `count` is
/// -1 if it is not known.
STET_API StagePointer walked(std::int64_t count, std::function<std::function<bool(Tensors&)>()> open, Where where,
                             const char* name = "from_range");

template <class A>
using Sliced = typename std::conditional_t<element::Writable<A>, element::Of<A>, element::Of<Tensor>>::Type;
/// What tensor() makes a tensor of: a vector or an array, perhaps of vectors and arrays.
template <class A>
concept List = requires(const A& list) {
  tensor(list, Where());
};
template <class... A>
Dataset<Sliced<A>...> sliced(Where where, const A&... arguments) {
  Tensors tensors;
  std::vector<int> owners;
  int number = 0;
  auto one = [&](const auto& argument) {
    using Argument = std::remove_cvref_t<decltype(argument)>;
    static_assert(
        element::Writable<Argument> || List<Argument> || std::is_convertible_v<const Argument&, Tensor>,
        "from_tensor_slices takes tensors, vectors or arrays of numbers, or tuples, pairs or aggregates (with "
        "STET_FIELDS) of tensors; from_range takes other containers");
    if constexpr (element::Writable<Argument>)
      element::Of<Argument>::write(argument, tensors);
    else if constexpr (List<Argument>)
      tensors.push_back(tensor(argument, where));
    else
      tensors.push_back(argument);
    owners.resize(tensors.size(), number++);
  };
  (one(arguments), ...);
  return Dataset<Sliced<A>...>(slices(std::move(tensors), owners, where));
}

}  // namespace source

/// One element per position of the first axis, which must have the same size in all arguments: their slices there. An
/// argument is a Tensor, or a tuple, pair or aggregate of Tensors; or a vector or array of numbers, as tensor() takes
/// it. Of tensors nothing is copied (but views that are not dense, once).
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
/// code, called whenever an element is needed; it returns tensors, numbers or strings, alone or in a tuple,
/// pair or aggregate.
template <class Range, class F>
auto from_range(Range&& range, F f, Where where = Where::here()) {
  using Stored = std::remove_cvref_t<Range>;
  using Value = decltype(*std::begin(std::declval<const Stored&>()));
  static_assert(std::is_invocable_v<const F&, Value>,
                "from_range's callable takes a value of the range and is not mutable: several threads may call it");
  using R = std::remove_cvref_t<std::invoke_result_t<const F&, Value>>;
  static_assert(element::Writable<R>,
                "from_range's callable returns a Tensor, a number or a string, or a tuple, pair or "
                "aggregate (with STET_FIELDS) of them");
  auto kept = std::make_shared<const Stored>(std::forward<Range>(range));
  StagePointer stage;
  if constexpr (requires { std::begin(*kept)[0], std::size(*kept); }) {
    auto count = static_cast<std::int64_t>(std::size(*kept));
    stage = source::indexed(
        count,
        [kept, f = std::make_shared<const F>(std::move(f))](std::int64_t position, Tensors& out) {
          auto first = std::begin(*kept);
          element::Of<R>::write((*f)(first[static_cast<std::iter_difference_t<decltype(first)>>(position)]), out);
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

/// start, start + step, … before stop, as i64 scalars; `step` may be negative.
STET_API Dataset<Tensor> range(std::int64_t start, std::int64_t stop, std::int64_t step = 1,
                               Where where = Where::here());
/// 0 to stop - 1.
STET_API Dataset<Tensor> range(std::int64_t stop, Where where = Where::here());

/// Elements that host code makes one after the other: `f` is called when an iteration begins, and gives a callable that
/// returns a std::optional of the next element, or nothing at the end. Iterations stand alone if what `f` gives does.
template <class F>
auto from_generator(F f, Where where = Where::here()) {
  static_assert(std::is_invocable_v<const F&>, "from_generator's callable takes nothing and is not mutable");
  using Next = std::remove_cvref_t<std::invoke_result_t<const F&>>;
  static_assert(std::is_invocable_v<Next&>, "from_generator's callable returns a callable that gives the next element");
  using Given = std::remove_cvref_t<std::invoke_result_t<Next&>>;
  static_assert(element::is_optional<Given>,
                "what from_generator's callable returns gives a std::optional of an element");
  using R = typename Given::value_type;
  static_assert(
      element::Writable<R>,
      "an element is a Tensor, a number or a string, or a tuple, pair or aggregate (with STET_FIELDS) of them");
  StagePointer stage = source::walked(
      -1,
      [f = std::make_shared<const F>(std::move(f))]() -> std::function<bool(Tensors&)> {
        return [next = std::make_shared<Next>((*f)())](Tensors& out) {
          Given given = (*next)();
          if (!given) return false;
          element::Of<R>::write(*given, out);
          return true;
        };
      },
      where, "from_generator");
  return typename DatasetOf<R>::type(std::move(stage));
}

// --- several datasets as one

namespace source {
STET_API StagePointer zipped(std::vector<StagePointer> datasets, Where where);
STET_API StagePointer sampled(std::vector<StagePointer> datasets, SampleOptions options, Where where);
STET_API StagePointer chosen(std::vector<StagePointer> datasets, StagePointer choice, ChooseOptions options,
                             Where where);
template <class... T>
std::vector<StagePointer> stages_of(const std::vector<Dataset<T...>>& datasets) {
  std::vector<StagePointer> out;
  for (const Dataset<T...>& dataset : datasets) out.push_back(dataset.stage());
  return out;
}
}  // namespace source

/// One element of each at a time, which are the components of the new one; it ends with the shortest.
template <class... A, class... B>
auto zip(const Dataset<A...>& a, const Dataset<B...>& b, Where where = Where::here()) {
  return Dataset<typename Dataset<A...>::Element, typename Dataset<B...>::Element>(
      source::zipped({a.stage(), b.stage()}, where));
}
template <class... A, class... B, class... C>
auto zip(const Dataset<A...>& a, const Dataset<B...>& b, const Dataset<C...>& c, Where where = Where::here()) {
  return Dataset<typename Dataset<A...>::Element, typename Dataset<B...>::Element, typename Dataset<C...>::Element>(
      source::zipped({a.stage(), b.stage(), c.stage()}, where));
}
template <class... A, class... B, class... C, class... D>
auto zip(const Dataset<A...>& a, const Dataset<B...>& b, const Dataset<C...>& c, const Dataset<D...>& d,
         Where where = Where::here()) {
  return Dataset<typename Dataset<A...>::Element, typename Dataset<B...>::Element, typename Dataset<C...>::Element,
                 typename Dataset<D...>::Element>(source::zipped({a.stage(), b.stage(), c.stage(), d.stage()}, where));
}

/// Each element comes from one of the datasets, drawn by their weights; those that have ended are left out.
template <class... T>
Dataset<T...> sample_from_datasets(const std::vector<Dataset<T...>>& datasets, SampleOptions options = {},
                                   Where where = Where::here()) {
  return Dataset<T...>(source::sampled(source::stages_of(datasets), std::move(options), where));
}
/// Each element comes from the dataset whose number `choice`, integer scalars, gives next.
template <class... T>
Dataset<T...> choose_from_datasets(const std::vector<Dataset<T...>>& datasets, const Dataset<Tensor>& choice,
                                   ChooseOptions options = {}, Where where = Where::here()) {
  return Dataset<T...>(source::chosen(source::stages_of(datasets), choice.stage(), options, where));
}

}  // namespace stet::data
