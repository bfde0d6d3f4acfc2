// A signature with unknown sizes, the remedy that the texts name most often.
// (Example 3 of "Why does a custom Keras metric in TensorFlow 2.0 trigger tf.function retracing warnings?")
#include <stet/stet.h>

#include <iostream>

using namespace stet;

Tensor shape_agnostic_metric(Tensor y_true, Tensor y_pred) { return mean(abs(cast(y_true, f32) - cast(y_pred, f32))); }

int main() {
  std::cout << "claim:      an input_signature with None for the batch size makes tracing again less likely\n"
               "TensorFlow: 1 trace for six batch sizes\n";
  keras::Dense model(10);
  keras::losses::MeanSquaredError loss_function;
  auto step = [=](Tensor x, Tensor y) {
    Tensor predictions = model(x);
    return std::tuple{loss_function(y, predictions), shape_agnostic_metric(y, predictions)};
  };
  // dyn("batch") is any size, and the same in both arguments.
  Function with =
      function("training_step(x, y)", step, {.signature = {{f32, {dyn("batch"), 10}}, {f32, {dyn("batch"), 10}}}});
  Function without = function("training_step(x, y)", step);
  for (int batch_size : {1, 2, 3, 5, 8, 13}) {
    Tensor x = random::normal({batch_size, 10}), y = random::normal({batch_size, 10});
    with(x, y);
    without(x, y);
  }
  std::cout << "stet:       " << with.trace_count() << " trace with a signature, " << without.trace_count()
            << " without one: sizes are unknown from the first trace on\n";
  bool refused = false;
  try {
    with(ones({4, 10}), ones({5, 10}));
  } catch (const UserError& error) {
    refused = true;
    std::cout << "what a signature adds: other calls are refused\n" << error.what() << "\n";
  }
  return with.trace_count() == 1 && without.trace_count() == 1 && refused ? 0 : 1;
}
