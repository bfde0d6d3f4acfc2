// fit_stet mlp|cnn: one epoch of fit on data of Fashion-MNIST's size: 60,000 images, batches of 64, Adam, accuracy; an
// MLP 784-128-10, or two convolutions with pooling before it. Prints the seconds of the second epoch; the first one
// traces.
#include <cstdio>
#include <string>

#include "bench/bench.h"
#include "stet/stet.h"

int main(int argc, char** argv) {
  using namespace stet;
  set_thread_count(2);
  random::seed(1);
  Tensor x = random::uniform({60000, 28, 28, 1}), y = random::randint({60000}, 0, 10);
  keras::Sequential model{keras::Input({28, 28, 1})};
  if (argc > 1 && argv[1] == std::string("cnn"))
    for (int filters : {32, 64}) {
      model.add(keras::Conv2D(filters, 3, {.activation = relu}));
      model.add(keras::MaxPooling2D());
    }
  model.add(keras::Flatten());
  model.add(keras::Dense(128, {.activation = relu}));
  model.add(keras::Dense(10));
  model.compile({.optimizer = keras::Adam(1e-3),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  keras::FitOptions options{.batch_size = 64, .epochs = 1, .verbose = 0};
  model.fit(x, y, options);
  double begin = bench::now_ns();
  model.fit(x, y, options);
  std::printf("%g\n", (bench::now_ns() - begin) * 1e-9);
}
