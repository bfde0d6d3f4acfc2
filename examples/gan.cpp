// A generative adversarial network: a generator makes points of the plane from noise, a discriminator tells them from
// real ones, which lie in eight heaps around a circle. Two optimizers in one training step, which is traced once.
//
//   gan [--epochs 30] [--seed 1]
#include <stet/stet.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>

using namespace stet;

namespace {

constexpr int latent = 8, heaps = 8;
constexpr float radius = 2.f, spread = 0.15f;

/// [heaps, 2]
Tensor centers() {
  Tensor angle = arange(heaps) * (6.2831853f / heaps);
  return radius * stack({cos(angle), sin(angle)}, 1);
}

Tensor real_points(int count) {
  return gather(centers(), random::randint({count}, 0, heaps)) + random::normal({count, 2}, {.stddev = spread});
}

/// By pairs, how far points of a are from those of b on average.
Tensor mean_distance(const Tensor& a, const Tensor& b) { return mean(norm(expand_dims(a, 1) - b, 2)); }

/// The energy distance of two samples: 0 for samples of one distribution, up to chance.
Tensor energy_distance(const Tensor& a, const Tensor& b) {
  return 2 * mean_distance(a, b) - mean_distance(a, a) - mean_distance(b, b);
}

struct Gan : keras::CustomModel {
  keras::Sequential generator{keras::Dense(64, {.activation = relu}), keras::Dense(64, {.activation = relu}),
                              keras::Dense(2)};
  keras::Sequential discriminator{keras::Dense(64, {.activation = "leaky_relu"}),
                                  keras::Dense(64, {.activation = "leaky_relu"}), keras::Dense(1)};
  keras::Adam generator_optimizer{1e-3, {.beta_1 = 0.5}};  // compile() is given the discriminator's
  keras::losses::BinaryCrossentropy loss_fn{{.from_logits = true}};
  keras::metrics::Mean d_loss{"d_loss"}, g_loss{"g_loss"};
  STET_MEMBERS(generator, discriminator, d_loss, g_loss)

  /// From noise to points.
  Tensor call(const Tensor& noise, const keras::Context&) override { return generator(noise); }

  keras::Logs train_step(const keras::Batch& batch) override {
    const Tensor& real = batch.x;
    Dim count = real.dim(0);
    Tensor yes = ones({count, 1}), no = zeros({count, 1});
    {
      GradientTape tape;
      Tensor made = generator(random::normal({count, latent}), {.training = true});
      Tensor loss = (loss_fn(yes, discriminator(real, {.training = true})) +
                     loss_fn(no, discriminator(made, {.training = true}))) /
                    2;
      std::vector<Variable> variables = discriminator.trainable_variables();
      optimizer().apply_gradients(tape.gradient(loss, variables), variables);
      d_loss.update_state(loss);
    }
    {
      GradientTape tape;
      Tensor made = generator(random::normal({count, latent}), {.training = true});
      Tensor loss = loss_fn(yes, discriminator(made, {.training = true}));  // to be taken for real
      std::vector<Variable> variables = generator.trainable_variables();
      generator_optimizer.apply_gradients(tape.gradient(loss, variables), variables);
      g_loss.update_state(loss);
    }
    return {{"d_loss", d_loss.result()}, {"g_loss", g_loss.result()}};
  }
};

/// After every epoch, how far what is made is from what is real.
struct Compare : keras::CustomCallback {
  Tensor real = real_points(1000);
  void on_epoch_end(int, keras::EpochLogs& logs) override {
    logs["distance"] = energy_distance(model()(random::normal({1000, latent})), real).item<float>();
  }
};

/// The plane from -3 to 3, seen from above.
void print_map(const Tensor& points) {
  const int rows = 21, columns = 42;
  Tensor place = floor((points + 3.f) / 6.f * tensor({float(columns), float(rows)}));
  Tensor inside = all((place >= 0.f) & (place < tensor({float(columns), float(rows)})), 1);
  Tensor cell = cast((rows - 1 - place[{Range{}, 1}]) * columns + place[{Range{}, 0}], i64)[inside];
  Tensor counts = reshape(bincount(cell, rows * columns), {rows, columns});
  for (int row = 0; row < rows; ++row) {
    std::string line;
    for (std::int64_t count : cast(counts[row], i64).to_vector<std::int64_t>())
      line += count == 0 ? ' ' : count < 5 ? '.' : count < 15 ? 'o' : '@';
    std::cout << "  " << line << "\n";
  }
}

int run(int epochs, int seed) {
  random::seed(seed);
  auto gan = keras::make<Gan>();
  gan.compile({.optimizer = keras::Adam(1e-3, {.beta_1 = 0.5})});
  Tensor real = real_points(1000);
  double before = energy_distance(gan(random::normal({1000, latent})), real).item<float>();
  keras::History history =
      gan.fit(real_points(20'000), {.batch_size = 256, .epochs = epochs, .callbacks = {Compare{}}});

  Tensor made = gan(random::normal({2000, latent}));
  print_map(made);
  Tensor apart = norm(expand_dims(made, 1) - centers(), 2);  // [points, heaps]
  Tensor near = min(apart, 1) < 4 * spread;
  Tensor by_heap = bincount(argmin(apart, 1)[near], heaps);
  double after = history["distance"].back(), chance = energy_distance(real, real_points(1000)).item<float>();
  int traces = gan.train_function().trace_count();
  std::cout << "points near each heap: " << by_heap << " of 2000\n";
  std::printf("energy distance to real points: %.3f before, %.3f after; of real points among themselves %.3f\n", before,
              after, chance);
  std::printf("traces of train_step: %d\n", traces);
  bool good = traces == 1 && after < 0.1 * before;
  std::printf("%s: one trace, and a distance that falls to less than a tenth\n",
              good ? "as it should be" : "something is wrong, expected");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int epochs = 30, seed = 1;
  try {
    for (int i = 1; i < argc; i += 2) {
      std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
      if (name == "--epochs")
        epochs = std::stoi(value);
      else if (name == "--seed")
        seed = std::stoi(value);
      else
        throw std::invalid_argument(name);
    }
  } catch (const std::logic_error&) {  // of std::stoi, too
    std::cerr << "usage: gan [--epochs n] [--seed n]\n";
    return 2;
  }
  try {
    return run(epochs, seed);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
