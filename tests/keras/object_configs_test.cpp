// Initializers, regularizers, constraints, schedules, losses, metrics and optimizers as entries of config.json files:
// each made here is written as Keras writes it (tests/oracle/keras/make_object_configs.py makes the same objects in the
// same order), and read again is the same and does the same.
#include "object_configs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "stet/stet.h"

namespace stet::keras {
namespace {

const Json& stored(const char* kind) {
  static const Json all = stored_json("object_configs.json");
  return *all.find(kind);
}
std::string class_of(const Json& entry) { return *entry.find("class_name")->if_string(); }

/// What Keras says otherwise, of the same object: as it is written here.
Json as_here(Json entry, const std::string& kind) {
  const std::string name = class_of(entry);
  Json& config = entry["config"];
  // Keras has two names for "none", and takes both.
  if (kind == "loss" && config.find("reduction")->is_null()) config["reduction"] = "none";
  // Arrays are written in one way of three.
  if (name == "Constant" && config.find("value")->if_list()) {
    Json array;
    array["class_name"] = "__numpy__";
    array["config"]["value"] = *config.find("value");
    array["config"]["dtype"] = "float32";
    config["value"] = array;
  }
  if (name == "Constant" && config.find("value")->if_object()) config["value"]["class_name"] = "__numpy__";
  if (name == "AUC" && config.find("label_weights")->if_object())
    config["label_weights"] = Json(*config.find("label_weights")->find("config")->find("value"));
  // A generator of seeds gives each weight its own stream, as no seed does here.
  if (kind == "initializer" && config.find("seed") && config.find("seed")->if_object()) config["seed"] = nullptr;
  return entry;
}

/// Keras leaves out arguments that its constructors take: Identity(gain=3) comes back as Identity(). Here they are
/// written where they are not the default.
Json without_what_keras_loses(Json entry, const std::string& kind) {
  std::set<std::string> lost;
  if (kind == "loss") lost.insert("dtype");
  const std::string name = class_of(entry);
  if (name == "Identity") lost.insert("gain");
  if (name == "Huber") lost.insert("delta");
  if (name == "CosineSimilarity") lost.insert("axis");
  if (name == "SparseCategoricalCrossentropy" && kind == "loss") lost.insert("axis");
  Json::Object& config = *entry["config"].if_object();
  std::erase_if(config, [&](const auto& member) { return lost.contains(member.first); });
  return entry;
}

/// `made`: what the script makes, in its order. Gives what was written.
template <class Object>
std::vector<Json> written_as_keras_does(const char* kind, const std::vector<Object>& made) {
  const Json::List& expected = *stored(kind).if_list();
  EXPECT_EQ(made.size(), expected.size());
  std::vector<Json> out;
  for (std::size_t i = 0; i < std::min(made.size(), expected.size()); ++i) {
    SCOPED_TRACE(testing::Message() << kind << " " << i);
    out.push_back(config_of(made[i]));
    EXPECT_TRUE(same_config(without_what_keras_loses(out.back(), kind), as_here(expected[i], kind)));
  }
  return out;
}
/// Entries that Keras wrote are read, and written again as they were.
template <class Object>
void read_as_keras_wrote(const char* kind) {
  for (const Json& entry : *stored(kind).if_list()) {
    SCOPED_TRACE(files::to_text(entry));
    EXPECT_TRUE(same_config(config_of(object_of<Object>(entry, kind)), as_here(entry, kind)));
  }
}

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  auto x = a.to_vector<double>(), y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) << i;
}

Tensor numbers(const std::vector<std::int64_t>& sizes, double from, double to) {
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  return reshape(cast(linspace(from, to, count), f32), Shape(sizes));
}

// --- initializers

std::vector<Initializer> made_initializers() {
  using namespace initializers;
  std::vector<Initializer> all = {
      Zeros(),
      Ones(),
      Constant(),
      Constant(2.5),
      Constant(tensor({{1.5, 2.}, {3., 4.}})),
      Constant(ones({2}, f32)),
      Constant(tensor({1.F, 2.F})),
      initializers::Identity(),
      initializers::Identity({.gain = 3}),
      RandomNormal(),
      RandomNormal({.mean = 1, .stddev = 0.5, .seed = 7}),
      RandomNormal(),
      RandomUniform(),
      RandomUniform({.minval = -1, .maxval = 2, .seed = 7}),
      TruncatedNormal(),
      TruncatedNormal({.mean = 1, .stddev = 0.5, .seed = 7}),
      VarianceScaling(),
      VarianceScaling({.scale = 2, .mode = "fan_out", .distribution = "uniform", .seed = 7}),
      VarianceScaling({.distribution = "untruncated_normal", .seed = 7, .input_axes = {0}, .output_axes = {1, 2}}),
      Orthogonal(),
      Orthogonal({.gain = 2, .seed = 7}),
      STFT(),
      STFT({.side = "imag", .window = "hamming", .scaling = "spectrum", .periodic = true}),
      STFT({.window = "", .scaling = {}}),
  };
  const FanOptions options[] = {{}, {.seed = 7}, {.seed = 8, .input_axes = {0}, .output_axes = {1}}};
  for (const FanOptions& one : options) all.push_back(GlorotNormal(one));
  for (const FanOptions& one : options) all.push_back(GlorotUniform(one));
  for (const FanOptions& one : options) all.push_back(HeNormal(one));
  for (const FanOptions& one : options) all.push_back(HeUniform(one));
  for (const FanOptions& one : options) all.push_back(LecunNormal(one));
  for (const FanOptions& one : options) all.push_back(LecunUniform(one));
  return all;
}

TEST(ObjectConfigs, InitializersAreWrittenAsKerasDoesAndReadAgainGiveTheSameNumbers) {
  std::vector<Initializer> made = made_initializers();
  std::vector<Json> written = written_as_keras_does("initializer", made);
  read_as_keras_wrote<Initializer>("initializer");
  int compared = 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    SCOPED_TRACE(files::to_text(written[i]));
    Initializer again = object_of<Initializer>(written[i], "initializer");
    EXPECT_EQ(config_of(again), written[i]);
    const Json* seed = written[i].find("config")->find("seed");
    if (seed && seed->is_null()) continue;  // other numbers each time
    const std::string name = class_of(written[i]);
    const Shape shape = name == "Constant"   ? Shape({2, 2})
                        : name == "STFT"     ? Shape({4, 1, 3})
                        : name == "Identity" ? Shape({3, 4})
                                             : Shape({2, 4, 3});
    expect_same(made[i](shape, f32), again(shape, f32));
    ++compared;
  }
  EXPECT_EQ(compared, 30);
}

TEST(ObjectConfigs, NamesOfOlderVersionsAreRead) {
  for (const char* name : {"Orthogonal", "Identity"}) {
    Json entry;
    entry["module"] = "keras.initializers";
    entry["class_name"] = std::string(name) + "Initializer";
    entry["config"]["gain"] = 2.0;
    entry["registered_name"] = nullptr;
    EXPECT_EQ(class_of(config_of(object_of<Initializer>(entry, "initializer"))), name);
  }
}

// --- regularizers, constraints

std::vector<Regularizer> made_regularizers() {
  using namespace regularizers;
  return {L1(),
          L1(0.1),
          L2(),
          L2(0.5),
          L1L2(),
          L1L2({.l1 = 0.1, .l2 = 0.25}),
          OrthogonalRegularizer(),
          OrthogonalRegularizer(0.5, {.mode = "columns"})};
}

TEST(ObjectConfigs, RegularizersAreWrittenAsKerasDoesAndReadAgainGiveTheSamePenalty) {
  std::vector<Regularizer> made = made_regularizers();
  std::vector<Json> written = written_as_keras_does("regularizer", made);
  read_as_keras_wrote<Regularizer>("regularizer");
  for (std::size_t i = 0; i < written.size(); ++i) {
    Regularizer again = object_of<Regularizer>(written[i], "regularizer");
    Tensor x = numbers({3, 4}, -1, 1);
    expect_same(made[i](x), again(x));
  }
}

std::vector<Constraint> made_constraints() {
  using namespace constraints;
  return {
      MaxNorm(),
      MaxNorm(3, {.axis = {0, 1, 2}}),
      NonNeg(),
      UnitNorm(),
      UnitNorm({.axis = 1}),
      MinMaxNorm(),
      MinMaxNorm({.min_value = 0.5, .max_value = 2, .rate = 0.75, .axis = {0, 1}}),
  };
}

TEST(ObjectConfigs, ConstraintsAreWrittenAsKerasDoesAndReadAgainDoTheSame) {
  std::vector<Constraint> made = made_constraints();
  std::vector<Json> written = written_as_keras_does("constraint", made);
  read_as_keras_wrote<Constraint>("constraint");
  for (std::size_t i = 0; i < written.size(); ++i) {
    Constraint again = object_of<Constraint>(written[i], "constraint");
    Tensor x = numbers({2, 3, 4}, -2, 3);
    expect_same(made[i](x), again(x));
  }
}

// --- schedules

std::vector<schedules::Schedule> made_schedules() {
  using namespace schedules;
  return {
      ExponentialDecay(0.5, 100, 0.9),
      ExponentialDecay(0.5, 100, 0.9, {.staircase = true}),
      PiecewiseConstantDecay({10, 20}, {1, 0.5, 0.25}),
      PiecewiseConstantDecay({10}, {1, 0.5}),
      PolynomialDecay(0.5, 100),
      PolynomialDecay(0.5, 100, {.end_learning_rate = 0.01, .power = 2, .cycle = true}),
      InverseTimeDecay(0.5, 100, 0.9),
      InverseTimeDecay(0.5, 100, 0.9, {.staircase = true}),
      CosineDecay(0.5, 100),
      CosineDecay(0, 100, {.alpha = 0.1, .warmup_target = 0.5, .warmup_steps = 10}),
      CosineDecayRestarts(0.5, 100),
      CosineDecayRestarts(0.5, 100, {.t_mul = 1.5, .m_mul = 0.9, .alpha = 0.1}),
  };
}

TEST(ObjectConfigs, SchedulesAreWrittenAsKerasDoesAndReadAgainGiveTheSameRates) {
  using schedules::Schedule;
  const std::vector<Schedule> plain = made_schedules();
  const char* kind = "learning rate schedule";
  const Json::List& expected = *stored(kind).if_list();
  ASSERT_EQ(plain.size(), expected.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    Json entry = expected[i];
    SCOPED_TRACE(files::to_text(entry));
    Schedule read = object_of<Schedule>(entry, kind);
    EXPECT_TRUE(same_config(config_of(read), entry));  // with its name
    Json written = config_of(plain[i]);
    if (i % 2 == 1) written["config"]["name"] = "mine";  // schedules have no names here
    EXPECT_TRUE(same_config(written, entry));
    for (std::int64_t step : {0, 5, 10, 15, 150, 1000}) expect_same(plain[i](step), read(step));
  }
}

// --- losses

std::vector<Loss> made_losses() {
  using namespace losses;
  std::vector<Loss> all;
  auto both = [&]<class L>(L plain, L other) {
    all.push_back(plain);
    all.push_back(other);
  };
#define BOTH(Class) both(Class(), Class({.reduction = "sum", .name = "mine"}))
  BOTH(MeanSquaredError);
  BOTH(MeanAbsoluteError);
  BOTH(MeanAbsolutePercentageError);
  BOTH(MeanSquaredLogarithmicError);
  BOTH(LogCosh);
  BOTH(Huber);
  BOTH(SparseCategoricalCrossentropy);
  BOTH(CategoricalCrossentropy);
  BOTH(CategoricalFocalCrossentropy);
  BOTH(CategoricalGeneralizedCrossEntropy);
  BOTH(BinaryCrossentropy);
  BOTH(BinaryFocalCrossentropy);
  BOTH(KLDivergence);
  BOTH(Poisson);
  BOTH(CTC);
  BOTH(Hinge);
  BOTH(SquaredHinge);
  BOTH(CategoricalHinge);
  BOTH(CosineSimilarity);
  BOTH(Dice);
  BOTH(Tversky);
  BOTH(Circle);
#undef BOTH
  const std::vector<Loss> more = {
      MeanSquaredError({.reduction = "none"}),
      MeanSquaredError({.reduction = "none"}),
      MeanSquaredError({.reduction = "mean_with_sample_weight", .dtype = f64}),
      Huber({.delta = 2.5}),
      SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = 3, .axis = 1}),
      CategoricalCrossentropy({.from_logits = true, .label_smoothing = 0.1, .axis = 1}),
      CategoricalFocalCrossentropy({.alpha = 0.5, .gamma = 3, .from_logits = true, .label_smoothing = 0.1, .axis = 1}),
      CategoricalGeneralizedCrossEntropy({.q = 0.25}),
      BinaryCrossentropy({.from_logits = true, .label_smoothing = 0.1, .axis = 1}),
      BinaryFocalCrossentropy({.apply_class_balancing = true,
                               .alpha = 0.5,
                               .gamma = 3,
                               .from_logits = true,
                               .label_smoothing = 0.1,
                               .axis = 1}),
      CosineSimilarity({.axis = 1}),
      Dice({.axis = {1, 2}}),
      Dice({.axis = {1}}),
      Tversky({.alpha = 0.25, .beta = 0.75, .axis = {1, 2}}),
      Circle({.gamma = 10, .margin = 0.25, .remove_diagonal = false}),
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct LabelledSamples {
  Tensor labels, predictions;
};
/// What a loss or a metric of this class takes.
LabelledSamples samples_for(const std::string& name) {
  if (name == "CTC") return {tensor<std::int64_t>({{1, 2}, {2, 0}}), numbers({2, 5, 3}, -1, 1)};
  if (name == "Dice" || name == "Tversky")
    return {cast(numbers({2, 3, 4}, -1, 1) > 0, f32), numbers({2, 3, 4}, 0.1, 0.9)};
  if (name == "Circle") return {tensor<std::int64_t>({0, 1, 0, 1}), numbers({4, 3}, -0.5, 0.5)};
  if (name == "CosineSimilarity") return {numbers({2, 3, 4}, 1, 2), sin(numbers({2, 3, 4}, 0, 9))};
  if (name.starts_with("Sparse") || name == "CategoricalGeneralizedCrossEntropy")
    return {tensor<std::int64_t>({0, 2, 1, 2}), numbers({4, 3}, 0.1, 0.9)};
  return {tensor({{1.F, 0.F, 0.F}, {0.F, 1.F, 0.F}, {0.F, 0.F, 1.F}, {1.F, 0.F, 0.F}}),
          sin(numbers({4, 3}, 0, 9)) * 0.4 + 0.5};
}

TEST(ObjectConfigs, LossesAreWrittenAsKerasDoesAndReadAgainAreTheSame) {
  std::vector<Loss> made = made_losses();
  const Json::List& expected = *stored("loss").if_list();
  ASSERT_EQ(made.size(), expected.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    Json written = config_of(made[i]);
    SCOPED_TRACE(files::to_text(written));
    Json theirs = as_here(expected[i], "loss");
    // Keras keeps one axis as a number.
    if (const Json* axis = theirs.find("config")->find("axis"); class_of(written) == "Dice" && axis->if_integer())
      theirs["config"]["axis"] = Json::List{*axis};
    EXPECT_TRUE(same_config(without_what_keras_loses(written, "loss"), theirs));
    EXPECT_TRUE(same_config(config_of(object_of<Loss>(expected[i], "loss")), theirs));
    Loss again = object_of<Loss>(written, "loss");
    EXPECT_EQ(config_of(again), written);
    auto [labels, predictions] = samples_for(class_of(written));
    expect_same(made[i](labels, predictions), again(labels, predictions));
    if (class_of(written) != "CTC") {
      Tensor weights = numbers({labels.dim(0).value()}, 1, 3);
      expect_same(made[i](labels, predictions, weights), again(labels, predictions, weights));
    }
  }
}

// --- metrics

std::vector<Metric> made_metrics() {
  using namespace metrics;
  std::vector<Metric> all;
#define BOTH(Class)          \
  all.push_back(Class("a")); \
  all.push_back(Class("mine", {.dtype = f64}))
  BOTH(Accuracy);
  BOTH(BinaryAccuracy);
  BOTH(CategoricalAccuracy);
  BOTH(SparseCategoricalAccuracy);
  BOTH(TopKCategoricalAccuracy);
  BOTH(SparseTopKCategoricalAccuracy);
  BOTH(MeanSquaredError);
  BOTH(RootMeanSquaredError);
  BOTH(MeanAbsoluteError);
  BOTH(MeanAbsolutePercentageError);
  BOTH(MeanSquaredLogarithmicError);
  BOTH(LogCoshError);
  BOTH(CosineSimilarity);
  BOTH(PearsonCorrelation);
  BOTH(ConcordanceCorrelation);
  BOTH(R2Score);
  BOTH(BinaryCrossentropy);
  BOTH(CategoricalCrossentropy);
  BOTH(SparseCategoricalCrossentropy);
  BOTH(KLDivergence);
  BOTH(Poisson);
  BOTH(Hinge);
  BOTH(SquaredHinge);
  BOTH(CategoricalHinge);
  BOTH(AUC);
  BOTH(Precision);
  BOTH(Recall);
  BOTH(TruePositives);
  BOTH(TrueNegatives);
  BOTH(FalsePositives);
  BOTH(FalseNegatives);
  BOTH(F1Score);
  BOTH(FBetaScore);
  all.push_back(BinaryIoU("a", {.dtype = i32}));  // Keras's own type
  all.push_back(BinaryIoU("mine", {.dtype = f64}));
  BOTH(Mean);
  BOTH(Sum);
#undef BOTH
#define AT(Class)                           \
  all.push_back(Class(0.5, {.name = "a"})); \
  all.push_back(Class(0.5, {.num_thresholds = 10, .class_id = 1, .name = "b"}))
  AT(SensitivityAtSpecificity);
  AT(SpecificityAtSensitivity);
  AT(PrecisionAtRecall);
  AT(RecallAtPrecision);
#undef AT
  const std::vector<Metric> more = {
      MeanSquaredError(),
      LogCoshError(),
      FBetaScore(),
      BinaryAccuracy({.name = "a", .threshold = 0.25}),
      TopKCategoricalAccuracy({.k = 2}),
      SparseTopKCategoricalAccuracy({.k = 2, .from_sorted_ids = true}),
      CosineSimilarity({.axis = 1}),
      PearsonCorrelation({.axis = 1}),
      ConcordanceCorrelation({.axis = 1}),
      R2Score({.class_aggregation = "variance_weighted_average", .num_regressors = 2}),
      R2Score({.class_aggregation = "none"}),
      BinaryCrossentropy({.from_logits = true, .label_smoothing = 0.1}),
      CategoricalCrossentropy({.from_logits = true, .label_smoothing = 0.1, .axis = 1}),
      SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = 3, .axis = 1}),
      AUC({.num_thresholds = 5, .curve = "PR", .summation_method = "minoring", .name = "a", .from_logits = true}),
      AUC({.name = "a", .thresholds = {0.25, 0.5}}),
      AUC({.curve = "PRGAIN", .name = "a", .multi_label = true, .num_labels = 3, .label_weights = {1, 2, 3}}),
      AUC({.summation_method = "majoring", .name = "a"}),
      Precision({.thresholds = 0.25, .top_k = 2, .class_id = 1, .name = "a"}),
      Precision({.thresholds = {0.25, 0.75}, .name = "a"}),
      Recall({.thresholds = {0.25, 0.75}, .name = "a"}),
      Recall({.top_k = 2, .name = "a"}),
      TruePositives({.thresholds = 0.25, .name = "a"}),
      FalseNegatives({.thresholds = {0.25, 0.75}, .name = "a"}),
      F1Score({.average = "macro", .threshold = 0.5}),
      FBetaScore({.average = "weighted", .beta = 2, .threshold = 0.5}),
      IoU(3, {0, 2}, {.name = "a", .dtype = i32}),
      IoU(3, {0, 2},
          {.name = "a", .dtype = f32, .ignore_class = 1, .sparse_y_true = false, .sparse_y_pred = false, .axis = 1}),
      BinaryIoU({.target_class_ids = {1}, .threshold = 0.25, .name = "a", .dtype = i32}),
      MeanIoU(3, {.name = "a", .dtype = i32}),
      MeanIoU(
          3, {.name = "a", .dtype = i32, .ignore_class = 1, .sparse_y_true = false, .sparse_y_pred = false, .axis = 1}),
      OneHotIoU(3, {0, 2}, {.name = "a", .dtype = i32}),
      OneHotIoU(3, {0}, {.name = "a", .dtype = i32, .ignore_class = 1, .sparse_y_pred = true, .axis = 1}),
      OneHotMeanIoU(3, {.name = "a", .dtype = i32}),
      OneHotMeanIoU(3, {.name = "a", .dtype = i32, .ignore_class = 1, .sparse_y_pred = true, .axis = 1}),
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// What a metric comes to after two batches, the second with weights.
Tensor gathered(const Metric& metric, const Json& entry) {
  const std::string name = class_of(entry);
  auto [labels, predictions] = samples_for(name);
  auto says = [&](const char* member, bool value) {
    const Json* found = entry.find("config")->find(member);
    return found && *found == Json(value);
  };
  if (name == "Mean" || name == "Sum") {
    metric.update_state(predictions);
    metric.update_state(predictions, numbers({4}, 1, 4));
    return metric.result();
  }
  if (name.ends_with("IoU") && name != "BinaryIoU") {
    if (says("sparse_y_true", true)) labels = argmax(labels, 1);
    if (says("sparse_y_pred", true)) predictions = argmax(predictions, 1);
  }
  if (says("from_sorted_ids", true)) predictions = tensor<std::int64_t>({{0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}});
  metric.update_state(labels, predictions);
  const Json* dtype = entry.find("config")->find("dtype");
  Tensor weights = numbers({labels.dim(0).value()}, 1, 4);
  metric.update_state(labels, predictions, *dtype == Json("int32") ? cast(weights, i32) : weights);
  return metric.result();
}

TEST(ObjectConfigs, MetricsAreWrittenAsKerasDoesAndReadAgainAreTheSame) {
  std::vector<Metric> made = made_metrics();
  std::vector<Json> written = written_as_keras_does("metric", made);
  read_as_keras_wrote<Metric>("metric");
  for (std::size_t i = 0; i < written.size(); ++i) {
    SCOPED_TRACE(files::to_text(written[i]));
    Metric again = object_of<Metric>(written[i], "metric");
    EXPECT_EQ(config_of(again), written[i]);
    EXPECT_EQ(again.name(), made[i].name());
    expect_same(gathered(made[i], written[i]), gathered(again, written[i]));
  }
}

TEST(ObjectConfigs, CountsOfIoUAreSixtyFourBitsWideUnlessAFileSaysOtherwise) {
  Json written = config_of(metrics::MeanIoU(3));
  EXPECT_EQ(*written.find("config")->find("dtype"), Json("int64"));
  EXPECT_EQ(object_of<Metric>(written, "metric").variables()[0].dtype(), i64);
}

// --- optimizers

template <class O>
void add_with_shared_options(std::vector<Optimizer>& all) {
  all.push_back(O());
  all.push_back(O(0.25, {.weight_decay = 0.125,
                         .clipnorm = 2,
                         .use_ema = true,
                         .ema_momentum = 0.5,
                         .ema_overwrite_frequency = 3,
                         .loss_scale_factor = 8,
                         .gradient_accumulation_steps = 2,
                         .name = "mine"}));
}

std::vector<Optimizer> made_optimizers() {
  using namespace schedules;
  std::vector<Optimizer> all;
  add_with_shared_options<SGD>(all);
  add_with_shared_options<RMSprop>(all);
  add_with_shared_options<Adagrad>(all);
  add_with_shared_options<Adadelta>(all);
  add_with_shared_options<Adam>(all);
  add_with_shared_options<AdamW>(all);
  add_with_shared_options<Adamax>(all);
  add_with_shared_options<Nadam>(all);
  add_with_shared_options<Lion>(all);
  add_with_shared_options<Ftrl>(all);
  add_with_shared_options<Lamb>(all);
  add_with_shared_options<Adafactor>(all);
  add_with_shared_options<Muon>(all);
  add_with_shared_options<ScheduleFreeAdamW>(all);
  const std::vector<Optimizer> more = {
      SGD(0.01, {.momentum = 0.5, .nesterov = true}),
      SGD(ExponentialDecay(0.5, 100, 0.9), {.clipvalue = 1}),
      SGD(PiecewiseConstantDecay({10, 20}, {1, 0.5, 0.25}), {.global_clipnorm = 1}),
      RMSprop(1e-3, {.rho = 0.5, .momentum = 0.25, .epsilon = 1e-3, .centered = true}),
      Adagrad(1e-3, {.initial_accumulator_value = 0.5, .epsilon = 1e-3}),
      Adadelta(1e-3, {.rho = 0.5, .epsilon = 1e-3}),
      Adam(1e-3, {.beta_1 = 0.5, .beta_2 = 0.75, .epsilon = 1e-3, .amsgrad = true}),
      AdamW(1e-3, {.beta_1 = 0.5, .beta_2 = 0.75, .epsilon = 1e-3, .amsgrad = true}),
      Adamax(1e-3, {.beta_1 = 0.5, .beta_2 = 0.75, .epsilon = 1e-3}),
      Nadam(1e-3, {.beta_1 = 0.5, .beta_2 = 0.75, .epsilon = 1e-3}),
      Lion(1e-3, {.beta_1 = 0.5, .beta_2 = 0.75}),
      Ftrl(1e-3, {.learning_rate_power = -0.25,
                  .initial_accumulator_value = 0.5,
                  .l1_regularization_strength = 0.1,
                  .l2_regularization_strength = 0.2,
                  .l2_shrinkage_regularization_strength = 0.3,
                  .beta = 0.4}),
      Lamb(1e-3, {.beta_1 = 0.5, .beta_2 = 0.75, .epsilon = 1e-3}),
      Adafactor(
          1e-3,
          {.beta_2_decay = -0.5, .epsilon_1 = 1e-20, .epsilon_2 = 1e-2, .clip_threshold = 2, .relative_step = false}),
      Muon(1e-3, {.adam_beta_1 = 0.5,
                  .adam_beta_2 = 0.75,
                  .adam_weight_decay = 0.01,
                  .epsilon = 1e-3,
                  .exclude_layers = {"head"},
                  .exclude_embeddings = false,
                  .muon_a = 1,
                  .muon_b = 2,
                  .muon_c = 3,
                  .adam_lr_ratio = 0.5,
                  .momentum = 0.5,
                  .ns_steps = 3,
                  .nesterov = false,
                  .rms_rate = {}}),
      ScheduleFreeAdamW(0.0025, {.beta_1 = 0.5, .beta_2 = 0.75, .epsilon = 1e-3, .warmup_steps = 10}),
      LossScaleOptimizer(Adam()),
      LossScaleOptimizer(SGD(0.25, {.momentum = 0.5}),
                         {.initial_scale = 1024, .dynamic_growth_steps = 10, .name = "mine"}),
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Names that optimizers get by themselves: Keras numbers them ("adam_1", "rm_sprop").
Json without_own_name(Json entry) {
  if (!(*entry.find("config")->find("name") == Json("mine"))) entry["config"]["name"] = "?";
  if (entry.find("config")->find("inner_optimizer"))
    entry["config"]["inner_optimizer"] = without_own_name(*entry.find("config")->find("inner_optimizer"));
  return entry;
}

/// What the variables are after three steps.
std::vector<Tensor> trained(const Optimizer& optimizer) {
  std::vector<Variable> variables = {Variable(numbers({3, 4}, -1, 1), {.name = "kernel"}),
                                     Variable(numbers({4}, 0, 1), {.name = "bias"})};
  for (int step = 1; step <= 3; ++step) {
    std::vector<Tensor> gradients = {sin(numbers({3, 4}, 0, 3 * step)), cos(numbers({4}, 0, 2 * step))};
    optimizer.apply_gradients(gradients, variables);
  }
  return {variables[0].read(), variables[1].read()};
}

TEST(ObjectConfigs, OptimizersAreWrittenAsKerasDoesAndReadAgainMakeTheSameSteps) {
  std::vector<Optimizer> made = made_optimizers();
  const Json::List& expected = *stored("optimizer").if_list();
  ASSERT_EQ(made.size(), expected.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    Json written = config_of(made[i]);
    SCOPED_TRACE(files::to_text(written));
    EXPECT_TRUE(same_config(without_own_name(written), without_own_name(expected[i])));
    EXPECT_TRUE(same_config(config_of(object_of<Optimizer>(expected[i], "optimizer")), expected[i]));
    Optimizer again = object_of<Optimizer>(written, "optimizer");
    EXPECT_EQ(config_of(again), written);
    EXPECT_EQ(again.name(), made[i].name());
    std::vector<Tensor> ours = trained(made[i]), theirs = trained(again);
    for (std::size_t k = 0; k < ours.size(); ++k) expect_same(ours[k], theirs[k]);
  }
}

/// For tests/oracle/keras/check_written_configs.py, which has Keras read them.
TEST(ObjectConfigs, DISABLED_WriteForKeras) {
  Json all;
  auto add = [&](const char* kind, const auto& made) {
    for (const auto& object : made) all[kind].push_back(config_of(object));
  };
  add("initializer", made_initializers());
  add("regularizer", made_regularizers());
  add("constraint", made_constraints());
  add("learning rate schedule", made_schedules());
  add("loss", made_losses());
  add("metric", made_metrics());
  add("optimizer", made_optimizers());
  std::ofstream("written_configs.json") << files::to_text(all);
}

TEST(ObjectConfigs, AnOptimizerIsWrittenWithTheLearningRateThatItHasNow) {
  Adam adam(1e-3);
  adam.learning_rate().assign(0.125);
  EXPECT_EQ(*config_of(adam).find("config")->find("learning_rate"), Json(0.125));
  Optimizer wrapped = LossScaleOptimizer(adam);
  wrapped.learning_rate().assign(0.5);
  Json entry = config_of(wrapped);
  EXPECT_EQ(*entry.find("config")->find("inner_optimizer")->find("config")->find("learning_rate"), Json(0.5));
  // As a number that f32 holds: the same rate when it is read again.
  Adam tenth(0.1);
  Json config = config_of(tenth);
  EXPECT_EQ(config.find("config")->find("learning_rate")->if_real()[0], static_cast<double>(0.1F));
  expect_same(object_of<Optimizer>(config, "optimizer").learning_rate().read(), tenth.learning_rate().read());
}

TEST(ObjectConfigs, MembersThatAreMissingHaveTheirDefaults) {
  Json entry;
  entry["class_name"] = "SGD";
  entry["config"] = Json::Object{};
  EXPECT_EQ(object_of<Optimizer>(entry, "optimizer").learning_rate().read().item<float>(), 0.01F);
  entry["class_name"] = "ScheduleFreeAdamW";
  EXPECT_EQ(object_of<Optimizer>(entry, "optimizer").learning_rate().read().item<float>(), 0.0025F);
  entry["class_name"] = "MeanSquaredError";
  EXPECT_EQ(object_of<Loss>(entry, "loss").name(), "mean_squared_error");
  EXPECT_EQ(object_of<Metric>(entry, "metric").name(), "mean_squared_error");
}

TEST(ObjectConfigs, ManyThreadsReadAndWrite) {
  std::vector<std::thread> threads;
  std::atomic<int> same = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (const Json& entry : *stored("optimizer").if_list()) {
        Json written = config_of(object_of<Optimizer>(entry, "optimizer"));
        same += config_of(object_of<Optimizer>(written, "optimizer")) == written;
      }
      for (const Json& entry : *stored("metric").if_list())
        same += config_of(object_of<Metric>(entry, "metric")) == config_of(object_of<Metric>(entry, "metric"));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 4 * (stored("optimizer").if_list()->size() + stored("metric").if_list()->size()));
}

// --- names

TEST(ObjectConfigs, WhatIsGivenByNameIsWrittenByName) {
  EXPECT_EQ(config_of(Loss("mse")), Json("mse"));
  EXPECT_EQ(config_of(Metric("accuracy")), Json("accuracy"));
  EXPECT_EQ(config_of(Metric("CE")), Json("CE"));
  EXPECT_EQ(object_of<Metric>(Json("CE"), "metric").name(), "CE");
  // Of optimizers and what layers take, as Keras does, the class.
  EXPECT_EQ(class_of(config_of(Optimizer("rmsprop"))), "RMSprop");
  EXPECT_EQ(class_of(config_of(Initializer("he_normal"))), "HeNormal");
  EXPECT_EQ(class_of(config_of(Regularizer("l1l2"))), "L1L2");
  EXPECT_EQ(class_of(config_of(Constraint("unit_norm"))), "UnitNorm");
  EXPECT_EQ(class_of(config_of(object_of<Optimizer>(Json("adam"), "optimizer"))), "Adam");
}

TEST(ObjectConfigs, EveryClassThatKerasHasAndThatIsHereCanBeSaved) {
  const std::set<std::string> others = {
      "losses.Loss",
      "metrics.Metric",
      "optimizers.Optimizer",
      "initializers.Initializer",
      "regularizers.Regularizer",
      "constraints.Constraint",
      "optimizers.schedules.LearningRateSchedule",  // to be subclassed
      "metrics.MeanMetricWrapper",                  // of a function, which is code
      "optimizers.MultiOptimizer",
      "optimizers.OptimizerMap",  // not here
  };
  std::filesystem::path path = std::filesystem::path(__FILE__).parent_path() / "../oracle/keras/names.txt";
  if (!std::filesystem::exists(path)) path = "tests/oracle/keras/names.txt";
  std::ifstream names(path);
  ASSERT_TRUE(names);
  std::string line;
  int found = 0;
  while (std::getline(names, line)) {
    std::istringstream words(line);
    std::string name, what;
    words >> name >> what;
    const std::size_t dot = name.rfind('.');
    if (what != "class" || dot == std::string::npos || others.contains(name)) continue;
    const std::string group = name.substr(0, dot), class_name = name.substr(dot + 1);
    auto expect = [&](const auto& entries) {
      auto entry = entries.find(class_name);
      ASSERT_TRUE(entry != entries.end()) << name;
      EXPECT_EQ(std::string(entry->second.module), "keras." + group);
      ++found;
    };
    if (group == "losses") expect(Registry<Loss>::entries());
    if (group == "metrics") expect(Registry<Metric>::entries());
    if (group == "optimizers") expect(Registry<Optimizer>::entries());
    if (group == "optimizers.schedules") expect(Registry<schedules::Schedule>::entries());
    if (group == "initializers") expect(Registry<Initializer>::entries());
    if (group == "regularizers") expect(Registry<Regularizer>::entries());
    if (group == "constraints") expect(Registry<Constraint>::entries());
  }
  EXPECT_EQ(found, 22 + 44 + 15 + 6 + 16 + 4 + 4);
}

}  // namespace
}  // namespace stet::keras
