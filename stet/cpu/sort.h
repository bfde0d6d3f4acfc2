// Sorting along an axis, the first of the sorted order, and searching in sorted lines: plain functions on memory.
//
// The order of all of them: numbers by value, false before true, -0 equal to 0, and NaN, whatever its sign and payload,
// equal to NaN and greater than everything else. So NaN are last in ascending and first in descending order, as
// torch.sort and torch.topk have them. Elements are moved, never computed: -0 and NaN keep their bits.
//
// What is written follows from the elements alone (a stable sort has one result), so it is the same on any number of
// threads. How it is done is told in sort.cpp.
#pragma once
#include <cstdint>

#include "stet/base/dtype.h"

namespace stet::cpu {

/// Lines of a dense row-major tensor [outer, length, inner] along its middle axis.
struct SortArguments {
  DType dtype = f32;
  bool descending = false;
  std::int64_t outer = 0, length = 0, inner = 0;  // 0 is fine
  std::int64_t kept = 0;                          // of each line: 0 to length
  const void* from = nullptr;
  /// Written, dense [outer, kept, inner]; null: not wanted. They overlap neither each other nor `from`.
  void* values = nullptr;
  std::int64_t* positions = nullptr;
};

/// Writes the first `kept` elements of every sorted line and the positions they had along the axis: all of them sort
/// the line, fewer are its lowest (when descending: its greatest) ones. Stable in both directions: equal elements stand
/// in the order of their positions, and of equal elements that do not all fit the first ones are kept.
///
/// Scratch memory per line at work: 16 bytes an element with positions, twice the element's size without, and up to a
/// megabyte; where far less than the length is kept, about 32 bytes for each that is, 2 an element of the line
/// at most. One line is at work per thread, and only one at all where lines are long and few. Throws the Problem of
/// Buffer::allocate when there is no memory, having written nothing or a part; InternalError for sizes that make no
/// sense.
void sort(const SortArguments& arguments);

/// Lines [outer, length], each sorted in ascending order, and the elements to look for [outer, count], dense both.
struct SearchArguments {
  DType dtype = f32;                              // of lines and elements
  bool right = false;                             // which end of a run of equal elements
  std::int64_t outer = 0, length = 0, count = 0;  // 0 is fine
  const void* lines = nullptr;
  const void* elements = nullptr;
  std::int64_t* positions = nullptr;  // written, [outer, count]
};

/// Where each element would be inserted so that its line stays sorted, as numpy.searchsorted: before the elements equal
/// to it, or to the right of them. In a line that is not sorted: some position from 0 to length. Needs no memory.
void search_sorted(const SearchArguments& arguments);

namespace inside {
/// For tests: as sort(), the long way, on positions of `position_bits` bits (at most 56), as many as lines of 2^bits
/// elements need. 0: as many as the lines need, by the way that sort() takes.
void sort_with(const SortArguments& arguments, int position_bits);
}  // namespace inside

}  // namespace stet::cpu
