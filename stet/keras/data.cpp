#include "stet/keras/data.h"

#include <memory>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet::keras {

Data::Data(Batch tensors, Where where) : tensors_(std::move(tensors)) {
  auto refuse = [&](const std::string& what, const char* advice) { throw UserError(error_text(what, where, advice)); };
  if (!tensors_.x.defined()) refuse("the data's x is an undefined tensor", "assign a value to it before the call");
  if (tensors_.x.rank() == 0) refuse("the data's x is a single number", "samples stand along axis 0: [samples, …]");
  const std::pair<const char*, const Tensor*> others[] = {{"y", &tensors_.y},
                                                          {"sample_weight", &tensors_.sample_weight}};
  for (const auto& [name, other] : others) {
    if (!other->defined()) continue;
    if (other->rank() == 0 || other->dim(0).value() != samples())
      refuse(text("x ", tensors_.x.dtype(), tensors_.x.shape(), " has ", samples(), " samples, ", name, " ",
                  other->dtype(), other->shape(), " has ", other->rank() == 0 ? text("none") : text(other->dim(0))),
             "every sample of x needs one of y: make their first sizes equal");
  }
}

std::int64_t Data::samples() const { return tensors_.x.dim(0).value(); }

data::DatasetBase Data::batches(const ReadOptions& options, Where where) const {
  if (dataset_) return *dataset_;
  auto pipeline = [&](const auto& slices) -> data::DatasetBase {
    return (options.shuffle ? slices.shuffle(std::max<std::int64_t>(samples(), 1), {}, where) : slices)
        .batch(options.batch_size, {}, where);
  };
  const auto& [x, y, sample_weight] = tensors_;
  if (y.defined() && sample_weight.defined()) return pipeline(data::from_tensor_slices(x, y, sample_weight, where));
  return y.defined() ? pipeline(data::from_tensor_slices(x, y, where)) : pipeline(data::from_tensor_slices(x, where));
}

std::optional<std::int64_t> Data::batch_count(const ReadOptions& options) const {
  return batches(options, {}).cardinality();
}

Data::Reader Data::read(const ReadOptions& options, Where where) const {
  // Shared, because a std::function is copied and an iteration is not.
  auto iteration = std::make_shared<data::Iteration>(batches(options, where).iterate(where));
  return [iteration]() -> std::optional<Batch> {
    if (!iteration->next()) return std::nullopt;
    const data::Tensors& parts = iteration->tensors();
    auto part = [&](std::size_t i) { return i < parts.size() ? parts[i] : Tensor(); };
    return Batch{part(0), part(1), part(2)};
  };
}

std::pair<Data, Data> Data::split(double fraction, Where where) const {
  if (dataset_)
    throw UserError(error_text(text("validation_split = ", fraction, " of a Dataset"), where,
                               "split tensors, or give two Datasets: skip() and take() make them"));
  auto cut = static_cast<std::int64_t>(static_cast<double>(samples()) * (1 - fraction));
  if (cut == 0 || cut == samples())
    throw UserError(error_text(text("validation_split = ", fraction, " of ", samples(), " samples leaves none to ",
                                    cut == 0 ? "train on" : "validate with"),
                               where, "give more samples, or validation_data"));
  auto part = [&](Range rows) {
    auto of = [&](const Tensor& all) { return all.defined() ? all[rows] : Tensor(); };
    return Data(Batch{of(tensors_.x), of(tensors_.y), of(tensors_.sample_weight)}, where);
  };
  return {part(range(0, cut)), part(range(cut, samples()))};
}

}  // namespace stet::keras
