// Fashion-MNIST with an MLP: compile, fit, evaluate, as with Keras. The training step (forward, loss, backward, Adam,
// metrics) is traced once and serves every batch, also the smaller last one.
//
//   fashion_mnist [folder with the four .gz files]
#include <stet/stet.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

using namespace stet;

namespace {

struct Images {
  Tensor pixels;  // f32[count, 28, 28], 0 to 1
  Tensor labels;  // i64[count]
};

Images load(const std::string& folder, const std::string& name) {
  Tensor pixels = data::read_idx(folder + "/" + name + "-images-idx3-ubyte.gz");
  Tensor labels = data::read_idx(folder + "/" + name + "-labels-idx1-ubyte.gz");
  return {cast(pixels, f32) / 255, cast(labels, i64)};
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  try {
    Images train = load(folder, "train"), test = load(folder, "t10k");
    random::seed(1);
    keras::Sequential model{keras::Input({28, 28}), keras::Flatten(), keras::Dense(512, {.activation = relu}),
                            keras::Dense(512, {.activation = relu}), keras::Dense(10)};
    model.compile({.optimizer = keras::Adam(1e-3),
                   .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                   .metrics = {"accuracy"}});
    model.summary();

    auto start = std::chrono::steady_clock::now();
    const int epochs = 10;
    keras::History history =
        model.fit(train.pixels, train.labels,
                  {.batch_size = 128, .epochs = epochs, .validation_data = {test.pixels, test.labels}});
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

    keras::Results results = model.evaluate(test.pixels, test.labels, {.batch_size = 1000});
    Tensor classes = argmax(model.predict(test.pixels[range(0, 8)]), -1);
    std::cout << "first eight: " << classes << ", labels " << test.labels[range(0, 8)] << "\n";

    const std::vector<double>& accuracy = history["val_accuracy"];
    double best = *std::max_element(accuracy.begin(), accuracy.end());
    int traces = model.train_function().trace_count();
    std::printf("test accuracy: %.2f %% after %d epochs, %.2f %% after 5, %.2f %% at best\n", 100 * results["accuracy"],
                epochs, 100 * accuracy[4], 100 * best);
    std::printf("train_step: %d trace%s, %d retraces, %.1f s in all, %.2f s an epoch with validation\n", traces,
                traces == 1 ? "" : "s", traces - 1, seconds, seconds / epochs);
    bool good = traces == 1 && accuracy[4] >= 0.87 && best >= 0.88;
    std::printf("%s\n", good ? "as it should be: one trace, at least 87 % after 5 epochs and 88 % at best"
                             : "something is wrong: expected one trace, 87 % after 5 epochs and 88 % at best");
    return good ? 0 : 1;
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
