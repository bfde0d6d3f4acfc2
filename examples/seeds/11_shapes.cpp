// A sum of tensors of two shapes.
// (Example 2 of "What causes TensorFlow retracing?")
#include <stet/stet.h>

#include <iostream>

using namespace stet;

Tensor my_function(Tensor x) { return sum(x); }

int main() {
  std::cout << "claim:      traced again, because the shape has changed\n"
               "TensorFlow: not traced at all, as it is no tf.function; as one 2 traces\n";
  Function traced = function("my_function(x)", my_function);
  Tensor x1 = tensor({{1, 2}, {3, 4}}), x2 = tensor({{1, 2, 3}, {4, 5, 6}});
  Tensor first = traced(x1), second = traced(x2);
  std::cout << "stet:       " << first << " and " << second << ", with " << traced.trace_count() << " trace\n";

  // The size of an axis is a symbol of the program, here x_0 and x_1; nothing was assumed of either.
  std::cout << traced.traces()[0].arguments[0] << ", " << traced.traces()[0].facts.size() << " facts\n";
  bool right = first.item<std::int64_t>() == 10 && second.item<std::int64_t>() == 21;
  return right && traced.trace_count() == 1 ? 0 : 1;
}
