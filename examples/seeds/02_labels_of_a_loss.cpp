// A loss of one's own that casts its labels, given integers. The labels of the original are also of the wrong shape.
// (Example 2 of "Why are Keras results bad after a TensorFlow function retracing warning?")
#include <stet/stet.h>

#include <iostream>

using namespace stet;

Tensor my_loss(Tensor y_true, Tensor y_pred) { return mean(abs(cast(y_true, f32) - y_pred)); }

int main() {
  std::cout
      << "claim:      integer labels against predictions of floats trace again at each mismatch\n"
         "TensorFlow: the program fails in its first step: 32 labels do not broadcast against 32 x 10 predictions.\n"
         "            The message speaks of graph execution, and of no line of the program\n"
         "stet:\n";
  on_retrace([](const RetraceEvent& event) { std::cout << event.explanation; });

  keras::Sequential model{keras::Input({5}), keras::Dense(10)};
  model.compile({.optimizer = "adam", .loss = my_loss});
  Tensor x = random::uniform({100, 5});

  bool refused = false;
  try {
    model.fit(x, random::randint({100}, 0, 10), {.verbose = 0});
  } catch (const UserError& error) {
    refused = true;
    std::cout << "the labels as they were are refused:\n" << error.what() << "\n";
  }

  // Ten labels for ten predictions. Integers and floats are different programs: the cast is part of one of them.
  Tensor integers = random::randint({100, 10}, 0, 10), floats = random::uniform({100, 10});
  for (const Tensor& labels : {integers, floats, integers, floats}) model.fit(x, labels, {.verbose = 0});
  int traces = model.train_function().trace_count();
  std::cout << traces << " traces for ten labels a sample, first integers, then floats, then both again\n";
  return refused && traces == 2 ? 0 : 1;
}
