// An ordinary function with an if on tensors, called so that it takes one side, then the other.
// (Example 1 of "What causes TensorFlow retracing?")
#include <stet/stet.h>

#include <iostream>

using namespace stet;

Tensor my_function(Tensor x, Tensor y) {
  Tensor result;
  if (greater(x, y))
    result = x + y;
  else
    result = x - y;
  return result;
}

int main() {
  std::cout << "claim:      each of the two calls traces, because the condition has changed\n"
               "TensorFlow: neither does: without tf.function nothing is traced. As a tf.function 1 trace\n";

  std::cout << "stet:       eagerly " << my_function(10.f, 5.f) << " and " << my_function(10.f, 15.f) << "\n";
  Function traced = function("my_function(x, y)", my_function);
  Tensor sum = traced(10.f, 5.f), difference = traced(10.f, 15.f);
  std::cout << "            traced  " << sum << " and " << difference << ", with " << traced.trace_count()
            << " trace\n";

  // Both sides are in it.
  std::cout << traced.graph();
  return sum.item<float>() == 15 && difference.item<float>() == -5 && traced.trace_count() == 1 ? 0 : 1;
}
