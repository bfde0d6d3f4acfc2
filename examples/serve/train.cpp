// Trains a model to tell two spirals apart, and exports it: serve.cpp, another program, answers with it.
//
//   train [spirals.stet]
#include <stet/stet.h>

#include <iostream>

using namespace stet;

int main(int count, char** arguments) {
  const std::string path = count > 1 ? arguments[1] : "spirals.stet";
  random::seed(1);
  // Points of two spirals, one the other one turned around, with some noise.
  Tensor label = cast(random::randint({2000}, 0, 2), f32), turn = random::uniform({2000}, {.minval = 0.5, .maxval = 7});
  Tensor side = 2 * label - 1, points = stack({side * turn * cos(turn), side * turn * sin(turn)}, 1);
  points = (points + random::normal({2000, 2}, {.stddev = 0.15})) / 7;

  keras::Sequential model{keras::Input({2}, {.name = "points"}),
                          keras::Dense(64, {.activation = relu}),
                          keras::Dropout(0.05),
                          keras::Dense(64, {.activation = relu}),
                          keras::BatchNormalization(),
                          keras::Dense(1, {.activation = sigmoid, .name = "probability"})};
  model.compile({.optimizer = keras::Adam(5e-3),
                 .loss = keras::losses::BinaryCrossentropy(),
                 .metrics = {keras::metrics::BinaryAccuracy()}});
  model.fit(points, expand_dims(label, 1), {.epochs = 25, .verbose = 0});
  std::cout << "accuracy " << model.evaluate(points, expand_dims(label, 1))["binary_accuracy"] << "\n";

  model.export_to(path);
  ExportedFunction loaded = load_function(path);
  std::cout << "takes " << loaded.inputs()[0].name << " " << loaded.inputs()[0] << ", gives "
            << loaded.outputs()[0].name << " " << loaded.outputs()[0] << "\n";
  const bool same =
      all(loaded({points})[0] == function("model(x)", [=](Tensor x) { return model(x); })(points)).item<bool>();
  std::cout << (same ? "the file gives what the model gives" : "the file gives something else") << "\n";
}
