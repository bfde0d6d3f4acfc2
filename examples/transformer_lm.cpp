// A language model of characters: a small transformer reads the licences that every Debian system has, and then writes
// on from a beginning. One trace of the training step; one trace of sampling, for every length of the text so far.
//
//   transformer_lm [--steps 1000] [--seed 1] [--folder /usr/share/common-licenses]
#include <stet/stet.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace stet;

namespace {

constexpr int context = 64;  // characters that the model sees at once
constexpr int width = 64;    // of the vectors that stand for characters
constexpr int heads = 4;

/// What an Embedding gives for the characters, plus what another gives for their positions.
struct TokenAndPosition : keras::CustomLayer {
  keras::Embedding token, position;
  STET_MEMBERS(token, position)
  explicit TokenAndPosition(int characters) : token(characters, width), position(context, width) {}
  Tensor call(const Tensor& x, const keras::Context&) override { return token(x) + position(arange(x.dim(1))); }
};

/// Attention to the characters before, then a small network for each place; both are added to what came in.
struct TransformerBlock : keras::CustomLayer {
  keras::MultiHeadAttention attention{heads, width / heads};
  keras::Sequential network{keras::Dense(4 * width, {.activation = gelu}), keras::Dense(width)};
  keras::LayerNormalization before_attention, before_network;
  STET_MEMBERS(attention, network, before_attention, before_network)
  Tensor call(const Tensor& x, const keras::Context&) override {
    Tensor normal = before_attention(x);
    Tensor attended = x + attention(normal, normal, {.use_causal_mask = true});
    return attended + network(before_network(attended));
  }
};

/// All texts of a folder, one after the other, in the order of their names, with one blank for any that follow each
/// other: margins and line ends are not what is to be learned.
std::string read_folder(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string text;
  for (const auto& file : files) {
    std::ifstream stream(file);
    for (std::string word; stream >> word;) text += word + " ";
  }
  return text;
}

/// Characters as numbers 0, 1, …, and back.
struct Alphabet {
  std::string characters;
  explicit Alphabet(std::string text) : characters(std::move(text)) {
    std::sort(characters.begin(), characters.end());
    characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  }
  int size() const { return static_cast<int>(characters.size()); }
  Tensor encode(const std::string& text) const {
    std::vector<std::int64_t> tokens;
    for (char c : text)
      tokens.push_back(std::lower_bound(characters.begin(), characters.end(), c) - characters.begin());
    return tensor(tokens);
  }
  std::string decode(const Tensor& tokens) const {
    std::string text;
    for (std::int64_t token : tokens.to_vector<std::int64_t>()) text += characters[token];
    return text;
  }
};

/// The loss of those who know how frequent characters are in the training text, and nothing else.
float unigram_entropy(const Tensor& training, const Tensor& held_out, int characters) {
  Tensor frequency = (bincount(training, characters) + 1.f) / (training.dim(0) + characters);
  return -mean(gather(log(frequency), held_out)).item<float>();
}

/// The same with the character before: how often one follows another.
float bigram_entropy(const Tensor& training, const Tensor& held_out, int characters) {
  auto pairs = [&](const Tensor& text) { return text[Range{.end = -1}] * characters + text[Range{.begin = 1}]; };
  Tensor counts = reshape(bincount(pairs(training), characters * characters), {characters, characters}) + 0.1f;
  Tensor frequency = counts / sum(counts, 1, {.keepdims = true});
  return -mean(gather(log(ravel(frequency)), pairs(held_out))).item<float>();
}

/// Windows of the text, each with the same window one character later: what the model sees, and what it should say.
auto windows(const Tensor& text, int stride, int batch, bool shuffled) {
  Tensor begins = arange(0, text.dim(0) - context, stride);
  auto places = data::from_tensor_slices(begins);
  if (shuffled) places = places.shuffle(100'000).repeat();
  return places.batch(batch).map(
      [=](Tensor begin) {
        Tensor window = text[expand_dims(begin, 1) + arange(context + 1)];
        return std::tuple{window[{Range{}, Range{.end = -1}}], window[{Range{}, Range{.begin = 1}}]};
      },
      {.name = "windows"});
}

int run(const std::string& folder, int steps, int seed) {
  std::string text = read_folder(folder);
  if (text.size() < 20'000) {
    std::cerr << "transformer_lm: " << folder << " has " << text.size() << " characters of text, and 20000 are needed; "
              << "name another folder of texts with --folder\n";
    return 1;
  }
  Alphabet alphabet(text);
  Tensor tokens = alphabet.encode(text);
  Dim cut = tokens.dim(0) * 9 / 10;
  Tensor training = tokens[Range{.end = cut}], held_out = tokens[Range{.begin = cut}];
  float unigram = unigram_entropy(training, held_out, alphabet.size());
  float bigram = bigram_entropy(training, held_out, alphabet.size());
  std::printf("%zu characters, %d different ones\n", text.size(), alphabet.size());
  std::printf("nats per character of those who know single characters: %.3f, pairs: %.3f\n", unigram, bigram);

  random::seed(seed);
  keras::Sequential model{
      keras::Input({dyn}, {.dtype = i64}), TokenAndPosition(alphabet.size()), TransformerBlock(), TransformerBlock(),
      keras::LayerNormalization(),         keras::Dense(alphabet.size())};
  model.compile({.optimizer = keras::Adam(keras::schedules::CosineDecay(3e-3, steps, {.alpha = 0.1})),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  model.summary();
  int epochs = std::min(steps, 5);
  keras::History history = model.fit(
      windows(training, 3, 8, true),
      {.epochs = epochs, .validation_data = windows(held_out, context, 32, false), .steps_per_epoch = steps / epochs});

  // What is said at a place must not depend on what comes after it.
  Tensor one = held_out[range(0, context)], other = at(one, context - 1).set((one[-1] + 1) % alphabet.size());
  Tensor logits = model(stack({one, other}));
  Tensor apart = max(abs(logits[0] - logits[1]), 1);
  bool causal = max(apart[Range{.end = -1}]).item<float>() < 1e-4f && apart[-1].item<float>() > 1e-2f;

  Function next = function("next(seen, temperature)", [=](Tensor seen, Scalar temperature) {
    return random::categorical(model(seen)[{Range{}, -1}] / temperature);
  });
  const std::string beginning = "The licen";
  for (double temperature : {0.5, 1.0}) {
    Tensor written = expand_dims(alphabet.encode(beginning), 0);
    while (written.dim(1) < 200) {
      Tensor seen = written[{Range{}, Range{.begin = -context}}];
      written = concat({written, expand_dims(next(seen, temperature), 1)}, 1);
    }
    std::printf("--- temperature %.1f\n%s\n", temperature, alphabet.decode(written[0]).c_str());
  }

  double loss = history["val_loss"].back();
  int train_traces = model.train_function().trace_count(), next_traces = next.trace_count();
  std::printf("---\nnats per character of held-out text: %.3f (%.2f bits); %.3f by frequencies, %.3f by pairs\n", loss,
              loss / std::log(2.0), unigram, bigram);
  std::printf("traces of train_step: %d, of next, for %d lengths: %d\n", train_traces,
              context - static_cast<int>(beginning.size()) + 1, next_traces);
  bool good = loss < unigram - 1 && loss < bigram && causal && train_traces == 1 && next_traces == 1;
  std::printf("%s: a nat below single characters and below pairs, no look ahead, one trace each\n",
              good ? "as it should be" : "something is wrong, expected");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 1000, seed = 1;
  std::string folder = "/usr/share/common-licenses";
  try {
    for (int i = 1; i < argc; i += 2) {
      std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
      if (name == "--steps")
        steps = std::stoi(value);
      else if (name == "--seed")
        seed = std::stoi(value);
      else if (name == "--folder")
        folder = value;
      else
        throw std::invalid_argument(name);
    }
  } catch (const std::logic_error&) {  // of std::stoi, too
    std::cerr << "usage: transformer_lm [--steps n] [--seed n] [--folder path]\n";
    return 2;
  }
  try {
    return run(folder, steps, seed);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
