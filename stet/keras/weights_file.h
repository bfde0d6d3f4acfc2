// Weights in files: what a file has is compared with what a model has, and then given to it, all or nothing. Not a
// public header.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "stet/files/hdf5.h"
#include "stet/files/safetensors.h"
#include "stet/keras/layer.h"
#include "stet/keras/optimizer.h"
#include "stet/keras/saving_options.h"
#include "stet/keras/tensor_bytes.h"

namespace stet::keras {

/// Weights of a model that come from a file.
class WeightsToLoad {
 public:
  /// `whose`: "Sequential 'sequential'".
  WeightsToLoad(const files::Reading& reading, std::string whose) : reading_(reading), whose_(std::move(whose)) {}

  /// Of the dataset or tensor `name` of the file.
  using Read = std::function<void(std::span<std::byte>)>;
  struct Stored {
    std::string name;
    std::optional<DType> dtype;  // none: a type that stet does not have
    std::string type;            // in words
    std::vector<std::int64_t> sizes;
    Read read;
  };
  void add(const Weight& weight, Stored from, NameMap::Layout layout = NameMap::as_here);
  void add_missing(const Weight& weight, const std::string& name);
  void add_unexpected(const Stored& stored);

  /// UserError that lists what does not fit; with `skip`, a warning on stderr instead.
  void check(bool skip) const;
  /// Reads everything, then changes the weights.
  void commit() const;

 private:
  struct One {
    Weight weight;
    Stored from;
    NameMap::Layout layout;
  };
  Tensor value(const One& one) const;
  const files::Reading reading_;
  const std::string whose_;
  std::vector<One> fitting_;
  std::vector<std::string> missing_, unfit_, unexpected_;
};

/// Keras's layout. Of an optimizer that is defined, its variables in the order of Keras.
void write_weights(files::Hdf5Writer& to, CustomLayer& model, const Optimizer& optimizer, Where where);
/// The same the other way. Variables of an optimizer that do not fit are left as they are, and a warning says so.
void read_weights(const files::Hdf5Reader& from, CustomLayer& model, const Optimizer& optimizer, bool skip_mismatch,
                  Where where);
/// How many elements all datasets have.
std::uint64_t elements_in(const files::Hdf5Node& node);
/// The same of the datasets that are weights of layers.
std::uint64_t weights_in(const files::Hdf5Node& node);

}  // namespace stet::keras
