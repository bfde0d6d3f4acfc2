#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace stet::fuzz {
namespace {

constexpr std::uint64_t telling[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     8,
                                     16,
                                     31,
                                     32,
                                     64,
                                     127,
                                     128,
                                     255,
                                     256,
                                     511,
                                     512,
                                     1000,
                                     1024,
                                     4095,
                                     4096,
                                     32767,
                                     32768,
                                     65535,
                                     65536,
                                     0x7FFFFFFF,
                                     0x80000000,
                                     0xFFFFFFFE,
                                     0xFFFFFFFF,
                                     0x100000000,
                                     0x7FFFFFFFFFFFFFFF,
                                     0x8000000000000000,
                                     ~std::uint64_t{0} - 1,
                                     ~std::uint64_t{0}};

/// Anywhere; but files have their heads at one of the ends, and much of them may be zeros that nobody reads.
std::size_t place(const std::string& bytes, Random& random) {
  if (bytes.empty()) return 0;
  std::size_t at = random.below(bytes.size());
  switch (random.below(8)) {
    case 0:
      return random.below(std::min<std::size_t>(bytes.size(), 256));
    case 1:
      return bytes.size() - 1 - random.below(std::min<std::size_t>(bytes.size(), 256));
    case 2:
    case 3:
      return at;
    default:
      while (at + 1 < bytes.size() && bytes[at] == 0) ++at;
      return at;
  }
}

std::size_t length(const std::string& bytes, std::size_t at, Random& random) {
  std::size_t most = random.one_in(4) ? 1024 : 24;
  return std::min(bytes.size() - at, 1 + random.below(most));
}

void put_number(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t width, bool highest_first) {
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
    bytes[at + i] = static_cast<char>(value >> 8 * (highest_first ? width - 1 - i : i));
}
std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t width, bool highest_first) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << 8 * (highest_first ? width - 1 - i : i);
  return value;
}

void change(std::string& bytes, const std::vector<std::string>& seeds, Random& random) {
  if (bytes.empty()) {
    bytes.assign(1 + random.below(64), static_cast<char>(random.next()));
    return;
  }
  const std::size_t at = place(bytes, random);
  const std::size_t width = std::size_t{1} << random.below(4);
  const bool highest_first = random.one_in(4);
  switch (random.below(14)) {
    case 0:
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
      break;
    case 2:
      bytes[at] = static_cast<char>(random.next());
      break;
    case 3:
    case 4:
      put_number(bytes, at, telling[random.below(std::size(telling))], width, highest_first);
      break;
    case 5:  // the size of the file, or near it
      put_number(bytes, at, bytes.size() + random.below(5) - 2, width, highest_first);
      break;
    case 6: {
      std::uint64_t step = 1 + random.below(16);
      put_number(bytes, at, number_at(bytes, at, width, highest_first) + (random.one_in(2) ? step : 0 - step), width,
                 highest_first);
      break;
    }
    case 7:
      bytes.resize(at);
      break;
    case 8:
      bytes.insert(at, std::string(length(bytes, at, random), static_cast<char>(random.one_in(2) ? 0 : random.next())));
      break;
    case 9:
      bytes.erase(at, length(bytes, at, random));
      break;
    case 10: {  // twice
      std::string part = bytes.substr(at, length(bytes, at, random));
      bytes.insert(place(bytes, random), part);
      break;
    }
    case 11: {  // over another place
      std::size_t to = place(bytes, random);
      std::string part = bytes.substr(at, length(bytes, at, random));
      bytes.replace(to, std::min(part.size(), bytes.size() - to), part, 0, std::min(part.size(), bytes.size() - to));
      break;
    }
    case 12: {  // the begin of this one and the end of another
      const std::string& other = seeds[random.below(seeds.size())];
      bytes = bytes.substr(0, at) + other.substr(std::min(other.size(), random.one_in(2) ? at : place(other, random)));
      break;
    }
    default:
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length(bytes, at, random),
                  static_cast<char>(random.one_in(2) ? 0xFF : 0));
  }
}

}  // namespace

std::string mutated(const std::vector<std::string>& seeds, Random& random) {
  std::string bytes = seeds[random.below(seeds.size())];
  do change(bytes, seeds, random);
  while (random.below(5) < 2);
  // Growing by changes that double things would only make it slow.
  if (bytes.size() > (std::size_t{1} << 20)) bytes.resize(std::size_t{1} << 20);
  return bytes;
}

}  // namespace stet::fuzz
