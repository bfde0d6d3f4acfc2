// Fashion-MNIST: 70,000 small pictures of clothes, ten kinds. A convolutional network (or, with --model mlp, a plain
// one) is compiled, fitted and evaluated as with Keras. The training step (forward, loss, backward, Adam, metrics) is
// traced once and serves every batch, also the smaller last one; the program ends with a verdict on that, and on the
// accuracy.
//
//   fashion_mnist [--model cnn|mlp] [--epochs n] [--logs folder] [folder with the four .gz files]
//
// With --logs it writes curves, histograms, graphs and a profile of the batches 101 to 120 for TensorBoard:
// tensorboard --logdir folder
#include <stet/stet.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

using namespace stet;

namespace {

const char* const kinds[] = {"T-shirt", "trousers", "pullover", "dress", "coat",
                             "sandal",  "shirt",    "sneaker",  "bag",   "boot"};

struct Images {
  Tensor pixels;  // f32[count, 28, 28], 0 to 1
  Tensor labels;  // i64[count]
};

Images load(const std::string& folder, const std::string& name) {
  Tensor pixels = data::read_idx(folder + "/" + name + "-images-idx3-ubyte.gz");
  Tensor labels = data::read_idx(folder + "/" + name + "-labels-idx1-ubyte.gz");
  return {cast(pixels, f32) / 255, cast(labels, i64)};
}

keras::Sequential mlp() {
  return {keras::Input({28, 28}), keras::Flatten(), keras::Dense(512, {.activation = relu}),
          keras::Dense(512, {.activation = relu}), keras::Dense(10)};
}
keras::Sequential cnn() {
  return {keras::Input({28, 28}),
          keras::Reshape({28, 28, 1}),
          keras::Conv2D(32, 3, {.padding = "same", .activation = relu}),
          keras::MaxPooling2D(),
          keras::Conv2D(64, 3, {.padding = "same", .activation = relu}),
          keras::MaxPooling2D(),
          keras::Flatten(),
          keras::Dropout(0.3),
          keras::Dense(128, {.activation = relu}),
          keras::Dense(10)};
}

/// How often pictures of a kind (rows) were taken for each kind (columns), in percent of the row.
void print_confusion(const Tensor& labels, const Tensor& predicted) {
  Tensor counts = segment_sum(one_hot(predicted, 10), labels, 10);
  std::vector<float> percent = (100 * counts / sum(counts, 1, {.keepdims = true})).to_vector<float>();
  std::printf("\ntaken for, in %%\n%10s", "");
  for (const char* kind : kinds) std::printf(" %5.5s", kind);
  for (std::size_t row = 0; row < 10; ++row) {
    std::printf("\n%10s", kinds[row]);
    for (std::size_t column = 0; column < 10; ++column) {
      const float part = percent[row * 10 + column];
      part < 0.05F ? std::printf("     .") : std::printf(" %5.1f", part);
    }
  }
  std::printf("\n\n");
}

int run(const std::string& model_name, int epochs, const std::string& logs, const std::string& folder) {
  Images train = load(folder, "train"), test = load(folder, "t10k");
  random::seed(1);
  keras::Sequential model = model_name == "mlp" ? mlp() : cnn();
  const std::int64_t batch_size = 64, batches = (train.pixels.dim(0).value() + batch_size - 1) / batch_size;
  model.compile({.optimizer = keras::Adam(keras::schedules::CosineDecay(2e-3, epochs * batches)),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  model.summary();

  std::vector<keras::Callback> callbacks;
  if (!logs.empty())
    callbacks.push_back(keras::TensorBoard(
        logs, {.histogram_freq = 1, .write_images = true, .update_freq = 50, .profile_batch = {101, 120}}));
  auto start = std::chrono::steady_clock::now();
  keras::History history = model.fit(train.pixels, train.labels,
                                     {.batch_size = 64,
                                      .epochs = epochs,
                                      .callbacks = callbacks,
                                      .validation_data = {test.pixels, test.labels},
                                      .validation_batch_size = 1000});
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  print_confusion(test.labels, argmax(model.predict(test.pixels, {.batch_size = 1000}), -1));
  const std::vector<double>& accuracy = history["val_accuracy"];
  const double best = *std::max_element(accuracy.begin(), accuracy.end());
  const int traces = model.train_function().trace_count();
  std::printf("test accuracy: %.2f %% after %d epochs, %.2f %% at best\n", 100 * accuracy.back(), epochs, 100 * best);
  std::printf("train_step: %d trace%s, %d retraces; %.1f s in all, %.1f s an epoch with validation\n", traces,
              traces == 1 ? "" : "s", traces - 1, seconds, seconds / epochs);
  const double expected = model_name == "mlp" ? 0.88 : 0.91;
  const bool good = traces == 1 && (best >= expected || epochs < 5);
  std::printf("%s: expected one trace%s\n", good ? "as it should be" : "something is wrong",
              epochs < 5            ? ""
              : model_name == "mlp" ? " and 88 % at best"
                                    : " and 91 % at best");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string model = "cnn", logs, folder = "/usr/share/datasets/fashion-mnist";
  int epochs = 5;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--model" && (value == "cnn" || value == "mlp")) {
      model = argv[++i];
    } else if (argument == "--epochs" && std::atoi(value.c_str()) > 0) {
      epochs = std::atoi(argv[++i]);
    } else if (argument == "--logs" && !value.empty()) {
      logs = argv[++i];
    } else if (argument[0] != '-') {
      folder = argument;
    } else {
      std::cerr
          << "usage: fashion_mnist [--model cnn|mlp] [--epochs n] [--logs folder] [folder with the four .gz files]\n";
      return 2;
    }
  }
  try {
    return run(model, epochs, logs, folder);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
