// The same training step, called with floats, then with doubles.
// (Example 2 of "Why does model.fit trigger TensorFlow function retracing?")
#include <stet/stet.h>

#include <iostream>

using namespace stet;

Tensor step(Tensor x, Tensor y, keras::Layer model, keras::Optimizer optimizer, keras::Loss loss_fn) {
  GradientTape tape;
  Tensor logits = model(x);
  Tensor loss = loss_fn(y, logits);
  std::vector<Tensor> gradients = tape.gradient(loss, model.trainable_variables());
  optimizer.apply_gradients(gradients, model.trainable_variables());
  return loss;
}

int main() {
  std::cout << "claim:      traced again in the second call; such a change is easily overlooked\n"
               "TensorFlow: 3 traces: the one that makes the weights, one for floats, one for doubles\n"
               "stet:\n";
  // Explanations go to stderr by themselves; here they stand among the results.
  on_retrace([](const RetraceEvent& event) { std::cout << event.explanation; });

  keras::Dense model(10);
  keras::Adam optimizer;
  keras::losses::SparseCategoricalCrossentropy loss_fn({.from_logits = true});
  Function train_step = function("train_step_2(x, y, model, optimizer, loss_fn)", step);
  for (DType dtype : {f32, f64}) {
    Tensor x = random::normal({32, 5}, {.dtype = dtype});
    Tensor y = random::randint({32}, 0, 10);
    train_step(x, y, model, optimizer, loss_fn);
  }
  int traces = train_step.trace_count();
  std::cout << traces << " traces: another type is another program\n";

  // The fix that was printed, and a guard that turns any further trace into an exception.
  NoRetrace guard;
  Tensor doubles = random::normal({32, 5}, {.dtype = f64});
  train_step(cast(doubles, f32), random::randint({32}, 0, 10), model, optimizer, loss_fn);
  std::cout << "with cast(x, f32): no other trace\n";
  return traces == 2 && train_step.trace_count() == 2 ? 0 : 1;
}
