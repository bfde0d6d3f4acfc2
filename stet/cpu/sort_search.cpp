// Binary search without branches, several elements side by side: every element takes the same steps.
#include "stet/base/text.h"
#include "stet/cpu/sort.h"
#include "stet/cpu/sort_keys.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

using Count = std::int64_t;

/// Elements that are worth a chunk, and those that wait for memory together.
constexpr Count chunk_elements = 4096, group = 16;

/// How elements of a line are compared; is_before is false for a NaN in the line, so that NaN are last.
template <class T, bool right>
struct Native {
  using Element = T;
  static bool is_before(T in_line, T element) { return right ? in_line <= element : in_line < element; }
  static bool is_nan(T element) { return element != element; }
};
/// Types that C++ does not compare: by key, which knows about NaN.
template <class Order, bool right>
struct ByKey {
  using Element = typename Order::Word;
  static bool is_before(Element in_line, Element element) {
    const Element a = Order::key(in_line), b = Order::key(element);
    return right ? a <= b : a < b;
  }
  static bool is_nan(Element) { return false; }
};

/// The first position in [0, length) whose element is not before, or length.
template <Count width, class Element, class Before>
void search(const void* line, Count length, const Before& is_before, Count* found) {
  Count begin[width] = {};
  Count left = length;
  for (; left > 1; left -= left / 2) {
    const Count half = left / 2;
    for (Count k = 0; k < width; ++k)
      begin[k] += is_before(load_word<Element>(line, begin[k] + half - 1), k) ? half : 0;
  }
  for (Count k = 0; k < width; ++k)
    found[k] = begin[k] + (left == 1 && is_before(load_word<Element>(line, begin[k]), k) ? 1 : 0);
}

template <class Comparison, bool right>
void search_range(const void* line, Count length, const void* elements, Count begin, Count end,
                  std::int64_t* positions) {
  using Element = typename Comparison::Element;
  Count i = begin;
  for (; i + group <= end; i += group) {
    Element wanted[group];
    std::memcpy(wanted, static_cast<const unsigned char*>(elements) + i * static_cast<Count>(sizeof(Element)),
                sizeof wanted);
    auto is_before = [&](Element in_line, Count k) { return Comparison::is_before(in_line, wanted[k]); };
    search<group, Element>(line, length, is_before, positions + i);
  }
  for (; i < end; ++i) {
    const Element wanted = load_word<Element>(elements, i);
    auto is_before = [&](Element in_line, Count) { return Comparison::is_before(in_line, wanted); };
    search<1, Element>(line, length, is_before, positions + i);
  }
  if constexpr (std::is_floating_point_v<Element>)
    for (i = begin; i < end; ++i) {
      if (!Comparison::is_nan(load_word<Element>(elements, i))) continue;
      positions[i] = length;
      auto is_number = [&](Element in_line, Count) { return !Comparison::is_nan(in_line); };
      if (!right) search<1, Element>(line, length, is_number, positions + i);
    }
}

template <class Comparison, bool right>
void search_all(const SearchArguments& a) {
  const Count bytes = sizeof(typename Comparison::Element);
  // Chunks are of all elements, and may begin and end anywhere in a line's.
  const Count all = a.outer * a.count;
  auto body = [&](Count chunk) {
    const Count end = std::min(all, (chunk + 1) * chunk_elements);
    for (Count begin = chunk * chunk_elements; begin < end;) {
      const Count line = begin / a.count, until = std::min(end, (line + 1) * a.count);
      search_range<Comparison, right>(static_cast<const unsigned char*>(a.lines) + line * a.length * bytes, a.length,
                                      a.elements, begin, until, a.positions);
      begin = until;
    }
  };
  parallel_for((all + chunk_elements - 1) / chunk_elements, body);
}

template <bool right>
void search_type(const SearchArguments& a) {
  using enum DTypeClass;
  switch (a.dtype) {
    case DType::bool_:
    case DType::u8:
      return search_all<Native<std::uint8_t, right>, right>(a);
    case DType::i8:
      return search_all<Native<std::int8_t, right>, right>(a);
    case DType::i16:
      return search_all<Native<std::int16_t, right>, right>(a);
    case DType::i32:
      return search_all<Native<std::int32_t, right>, right>(a);
    case DType::i64:
      return search_all<Native<std::int64_t, right>, right>(a);
    case DType::f16:
      return search_all<ByKey<Ordering<std::uint16_t, floating, 0x7C00>, right>, right>(a);
    case DType::bf16:
      return search_all<ByKey<Ordering<std::uint16_t, floating, 0x7F80>, right>, right>(a);
    case DType::f32:
      return search_all<Native<float, right>, right>(a);
    case DType::f64:
      return search_all<Native<double, right>, right>(a);
  }
  throw InternalError("search_sorted: no such dtype");
}

}  // namespace

void search_sorted(const SearchArguments& a) {
  if (a.outer < 0 || a.length < 0 || a.count < 0)
    throw InternalError(text("search_sorted: ", a.count, " in [", a.outer, ",", a.length, "]"));
  if (a.outer == 0 || a.count == 0) return;
  if (a.right)
    search_type<true>(a);
  else
    search_type<false>(a);
}

}  // namespace stet::cpu
