// The oracle file has values for every row of the table, every type it takes and every sample.
#include "tests/ops/oracle.h"

#include "tests/ops/coverage.h"

namespace stet::op_test {
namespace {

const char* rule_name(DTypeRule::Result rule) {
  static constexpr const char* names[] = {"promoted", "floating", "compared", "selected", "logical", "fixed"};
  return names[static_cast<int>(rule)];
}

std::string map_line(const OpDef& row) {
  return text("map ", row.name, " ", int{row.arity}, " ", rule_name(row.dtypes.result), " ",
              row.dtypes.accepts_bool ? 1 : 0, " ", row.domain.low, " ", row.domain.high, " ",
              row.domain.without_zero ? 1 : 0);
}

constexpr const char* how_to_make =
    "\nWrite the reference of a new row in tests/oracle/rows/ (of a map in make_values.py), then make the values as "
    "its header says.";

TEST(OracleFile, HasValuesForEveryRow) {
  const Oracle& oracle = Oracle::instance();
  for (const OpDef* row : all_rows()) {
    if (row->kind == Kind::map && row->dtypes.result != DTypeRule::fixed) {
      for (DType dtype : all_dtypes) {
        bool stored = oracle.find(text("map ", row->name, " ", dtype)) != nullptr;
        EXPECT_EQ(stored, takes(*row, dtype)) << "no values of " << row->name << " for " << dtype << how_to_make;
      }
    } else if (row->kind != Kind::map) {
      std::vector<Sample> samples = samples_of(*row);
      EXPECT_FALSE(samples.empty()) << row->name << " has no samples";
      for (const Sample& sample : samples)
        for (const Sample& one : {sample, grown(sample)})
          EXPECT_TRUE(oracle.find(sample_line(*row, one))) << "no values of " << sample_line(*row, one) << how_to_make;
    }
  }
  for (DType to : all_dtypes)
    for (DType from : all_dtypes) EXPECT_TRUE(oracle.find(text("cast ", to, " ", from))) << to << " from " << from;
}

/// Writes the table for make_values.py. Not a test: run it by hand when rows change.
TEST(OracleFile, DISABLED_WriteRows) {
  std::ofstream file(std::getenv("STET_ROWS_FILE"));
  std::string last;
  for (const OpDef* row : all_rows()) {
    if (row->kind == Kind::map && row->dtypes.result != DTypeRule::fixed) file << map_line(*row) << "\n";
    for (const Sample& sample : samples_of(*row)) {
      std::string line = sample_line(*row, sample), larger = sample_line(*row, grown(sample));
      file << line << "\n";
      if (larger != line) file << larger << "\n";
    }
  }
  for (DType dtype : all_dtypes) file << "cast " << dtype << "\n";
}

}  // namespace
}  // namespace stet::op_test
