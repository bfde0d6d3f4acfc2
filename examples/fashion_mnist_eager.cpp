// Logistic regression on Fashion-MNIST with eager tensors and gradients written by hand: what every op costs and gives,
// before functions, tapes and layers.
//
//   fashion_mnist_eager [folder with the four .gz files]
#include <stet/stet.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

using namespace stet;

namespace {

struct Images {
  Tensor pixels;  // f32[count, 784], 0 to 1
  Tensor labels;  // i64[count]
};

Images load(const std::string& folder, const std::string& name) {
  Tensor pixels = data::read_idx(folder + "/" + name + "-images-idx3-ubyte.gz");
  Tensor labels = data::read_idx(folder + "/" + name + "-labels-idx1-ubyte.gz");
  return {reshape(cast(pixels, f32) / 255, {pixels.dim(0), -1}), cast(labels, i64)};
}

struct Model {
  Tensor weights = zeros({784, 10});
  Tensor bias = zeros({10});
};

double accuracy(const Model& model, const Images& images) {
  Tensor predicted = argmax(matmul(images.pixels, model.weights) + model.bias, -1);
  return mean(predicted == images.labels).item<double>();
}

// One step of gradient descent on a batch; the loss before it.
Tensor step(Model& model, const Tensor& x, const Tensor& y, float rate) {
  Tensor logits = matmul(x, model.weights) + model.bias;
  Tensor loss = mean(sparse_cross_entropy(y, logits));
  // d(loss)/d(logits) of softmax and cross-entropy: (probabilities - one_hot) / batch.
  Tensor d = (softmax(logits) - one_hot(y, 10)) / x.dim(0);
  model.weights = model.weights - rate * matmul(x, d, {.transpose_a = true});
  model.bias = model.bias - rate * sum(d, 0);
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  try {
    Images train = load(folder, "train"), test = load(folder, "t10k");
    std::cout << "Fashion-MNIST: " << train.pixels.shape() << " to train on, " << test.pixels.shape() << " to test\n";
    random::seed(1);
    Model model;
    const std::int64_t batch = 128, count = train.labels.size().value();
    for (int epoch = 1; epoch <= 5; ++epoch) {
      auto start = std::chrono::steady_clock::now();
      double loss = 0;
      std::int64_t steps = 0;
      for (std::int64_t at = 0; at < count; at += batch, ++steps) {
        Range rows = range(at, at + batch);  // the last batch is smaller: the same compiled programs serve it
        loss += step(model, train.pixels[rows], train.labels[rows], 0.1f).item<double>();
      }
      double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("epoch %d  %lld steps  %.2f s  loss %.4f  test accuracy %.2f %%\n", epoch,
                  static_cast<long long>(steps), seconds, loss / static_cast<double>(steps),
                  100 * accuracy(model, test));
    }
    double final_accuracy = accuracy(model, test);
    std::printf("test accuracy %.2f %%: %s\n", 100 * final_accuracy,
                final_accuracy >= 0.8 ? "at least 80 %, as it should be" : "below 80 %, something is wrong");
    return final_accuracy >= 0.8 ? 0 : 1;
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
