// IterationPosition: where an iteration of a Dataset stands, as plain numbers that a checkpoint can keep.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"

namespace stet::data {

/// `dataset.iterate_from(position)` goes on exactly there, also in another process that has built the same dataset.
struct IterationPosition {
  std::uint64_t drawn = 0;      // what the iteration drew from the process's generator when it began
  std::uint64_t iteration = 0;  // how many iterations of the dataset were begun before this one
  std::uint64_t elements = 0;   // how many elements it has given
  std::uint64_t pipeline = 0;   // which stages with which arguments, so that another dataset's is refused
  /// What first iterations leave for all later ones: orders that shuffles keep, what caches hold.
  std::vector<std::uint64_t> kept = {};

  bool operator==(const IterationPosition&) const = default;

  /// All of it as numbers, and back; a UserError if these are none.
  STET_API std::vector<std::uint64_t> numbers() const;
  STET_API static IterationPosition from_numbers(std::span<const std::uint64_t> numbers, Where where = Where::here());
  /// All of it as one line of text, and back; a UserError if it is none.
  STET_API std::string str() const;
  STET_API static IterationPosition from_string(std::string_view text, Where where = Where::here());
};

}  // namespace stet::data
