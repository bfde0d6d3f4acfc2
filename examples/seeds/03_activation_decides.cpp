// An activation that decides by its input which function it is.
// (Example 3 of "Why are Keras results bad after a TensorFlow function retracing warning?")
#include <stet/stet.h>

#include <iostream>

using namespace stet;

Tensor my_activation(Tensor x) {
  if (mean(x) > 0.5f)
    return relu(x);
  else
    return sigmoid(x);
}

int main() {
  std::cout << "claim:      the graph is built again for each side of the condition\n"
               "TensorFlow: in a Keras 3 layer the program fails: a symbolic tensor may not decide an if. As a plain\n"
               "            tf.function it is 1 trace, in which AutoGraph has turned the if into a cond\n";

  keras::Sequential model{keras::Input({5}), keras::Dense(10, {.activation = my_activation})};
  model.compile({.optimizer = "adam", .loss = "mse"});
  model.fit(random::uniform({100, 5}), random::uniform({100, 10}), {.verbose = 0});
  int training = model.train_function().trace_count();
  std::cout << "stet:       fit: " << training << " trace\n";

  // Both sides are in the program, and the values of each call choose.
  keras::Sequential decides{keras::Input({3}), keras::Activation(my_activation)};
  Tensor high = tensor({{1.f, 2.f, -1.f}}), low = tensor({{-1.f, 0.f, 1.f}});
  Tensor of_high = decides.predict(high), of_low = decides.predict(low);
  int predicting = decides.predict_function().trace_count();
  std::cout << "            mean " << mean(high) << ": " << of_high << ", relu " << relu(high) << "\n"
            << "            mean " << mean(low) << ": " << of_low << ", sigmoid " << sigmoid(low) << "\n"
            << "            predict: " << predicting << " trace\n";
  bool right = allclose(of_high, relu(high)) && allclose(of_low, sigmoid(low));
  return training == 1 && predicting == 1 && right ? 0 : 1;
}
