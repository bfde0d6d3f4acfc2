// The table op x type x aspect: what rows claim, what the tests of a run wrote down, and that nothing claimed is
// missing.
//
// Claimed is what the row itself says. A type: its rule (maps) or its inference, for one of its samples, takes it.
// Eager and traced: for every type. A gradient and its gradient: for floating types, where the row has a gradient and a
// floating result. Errors: for types that it does not take; for others, where a wrong call exists (several operands, or
// error examples in the row).
#include "tests/ops/coverage.h"

#include <iostream>

#include "stet/ops/random_words.h"
#include "tests/sampling.h"

namespace stet::op_test {

std::vector<DType> result_types(const OpDef& row, const Sample& sample, DType dtype) {
  if (&row == &one_hot_row) return {dtype};  // an option, which may be any type
  Attributes attributes = sample.attributes;
  DType operands = dtype;
  if (row.kind == Kind::random && &row != &random_gamma_row) {
    RandomAttributes other = sample.attributes.as<RandomAttributes>();
    other.dtype = dtype;
    attributes = Attributes(view_of(other));
    operands = compute_type(dtype);  // of the parameters
  }
  std::vector<ValueType> types;
  for (const SampleInput& input : sample.inputs)
    types.push_back({input.below >= 0 ? DType::i64 : operands, Shape(input.sizes)});
  try {
    InferCall call(row.name, types, attributes.view(), Where::here());
    row.infer(call);
    std::vector<DType> out;
    for (const ValueType& result : call.results()) out.push_back(result.dtype);
    return out;
  } catch (const Problem&) {
    return {};
  }
}

bool accepts(const OpDef& row, const Sample& sample, DType dtype) { return !result_types(row, sample, dtype).empty(); }

bool takes(const OpDef& row, DType dtype) {
  if (row.kind != Kind::map) {
    for (const Sample& sample : samples_of(row))
      if (accepts(row, sample, dtype)) return true;
    return false;
  }
  std::vector<DType> types(row.arity, dtype);
  if (row.dtypes.result == DTypeRule::selected) types[0] = DType::bool_;
  try {
    operand_type(row, types);
    return true;
  } catch (const Problem&) {
    return false;
  }
}

namespace {

using Cell = std::tuple<std::string, DType, Aspect>;

bool has_floating_result(const OpDef& row, DType dtype) {
  if (row.kind == Kind::map) {
    std::vector<DType> types(row.arity, dtype);
    if (row.dtypes.result == DTypeRule::selected) types[0] = DType::bool_;
    return is_floating(instantiate(row, types).result);
  }
  for (const Sample& sample : samples_of(row))
    for (DType result : result_types(row, sample, dtype))
      if (is_floating(result)) return true;
  return false;
}

bool has_data(const OpDef& row) {
  if (row.kind == Kind::map) return true;
  for (const Sample& sample : samples_of(row))
    for (const SampleInput& input : sample.inputs)
      if (input.below < 0) return true;
  return false;
}

bool claims(const OpDef& row, DType dtype, Aspect aspect) {
  bool taken = takes(row, dtype);
  switch (aspect) {
    case Aspect::eager:
    case Aspect::traced:
      return taken;
    case Aspect::gradient:
    case Aspect::second_order:
      return taken && row.gradient && is_floating(dtype) && has_data(row) && has_floating_result(row, dtype);
    case Aspect::errors:
      return !taken || (row.kind == Kind::map ? row.arity > 1 : row.errors != nullptr);
  }
  return false;
}

std::set<Cell> read_cells() {
  std::set<Cell> out;
  for (const auto& entry : std::filesystem::directory_iterator(coverage_folder())) {
    if (!entry.path().filename().string().starts_with("tested_")) continue;
    std::ifstream file(entry.path());
    for (std::string name, dtype, aspect; file >> name >> dtype >> aspect;)
      for (DType type : all_dtypes)
        for (std::size_t k = 0; k < aspect_names.size(); ++k)
          if (text(type) == dtype && aspect_names[k] == aspect) out.emplace(name, type, static_cast<Aspect>(k));
  }
  return out;
}

/// Not a test of its own: what the programs of one run tested. CTest runs it after them (cmake/tests.cmake).
TEST(Coverage, DISABLED_EveryClaimedCellWasTested) {
  ASSERT_FALSE(coverage_folder().empty()) << "STET_COVERAGE_FOLDER says where the tests wrote what they tested";
  const std::set<Cell> cells = read_cells();
  std::ofstream table(coverage_folder() / "table.txt");
  table << "Every row of the op table x type. e: equals NumPy's value, t: traced, at two sizes with one program,\n"
           "g: gradient, s: gradient of the gradient, x: wrong calls (of types not taken: any call).\n"
           "-: not claimed by the row. !: claimed and not tested.\n\n";
  table << std::string(22, ' ');
  for (DType dtype : all_dtypes) table << text(dtype) << std::string(7 - text(dtype).size(), ' ');
  table << "\n";
  std::array<int, aspect_names.size()> claimed{}, found{};
  int rows = 0;
  std::set<std::string> names;
  for (const OpDef* row : all_rows()) {
    std::string name = cell_name(*row), line = name + std::string(22 - std::min<std::size_t>(name.size(), 21), ' ');
    ASSERT_TRUE(names.insert(name).second) << "two rows are called " << name;
    ++rows;
    for (DType dtype : all_dtypes) {
      for (std::size_t k = 0; k < aspect_names.size(); ++k) {
        auto aspect = static_cast<Aspect>(k);
        bool is_claimed = claims(*row, dtype, aspect), is_tested = cells.count({name, dtype, aspect}) != 0;
        EXPECT_TRUE(is_tested || !is_claimed) << name << " of " << dtype << ": " << aspect_names[k] << " is not tested";
        EXPECT_TRUE(is_claimed || !is_tested)
            << name << " of " << dtype << ": " << aspect_names[k] << " is tested and not claimed: who is wrong?";
        claimed[k] += is_claimed;
        found[k] += is_claimed && is_tested;
        line += is_tested ? "etgsx"[k] : is_claimed ? '!' : '-';
      }
      line += "  ";
    }
    table << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  }
  std::string totals = text(rows, " rows");
  int all = 0, all_found = 0;
  for (std::size_t k = 0; k < aspect_names.size(); ++k) {
    totals += text(", ", aspect_names[k], " ", found[k], "/", claimed[k]);
    all += claimed[k];
    all_found += found[k];
  }
  totals += text(": ", all_found, " of ", all, " claimed cells tested, ",
                 full_tests() ? "with all samples" : "with some samples each");
  table << "\n" << totals << "\n";
  std::cout << totals << "\n";
}

}  // namespace
}  // namespace stet::op_test
