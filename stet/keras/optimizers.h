// Keras's optimizers. Each takes a learning rate, a number or a schedule, and its options in the order of Keras's
// signature; those that all share are described at STET_OPTIMIZER_OPTIONS.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stet/keras/optimizer.h"

namespace stet::keras {

struct SGDOptions {
  double momentum = 0;
  bool nesterov = false;
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// Gradient descent: v -= rate * g. With momentum: m = momentum * m - rate * g and v += m, or, with nesterov,
/// v += momentum * m - rate * g.
class STET_API SGD : public Optimizer {
 public:
  explicit SGD(LearningRate learning_rate = 0.01, SGDOptions options = {}, Where where = Where::here());
  STET_HANDLE(SGD, Optimizer)
};

struct RMSpropOptions {
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;  // divides by the deviation instead of the size
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// s = rho * s + (1 - rho) g², then v -= rate * g / sqrt(s + epsilon), through a momentum if there is one.
class STET_API RMSprop : public Optimizer {
 public:
  explicit RMSprop(LearningRate learning_rate = 1e-3, RMSpropOptions options = {}, Where where = Where::here());
  STET_HANDLE(RMSprop, Optimizer)
};

struct AdagradOptions {
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// a += g², then v -= rate * g / sqrt(a + epsilon).
class STET_API Adagrad : public Optimizer {
 public:
  explicit Adagrad(LearningRate learning_rate = 1e-3, AdagradOptions options = {}, Where where = Where::here());
  STET_HANDLE(Adagrad, Optimizer)
};

struct AdadeltaOptions {
  double rho = 0.95;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// Steps as large as the steps before were, measured by the gradients: d = g * sqrt(D + epsilon) / sqrt(G + epsilon),
/// where D and G are moving averages of d² and g².
class STET_API Adadelta : public Optimizer {
 public:
  explicit Adadelta(LearningRate learning_rate = 1e-3, AdadeltaOptions options = {}, Where where = Where::here());
  STET_HANDLE(Adadelta, Optimizer)
};

struct AdamOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;  // divides by the largest s so far
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// Adam as Keras has it: m += (g - m)(1 - beta_1), s += (g² - s)(1 - beta_2), then in step t
/// v -= rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(s) + epsilon).
class STET_API Adam : public Optimizer {
 public:
  explicit Adam(LearningRate learning_rate = 1e-3, AdamOptions options = {}, Where where = Where::here());
  STET_HANDLE(Adam, Optimizer)
};

struct AdamWOptions {
  std::optional<double> weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  STET_OPTIMIZER_OPTIONS;
};
/// Adam with weight decay.
class STET_API AdamW : public Optimizer {
 public:
  explicit AdamW(LearningRate learning_rate = 1e-3, AdamWOptions options = {}, Where where = Where::here());
  STET_HANDLE(AdamW, Optimizer)
};

struct AdamaxOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// Adam with the largest gradient, slowly forgotten, instead of the squares' mean: u = max(beta_2 * u, |g|).
class STET_API Adamax : public Optimizer {
 public:
  explicit Adamax(LearningRate learning_rate = 1e-3, AdamaxOptions options = {}, Where where = Where::here());
  STET_HANDLE(Adamax, Optimizer)
};

struct NadamOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// Adam with Nesterov's momentum, which grows over the steps: beta_1 * (1 - 0.96^t / 2).
class STET_API Nadam : public Optimizer {
 public:
  explicit Nadam(LearningRate learning_rate = 1e-3, NadamOptions options = {}, Where where = Where::here());
  STET_HANDLE(Nadam, Optimizer)
};

struct LionOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.99;
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// v -= rate * sign(beta_1 * m + (1 - beta_1) g), then m = beta_2 * m + (1 - beta_2) g.
class STET_API Lion : public Optimizer {
 public:
  explicit Lion(LearningRate learning_rate = 1e-3, LionOptions options = {}, Where where = Where::here());
  STET_HANDLE(Lion, Optimizer)
};

struct FtrlOptions {
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// "Follow the regularized leader", which sets many weights to 0 where l1 is used.
class STET_API Ftrl : public Optimizer {
 public:
  explicit Ftrl(LearningRate learning_rate = 1e-3, FtrlOptions options = {}, Where where = Where::here());
  STET_HANDLE(Ftrl, Optimizer)
};

struct LambOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// Adam with steps as long as the variable is: u * |v| / |u|.
class STET_API Lamb : public Optimizer {
 public:
  explicit Lamb(LearningRate learning_rate = 1e-3, LambOptions options = {}, Where where = Where::here());
  STET_HANDLE(Lamb, Optimizer)
};

struct AdafactorOptions {
  double beta_2_decay = -0.8;
  double epsilon_1 = 1e-30;
  double epsilon_2 = 1e-3;
  double clip_threshold = 1;
  bool relative_step = true;  // as in Keras without effect: the rate is never above 1 / sqrt(step)
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// Keeps of the squares of a matrix's gradients only the means of rows and columns (of the last two axes).
class STET_API Adafactor : public Optimizer {
 public:
  explicit Adafactor(LearningRate learning_rate = 1e-3, AdafactorOptions options = {}, Where where = Where::here());
  STET_HANDLE(Adafactor, Optimizer)
};

struct MuonOptions {
  double adam_beta_1 = 0.9;
  double adam_beta_2 = 0.999;
  std::optional<double> adam_weight_decay = 0.004;  // of variables that Adam serves
  double epsilon = 1e-7;
  std::optional<double> weight_decay = 0.004;  // of the others
  STET_OPTIMIZER_OPTIONS;
  std::vector<std::string> exclude_layers = {};  // regular expressions found in names of variables for Adam
  bool exclude_embeddings = true;                // "embedding" in the name: for Adam
  double muon_a = 3.4445;
  double muon_b = -4.775;
  double muon_c = 2.0315;
  double adam_lr_ratio = 1;
  double momentum = 0.95;
  int ns_steps = 5;
  bool nesterov = true;
  std::optional<double> rms_rate = 0.2;
};
/// Changes matrices by the nearest orthogonal matrix to their momentum, found by ns_steps of a Newton-Schulz iteration;
/// variables of another rank than 2 are Adam's.
class STET_API Muon : public Optimizer {
 public:
  explicit Muon(LearningRate learning_rate = 1e-3, MuonOptions options = {}, Where where = Where::here());
  STET_HANDLE(Muon, Optimizer)
};

struct ScheduleFreeAdamWOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-8;
  std::int64_t warmup_steps = 0;
  std::optional<double> weight_decay = {};
  STET_OPTIMIZER_OPTIONS;
};
/// Adam's steps are made by a second point; variables stand between it and the mean of its ways, which replaces a
/// schedule.
class STET_API ScheduleFreeAdamW : public Optimizer {
 public:
  explicit ScheduleFreeAdamW(LearningRate learning_rate = 0.0025, ScheduleFreeAdamWOptions options = {},
                             Where where = Where::here());
  STET_HANDLE(ScheduleFreeAdamW, Optimizer)
};

struct LossScaleOptimizerOptions {
  double initial_scale = 32768;
  std::int64_t dynamic_growth_steps = 2000;
  std::string name = {};
};
/// An optimizer with a loss scale that finds itself: a step whose gradients are not all finite changes nothing but
/// halves the scale; after every dynamic_growth_steps others it doubles. Its learning rate and step count are those of
/// the inner one, whose own loss_scale_factor must not be set.
class STET_API LossScaleOptimizer : public Optimizer {
 public:
  explicit LossScaleOptimizer(Optimizer inner_optimizer, LossScaleOptimizerOptions options = {},
                              Where where = Where::here());
  STET_HANDLE(LossScaleOptimizer, Optimizer)
};

}  // namespace stet::keras
