// A training that crawls, and the report that says why.
//
// Sentences of many lengths go through a small network. One line of the step asks for the length as a C++ number, so
// each new length is another program: the same step is traced and compiled again and again. The report of the first
// training names the function, the line, the cause, the seconds lost and what to write instead; that of the second,
// with the line changed, says that there is nothing to do.
//
// `make reports` runs it for the two pages of docs/reports.
//
//   find_the_retrace [folder for find_the_retrace_slow.html and find_the_retrace_fixed.html]
#include <stet/stet.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

using namespace stet;

namespace {

constexpr int batch = 128, features = 32, hidden = 128, lengths = 16, steps = 48;

/// The mean over the words of each sentence, [batch, length, n] -> [batch, n].
Tensor mean_by_number(const Tensor& words) { return sum(words, {1}) / float(words.dim(1)); }
/// As the report of that advises: the size stays a Dim. mean(words, {1}) is the same in short.
Tensor mean_by_dim(const Tensor& words) { return sum(words, {1}) / words.dim(1); }

/// The verdict of a report and what it says is to be done, without the tables in between.
std::string in_short(const std::string& table) {
  const std::size_t advice = table.find("\nWhat to do\n");
  return table.substr(0, table.find("\n\n") + 1) +
         (advice == std::string::npos ? "nothing to do\n" : table.substr(advice));
}

struct Batch {
  Tensor words, score;
};

std::vector<Batch> some_batches() {
  random::seed(7);
  std::vector<Batch> out;
  for (int step = 0; step < steps; ++step) {
    const int length = 20 + (step * 7) % lengths;  // of the longest sentence of this batch
    const Tensor words = random::normal({batch, length, features});
    out.push_back({words, expand_dims(mean(words, {1, 2}), 1)});
  }
  return out;
}

/// Trains with this mean, writes the page, and prints in short what it says.
int train(const std::string& page, Tensor (*mean_of_words)(const Tensor&)) {
  const std::vector<Batch> batches = some_batches();
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
  for (const auto& [words, score] : batches) train_step(words, score);
  profile.stop();
  profile.save(page);
  std::cout << in_short(profile.table()) << "\n";
  return train_step.trace_count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : std::filesystem::temp_directory_path();
  int told = 0;
  on_retrace([&](const RetraceEvent& event) {
    if (told++ == 0) std::cout << event.explanation << "\n";
  });
  const int slow = train(folder / "find_the_retrace_slow.html", mean_by_number);
  const int fixed = train(folder / "find_the_retrace_fixed.html", mean_by_dim);
  std::cout << "slow:  " << slow << " traces of train_step for " << steps << " steps\n";
  std::cout << "fixed: " << fixed << " trace\n";
  return slow == lengths && fixed == 1 ? 0 : 1;
}
