// What the table's tests have checked, cell by cell: row x type x aspect. A test writes a cell down where it made the
// assertion; coverage_test.cpp compares what all programs of a run wrote with what the rows claim.
#pragma once
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <tuple>

#include "tests/ops/op_harness.h"
#include "tests/sampling.h"

namespace stet::op_test {

enum class Aspect : std::uint8_t {
  eager,         // equals NumPy's or SciPy's value
  traced,        // a program with symbolic sizes gives the bits of eager, at two sizes
  gradient,      // equals central differences (f64), or the gradient in f64 (narrower types)
  second_order,  // the same of the gradient's gradient
  errors,        // a wrong call of this type, or any call where the row does not take the type: refused, with its text
};
inline constexpr std::array aspect_names = {"eager", "traced", "gradient", "second_order", "errors"};

/// "sum"; "cast to f32", which is ten rows.
inline std::string cell_name(const OpDef& row) {
  for (DType to : all_dtypes)
    if (&row == &cast_rows()[static_cast<std::size_t>(to)]) return text("cast_to_", to);
  return row.name;
}

/// Where the programs of a run write what they tested; empty: they do not.
inline std::filesystem::path coverage_folder() {
  const char* folder = std::getenv("STET_COVERAGE_FOLDER");
  return folder ? folder : "";
}

/// Writes down that the assertions just made hold. Nothing if one of the running test failed: it fails anyway, and what
/// it says about other cells is not to be relied on.
inline void tested(const OpDef& row, DType dtype, Aspect aspect) {
  if (::testing::Test::HasFailure() || coverage_folder().empty()) return;
  static std::set<std::tuple<std::string, DType, Aspect>> seen;
  static std::ofstream file = [] {
    std::filesystem::create_directories(coverage_folder());
    const char* shard = std::getenv("GTEST_SHARD_INDEX");
    return std::ofstream(coverage_folder() / text("tested_", shard ? shard : "all", ".txt"), std::ios::app);
  }();
  std::string name = cell_name(row);
  if (seen.emplace(name, dtype, aspect).second)
    file << name << " " << dtype << " " << aspect_names[static_cast<std::size_t>(aspect)] << std::endl;
}

/// The same after the results were looked at: nothing is tested by results without elements.
inline void tested(const OpDef& row, DType dtype, Aspect aspect, const std::vector<Tensor>& results) {
  for (const Tensor& result : results)
    if (count_of(sizes_of(result)) > 0) return tested(row, dtype, aspect);
}

/// Whether a call of the sample with data of this type has a result type at all, as inference says it. Where the type
/// is an attribute, the sample's is replaced.
bool accepts(const OpDef& row, const Sample& sample, DType dtype);
/// The types of results for such a call.
std::vector<DType> result_types(const OpDef& row, const Sample& sample, DType dtype);
/// Whether the row takes the type: for a map by its rule, otherwise for one of its samples.
bool takes(const OpDef& row, DType dtype);
/// The types of those that a run visits: all, or one that the seed chooses.
inline std::vector<DType> visited_types(const OpDef& row, const std::string& what) {
  std::vector<DType> taken, out;
  for (DType dtype : all_dtypes)
    if (takes(row, dtype)) taken.push_back(dtype);
  for (std::size_t i : chosen(text(what, " ", row.name), taken.size(), 1)) out.push_back(taken[i]);
  return out;
}

}  // namespace stet::op_test
