#include "stet/keras/data.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

/// 0 … count - 1 in a random order that follows from random::seed.
Tensor permutation(std::int64_t count) {
  std::mt19937_64 generator(random::randint({1}, 0, INT64_MAX).item<std::int64_t>());
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  // Not std::shuffle, whose order is the library's choice.
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  return tensor(order);
}

}  // namespace

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

std::optional<std::int64_t> Data::batch_count(std::int64_t batch_size) const {
  return (samples() + batch_size - 1) / batch_size;
}

Data::Reader Data::read(BatchOptions options) const {
  Tensor order = options.shuffle ? permutation(samples()) : Tensor();
  return [tensors = tensors_, order, size = options.batch_size, count = samples(),
          at = std::int64_t{0}]() mutable -> std::optional<Batch> {
    if (at >= count) return std::nullopt;
    Range rows = range(at, std::min(at + size, count));
    at += size;
    auto part = [&](const Tensor& all) -> Tensor {
      if (!all.defined()) return {};
      return order.defined() ? gather(all, order[rows]) : all[rows];
    };
    return Batch{part(tensors.x), part(tensors.y), part(tensors.sample_weight)};
  };
}

std::pair<Data, Data> Data::split(double fraction, Where where) const {
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
