// A random number of the host's in a training step: what the original did not use, and what happens if one does.
// (Example 3 of "Why does model.fit trigger TensorFlow function retracing?")
#include <stet/stet.h>

#include <iostream>
#include <random>

using namespace stet;

int main() {
  std::cout << "claim:      traced again at every call, since host code cannot be captured\n"
               "TensorFlow: never traced again. The number is drawn while tracing, and stays in the graph for ever;\n"
               "            nothing says so\n"
               "stet:\n";
  keras::Dense model(10);
  keras::Adam optimizer;
  keras::losses::SparseCategoricalCrossentropy loss_fn({.from_logits = true});
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> uniform;
  Tensor x = random::normal({32, 5}), y = random::randint({32}, 0, 10);

  // As it was: the number is drawn and not used. It is not in the program, so it does no harm.
  Function unused = function("train_step_3(x, y)", [&](Tensor x, Tensor y) {
    [[maybe_unused]] float random_value = uniform(generator);
    GradientTape tape;
    Tensor loss = loss_fn(y, model(x));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()), model.trainable_variables());
    return loss;
  });
  for (int i = 0; i < 2; ++i) unused(x, y);
  std::cout << "drawn and not used: " << unused.trace_count() << " trace\n";

  // Used, it would be the same number in all calls. Every trace is made twice, which gives two numbers.
  Function used = function("noisy(x)", [&](Tensor x) { return x * uniform(generator); });
  bool refused = false;
  try {
    used(x);
  } catch (const TraceError& error) {
    refused = true;
    std::cout << "drawn and used, it is refused:\n" << error.what() << "\n";
  }

  // stet's own numbers are drawn by the program, anew in every call.
  Function fresh = function("fresh(x)", [](Tensor x) { return x * random::uniform({}); });
  Tensor first = fresh(ones({})), second = fresh(ones({}));
  std::cout << "with random::uniform: " << first << ", then " << second << "; " << fresh.trace_count() << " trace\n";
  bool differ = first.item<float>() != second.item<float>();
  return unused.trace_count() == 1 && refused && differ && fresh.trace_count() == 1 ? 0 : 1;
}
