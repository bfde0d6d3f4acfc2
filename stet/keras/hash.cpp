#include "stet/keras/hash.h"

#include <bit>
#include <cstring>
#include <utility>

namespace stet::keras {
namespace {

using Word = std::uint64_t;

// FarmHash's constants.
constexpr Word k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

Word little_endian(Word word) {
  if constexpr (std::endian::native == std::endian::big) {
    Word out = 0;
    for (int i = 0; i < 8; ++i) out = out << 8 | (word >> (8 * i) & 0xff);
    return out;
  }
  return word;
}
/// Eight bytes, the first one lowest.
Word word_at(const char* at) {
  Word out;
  std::memcpy(&out, at, sizeof out);
  return little_endian(out);
}
/// So many bytes, up to eight.
Word bytes_at(const char* at, std::size_t count) {
  Word out = 0;
  for (std::size_t i = 0; i < count; ++i) out |= static_cast<Word>(static_cast<unsigned char>(at[i])) << (8 * i);
  return out;
}
Word turned(Word word, int right) { return std::rotr(word, right); }
Word folded(Word word) { return word ^ (word >> 47); }
Word mixed(Word low, Word high, Word factor) {
  return folded((high ^ folded((low ^ high) * factor)) * factor) * factor;
}

/// What makes a hash of two of the numbers that long strings are read by.
struct Pair {
  Word first = 0, second = 0;
};
Pair weak(const char* at, Word a, Word b) {
  const Word w = word_at(at), x = word_at(at + 8), y = word_at(at + 16), z = word_at(at + 24);
  const Word start = a + w;
  const Word sum = start + x + y;
  return {sum + z, turned(b + start + z, 21) + turned(sum, 44) + start};
}

Word of_up_to_16(const char* at, std::size_t length) {
  const Word factor = k2 + length * 2;
  if (length >= 8) {
    const Word a = word_at(at) + k2, b = word_at(at + length - 8);
    return mixed(turned(b, 37) * factor + a, (turned(a, 25) + b) * factor, factor);
  }
  if (length >= 4) return mixed(length + (bytes_at(at, 4) << 3), bytes_at(at + length - 4, 4), factor);
  if (length == 0) return k2;
  const Word y = bytes_at(at, 1) + (bytes_at(at + length / 2, 1) << 8);
  const Word z = length + (bytes_at(at + length - 1, 1) << 2);
  return folded(y * k2 ^ z * k0) * k2;
}

Word of_up_to_64(const char* at, std::size_t length) {
  const Word factor = k2 + length * 2;
  const bool twice = length > 32;
  const Word a = word_at(at) * (twice ? k2 : k1), b = word_at(at + 8);
  const Word c = word_at(at + length - 8) * factor, d = word_at(at + length - 16) * k2;
  const Word y = turned(a + b, 43) + turned(c, 30) + d;
  const Word z = mixed(y, a + turned(b + k2, 18) + c, factor);
  if (!twice) return z;
  const Word e = word_at(at + 16) * factor, f = word_at(at + 24);
  const Word g = (y + word_at(at + length - 32)) * factor, h = (z + word_at(at + length - 24)) * factor;
  return mixed(turned(e + f, 43) + turned(g, 30) + h, e + turned(f + a, 18) + g, factor);
}

/// What is known of a string of more than 64 bytes after some blocks of 64.
struct Blocks {
  Word x, y, z;
  Pair v, w;
  void add(const char* at, Word factor, Word weight) {
    x = turned(x + y + v.first + word_at(at + 8), 37) * factor;
    y = turned(y + v.second + word_at(at + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + word_at(at + 40);
    z = turned(z + w.first, 33) * factor;
    v = weak(at, v.second * factor, x + w.first);
    w = weak(at + 32, z + w.second, y + word_at(at + 16));
    std::swap(z, x);
  }
};

Word of_more_than_64(const char* at, std::size_t length) {
  constexpr Word seed = 81;
  const Word y = seed * k1 + 113;
  Blocks state{.x = seed * k2 + word_at(at), .y = y, .z = folded(y * k2 + 113) * k2, .v = {}, .w = {}};
  const char* const end = at + (length - 1) / 64 * 64;
  const std::size_t rest = (length - 1) % 64;
  for (; at != end; at += 64) state.add(at, k1, 1);
  const Word factor = k1 + ((state.z & 0xff) << 1);
  state.w.first += rest;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.add(end + rest - 63, factor, 9);  // the last 64 bytes
  return mixed(mixed(state.v.first, state.w.first, factor) + folded(state.y) * k0 + state.z,
               mixed(state.v.second, state.w.second, factor) + state.x, factor);
}

struct SipState {
  std::array<Word, 4> v;
  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v[0] += v[1], v[2] += v[3];
      v[1] = std::rotl(v[1], 13) ^ v[0], v[3] = std::rotl(v[3], 16) ^ v[2];
      v[0] = std::rotl(v[0], 32);
      v[2] += v[1], v[0] += v[3];
      v[1] = std::rotl(v[1], 17) ^ v[2], v[3] = std::rotl(v[3], 21) ^ v[0];
      v[2] = std::rotl(v[2], 32);
    }
  }
  void add(Word word) {
    v[3] ^= word;
    rounds(2);
    v[0] ^= word;
  }
};

}  // namespace

std::uint64_t fingerprint(std::string_view bytes) {
  if (bytes.size() <= 16) return of_up_to_16(bytes.data(), bytes.size());
  return bytes.size() <= 64 ? of_up_to_64(bytes.data(), bytes.size()) : of_more_than_64(bytes.data(), bytes.size());
}

std::uint64_t combined_fingerprint(std::uint64_t first, std::uint64_t second) {
  constexpr Word factor = 0xc6a4a7935bd1e995;
  const Word word = ((first ^ factor) ^ folded(second * factor) * factor) * factor;
  return folded(folded(word) * factor);
}

std::uint64_t keyed_hash(const std::array<std::uint64_t, 2>& key, std::string_view bytes) {
  SipState state{{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                  key[1] ^ 0x7465646279746573}};
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) state.add(word_at(bytes.data() + at));
  state.add(bytes_at(bytes.data() + at, bytes.size() - at) | static_cast<Word>(bytes.size()) << 56);
  state.v[2] ^= 0xff;
  state.rounds(4);
  return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}

}  // namespace stet::keras
