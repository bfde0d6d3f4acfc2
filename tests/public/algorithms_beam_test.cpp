// Beam search over a table of word pairs: the best sentences of at most `length` words that end with word 0.
#include <algorithm>

#include "algorithms.h"

namespace stet {
namespace {

struct Beam {
  Tensor words, scores, last;  // [beam, length], [beam], [beam]
  STET_FIELDS(words, scores, last)
};

/// `pairs` [words, words] are logarithms of probabilities of a word after another; `bonus` [length, words] is added by
/// the place. Word 0 ends a sentence: after it there is nothing but word 0, and nothing is added to the score.
Beam beam_search(Tensor pairs, Tensor bonus, Dim width) {
  Dim vocabulary = pairs.dim(0);
  Tensor nothing_more = where(arange(vocabulary) == 0, 0.0, -INFINITY);
  return for_loop(
      bonus.dim(0),
      [&](Tensor place, Beam now) {
        Tensor next = gather(pairs, now.last) + gather(bonus, place);
        next = where(expand_dims((now.last == 0) & (place > 0), 1), nothing_more, next);
        Sorted best = top_k(ravel(expand_dims(now.scores, 1) + next), width);
        Tensor parents = floor_divide(best.positions, vocabulary), words = best.positions % vocabulary;
        return Beam{at(gather(now.words, parents), Range{}, place).set(words), best.values, words};
      },
      // One beam to begin with: the others would be its copies.
      Beam{zeros({width, bonus.dim(0)}, i64), where(arange(width) == 0, 0.0, -INFINITY), zeros({width}, i64)});
}

/// The same with parents and words stacked by a scan, and sentences read back from their ends by another.
std::pair<Tensor, Tensor> beam_search_by_pointers(Tensor pairs, Tensor bonus, Dim width) {
  Dim vocabulary = pairs.dim(0);
  Tensor nothing_more = where(arange(vocabulary) == 0, 0.0, -INFINITY);
  auto [end, steps] = scan(
      [&](std::tuple<Tensor, Tensor, Tensor> now, Tensor extra) {
        auto [scores, last, begun] = now;
        Tensor next = where(expand_dims((last == 0) & begun, 1), nothing_more, gather(pairs, last) + extra);
        Sorted best = top_k(ravel(expand_dims(scores, 1) + next), width);
        Tensor words = best.positions % vocabulary;
        return std::pair(std::tuple(best.values, words, tensor(true)),
                         std::pair(floor_divide(best.positions, vocabulary), words));
      },
      std::tuple(where(arange(width) == 0, 0.0, -INFINITY), zeros({width}, i64), tensor(false)), bonus);
  Tensor sentences = scan(
                         [](Tensor beam, std::pair<Tensor, Tensor> step) {
                           return std::pair(gather(step.first, beam), gather(step.second, beam));
                         },
                         arange(width), steps, {.reverse = true})
                         .second;
  return {transpose(sentences), std::get<0>(end)};
}

struct Sentence {
  Integers words;
  double score = 0;
};

std::vector<Sentence> plain_beam_search(const Reals& pairs, const Reals& bonus, std::size_t vocabulary,
                                        std::size_t width) {
  const std::size_t length = bonus.size() / vocabulary;
  std::vector<Sentence> beam{{}};
  for (std::size_t place = 0; place < length; ++place) {
    std::vector<Sentence> longer;
    for (const Sentence& sentence : beam)
      for (std::size_t word = 0; word < vocabulary; ++word) {
        const std::size_t last = place == 0 ? 0 : static_cast<std::size_t>(sentence.words.back());
        const bool ended = place > 0 && last == 0;
        if (ended && word != 0) continue;
        Sentence next = sentence;
        next.words.push_back(static_cast<std::int64_t>(word));
        if (!ended) next.score += pairs[last * vocabulary + word] + bonus[place * vocabulary + word];
        longer.push_back(next);
      }
    std::stable_sort(longer.begin(), longer.end(),
                     [](const Sentence& a, const Sentence& b) { return a.score > b.score; });
    longer.resize(std::min(width, longer.size()));
    beam = longer;
  }
  return beam;
}

struct Language {
  Reals pairs, bonus;
};
Language language_of(std::int64_t vocabulary, std::int64_t length) {
  Language out{wave(vocabulary * vocabulary, 0.3), wave(vocabulary * length, 1.1)};
  for (double& v : out.pairs) v -= 1.5;
  return out;
}

TEST(AlgorithmsBeam, TheSentencesAreThoseOfThePlainOne) {
  Function first = function("beam_search(pairs, bonus, width)", beam_search);
  Function second = function("by_pointers(pairs, bonus, width)", beam_search_by_pointers);
  int ended = 0;
  for (std::int64_t vocabulary : {5, 3, 11})
    for (std::int64_t length : {4, 1, 9})
      for (std::int64_t width : {3, 1, 2}) {
        SCOPED_TRACE(testing::Message() << vocabulary << " words, " << length << " places, " << width << " beams");
        Language language = language_of(vocabulary, length);
        Tensor pairs = shaped(language.pairs, {vocabulary, vocabulary}),
               bonus = shaped(language.bonus, {length, vocabulary});
        std::vector<Sentence> plain = plain_beam_search(
            language.pairs, language.bonus, static_cast<std::size_t>(vocabulary), static_cast<std::size_t>(width));
        ASSERT_EQ(plain.size(), static_cast<std::size_t>(width));
        Integers words;
        Reals scores;
        for (const Sentence& sentence : plain) {
          words.insert(words.end(), sentence.words.begin(), sentence.words.end());
          scores.push_back(sentence.score);
          ended += length > 1 && sentence.words.back() == 0;
        }
        Beam got = first(pairs, bonus, width), eager = beam_search(pairs, bonus, width);
        auto [read, values] = second(pairs, bonus, width);
        auto [eager_read, eager_values] = beam_search_by_pointers(pairs, bonus, width);
        EXPECT_EQ(integers(got.words), words);
        EXPECT_EQ(integers(read), words);
        EXPECT_EQ(integers(eager.words), words);
        EXPECT_EQ(integers(eager_read), words);
        expect_close(got.scores, scores, 1e-13);
        expect_bits(got.scores, eager.scores);
        expect_bits(values, eager_values);
        expect_bits(values, got.scores);
      }
  EXPECT_GT(ended, 5);
  EXPECT_EQ(first.trace_count(), 1) << first.explain();
  EXPECT_EQ(second.trace_count(), 1) << second.explain();
}

/// As many beams as there are sentences find the best one; and what its score depends on is the words that it has.
TEST(AlgorithmsBeam, AWideBeamFindsTheBestAndGradientsFollowIt) {
  auto best = [](Tensor pairs, Tensor bonus) {
    GradientTape tape;
    tape.watch(bonus);
    Beam found = beam_search(pairs, bonus, 27);
    return std::tuple(found.words[0], found.scores[0], tape.gradient(found.scores[0], bonus));
  };
  Function traced = function("best(pairs, bonus)", best);
  for (std::int64_t length : {4, 3}) {
    Language language = language_of(3, length);
    Sentence expected = plain_beam_search(language.pairs, language.bonus, 3, 1000)[0];
    Reals visits(static_cast<std::size_t>(3 * length), 0);
    for (std::size_t t = 0; t < expected.words.size(); ++t) {
      visits[t * 3 + static_cast<std::size_t>(expected.words[t])] = 1;
      if (expected.words[t] == 0) break;
    }
    Tensor pairs = shaped(language.pairs, {3, 3}), bonus = shaped(language.bonus, {length, 3});
    for (bool eager : {true, false}) {
      auto [words, score, d] = eager ? best(pairs, bonus) : traced(pairs, bonus);
      EXPECT_EQ(integers(words), expected.words);
      expect_close(score, {expected.score}, 1e-13);
      EXPECT_EQ(reals(d), visits);
    }
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

}  // namespace
}  // namespace stet
