// Models: layers that can be compiled, fitted and evaluated. A Model is what you hold; a CustomModel is what you
// subclass.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/core/function.h"
#include "stet/keras/by_output.h"
#include "stet/keras/callback.h"
#include "stet/keras/data.h"
#include "stet/keras/functional.h"
#include "stet/keras/history.h"
#include "stet/keras/layer.h"
#include "stet/keras/metric.h"
#include "stet/keras/optimizers.h"
#include "stet/keras/saving_options.h"

namespace stet::keras {

/// What a step reports: names and scalars.
using Logs = std::map<std::string, Tensor>;
/// What evaluate() gives.
using Results = std::map<std::string, double>;

struct CompileOptions {
  Optimizer optimizer = Adam();
  LossesByOutput loss = {};
  WeightsByOutput loss_weights = {};
  MetricsByOutput metrics = {};           // of all samples alike
  MetricsByOutput weighted_metrics = {};  // of samples by their weights
  bool run_eagerly = false;               // steps run op by op, to look into them
  std::int64_t steps_per_execution = 1;   // batches between one look at callbacks, the bar and Ctrl-C and the next
};

/// On a terminal a bar that moves; elsewhere one line per epoch.
inline constexpr int verbose_auto = -1;

struct FitOptions {
  std::int64_t batch_size = 32;  // of tensors; a Dataset has batches of its own
  int epochs = 1;
  int verbose = verbose_auto;  // 0: silent, 1: a progress bar, 2: one line per epoch
  std::vector<Callback> callbacks = {};
  double validation_split = 0;  // the last part of the tensors, not trained on
  Data validation_data = {};
  bool shuffle = true;  // tensors, before each epoch
  /// By class, what its samples weigh; 1 for those not named. Labels are numbers of classes or one-hot. Not for
  /// validation.
  std::map<std::int64_t, double> class_weight = {};
  Samples sample_weight = {};  // beside tensors x and y; a Dataset has weights in its elements
  int initial_epoch = 0;
  std::int64_t steps_per_epoch = 0;  // 0: all batches
  std::int64_t validation_steps = 0;
  std::int64_t validation_batch_size = 0;  // 0: batch_size
  int validation_freq = 1;                 // validate after every so many epochs
};
struct EvaluateOptions {
  std::int64_t batch_size = 32;
  int verbose = 0;
  Samples sample_weight = {};
  std::int64_t steps = 0;  // 0: all batches
  std::vector<Callback> callbacks = {};
};
struct PredictOptions {
  std::int64_t batch_size = 32;
  int verbose = 0;
  std::int64_t steps = 0;
  std::vector<Callback> callbacks = {};
};

struct TrainOnBatchOptions {
  Samples sample_weight = {};
  std::map<std::int64_t, double> class_weight = {};
};
struct TestOnBatchOptions {
  Samples sample_weight = {};
};

struct ModelOptions {
  std::string name = {};
};

struct ExportOptions {
  /// What the model takes, batch axes included: {{f32, {dyn("batch"), 28, 28}}}. A model that has Inputs knows it.
  std::vector<TensorSpec> input_signature = {};
};

struct Training;

/// Subclass it to write a model; override the steps to train in another way.
class STET_API CustomModel : public CustomLayer {
 public:
  CustomModel();
  explicit CustomModel(std::string name);
  CustomModel(CustomModel&&) noexcept;
  ~CustomModel() override;

  /// Each is traced once, as a whole, and then run on every batch. By default: forward, loss, gradients, optimizer and
  /// metrics; forward, loss and metrics; forward.
  virtual Logs train_step(const Batch& batch);
  virtual Logs test_step(const Batch& batch);
  virtual Tensors predict_step(const Batch& batch);
  /// What its inputs and outputs are called, where that is known: in the data, in losses and metrics, in reports.
  virtual ModelNames names() const { return {}; }
  /// Its results bring their own masks.
  Tensors compute_mask(const Tensors&, const Tensors&) override { return {}; }

  Training& training() const { return *training_; }

 protected:
  /// What compile() was given. Of losses by output, there is compute_loss().
  Optimizer optimizer(Where where = Where::here()) const;
  Loss loss(Where where = Where::here()) const;
  /// The mean loss, those that compile() was given, then those that are members. fit() resets them before each epoch.
  std::vector<Metric> metrics() const;
  std::vector<Variable> trainable_variables() const;
  /// This model on a batch, as Model's call operator does it.
  Tensor predict_on(const Tensor& x, CallOptions options = {}) const;
  Tensors predict_on(const Tensors& inputs, CallOptions options = {}) const;
  /// The compiled losses of predictions, each times its weight, and what layers add to it, losses(); also told to the
  /// mean loss, and where there are several to the means of each.
  Tensor compute_loss(const Batch& batch, const Tensor& y_pred) const { return compute_loss(batch, Tensors{y_pred}); }
  Tensor compute_loss(const Batch& batch, const Tensors& y_pred) const;
  /// Updates the compiled metrics, and gives the results of all metrics.
  Logs compute_metrics(const Batch& batch, const Tensor& y_pred) const {
    return compute_metrics(batch, Tensors{y_pred});
  }
  Logs compute_metrics(const Batch& batch, const Tensors& y_pred) const;

 private:
  std::unique_ptr<Training> training_;
};

template <class T>
concept ModelBody = std::derived_from<T, CustomModel>;

/// A model. Copies share it.
class STET_API Model : public Layer {
 public:
  Model() = default;
  template <class T>
  requires(ModelBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) Model(T&& body)
      : Layer(std::forward<T>(body)) {}
  template <ModelBody T>
  Model(std::shared_ptr<T> body) : Layer(std::move(body)) {}
  template <ModelBody T>
  Model(T& body) = delete;
  /// The layers between tensors that do not exist yet: those that the outputs need, from the inputs on. An input is a
  /// keras::Input, or what some layer gives.
  Model(const KerasTensor& input, const KerasTensor& output, ModelOptions options = {}, Where where = Where::here());
  Model(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs, ModelOptions options = {},
        Where where = Where::here());

  /// Sets how it is trained. Steps traced before are forgotten; weights stay.
  void compile(CompileOptions options, Where where = Where::here()) const;
  /// Trains, and gives what was measured in every epoch.
  History fit(const Data& data, FitOptions options = {}, Where where = Where::here()) const;
  History fit(const Samples& x, const Samples& y, FitOptions options = {}, Where where = Where::here()) const;
  /// The loss and the metrics over the data, by name.
  Results evaluate(const Data& data, EvaluateOptions options = {}, Where where = Where::here()) const;
  Results evaluate(const Samples& x, const Samples& y, EvaluateOptions options = {}, Where where = Where::here()) const;
  /// What the model gives for every sample. Of a model with several outputs predict_many() gives all.
  Tensor predict(const Samples& x, PredictOptions options = {}, Where where = Where::here()) const;
  Tensors predict_many(const Samples& x, PredictOptions options = {}, Where where = Where::here()) const;
  template <class T, class... More>
  Tensor predict(const data::Dataset<T, More...>& data, PredictOptions options = {},
                 Where where = Where::here()) const {
    return only_output(predict_data(Data(data), std::move(options), where), where);
  }
  template <class T, class... More>
  Tensors predict_many(const data::Dataset<T, More...>& data, PredictOptions options = {},
                       Where where = Where::here()) const {
    return predict_data(Data(data), std::move(options), where);
  }

  /// One step each: the loss and the metrics of this batch alone.
  Results train_on_batch(const Samples& x, const Samples& y = {}, TrainOnBatchOptions options = {},
                         Where where = Where::here()) const;
  Results test_on_batch(const Samples& x, const Samples& y = {}, TestOnBatchOptions options = {},
                        Where where = Where::here()) const;
  Tensor predict_on_batch(const Samples& x, Where where = Where::here()) const;
  void reset_metrics(Where where = Where::here()) const;

  /// fit() ends after the batch, or the epoch, in which it is called; by callbacks, as a rule. Ctrl-C does the same:
  /// the model keeps what it has learned, and fit() gives the History so far.
  void stop_training(Where where = Where::here()) const;

  /// Prints the layers, their output shapes and numbers of weights.
  void summary(Where where = Where::here()) const;
  std::string summary_text(Where where = Where::here()) const;

  /// Writes it as "m.keras", which Keras 3 and keras::load_model() read: its layers, weights, how it was compiled and
  /// the optimizer's state. The file is complete or, if something fails, as it was before. Models and layers of your
  /// own classes need a get_config() (UserError without).
  void save(const std::string& path, SaveOptions options = {}, Where where = Where::here()) const;
  /// Writes the weights alone: "m.weights.h5" as Keras does, the optimizer's state included, or "m.safetensors" by
  /// their names, "dense/kernel".
  void save_weights(const std::string& path, SaveOptions options = {}, Where where = Where::here()) const;
  /// Gives the model the weights of such a file, or of a .keras. What is missing, of another shape or not expected is a
  /// UserError that lists it, and nothing is changed.
  void load_weights(const std::string& path, LoadWeightsOptions options = {}, Where where = Where::here()) const;

  Optimizer optimizer(Where where = Where::here()) const;
  /// The layers it is made of, in order.
  std::vector<Layer> layers(Where where = Where::here()) const;
  /// One of them, by its name or its number.
  Layer get_layer(const std::string& name, Where where = Where::here()) const;
  Layer get_layer(int number, Where where = Where::here()) const;
  /// What a model that was made of KerasTensors takes and gives (UserError for others).
  std::vector<KerasTensor> inputs(Where where = Where::here()) const;
  std::vector<KerasTensor> outputs(Where where = Where::here()) const;

  /// Writes what the model does in inference as a file that load_function() reads, in a program that needs none of its
  /// layers (Keras's export). Its function is "serve"; inputs, outputs and Variables have the names of the model's.
  void export_to(const std::string& path, ExportOptions options = {}, Where where = Where::here()) const;

  /// The traced steps, to ask trace_count() and explain(); a UserError before they have run.
  FunctionBase train_function(Where where = Where::here()) const;
  FunctionBase test_function(Where where = Where::here()) const;
  FunctionBase predict_function(Where where = Where::here()) const;

  STET_HANDLE(Model, Layer)
  CustomModel& model_body(const char* asked, Where where) const;

 private:
  Tensors predict_data(const Data& data, PredictOptions options, Where where) const;
  Tensor only_output(Tensors outputs, Where where) const;
};

/// What make() gives: the handle of a custom layer or model that also reaches its own members with `->`.
template <LayerBody T>
class Handle : public std::conditional_t<ModelBody<T>, Model, Layer> {
  using Base = std::conditional_t<ModelBody<T>, Model, Layer>;

 public:
  explicit Handle(std::shared_ptr<T> body) : Base(std::move(body)) {}
  T* operator->() const { return static_cast<T*>(this->body().get()); }
  static Handle from_body(std::shared_ptr<inside::Body> body) {
    return Handle(std::static_pointer_cast<T>(std::move(body)));
  }
};
/// A custom layer or model made in place: auto vae = keras::make<Vae>(…); vae->encoder(x).
template <LayerBody T, class... A>
Handle<T> make(A&&... arguments) {
  return Handle<T>(std::make_shared<T>(std::forward<A>(arguments)...));
}

}  // namespace stet::keras
