// Keys of neighbouring elements, made by vector instructions of the machine at hand.
#pragma once
#include <algorithm>
#include <cstdint>

#include "stet/cpu/sort_keys.h"

namespace stet::cpu {

/// Elements whose keys are made together.
inline constexpr std::int64_t key_group = 64;

/// What some keys have in common.
template <class Word>
struct KeySpan {
  Word lowest = static_cast<Word>(~Word{0}), highest = 0;
  Word special = 0;  // not 0: some element is Ordering::special

  template <class Order>
  void add(Word word, Word key) {
    lowest = std::min(lowest, key);
    highest = std::max(highest, key);
    special = static_cast<Word>(special | static_cast<Word>(Order::special(word)));
  }
  void add(const KeySpan& other) {
    lowest = std::min(lowest, other.lowest);
    highest = std::max(highest, other.highest);
    special = static_cast<Word>(special | other.special);
  }
};

// Before a function: it may use these instructions.
#if defined(__x86_64__)
#define STET_AVX2 [[gnu::target("avx2")]]
#define STET_AVX512 [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq")]]
#else
#define STET_AVX2
#define STET_AVX512
#endif

/// The vector instructions that sorting is compiled for, besides those that every machine has.
enum class VectorLevel : std::uint8_t { plain, avx2, avx512 };
/// The best that this machine has.
VectorLevel vector_level();

/// Functions on neighbouring elements: choose one once, call it often. Keys are flipped where the order is descending.
template <class Order>
class GroupKeys {
 public:
  using Word = typename Order::Word;
  /// Writes the keys of key_group elements and returns their span.
  using Make = KeySpan<Word> (*)(const void* from, Word flip, Word* keys);
  /// The lowest key of 2 * key_group elements.
  using Lowest = Word (*)(const void* from, Word flip);

  static Make choose_make() { return choose<Make>(make_plain, make_avx2, make_avx512); }
  static Lowest choose_lowest() { return choose<Lowest>(lowest_plain, lowest_avx2, lowest_avx512); }

 private:
  template <class Function>
  static Function choose(Function plain, Function avx2, Function avx512) {
    const VectorLevel level = vector_level();
    return level == VectorLevel::avx512 ? avx512 : level == VectorLevel::avx2 ? avx2 : plain;
  }

  // Loops of a fixed length, which the compiler turns into vectors.
  [[gnu::always_inline]] static KeySpan<Word> make(const void* from, Word flip, Word* keys) {
    KeySpan<Word> span;
    Word words[key_group];
    std::memcpy(words, from, sizeof words);
    for (std::int64_t i = 0; i < key_group; ++i) keys[i] = static_cast<Word>(Order::key(words[i]) ^ flip);
    for (std::int64_t i = 0; i < key_group; ++i) span.template add<Order>(words[i], keys[i]);
    return span;
  }
  [[gnu::always_inline]] static Word lowest(const void* from, Word flip) {
    Word lowest = Order::highest;
    for (std::int64_t i = 0; i < 2 * key_group; ++i)
      lowest = std::min(lowest, static_cast<Word>(Order::key(load_word<Word>(from, i)) ^ flip));
    return lowest;
  }

  static KeySpan<Word> make_plain(const void* from, Word flip, Word* keys) { return make(from, flip, keys); }
  static Word lowest_plain(const void* from, Word flip) { return lowest(from, flip); }
  STET_AVX2 static KeySpan<Word> make_avx2(const void* from, Word flip, Word* keys) { return make(from, flip, keys); }
  STET_AVX2 static Word lowest_avx2(const void* from, Word flip) { return lowest(from, flip); }
  STET_AVX512 static KeySpan<Word> make_avx512(const void* from, Word flip, Word* keys) {
    return make(from, flip, keys);
  }
  STET_AVX512 static Word lowest_avx512(const void* from, Word flip) { return lowest(from, flip); }
};

}  // namespace stet::cpu
