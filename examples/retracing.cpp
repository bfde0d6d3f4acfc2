// The retracing puzzles of tf.function, run in stet. Each part says what it does, calls a traced function as its story
// goes, and prints how often the host code was traced, and why.
//
//   retracing
#include <stet/stet.h>

#include <cstdio>
#include <iostream>
#include <random>

using namespace stet;

namespace {

int wrong = 0;

void title(const char* text) { std::cout << "\n== " << text << "\n"; }

void verdict(const FunctionBase& function, const char* name, int expected) {
  int traces = function.trace_count();
  std::cout << name << ": " << traces << (traces == 1 ? " trace" : " traces") << "\n";
  if (traces != expected) {
    std::cout << "   but " << expected << " expected\n";
    ++wrong;
  }
}

// A training loop whose batches differ in size, with the model and the optimizer as arguments; then once in f64.
void batches_and_dtypes() {
  title("a training step, batches of 10, 20, 10, 30, twice");
  keras::Dense model(10);
  keras::Adam optimizer;
  keras::losses::SparseCategoricalCrossentropy loss_fn({.from_logits = true});
  Function train_step =
      function("train_step(x, y, model, optimizer, loss_fn)",
               [](Tensor x, Tensor y, keras::Layer model, keras::Optimizer optimizer, keras::Loss loss_fn) {
                 GradientTape tape;
                 Tensor loss = loss_fn(y, model(x, {.training = true}));
                 auto variables = model.trainable_variables();
                 optimizer.apply_gradients(tape.gradient(loss, variables), variables);
                 return loss;
               });
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int batch : {10, 20, 10, 30}) {
      Tensor loss = train_step(random::normal({batch, 5}), random::randint({batch}, 0, 10), model, optimizer, loss_fn);
      std::cout << "batch of " << batch << ": loss " << loss << "\n";
    }
  verdict(train_step, "train_step", 1);

  title("the same step, called with f64");
  train_step(random::normal({32, 5}, {.dtype = f64}), random::randint({32}, 0, 10), model, optimizer, loss_fn);
  verdict(train_step, "train_step", 2);
}

// A number from the host's generator would be frozen into the program: every later call would use the same one.
void host_randomness() {
  title("host randomness inside of a traced function");
  std::mt19937 generator(7);
  Function noisy = function("noisy(x)", [&](Tensor x) {
    float r = std::uniform_real_distribution<float>()(generator);
    return x * r;
  });
  try {
    noisy(ones({3}));
    ++wrong;
  } catch (const TraceError& error) {
    std::cout << error.what() << "\n";
  }
  verdict(noisy, "noisy", 0);

  Function random_inside = function("random_inside(x)", [](Tensor x) { return x * random::uniform({}); });
  std::cout << "with stet::random: " << random_inside(ones({2})) << ", then " << random_inside(ones({2})) << "\n";
  verdict(random_inside, "random_inside", 1);
}

Tensor my_activation(Tensor x) {
  if (mean(x) > 0.5f) return relu(x);
  return sigmoid(x);
}

// A decision by a value, inside a layer: both sides become part of the one program.
void data_dependent_branch() {
  title("an activation that decides by its input, in a layer");
  keras::Sequential model{keras::Input({3}), keras::Activation(my_activation)};
  Function forward = function("forward(x)", [=](Tensor x) { return model(x); });
  std::cout << "mean above 0.5: " << forward(tensor({{1.f, 2.f, -1.f}})) << "\n";
  std::cout << "mean below 0.5: " << forward(tensor({{-1.f, 0.f, 1.f}})) << "\n";
  verdict(forward, "forward", 1);
}

Tensor my_function(Tensor x, Tensor y) {
  Tensor result;
  if (greater(x, y))
    result = x + y;
  else
    result = x - y;
  return result;
}

void plain_functions() {
  title("an if on tensors: f(10, 5), f(10, 15)");
  Function f = function("my_function(x, y)", my_function);
  std::cout << f(10.f, 5.f) << ", " << f(10.f, 15.f) << "\n";
  verdict(f, "my_function", 1);

  title("a sum of 2 x 2, then of 2 x 3");
  Function total = function("total(x)", [](Tensor x) { return sum(x); });
  std::cout << total(tensor({{1, 2}, {3, 4}})) << ", " << total(tensor({{1, 2, 3}, {4, 5, 6}})) << "\n";
  verdict(total, "total", 1);

  title("numbers as tensors: add(10, 5), add(10, 15)");
  Function add = function("add(x, y)", [](Tensor x, Tensor y) { return x + y; });
  std::cout << add(10.f, 5.f) << ", " << add(10.f, 15.f) << "\n";
  verdict(add, "add", 1);
}

}  // namespace

int main() {
  try {
    // Explanations go to stderr by themselves; here they stand between the results.
    on_retrace([](const RetraceEvent& event) { std::cout << event.explanation; });
    random::seed(1);
    batches_and_dtypes();
    host_randomness();
    data_dependent_branch();
    plain_functions();
    std::cout << "\n" << (wrong == 0 ? "all as expected" : "not as expected") << "\n";
    return wrong == 0 ? 0 : 1;
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
