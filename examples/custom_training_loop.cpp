// A training loop from scratch, as Keras's guide to it has one: what fit() does, with every part in sight. A model, an
// optimizer, a loss, metrics, a dataset, a GradientTape; epochs, a log line now and then, validation after each epoch.
//
//   custom_training_loop [folder with the four .gz files of Fashion-MNIST]
#include <stet/stet.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

using namespace stet;

namespace {

constexpr int train_samples = 20'000, validation_samples = 5'000;  // of 60,000: enough to learn from in seconds
constexpr int batch_size = 64, epochs = 3;

struct Images {
  Tensor pixels;  // f32[count, 28, 28], 0 to 1
  Tensor labels;  // i64[count]
};

Images load(const std::string& folder, int first, int count) {
  Range which = range(first, first + count);
  Tensor pixels = data::read_idx(folder + "/train-images-idx3-ubyte.gz")[which];
  Tensor labels = data::read_idx(folder + "/train-labels-idx1-ubyte.gz")[which];
  return {cast(pixels, f32) / 255, cast(labels, i64)};
}

keras::Model make_model() {
  keras::Input image({28, 28}, {.name = "image"});
  keras::KerasTensor x = keras::Flatten()(image);
  x = keras::Dense(128, {.activation = relu, .kernel_regularizer = keras::regularizers::L2(1e-5)})(x);
  x = keras::Dropout(0.1)(x);
  x = keras::Dense(64, {.activation = relu})(x);
  return keras::Model(image, keras::Dense(10, {.name = "predictions"})(x));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int run(const std::string& folder) {
  Images train = load(folder, 0, train_samples), val = load(folder, train_samples, validation_samples);
  auto train_dataset =
      data::from_tensor_slices(train.pixels, train.labels).shuffle(train_samples).batch(batch_size).prefetch(2);
  auto val_dataset = data::from_tensor_slices(val.pixels, val.labels).batch(batch_size);

  keras::Model model = make_model();
  keras::Adam optimizer(1e-3);
  keras::losses::SparseCategoricalCrossentropy loss_fn({.from_logits = true});
  keras::metrics::SparseCategoricalAccuracy train_accuracy, val_accuracy;

  // The step is traced at its first call, and then serves all batches, the smaller last one of an epoch included.
  // Models, optimizers and metrics are handles, so they are captured by value; what they hold is the state of the
  // program.
  Function train_step = function("train_step(x, y)", [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor logits = model(x, {.training = true});  // dropout drops
    Tensor loss = loss_fn(y, logits);
    for (const Tensor& penalty : model.losses()) loss = loss + penalty;  // what regularizers add
    std::vector<Variable> weights = model.trainable_variables();
    optimizer.apply_gradients(tape.gradient(loss, weights), weights);
    train_accuracy.update_state(y, logits);
    return loss;
  });
  Function test_step = function("test_step(x, y)", [=](Tensor x, Tensor y) { val_accuracy.update_state(y, model(x)); });

  double accuracy = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::printf("epoch %d\n", epoch + 1);
    auto start = std::chrono::steady_clock::now();
    int step = 0;
    for (auto [x, y] : train_dataset) {
      Tensor loss = train_step(x, y);
      if (step % 100 == 0) std::printf("  step %3d: loss of the batch %.4f\n", step, loss.item<float>());
      ++step;
    }
    double training_accuracy = train_accuracy.result().item<float>();
    train_accuracy.reset_state();

    for (auto [x, y] : val_dataset) test_step(x, y);
    accuracy = val_accuracy.result().item<float>();
    val_accuracy.reset_state();
    std::printf("  training accuracy %.4f, validation accuracy %.4f, %.2f s\n", training_accuracy, accuracy,
                seconds_since(start));
  }

  std::printf("train_step: %d trace for %d epochs, test_step: %d trace\n", train_step.trace_count(), epochs,
              test_step.trace_count());
  bool good = accuracy >= 0.8 && train_step.trace_count() == 1 && test_step.trace_count() == 1;
  std::printf("%s\n", good ? "as it should be: a trace for each step, and at least 80 % right"
                           : "something is wrong: expected a trace for each step, and at least 80 % right");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    random::seed(1);
    return run(argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist");
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
