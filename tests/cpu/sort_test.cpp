// Sorting against std::stable_sort, searching against std::lower_bound and std::upper_bound, both with a comparison
// that is written out here.
#include "stet/cpu/sort.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/runtime/parallel.h"
#include "tests/sampling.h"

namespace stet::cpu {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr DType all_dtypes[] = {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64};

/// An element as C++ compares it.
struct Decoded {
  std::int64_t integer = 0;
  double real = 0;
  bool is_nan() const { return std::isnan(real); }
};

template <class T>
T read(const Bytes& bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

Decoded decode(DType dtype, const Bytes& bytes, std::int64_t index) {
  switch (dtype) {
    case DType::bool_:
    case DType::u8:
      return {read<std::uint8_t>(bytes, index), 0};
    case DType::i8:
      return {read<std::int8_t>(bytes, index), 0};
    case DType::i16:
      return {read<std::int16_t>(bytes, index), 0};
    case DType::i32:
      return {read<std::int32_t>(bytes, index), 0};
    case DType::i64:
      return {read<std::int64_t>(bytes, index), 0};
    case DType::f16:
      return {0, static_cast<float>(read<Half>(bytes, index))};
    case DType::bf16:
      return {0, static_cast<float>(read<BFloat16>(bytes, index))};
    case DType::f32:
      return {0, read<float>(bytes, index)};
    case DType::f64:
      return {0, read<double>(bytes, index)};
  }
  return {};
}

bool less(const Decoded& a, const Decoded& b) {
  if (a.integer != b.integer) return a.integer < b.integer;
  if (a.is_nan() || b.is_nan()) return b.is_nan() && !a.is_nan();
  return a.real < b.real;
}

// --- elements

template <class T>
void put(Bytes& bytes, T value) {
  const auto* from = reinterpret_cast<const unsigned char*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof(T));
}

/// A number as nearly as the type has it; integers wrap.
void put_number(Bytes& bytes, DType dtype, double value) {
  const std::int64_t whole = std::isfinite(value) && std::fabs(value) < 9e18 ? static_cast<std::int64_t>(value) : 0;
  switch (dtype) {
    case DType::bool_:
      return put<std::uint8_t>(bytes, whole & 1);
    case DType::u8:
    case DType::i8:
      return put(bytes, static_cast<std::uint8_t>(whole));
    case DType::i16:
      return put(bytes, static_cast<std::uint16_t>(whole));
    case DType::i32:
      return put(bytes, static_cast<std::uint32_t>(whole));
    case DType::i64:
      return put(bytes, whole);
    case DType::f16:
      return put(bytes, Half(static_cast<float>(value)));
    case DType::bf16:
      return put(bytes, BFloat16(static_cast<float>(value)));
    case DType::f32:
      return put(bytes, static_cast<float>(value));
    case DType::f64:
      return put(bytes, value);
  }
}

void put_bits(Bytes& bytes, DType dtype, std::uint64_t bits) {
  if (dtype == bool_) bits &= 1;
  const auto* from = reinterpret_cast<const unsigned char*>(&bits);
  bytes.insert(bytes.end(), from, from + size_of(dtype));
}

enum class Pattern { any_bits, normal, constant, rising, falling, few, special, clusters, outlier };
constexpr Pattern all_patterns[] = {Pattern::any_bits, Pattern::normal,   Pattern::constant,
                                    Pattern::rising,   Pattern::falling,  Pattern::few,
                                    Pattern::special,  Pattern::clusters, Pattern::outlier};

Bytes make(DType dtype, Pattern pattern, std::int64_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 30);
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const double special[] = {0.0, -0.0, infinity, -infinity, nan, -nan, 1, -1, 1e-7, -1e-7, 5e-324};
  const int bits = 8 * size_of(dtype);
  Bytes out;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto position = static_cast<double>(i);
    switch (pattern) {
      case Pattern::any_bits:
        put_bits(out, dtype, random());
        break;
      case Pattern::normal:
        put_number(out, dtype, normal(random));
        break;
      case Pattern::constant:
        put_number(out, dtype, 3);
        break;
      case Pattern::rising:
        put_number(out, dtype, position);
        break;
      case Pattern::falling:
        put_number(out, dtype, -position);
        break;
      case Pattern::few:
        put_number(out, dtype, static_cast<double>(random() % 5) - 2);
        break;
      case Pattern::special:
        put_number(out, dtype, special[random() % std::size(special)]);
        break;
      case Pattern::clusters:  // Few high parts, many low ones: what is told apart by low bits only.
        put_bits(out, dtype, (random() % 3) << (bits - 3) | random() % 64);
        break;
      case Pattern::outlier:  // One far away, the others close together.
        put_bits(out, dtype, i == count / 2 ? std::uint64_t{1} << (bits - 2) : random() % 1000);
        break;
    }
  }
  return out;
}

// --- sorting

struct Sizes {
  std::int64_t outer, length, inner;
};

/// Of each line [outer, inner], the positions in sorted order.
std::vector<std::vector<std::int64_t>> reference(DType dtype, const Bytes& from, const Sizes& sizes, bool descending) {
  std::vector<std::vector<std::int64_t>> lines;
  for (std::int64_t line = 0; line < sizes.outer * sizes.inner; ++line) {
    const std::int64_t begin = line / sizes.inner * sizes.length * sizes.inner + line % sizes.inner;
    std::vector<Decoded> elements;
    for (std::int64_t i = 0; i < sizes.length; ++i) elements.push_back(decode(dtype, from, begin + i * sizes.inner));
    std::vector<std::int64_t>& order = lines.emplace_back(elements.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const Decoded &left = elements[static_cast<std::size_t>(a)], &right = elements[static_cast<std::size_t>(b)];
      return descending ? less(right, left) : less(left, right);
    });
  }
  return lines;
}

struct Results {
  Bytes values;
  std::vector<std::int64_t> positions;
  bool operator==(const Results&) const = default;
};

/// What sort() has to write, and behind it what it has to leave alone.
Results expected(DType dtype, const Bytes& from, const Sizes& sizes, std::int64_t kept,
                 const std::vector<std::vector<std::int64_t>>& lines) {
  const auto bytes = static_cast<std::size_t>(size_of(dtype));
  const auto count = static_cast<std::size_t>(sizes.outer * kept * sizes.inner);
  Results results{Bytes(count * bytes + 64, 0xA5), std::vector<std::int64_t>(count + 8, -77)};
  for (std::int64_t line = 0; line < sizes.outer * sizes.inner; ++line)
    for (std::int64_t i = 0; i < kept; ++i) {
      const std::int64_t position = lines[static_cast<std::size_t>(line)][static_cast<std::size_t>(i)];
      const std::int64_t outer = line / sizes.inner, column = line % sizes.inner;
      const auto to = static_cast<std::size_t>((outer * kept + i) * sizes.inner + column);
      const auto at = static_cast<std::size_t>((outer * sizes.length + position) * sizes.inner + column);
      results.positions[to] = position;
      std::memcpy(results.values.data() + to * bytes, from.data() + at * bytes, bytes);
    }
  return results;
}

class Sort : public testing::Test {
 protected:
  void TearDown() override { set_thread_count(before_); }

  /// All ways to call: with and without values and positions, in both directions, with 1 and 2 threads.
  static void check(DType dtype, const Bytes& from, const Sizes& sizes, const std::vector<std::int64_t>& kept_counts,
                    const std::string& what, int position_bits = 0) {
    for (bool descending : {false, true}) {
      const auto lines = reference(dtype, from, sizes, descending);
      for (std::int64_t kept : kept_counts) {
        const Results wanted = expected(dtype, from, sizes, kept, lines);
        for (int outputs : {1, 2, 3})
          for (int threads : {1, 2}) {
            set_thread_count(threads);
            Results found{Bytes(wanted.values.size(), 0xA5), std::vector<std::int64_t>(wanted.positions.size(), -77)};
            inside::sort_with(
                {dtype, descending, sizes.outer, sizes.length, sizes.inner, kept, from.data(),
                 outputs & 1 ? found.values.data() : nullptr, outputs & 2 ? found.positions.data() : nullptr},
                position_bits);
            if (!(outputs & 1)) found.values = wanted.values;
            if (!(outputs & 2)) found.positions = wanted.positions;
            ASSERT_TRUE(found == wanted) << what << " " << dtype << " [" << sizes.outer << "," << sizes.length << ","
                                         << sizes.inner << "] kept " << kept << (descending ? " descending" : "")
                                         << " outputs " << outputs << ", " << threads << " threads";
          }
      }
    }
  }

 private:
  int before_ = thread_count();
};

TEST_F(Sort, IsAStableSortForAllTypesPatternsAndLengths) {
  std::uint64_t number = 0;
  for (DType dtype : all_dtypes)
    for (Pattern pattern : all_patterns)
      for (std::int64_t length : {1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000})
        for (std::int64_t inner : {1, 7}) {
          if (!visits("sorts", number++, 3)) continue;
          const Sizes sizes{2, length, inner};
          const Bytes from = make(dtype, pattern, 2 * length * inner, static_cast<unsigned>(length));
          std::vector<std::int64_t> kept = {0, 1, length / 20, length - 1, length};
          check(dtype, from, sizes, kept, text("pattern ", static_cast<int>(pattern)));
          if (HasFatalFailure()) return;
        }
}

TEST_F(Sort, IsAStableSortOfLongerLines) {
  for (DType dtype : all_dtypes)
    for (Pattern pattern : all_patterns)
      for (std::int64_t length : {4095, 4096, 4097}) {
        const Bytes from = make(dtype, pattern, length, static_cast<unsigned>(length));
        check(dtype, from, {1, length, 1}, {100, length}, text("pattern ", static_cast<int>(pattern)));
        if (HasFatalFailure()) return;
      }
}

TEST_F(Sort, IsAStableSortOfLinesInBlocks) {
  std::uint64_t number = 0;
  const Bytes one_block = make(f32, Pattern::normal, 100'000, 4);
  check(f32, one_block, {1, 100'000, 1}, {99'999, 100'000}, "one block");
  for (DType dtype : {u8, f16, f32, i64, f64})
    for (Pattern pattern : {Pattern::any_bits, Pattern::special, Pattern::outlier}) {
      if (!visits("sorts in blocks", number++, 3)) continue;
      const std::int64_t length = dtype == f32 ? 200'001 : 132'000;
      const Bytes from = make(dtype, pattern, length, 5);
      check(dtype, from, {1, length, 1}, {1000, length}, text("pattern ", static_cast<int>(pattern)));
      if (HasFatalFailure()) return;
    }
  // Selected in several blocks.
  const Bytes many = make(i16, Pattern::any_bits, 1'100'000, 8);
  check(i16, many, {1, 1'100'000, 1}, {50}, "several blocks");
  const Bytes columns = make(f32, Pattern::normal, 2 * 132'000, 6);
  check(f32, columns, {1, 132'000, 2}, {10, 132'000}, "two columns");
}

TEST_F(Sort, IsAStableSortOfManyLines) {
  for (DType dtype : {u8, f32, i64})
    for (Sizes sizes :
         {Sizes{3000, 16, 1}, Sizes{300, 1, 1}, Sizes{5, 33, 200}, Sizes{70, 300, 1}, Sizes{3, 700, 33}}) {
      const Bytes from = make(dtype, Pattern::normal, sizes.outer * sizes.length * sizes.inner, 7);
      check(dtype, from, sizes, {1, sizes.length}, "many lines");
      if (HasFatalFailure()) return;
    }
}

TEST_F(Sort, KnowsMorePositionsThanAreInMemory) {
  std::uint64_t number = 0;
  for (int position_bits : {32, 40, 56})
    for (DType dtype : {u8, f16, i32, f32, i64, f64})
      for (Pattern pattern : all_patterns)
        for (std::int64_t length : {1, 2, 100, 3000}) {
          if (!visits("positions of sorts", number++, 3)) continue;
          const Bytes from = make(dtype, pattern, 3 * length, 9);
          check(dtype, from, {1, length, 3}, {length / 2, length},
                text("pattern ", static_cast<int>(pattern), ", ", position_bits, " bits"), position_bits);
          if (HasFatalFailure()) return;
        }
}

TEST_F(Sort, NanAreLastThenFirstAndZerosKeepTheirOrder) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const float from[] = {0.f, nan, -0.f, infinity, -nan, -1.f, 0.f, -infinity};
  float values[8];
  std::int64_t positions[8];
  sort({f32, false, 1, 8, 1, 8, from, values, positions});
  EXPECT_EQ(std::vector<std::int64_t>(positions, positions + 8), (std::vector<std::int64_t>{7, 5, 0, 2, 6, 3, 1, 4}));
  EXPECT_FALSE(std::signbit(values[2]));
  EXPECT_TRUE(std::signbit(values[3]));
  EXPECT_FALSE(std::signbit(values[4]));
  EXPECT_TRUE(std::isnan(values[6]) && !std::signbit(values[6]));
  EXPECT_TRUE(std::isnan(values[7]) && std::signbit(values[7]));
  sort({f32, true, 1, 8, 1, 8, from, values, positions});
  EXPECT_EQ(std::vector<std::int64_t>(positions, positions + 8), (std::vector<std::int64_t>{1, 4, 3, 0, 2, 6, 5, 7}));
}

TEST_F(Sort, NothingIsReadOrWrittenForEmptySizes) {
  std::int64_t position = -7;
  double value = -7;
  for (Sizes sizes : {Sizes{0, 5, 3}, Sizes{2, 5, 0}, Sizes{2, 0, 3}})
    sort({f64, false, sizes.outer, sizes.length, sizes.inner, sizes.length, nullptr, &value, &position});
  sort({f64, false, 1, 5, 1, 0, nullptr, &value, &position});
  sort({f64, false, 1, 5, 1, 5, nullptr, nullptr, nullptr});
  EXPECT_EQ(position, -7);
  EXPECT_EQ(value, -7);
}

TEST_F(Sort, SizesThatMakeNoSenseAreOurError) {
  EXPECT_THROW(sort({f32, false, 1, 5, 1, 6, nullptr, nullptr, nullptr}), InternalError);
  EXPECT_THROW(sort({f32, false, -1, 5, 1, 5, nullptr, nullptr, nullptr}), InternalError);
  EXPECT_THROW(search_sorted({f32, false, 1, -1, 1, nullptr, nullptr, nullptr}), InternalError);
}

TEST_F(Sort, WithoutMemoryItThrowsWhatTheAllocatorThrows) {
  const std::int64_t huge = std::int64_t{1} << 45;
  std::int64_t position = 0;
  float value = 0;
  for (std::int64_t lines : {1, 20})  // By blocks, and by lines: there it happens on several threads.
    for (std::int64_t kept : {huge, huge / 32}) {
      EXPECT_THROW(sort({f32, false, lines, huge, 1, kept, &value, &value, &position}), Problem);
      EXPECT_THROW(sort({f32, false, lines, huge, 1, kept, &value, &value, nullptr}), Problem);
    }
}

// --- searching

TEST_F(Sort, SearchFindsWhatTheBoundsFind) {
  std::uint64_t number = 0;
  for (DType dtype : all_dtypes)
    for (Pattern pattern : {Pattern::any_bits, Pattern::normal, Pattern::few, Pattern::special})
      for (std::int64_t length : {0, 1, 2, 3, 16, 17, 1000})
        for (std::int64_t count : {0, 1, 15, 17, 1500}) {
          if (!visits("searches", number++, 3)) continue;
          const std::int64_t outer = 3;
          const Bytes unsorted = make(dtype, pattern, outer * length, 1),
                      wanted = make(dtype, pattern, outer * count, 2);
          Bytes lines(unsorted.size());
          sort({dtype, false, outer, length, 1, length, unsorted.data(), lines.data(), nullptr});
          std::vector<Decoded> elements;
          for (std::int64_t i = 0; i < outer * length; ++i) elements.push_back(decode(dtype, lines, i));
          for (bool right : {false, true})
            for (int threads : {1, 2}) {
              set_thread_count(threads);
              std::vector<std::int64_t> found(static_cast<std::size_t>(outer * count) + 1, -7);
              search_sorted({dtype, right, outer, length, count, lines.data(), wanted.data(), found.data()});
              EXPECT_EQ(found.back(), -7);
              for (std::int64_t i = 0; i < outer * count; ++i) {
                const auto begin = elements.begin() + i / count * length, end = begin + length;
                const Decoded element = decode(dtype, wanted, i);
                const auto at =
                    right ? std::upper_bound(begin, end, element, less) : std::lower_bound(begin, end, element, less);
                ASSERT_EQ(found[static_cast<std::size_t>(i)], at - begin)
                    << dtype << " pattern " << static_cast<int>(pattern) << " [" << length << "], " << i << " of "
                    << count << (right ? " right" : "");
              }
            }
        }
}

}  // namespace
}  // namespace stet::cpu
