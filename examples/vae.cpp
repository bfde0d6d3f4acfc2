// A variational autoencoder on Fashion-MNIST: images become a few normal distributions, and a draw from them becomes an
// image again. A model with a training step of its own, traced once; random numbers are drawn anew in every step.
//
//   vae [--epochs 10] [--images 6000] [--seed 1] [--folder the four .gz files]
#include <stet/stet.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace stet;

namespace {

constexpr int latent = 4;

/// A draw from the normal distributions {z_mean, z_log_var}, as a function of both that has gradients.
struct Sampling : keras::CustomLayer {
  keras::Tensors call_many(const keras::Tensors& inputs, const keras::Context&) override {
    const Tensor &z_mean = inputs[0], &z_log_var = inputs[1];
    return {z_mean + exp(0.5f * z_log_var) * random::normal(z_mean.shape())};
  }
};

/// [batch, 28, 28, 1] -> mean, logarithm of the variance, draw: [batch, latent] each.
keras::Model make_encoder() {
  keras::Input image({28, 28, 1});
  keras::KerasTensor x = keras::Conv2D(16, 3, {.strides = 2, .padding = "same", .activation = relu})(image);
  x = keras::Conv2D(32, 3, {.strides = 2, .padding = "same", .activation = relu})(x);
  x = keras::Dense(64, {.activation = relu})(keras::Flatten()(x));
  keras::KerasTensor z_mean = keras::Dense(latent, {.name = "z_mean"})(x);
  keras::KerasTensor z_log_var = keras::Dense(latent, {.name = "z_log_var"})(x);
  keras::KerasTensor z = keras::make<Sampling>()({z_mean, z_log_var});
  return keras::Model({image}, {z_mean, z_log_var, z}, {.name = "encoder"});
}

/// [batch, latent] -> logits of the pixels, [batch, 28, 28, 1].
keras::Model make_decoder() {
  return keras::Sequential(
      {keras::Input({latent}), keras::Dense(7 * 7 * 32, {.activation = relu}), keras::Reshape({7, 7, 32}),
       keras::Conv2DTranspose(16, 3, {.strides = 2, .padding = "same", .activation = relu}),
       keras::Conv2DTranspose(1, 3, {.strides = 2, .padding = "same"})},
      {.name = "decoder"});
}

/// -log p(image) for each image, pixels being independent, bright with the probability sigmoid(logits).
Tensor surprise(const Tensor& images, const Tensor& logits) {
  return sum(softplus(logits) - images * logits, {1, 2, 3});
}

struct Vae : keras::CustomModel {
  keras::Model encoder = make_encoder(), decoder = make_decoder();
  keras::metrics::Mean total{"loss"}, reconstruction{"reconstruction_loss"}, divergence{"kl_loss"};
  STET_MEMBERS(encoder, decoder, total, reconstruction, divergence)

  /// Without noise: the image of the mean.
  Tensor call(const Tensor& x, const keras::Context&) override { return sigmoid(decoder(encoder(x))); }

  /// The bound on -log p(x) that is minimised (the negative ELBO), told to the metrics.
  Tensor bound(const Tensor& x, bool training) {
    keras::Tensors code = encoder.call_many({x}, {.training = training});
    const Tensor &z_mean = code[0], &z_log_var = code[1], &z = code[2];
    Tensor missing = surprise(x, decoder(z, {.training = training}));
    Tensor apart = 0.5f * sum(square(z_mean) + exp(z_log_var) - 1.f - z_log_var, 1);
    Tensor loss = mean(missing + apart);
    reconstruction.update_state(missing);
    divergence.update_state(apart);
    total.update_state(missing + apart);
    return loss;
  }
  keras::Logs results() {
    return {
        {"loss", total.result()}, {"reconstruction_loss", reconstruction.result()}, {"kl_loss", divergence.result()}};
  }

  keras::Logs train_step(const keras::Batch& batch) override {
    GradientTape tape;
    Tensor loss = bound(batch.x, true);
    optimizer().apply_gradients(tape.gradient(loss, trainable_variables()), trainable_variables());
    return results();
  }
  keras::Logs test_step(const keras::Batch& batch) override {
    bound(batch.x, false);
    return results();
  }
};

Tensor load(const std::string& folder, const std::string& name, int count) {
  Tensor pixels = data::read_idx(folder + "/" + name + "-images-idx3-ubyte.gz");
  return expand_dims(cast(pixels[Range{.end = count}], f32) / 255, 3);
}

/// Images [28, 28, 1] beside each other, two rows of pixels in a line of text.
void print_side_by_side(const std::vector<Tensor>& images) {
  const std::string shades = " .:-=+*#%@";
  std::vector<Tensor> rows;
  for (const Tensor& image : images) rows.push_back(mean(reshape(image, {14, 2, 28}), 1));
  Tensor shade = cast(round(concat(rows, 1) * 9), i32);
  for (int row = 0; row < 14; ++row) {
    std::string line;
    for (int column : shade[row].to_vector<int>()) line += shades[column];
    std::cout << "  " << line << "\n";
  }
}

int run(const std::string& folder, int epochs, int count, int seed) {
  Tensor train = load(folder, "train", count), test = load(folder, "t10k", 1000);
  // What one would need without a code: every pixel as bright as it is on average.
  Tensor average = clip(mean(train, 0, {.keepdims = true}), 1e-3f, 1 - 1e-3f);
  double without_code = mean(surprise(test, log(average) - log(1 - average))).item<float>();

  random::seed(seed);
  auto vae = keras::make<Vae>();
  vae->encoder.summary();
  vae->decoder.summary();
  vae.compile({.optimizer = keras::Adam(2e-3)});
  keras::History history = vae.fit(train, {.batch_size = 64, .epochs = epochs, .validation_data = test});

  Tensor image = test[range(1, 2)];
  Tensor drawn = sigmoid(vae->decoder(random::normal({1, latent})));
  std::cout << "  an image of the test          its reconstruction          one that never was\n";
  print_side_by_side({image[0], vae(image)[0], drawn[0]});

  double first = history["val_loss"].front(), last = history["val_loss"].back(), kl = history["val_kl_loss"].back();
  int traces = vae.train_function().trace_count();
  std::printf("nats per image of the test: %.1f after the first epoch, %.1f after %d; %.1f without a code\n", first,
              last, epochs, without_code);
  std::printf("of these for the code: %.1f; traces of train_step: %d, of test_step: %d\n", kl, traces,
              vae.test_function().trace_count());
  bool good = traces == 1 && (last < first || epochs == 1) && last < 0.8 * without_code && kl > 1;
  std::printf("%s: one trace, a bound that falls to less than 80 %% of the nats without a code\n",
              good ? "as it should be" : "something is wrong, expected");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int epochs = 10, images = 6000, seed = 1;
  std::string folder = "/usr/share/datasets/fashion-mnist";
  try {
    for (int i = 1; i < argc; i += 2) {
      std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
      if (name == "--epochs")
        epochs = std::stoi(value);
      else if (name == "--images")
        images = std::stoi(value);
      else if (name == "--seed")
        seed = std::stoi(value);
      else if (name == "--folder")
        folder = value;
      else
        throw std::invalid_argument(name);
    }
  } catch (const std::logic_error&) {  // of std::stoi, too
    std::cerr << "usage: vae [--epochs n] [--images n] [--seed n] [--folder path]\n";
    return 2;
  }
  try {
    return run(folder, epochs, images, seed);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
