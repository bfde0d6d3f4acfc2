// A traced function, called with two values.
// (Example 3 of "What causes TensorFlow retracing?")
#include <stet/stet.h>

#include <iostream>

using namespace stet;

int main() {
  std::cout << "claim:      traced once: only the values change. A condition on values might trace again all the same\n"
               "TensorFlow: 1 trace; nor does a condition trace again\n";
  Function my_function = function("my_function(x, y)", [](Tensor x, Tensor y) {
    Tensor result = x + y;
    return result;
  });
  Tensor first = my_function(10.f, 5.f), second = my_function(10.f, 15.f);
  std::cout << "stet:       " << first << " and " << second << ", with " << my_function.trace_count() << " trace\n";
  return first.item<float>() == 15 && second.item<float>() == 25 && my_function.trace_count() == 1 ? 0 : 1;
}
