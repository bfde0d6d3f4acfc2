// A layer of one's own in a model of sequences, trained on sequences of several lengths.
// (Example 1 of "Why are Keras results bad after a TensorFlow function retracing warning?")
#include <stet/stet.h>

#include <iostream>

using namespace stet;

struct MyCustomLayer : keras::CustomLayer {
  Tensor call(const Tensor& inputs, const keras::Context&) override { return mean(inputs, -1); }
};

int main() {
  std::cout << "claim:      a layer that does not fix the length makes fit trace again for every length\n"
               "TensorFlow: 3 traces for five lengths: one builds the model, one is for the first length, and when a\n"
               "            second length comes, a looser one that serves the rest\n";

  keras::Sequential model{keras::Input({dyn, 10}), MyCustomLayer{}};  // dyn: of any length
  model.compile({.optimizer = "adam", .loss = "mse"});
  for (int length : {100, 50, 75, 20, 60}) {
    keras::History history =
        model.fit(random::uniform({100, length, 10}), random::uniform({100, length}), {.verbose = 0});
    std::cout << "length " << length << ": loss " << history["loss"][0] << "\n";
  }

  // 100 samples are three batches of 32 and one of 4, so the batch size changes too.
  int traces = model.train_function().trace_count();
  std::cout << "stet:       " << traces << " trace for five lengths and two batch sizes\n";
  return traces == 1 ? 0 : 1;
}
