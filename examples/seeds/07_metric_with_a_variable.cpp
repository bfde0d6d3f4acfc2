// A metric that makes a Variable whenever it is called, in a training step.
// (Example 1 of "Why does a custom Keras metric in TensorFlow 2.0 trigger tf.function retracing warnings?")
#include <stet/stet.h>

#include <iostream>

using namespace stet;

Tensor problematic_metric(Tensor y_true, Tensor y_pred) {
  Variable calls(0);
  calls.assign_add(1);
  return mean(abs(y_true - y_pred));
}

int main() {
  std::cout << "claim:      traced again at every step, because the variable changes what surrounds the graph\n"
               "TensorFlow: the first call fails: a tf.function may make variables in its first call only\n"
               "stet:\n";
  keras::Dense model(10);
  keras::Adam optimizer;
  keras::losses::MeanSquaredError loss_function;
  Tensor x = random::normal({32, 10}), y = random::normal({32, 10});

  Function training_step = function("training_step(x, y)", [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor predictions = model(x);
    Tensor loss = loss_function(y, predictions);
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()), model.trainable_variables());
    return std::tuple{loss, problematic_metric(y, predictions)};
  });
  bool refused = false;
  try {
    training_step(x, y);
  } catch (const TraceError& error) {
    refused = true;
    std::cout << "the first call is refused:\n" << error.what() << "\n";
  }

  // What the message says to do: the Variable is made once, outside, and captured. It is state of the program then.
  Variable calls(0);
  Function metric = function("metric(y_true, y_pred)", [=](Tensor y_true, Tensor y_pred) {
    calls.assign_add(1);
    return mean(abs(y_true - y_pred));
  });
  for (int i = 0; i < 5; ++i) metric(y, model(x));
  std::cout << "made outside, it counts " << calls << " calls, with " << metric.trace_count() << " trace\n";
  return refused && calls.read().item<int>() == 5 && metric.trace_count() == 1 ? 0 : 1;
}
