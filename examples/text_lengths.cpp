// Texts of many lengths: Embedding with a mask, LSTM, Dense, trained by fit on batches whose length changes in every
// step. One program serves all of them.
//
// The texts are reviews made by the program. Some words are opinions, "not" turns the opinion that follows, and the
// last opinion of a review is its verdict: one has to read to the end, and in order.
#include <stet/stet.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace stet;

namespace {

const std::vector<std::string> good = {"good", "great", "superb", "charming", "moving"};
const std::vector<std::string> bad = {"bad", "dull", "awful", "clumsy", "tedious"};
const std::vector<std::string> other = {"the", "a",      "film", "plot", "actor", "scene", "music", "was", "is",
                                        "and", "but",    "with", "in",   "we",    "saw",   "it",    "its", "of",
                                        "to",  "camera", "end",  "that", "this",  "first", "part",  "then"};

/// A word's token is its place here. 0 is padding, and no word.
std::vector<std::string> make_vocabulary() {
  std::vector<std::string> words = {"", "not"};
  for (const auto* list : {&good, &bad, &other}) words.insert(words.end(), list->begin(), list->end());
  return words;
}
const std::vector<std::string> vocabulary = make_vocabulary();

std::int64_t token(const std::string& word) {
  return std::find(vocabulary.begin(), vocabulary.end(), word) - vocabulary.begin();
}

struct Review {
  std::vector<std::int64_t> tokens;
  bool liked = false;
};

/// 0 to n - 1. (Not std::uniform_int_distribution, which draws other numbers in other standard libraries.)
int below(int n, std::mt19937& draw) { return int(draw() % unsigned(n)); }

const std::string& any_of(const std::vector<std::string>& list, std::mt19937& draw) {
  return list[below(int(list.size()), draw)];
}

Review make_review(int length, std::mt19937& draw) {
  Review review;
  for (int i = 0; i < length; ++i) review.tokens.push_back(token(any_of(other, draw)));
  // Up to three opinions, from left to right; a place is two words, so that there is room for "not".
  std::set<int> places;
  int opinions = 1 + below(3, draw);
  while (int(places.size()) < opinions) places.insert(below(length / 2, draw));
  for (int place : places) {
    bool praise = below(2, draw), negated = below(2, draw);
    review.tokens[2 * place + 1] = token(any_of(praise ? good : bad, draw));
    if (negated) review.tokens[2 * place] = token("not");
    review.liked = praise != negated;
  }
  return review;
}

/// Reviews of one batch, padded with 0 to the longest of them.
struct Batch {
  std::vector<std::vector<std::int64_t>> tokens;
  std::vector<float> liked;
};

Batch make_batch(int longest, std::mt19937& draw) {
  Batch batch;
  for (int i = 0; i < 32; ++i) {
    int length = i == 0 ? longest : longest / 2 + below(longest / 2 + 1, draw);
    Review review = make_review(length, draw);
    review.tokens.resize(longest);
    batch.tokens.push_back(review.tokens);
    batch.liked.push_back(review.liked);
  }
  return batch;
}

/// A batch for each length from 20 to 60, `times` over.
std::vector<Batch> make_batches(int times, unsigned seed) {
  std::mt19937 draw(seed);
  std::vector<Batch> batches;
  for (int i = 0; i < times; ++i)
    for (int length = 20; length <= 60; ++length) batches.push_back(make_batch(length, draw));
  return batches;
}

auto dataset(const std::vector<Batch>& batches) {
  return data::from_range(batches, [](const Batch& b) { return std::tuple{tensor(b.tokens), tensor(b.liked)}; });
}

/// The probability that the writer of a text liked what they saw. Padding makes no difference: it is masked.
double liked(const keras::Model& model, const std::string& text, int padding = 0) {
  std::vector<std::int64_t> tokens;
  std::istringstream words(text);
  for (std::string word; words >> word;) tokens.push_back(token(word));
  tokens.resize(tokens.size() + padding);
  return model.predict(expand_dims(tensor(tokens), 0)).item<double>();
}

int run() {
  std::vector<Batch> train = make_batches(4, 1), validation = make_batches(1, 2);
  std::set<std::size_t> lengths;
  for (const Batch& batch : train) lengths.insert(batch.tokens[0].size());

  keras::Sequential model{keras::Input({dyn}, {.dtype = i64}),
                          keras::Embedding(vocabulary.size(), 16, {.mask_zero = true}), keras::LSTM(32),
                          keras::Dense(1, {.activation = sigmoid})};
  model.compile({.optimizer = keras::Adam(1e-2), .loss = "binary_crossentropy", .metrics = {"accuracy"}});
  keras::History history = model.fit(dataset(train).shuffle(train.size()),
                                     {.epochs = 6, .verbose = 2, .validation_data = dataset(validation)});

  std::string praise = "the plot was bad but the end was superb",
              negated = "the plot was bad and the end was not superb";
  double of_praise = liked(model, praise), of_negated = liked(model, negated), of_padded = liked(model, praise, 30);
  std::printf("%.2f liked: %s\n%.2f liked: %s\n", of_praise, praise.c_str(), of_negated, negated.c_str());
  std::printf("%.2f liked: the first one with 30 words of padding\n", of_padded);

  double accuracy = history["val_accuracy"].back();
  int traces = model.train_function().trace_count();
  std::printf("tf.function: 41 traces for 41 lengths, 2 with reduce_retracing; it warns twice, however many follow\n");
  std::printf("stet:        %d trace for %zu lengths\n", traces, lengths.size());
  bool understood = accuracy > 0.9 && of_praise > 0.5 && of_negated < 0.5 && std::abs(of_padded - of_praise) < 1e-5;
  bool as_expected = understood && traces == 1 && lengths.size() == 41;
  std::printf("%s\n", as_expected
                          ? "as it should be: one trace, and more than 90 % of new reviews understood"
                          : "something is wrong: expected one trace, and more than 90 % of new reviews understood");
  return as_expected ? 0 : 1;
}

}  // namespace

int main() {
  try {
    random::seed(1);
    return run();
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
