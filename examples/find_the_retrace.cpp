// A training that crawls, and the report that says why.
//
// Sentences of many lengths go through a small network. One line of the step asks for the length as a C++ number, so
// each new length is another program: the same step is traced and compiled again and again. The report of the first
// training names the function, the line, the cause, the seconds lost and what to write instead; that of the second,
// with the line changed, says that there is nothing to do.
//
//   find_the_retrace [folder for slow.html and fixed.html]
#include <stet/stet.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

using namespace stet;

namespace {

constexpr int batch = 32, features = 16, hidden = 64, steps = 60;

/// The mean over the words of each sentence, [batch, length, n] -> [batch, n].
Tensor mean_by_number(const Tensor& words) { return sum(words, {1}) / float(words.dim(1)); }
Tensor mean_as_it_should_be(const Tensor& words) { return mean(words, {1}); }

/// Trains with this mean, and writes the report of it.
int train(const std::string& report, Tensor (*mean_of_words)(const Tensor&)) {
  random::seed(7);
  keras::Dense inner(hidden, {.activation = relu}), outer(1);
  keras::Adam optimizer(1e-3);
  Function train_step = function("train_step(words, score)", [=](Tensor words, Tensor score) {
    GradientTape tape;
    const Tensor predicted = outer(mean_of_words(inner(words)));
    const Tensor loss = mean(square(predicted - score));
    std::vector<Variable> weights = inner.trainable_variables();
    for (const Variable& one : outer.trainable_variables()) weights.push_back(one);
    optimizer.apply_gradients(tape.gradient(loss, weights), weights);
    return loss;
  });

  Profile profile;
  for (int step = 0; step < steps; ++step) {
    const int length = 20 + (step * 17) % 30;  // of the longest sentence of this batch
    const Tensor words = random::normal({batch, length, features});
    const Tensor score = expand_dims(mean(words, {1, 2}), 1);
    train_step(words, score);
  }
  profile.stop();
  profile.save(report);
  return train_step.trace_count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : std::filesystem::temp_directory_path();
  int told = 0;
  on_retrace([&](const RetraceEvent& event) {
    if (told++ == 0) std::cout << event.explanation << "\n";
  });
  const int slow = train(folder / "slow.html", mean_by_number);
  const int fixed = train(folder / "fixed.html", mean_as_it_should_be);
  std::cout << "slow:  " << slow << " traces of train_step for " << steps << " steps\n";
  std::cout << "fixed: " << fixed << " trace\n";
  std::cout << "open slow.html and fixed.html in a browser\n";
  return slow == 30 && fixed == 1 ? 0 : 1;
}
