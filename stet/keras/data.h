// Data: whatever fit(), evaluate() and predict() take, as batches.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/structure.h"
#include "stet/core/tensor.h"
#include "stet/data/dataset.h"

namespace stet::keras {

/// What one step gets. `y` and `sample_weight` may be undefined. Where a model has several inputs or outputs, these are
/// the first ones, and the others follow in the order of the model's; one without labels or weights has an undefined
/// tensor.
struct Batch {
  Tensor x = {}, y = {}, sample_weight = {};
  std::vector<Tensor> more_x = {}, more_y = {}, more_sample_weight = {};
  STET_FIELDS(x, y, sample_weight, more_x, more_y, more_sample_weight)

  /// All of each kind.
  std::vector<Tensor> all_x() const { return all(x, more_x); }
  std::vector<Tensor> all_y() const { return all(y, more_y); }
  std::vector<Tensor> all_sample_weights() const { return all(sample_weight, more_sample_weight); }

 private:
  static std::vector<Tensor> all(const Tensor& first, const std::vector<Tensor>& more) {
    std::vector<Tensor> out{first};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
};

struct NamedTensor {
  std::string name = {};
  Tensor value = {};
};

/// A tensor among several; no number is taken for one.
struct OneTensor {
  OneTensor(const Tensor& value) : value(value) {}
  Tensor value;
};

/// Tensors that hold one sample after the other along axis 0: one, several in the order of a model's inputs or outputs,
/// or several by their names, as in {{"title", titles}, {"body", bodies}}.
class STET_API Samples {
 public:
  /// None.
  Samples() = default;
  template <std::same_as<Tensor> T>
  Samples(const T& one) : tensors_{one} {}
  Samples(std::vector<Tensor> several) : tensors_(std::move(several)) {}
  Samples(std::initializer_list<OneTensor> several) {
    for (const OneTensor& one : several) tensors_.push_back(one.value);
  }
  Samples(const std::map<std::string, Tensor>& by_name) {
    for (const auto& [name, value] : by_name) add(name, value);
  }
  Samples(std::initializer_list<NamedTensor> by_name) {
    for (const NamedTensor& one : by_name) add(one.name, one.value);
  }

  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// By tensor; empty: they stand in order.
  const std::vector<std::string>& names() const { return names_; }

 private:
  void add(std::string name, const Tensor& value) {
    names_.push_back(std::move(name));
    tensors_.push_back(value);
  }
  std::vector<Tensor> tensors_;
  std::vector<std::string> names_;
};

template <class T>
struct AreTensors : std::false_type {};
template <class... T>
struct AreTensors<std::tuple<T...>> : std::bool_constant<(std::is_same_v<T, Tensor> && ...)> {};

/// The names of the tensors that a Dataset's component consists of; "" for those of a tuple.
template <class T>
std::vector<std::string> component_names() {
  std::vector<std::string> names;
  if constexpr (structure::WithFields<T>) {
    T fields{};
    fields.stet_fields([&](const char* name, auto& field) {
      static_assert(std::is_same_v<std::remove_cvref_t<decltype(field)>, Tensor>,
                    "a model's inputs, labels or weights are Tensors, or tuples or aggregates of Tensors");
      names.emplace_back(name);
    });
  } else if constexpr (!std::is_same_v<T, Tensor>) {
    using Parts = decltype(std::tuple_cat(std::declval<T>()));  // of a pair too
    static_assert(AreTensors<Parts>::value,
                  "a model's inputs, labels or weights are Tensors, or tuples or aggregates of Tensors");
    names.resize(std::tuple_size_v<Parts>);
  } else {
    names.resize(1);
  }
  return names;
}

struct ReadOptions {
  std::int64_t batch_size = 32;
  bool shuffle = false;
  std::map<std::int64_t, double> class_weight = {};
};

/// What a model's inputs and outputs are called; empty where they have no names.
struct ModelNames {
  std::vector<std::string> inputs = {}, outputs = {};
};

/// Samples of x, of x and y, or of x, y and sample_weight; or a Dataset of batches of them, whose elements are tensors
/// (or tuples, or aggregates whose fields are named as the model's inputs and outputs are) in that order.
class STET_API Data {
 public:
  /// Gives batches until there are no more. Copies share it.
  class STET_API Reader {
   public:
    Reader() = default;
    explicit operator bool() const { return state_ != nullptr; }
    std::optional<Batch> operator()() const;
    /// After the batch that it gave last.
    data::IterationPosition position() const;

   private:
    friend class Data;
    struct State;
    explicit Reader(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };

  /// None.
  Data() = default;
  Data(const Tensor& x, Where where = Where::here()) : Data(Samples(x), where) {}
  Data(const Samples& x, Where where = Where::here()) : Data(x, {}, {}, where) {}
  Data(const Samples& x, const Samples& y, Where where = Where::here()) : Data(x, y, {}, where) {}
  Data(const Samples& x, const Samples& y, const Samples& sample_weight, Where where = Where::here());
  template <class X, class... More>
  Data(const data::Dataset<X, More...>& batches) : dataset_(batches) {
    static_assert(sizeof...(More) <= 2, "a model takes batches of x, (x, y) or (x, y, sample_weight)");
    std::size_t number = 0;
    kinds_[0].names = component_names<X>();
    ((kinds_[++number].names = component_names<More>()), ...);
  }

  bool defined() const { return dataset_ || !kinds_[0].tensors.empty(); }
  /// How many batches a reader gives: data::infinite if it does not end, nothing if only reading can tell.
  std::optional<std::int64_t> batch_count(const ReadOptions& options) const;
  /// Starts over. Tensors are cut into batches, shuffled in a new order each time, from the process's random generator;
  /// a Dataset is read as it is. Weights of classes become weights of samples.
  Reader read(const ReadOptions& options, Where where) const;
  /// Goes on where another reader was, of this data or of the same in another process: see Dataset::iterate_from.
  Reader read_from(const data::IterationPosition& position, const ReadOptions& options, Where where) const;
  /// Of a Dataset: readers that are made from here on are those that come after the one that was there.
  void go_on_after(const data::IterationPosition& position, Where where) const;
  /// How many readers of a Dataset were made, by whomever; of tensors, 0. Setting it is for a process that goes on.
  std::uint64_t next_iteration() const { return dataset_ ? dataset_->next_iteration() : 0; }
  void set_next_iteration(std::uint64_t number) const {
    if (dataset_) dataset_->set_next_iteration(number);
  }
  /// A first batch to look at; a Dataset counts no iteration for it.
  std::optional<Batch> example(const ReadOptions& options, Where where) const;
  /// The same with these weights; of tensors without any (UserError).
  Data with_sample_weight(const Samples& weights, Where where) const;
  /// The first and the last part, cut at 1 - fraction; of tensors only (UserError).
  std::pair<Data, Data> split(double fraction, Where where) const;
  /// The same, with what is given by name in the order of the model's names: a name that the model does not have, or an
  /// input that has no samples, is a UserError.
  Data in_order(const ModelNames& names, Where where) const;
  /// Of tensors.
  std::int64_t samples() const;

 private:
  /// x, y or sample_weight.
  struct Kind {
    std::vector<Tensor> tensors = {};     // none of a Dataset
    std::vector<std::string> names = {};  // one for each tensor; "" where it is its place that counts
    /// By place in a batch, which of the tensors; -1: none. Not given: as they come.
    std::optional<std::vector<int>> order = {};
    std::size_t count() const { return names.size(); }
  };
  data::DatasetBase batches(const ReadOptions& options, Where where) const;
  Reader reader(data::Iteration iteration, const ReadOptions& options, Where where) const;

  Kind kinds_[3];  // with tensors, or
  std::optional<data::DatasetBase> dataset_;
};

}  // namespace stet::keras
