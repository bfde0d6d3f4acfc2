// What the library's own layers are made of: LibraryLayer for those with weights, plain_layer() for functions of what
// goes in. Not a public header.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

/// How many axes the inputs of a layer have, the batch axis among them, and how messages say what it takes.
struct Takes {
  int least = 0, most = 8;  // axes of every input
  const char* layout = "";  // "[batch, steps, channels]"
  int inputs = 1;           // as many tensors; 0: any number but none
  int checked = 8;          // so many of them have these axes; what comes after is the layer's to check
  bool cast = true;         // floating inputs to the type that the layer computes in
};

/// The line that called the layer whose call, or build, runs on this thread: where errors of make_weights are.
Where calling_line();

/// A layer of the library. Floating inputs come in the type that it computes in; errors of the ops that it uses name
/// the layer, and the line that called it.
class LibraryLayer : public CustomLayer {
 public:
  LibraryLayer(const char* class_name, std::string name, Takes takes, DTypePolicy policy = {});

  Tensors call_many(const Tensors& inputs, const Context& context) final;
  void build_many(const std::vector<Shape>& inputs) final;

 protected:
  /// One of them is written; run() for one tensor in and out. The inputs have passed `takes`.
  virtual Tensor run(const Tensor& x, const Context& context);
  virtual Tensors run_many(const Tensors& inputs, const Context& context);
  /// Adds the weights. One of them is written, if there are any; it is not called on inputs that do not fit `takes`.
  virtual void make_weights(const Shape& input);
  virtual void make_weights_for(const std::vector<Shape>& inputs);

  /// A weight of the policy's type, with the initializer's own default where the user gave none.
  Variable weight(std::string_view name, const Shape& shape, const Initializer& given, const char* otherwise,
                  bool trainable = true);
  /// The weight in the type that the layer computes in.
  Tensor in_compute_type(const Variable& weight) const;
  /// UserError unless the axis has the size that the weights were made for: "inputs", "channels".
  void require_size(const Tensor& x, int axis, const Dim& size, const char* what, Where where) const;
  DType compute_dtype() const { return policy_.compute_dtype(); }
  DType variable_dtype() const { return policy_.variable_dtype(); }

 private:
  bool fits(const std::vector<int>& ranks) const;
  /// Throws what is wrong with a call; a layer that could not make its weights for it will make them at its next call.
  [[noreturn]] void refuse(const std::string& what, const std::string& fix, Where where);
  const Takes takes_;
  const DTypePolicy policy_;
  const char* const shown_;
  std::atomic<bool> made_ = false;  // make_weights has run
};

/// A layer without weights.
struct PlainLayer {
  const char* class_name;
  std::string name;
  Takes takes = {};
  std::function<Tensor(const Tensor& x, const Context& context)> call = {};  // or
  std::function<Tensor(const Tensors& inputs, const Context& context)> call_many = {};
  bool supports_masking = false;
  /// Otherwise than by passing on that of the first input.
  std::function<Tensors(const Tensors& inputs, const Tensors& masks)> compute_mask = {};
  DTypePolicy policy = {};
};
Layer plain_layer(PlainLayer what);

}  // namespace stet::keras
