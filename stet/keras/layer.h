// Layers: a Layer is what you hold and call; a CustomLayer is what you subclass to make one.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/handle.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/keras/constraint.h"
#include "stet/keras/initializer.h"
#include "stet/keras/members.h"
#include "stet/keras/recipe.h"
#include "stet/keras/regularizer.h"

namespace stet::keras {

/// What goes into a layer, or comes out of it, where that is more than one tensor. An undefined one is left out.
using Tensors = std::vector<Tensor>;

/// What calls of a layer take beside tensors; each layer that takes something has a struct of its own.
struct STET_API CallArguments {
  virtual ~CallArguments();
};

/// What a layer knows about the call it is in.
struct Context {
  bool training = false;
  Where where = {};  // the line that called the layer
  /// By input, the mask that came along with it: bool [batch, steps], false where a step does not count; undefined: all
  /// of them count.
  Tensors masks = {};
  Tensor mask(std::size_t input = 0) const {
    asked_for_mask = true;
    return input < masks.size() ? masks[input] : Tensor();
  }
  mutable bool asked_for_mask = false;
  std::shared_ptr<const CallArguments> arguments = {};  // as CallOptions has them
};
struct CallOptions {
  /// Without one: as the layer is called in whose call() this is; outside of layers, inference.
  std::optional<bool> training = {};
  Tensor mask = {};  // instead of the one that the first input brings along
  std::shared_ptr<const CallArguments> arguments = {};
};

/// The mask that a tensor brings along; undefined: none. Layers make masks and pass them on, ops drop them.
STET_API Tensor mask_of(const Tensor& x);
/// The same elements with a mask.
STET_API Tensor with_mask(const Tensor& x, const Tensor& mask, Where where = Where::here());

class KerasTensor;  // functional.h: a tensor that does not exist yet
class LayerConfig;  // layer_config.h: what a layer is made from, in files

struct WeightOptions {
  Initializer initializer = {};  // none: "glorot_uniform" for floating types, "zeros" for others
  bool trainable = true;
  DType dtype = DType::f32;
  Regularizer regularizer = {};  // adds to losses(), and so to the loss of a model
  Constraint constraint = {};    // optimizers apply it after every step
};

/// A weight and where it stands: {"sequential/dense/kernel", …}.
struct Weight {
  std::string path = {};
  Variable variable = {};
  Regularizer regularizer = {};
  Constraint constraint = {};
  bool trainable = true;  // the Variable is, and neither what lists the weight nor the layer that was asked is frozen
};

struct LayerState;

/// Subclass it to write a layer:
///
///   struct Scale : keras::CustomLayer {
///     Variable gamma;
///     void build(const Shape& input) override { gamma = add_weight("gamma", {input[-1]}, {.initializer = "ones"}); }
///     Tensor call(const Tensor& x, const keras::Context&) override { return x * gamma; }
///   };
///   keras::Sequential model{keras::Input({10}), Scale{}};
///
/// Layers, Variables and metrics that it holds are listed with STET_MEMBERS(…); a layer that is not, used inside
/// call(), is a UserError, and so is a trainable Variable that the layer made itself. Any number of threads may call
/// one layer; while one of them runs its build(), the others wait.
class STET_API CustomLayer : public inside::Body, public Recorded {
 public:
  /// Named after the class: "scale", "scale_1", …
  CustomLayer();
  explicit CustomLayer(std::string name);
  CustomLayer(CustomLayer&&) noexcept;
  ~CustomLayer() override;

  /// Runs once, at the first call, with the shape of its input: the place to add weights. Inside a trace sizes are
  /// symbols; what a weight's shape uses of them is pinned.
  virtual void build(const Shape& input);
  /// What it gives for a tensor. One of this and call_many is written.
  virtual Tensor call(const Tensor& x, const Context& context);
  virtual void visit_members(MemberVisitor&) {}

  /// The same for layers that take several tensors, or give several: queries and values, a sequence and its states.
  virtual void build_many(const std::vector<Shape>& inputs);
  virtual Tensors call_many(const Tensors& inputs, const Context& context);

  /// What holds of elements one by one holds of what it gives: the mask of its input is passed on.
  virtual bool supports_masking() const { return false; }
  /// By result, its mask, from the inputs and their masks; fewer: the others have none. By default that of the first
  /// input, if it supports masking. A result that brings a mask along keeps it.
  virtual Tensors compute_mask(const Tensors& inputs, const Tensors& masks);

  /// Writes what its constructor needs to make it again, for model.save() (Keras's get_config); load_model() is given a
  /// factory that reads it. A layer that needs nothing has one with nothing in it; one without cannot be saved.
  virtual void get_config(LayerConfig& config) const;
  /// What files call its class; where Keras has registered that in a package, "my_package>Scale".
  virtual std::string registered_name() const;

  /// What it and its members add to a model's loss: with add_loss() in the last call on this thread, then the penalties
  /// of trainable weights with a regularizer, as they are now.
  std::vector<Tensor> losses(Where where = Where::here());

  /// See Layer.
  bool trainable() const;
  void set_trainable(bool trainable);

  const std::string& name() const;
  std::string class_name() const;
  std::string description() const override;  // "Dense 'dense_1'"

  LayerState& state() const { return *state_; }
  const std::shared_ptr<LayerState>& shared_state() const { return state_; }

 protected:
  /// A Variable of this layer, listed by itself. Its sizes become integers.
  Variable add_weight(std::string_view name, const Shape& shape, WeightOptions options = {},
                      Where where = Where::here());
  /// Inside call(): a floating tensor without axes that a model adds to its loss.
  void add_loss(const Tensor& loss, Where where = Where::here());

 private:
  std::shared_ptr<LayerState> state_;
};

template <class T>
concept LayerBody = std::derived_from<T, CustomLayer>;

/// Carries a body into the constructors of handles.
struct FromBody {
  std::shared_ptr<inside::Body> body = {};
};
// What makes a derived handle usable as an argument of a traced function.
#define STET_HANDLE(Self, Base)                                       \
 public:                                                              \
  static Self from_body(std::shared_ptr<::stet::inside::Body> body) { \
    return Self(::stet::keras::FromBody{std::move(body)});            \
  }                                                                   \
                                                                      \
 protected:                                                           \
  explicit Self(::stet::keras::FromBody from) : Base(std::move(from)) {}

/// A layer. Copies share it. `layer(x)` is inference, `layer(x, {.training = true})` training; inside the call() of
/// another layer, `layer(x)` is what that one is. The weights are made at the first call.
class STET_API Layer {
 public:
  /// Undefined: any use is a UserError.
  Layer() = default;
  template <class T>
  requires(LayerBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) Layer(T&& body)
      : Layer(std::make_shared<std::remove_cvref_t<T>>(std::move(body))) {}
  template <LayerBody T>
  Layer(std::shared_ptr<T> body) : Layer(FromBody{std::move(body)}) {}
  /// A body that has a name of its own would be copied; hold it with keras::make<T>(…), or move it.
  template <LayerBody T>
  Layer(T& body) = delete;

  /// Runs the layer; a fork scope while a function is traced. Floating inputs are cast to the layer's type.
  Tensor operator()(const Tensor& x, CallOptions options = {}, Where where = Where::here()) const;
  /// A layer of several tensors: the first that it gives.
  Tensor operator()(const Tensors& inputs, CallOptions options = {}, Where where = Where::here()) const;
  /// All that it gives.
  Tensors call_many(const Tensors& inputs, CallOptions options = {}, Where where = Where::here()) const;

  /// On tensors that do not exist yet: what it would give, as a part of a keras::Model that is made of them.
  KerasTensor operator()(const KerasTensor& x, CallOptions options = {}, Where where = Where::here()) const;
  KerasTensor operator()(const std::vector<KerasTensor>& inputs, CallOptions options = {},
                         Where where = Where::here()) const;
  std::vector<KerasTensor> call_many(const std::vector<KerasTensor>& inputs, CallOptions options = {},
                                     Where where = Where::here()) const;
  /// What it was called on, and gave, in such a model: its only call, or the one with this number.
  KerasTensor input(int call = -1, Where where = Where::here()) const;
  KerasTensor output(int call = -1, Where where = Where::here()) const;

  bool defined() const { return body_ != nullptr; }
  const std::string& name(Where where = Where::here()) const;
  /// Has been called, or built from an Input: all weights are there.
  bool built() const;
  /// All weights, each once: its own in the order they were added, then those of its members. Empty before it is built.
  std::vector<Weight> weights() const;
  std::vector<Variable> variables() const;  // those of the weights, and of the metrics listed
  std::vector<Variable> trainable_variables() const;
  std::vector<Variable> non_trainable_variables() const;
  /// False: it is frozen. Its weights are not trained, decayed, penalised or constrained, and a BatchNormalization
  /// keeps its statistics. Setting it sets it for all members, of all depths, as they are now; a member may be given
  /// another value afterwards. A layer that is made in the build() of a frozen one is frozen. fit() heeds it from the
  /// next batch on, and optimizers keep what they know of the weights.
  bool trainable(Where where = Where::here()) const;
  void set_trainable(bool trainable, Where where = Where::here()) const;
  std::int64_t count_params() const;
  /// What the weights hold, in the order of weights(); and the other way round: as many, of their types and shapes
  /// (UserError, and nothing is changed).
  std::vector<Tensor> get_weights() const;
  void set_weights(const std::vector<Tensor>& values, Where where = Where::here()) const;
  /// See CustomLayer::losses().
  std::vector<Tensor> losses(Where where = Where::here()) const;

  std::shared_ptr<inside::Body> body() const { return body_; }
  static Layer from_body(std::shared_ptr<inside::Body> body) { return Layer(FromBody{std::move(body)}); }

 protected:
  explicit Layer(FromBody from);
  CustomLayer& layer_body(const char* asked, Where where) const;

 private:
  std::shared_ptr<inside::Body> body_;
};

/// Numbers names from the start again: the next Dense is "dense". For tests, and programs that make many models.
STET_API void clear_session();

}  // namespace stet::keras
