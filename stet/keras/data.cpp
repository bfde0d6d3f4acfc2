#include "stet/keras/data.h"

#include <algorithm>
#include <array>
#include <memory>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/compiled.h"

namespace stet::keras {
namespace {

constexpr const char* kind_names[] = {"x", "y", "sample_weight"};

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(what, where, advice));
}

/// "y", or among several "y[1]" or "y['score']".
std::string called(int kind, const std::vector<std::string>& names, std::size_t number) {
  if (names.size() == 1 && names[0].empty()) return kind_names[kind];
  return names[number].empty() ? text(kind_names[kind], "[", number, "]")
                               : text(kind_names[kind], "['", names[number], "']");
}

}  // namespace

Data::Data(const Samples& x, const Samples& y, const Samples& sample_weight, Where where) {
  const Samples* given[] = {&x, &y, &sample_weight};
  if (x.tensors().empty()) refuse("the data has no x", where, "give it a tensor, or several");
  for (int kind = 0; kind < 3; ++kind) {
    const std::vector<Tensor>& tensors = given[kind]->tensors();
    // fit(x, Tensor()) means: without labels.
    if (kind > 0 && tensors.size() == 1 && !tensors[0].defined()) continue;
    kinds_[kind].tensors = tensors;
    kinds_[kind].names = given[kind]->names();
    kinds_[kind].names.resize(tensors.size());
  }
  for (int kind = 0; kind < 3; ++kind)
    for (std::size_t i = 0; i < kinds_[kind].tensors.size(); ++i) {
      const Tensor& one = kinds_[kind].tensors[i];
      const std::string name = called(kind, kinds_[kind].names, i);
      if (!one.defined())
        refuse(text("the data's ", name, " is an undefined tensor"), where, "assign a value to it before the call");
      const Tensor& first = kinds_[0].tensors[0];
      if (one.rank() == 0 && kind == 0)
        refuse(text("the data's ", name, " is a single number"), where, "samples stand along axis 0: [samples, …]");
      if (one.rank() == 0 || one.dim(0).value() != samples())
        refuse(text(called(0, kinds_[0].names, 0), " ", first.dtype(), first.shape(), " has ", samples(), " samples, ",
                    name, " ", one.dtype(), one.shape(), " has ", one.rank() == 0 ? text("none") : text(one.dim(0))),
               where, text("every sample of x needs one of ", kind_names[kind], ": make their first sizes equal"));
    }
}

std::int64_t Data::samples() const { return kinds_[0].tensors[0].dim(0).value(); }

data::DatasetBase Data::batches(const ReadOptions& options, Where where) const {
  if (dataset_) return *dataset_;
  std::vector<Tensor> tensors;
  std::vector<int> owners;
  for (int kind = 0; kind < 3; ++kind)
    for (const Tensor& one : kinds_[kind].tensors) {
      tensors.push_back(one);
      owners.push_back(kind);
    }
  data::Dataset<Tensor> slices(data::source::slices(std::move(tensors), owners, where));
  return (options.shuffle ? slices.shuffle(std::max<std::int64_t>(samples(), 1), {}, where) : slices)
      .batch(options.batch_size, {}, where);
}

std::optional<std::int64_t> Data::batch_count(const ReadOptions& options) const {
  if (dataset_) return dataset_->cardinality();
  return samples() / options.batch_size + (samples() % options.batch_size != 0);
}

struct Data::Reader::State {
  data::Iteration iteration;
  std::array<Kind, 3> kinds;
  ClassWeights weights;
};

std::optional<Batch> Data::Reader::operator()() const {
  if (!state_->iteration.next()) return std::nullopt;
  Batch batch;
  Tensor* firsts[] = {&batch.x, &batch.y, &batch.sample_weight};
  std::vector<Tensor>* others[] = {&batch.more_x, &batch.more_y, &batch.more_sample_weight};
  const Tensor* part = state_->iteration.tensors().data();
  const std::array<Kind, 3>& kinds = state_->kinds;
  for (std::size_t kind = 0; kind < 3; part += kinds[kind++].count()) {
    const std::optional<std::vector<int>>& order = kinds[kind].order;
    const std::size_t places = order ? order->size() : kinds[kind].count();
    for (std::size_t place = 0; place < places; ++place) {
      const int which = order ? (*order)[place] : static_cast<int>(place);
      Tensor one = which < 0 ? Tensor() : part[which];
      if (place == 0)
        *firsts[kind] = std::move(one);
      else
        others[kind]->push_back(std::move(one));
    }
  }
  return state_->weights.applied(std::move(batch));
}

data::IterationPosition Data::Reader::position() const { return state_->iteration.position(); }

Data::Reader Data::reader(data::Iteration iteration, const ReadOptions& options, Where where) const {
  return Reader(std::make_shared<Reader::State>(
      Reader::State{std::move(iteration), std::to_array(kinds_), ClassWeights(options.class_weight, where)}));
}

Data::Reader Data::read(const ReadOptions& options, Where where) const {
  return reader(batches(options, where).iterate(where), options, where);
}

Data::Reader Data::read_from(const data::IterationPosition& position, const ReadOptions& options, Where where) const {
  return reader(batches(options, where).iterate_from(position, where), options, where);
}

void Data::go_on_after(const data::IterationPosition& position, Where where) const {
  if (!dataset_) return;
  data::IterationPosition begin = position;
  begin.elements = 0;  // nothing has to be skipped
  dataset_->iterate_from(begin, where);
}

std::optional<Batch> Data::example(const ReadOptions& options, Where where) const {
  const std::uint64_t number = next_iteration();
  std::optional<Batch> batch = read(options, where)();
  set_next_iteration(number);
  return batch;
}

Data Data::with_sample_weight(const Samples& weights, Where where) const {
  if (weights.tensors().empty()) return *this;
  if (dataset_ || kinds_[2].count() > 0)
    refuse(dataset_ ? "sample_weight beside a Dataset" : "the data has weights, and sample_weight gives others", where,
           dataset_ ? "let its elements be (x, y, sample_weight)" : "give them once");
  Data out = *this;
  out.kinds_[2] = Data(Samples(kinds_[0].tensors), {}, weights, where).kinds_[2];
  return out;
}

std::pair<Data, Data> Data::split(double fraction, Where where) const {
  if (dataset_)
    refuse(text("validation_split = ", fraction, " of a Dataset"), where,
           "split tensors, or give two Datasets: skip() and take() make them");
  auto cut = static_cast<std::int64_t>(static_cast<double>(samples()) * (1 - fraction));
  if (cut == 0 || cut == samples())
    refuse(text("validation_split = ", fraction, " of ", samples(), " samples leaves none to ",
                cut == 0 ? "train on" : "validate with"),
           where, "give more samples, or validation_data");
  auto part = [&](Range rows) {
    Data out = *this;
    for (Kind& kind : out.kinds_)
      for (Tensor& one : kind.tensors) one = one[rows];
    return out;
  };
  return {part(range(0, cut)), part(range(cut, samples()))};
}

Data Data::in_order(const ModelNames& names, Where where) const {
  Data out = *this;
  for (int kind = 0; kind < 3; ++kind) {
    const std::vector<std::string>& given = kinds_[kind].names;
    if (std::all_of(given.begin(), given.end(), [](const std::string& name) { return name.empty(); })) continue;
    const std::vector<std::string>& known = kind == 0 ? names.inputs : names.outputs;
    const char* what = kind == 0 ? "inputs" : "outputs";
    if (known.empty())
      refuse(text("the data gives ", kind_names[kind], " by name ('", joined(given, "', '"), "'), and the model's ",
                  what, " have no names"),
             where, "give the tensors in order; a model of keras::Inputs has names");
    std::vector<int> order(known.size(), -1);
    for (std::size_t i = 0; i < given.size(); ++i) {
      auto found = std::find(known.begin(), known.end(), given[i]);
      if (found == known.end())
        refuse(text("the data gives ", kind_names[kind], " of '", given[i], "', which is none of the model's ", what),
               where, text("they are '", joined(known, "', '"), "'"));
      int& place = order[static_cast<std::size_t>(found - known.begin())];
      if (place >= 0)
        refuse(text("the data gives ", kind_names[kind], " of '", given[i], "' twice"), where, "give it once");
      place = static_cast<int>(i);
    }
    for (std::size_t place = 0; place < order.size(); ++place)
      if (kind == 0 && order[place] < 0)
        refuse(text("the data has no x of '", known[place], "', which is one of the model's inputs"), where,
               text("they are '", joined(known, "', '"), "'"));
    out.kinds_[kind].order = std::move(order);
  }
  return out;
}

}  // namespace stet::keras
