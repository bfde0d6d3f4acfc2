// Comma-separated values: a file of rows as a Dataset, or as a Table of columns.
//
//   auto iris = data::csv("iris.csv", {.features = {"length", "width"}, .label = "species"}).shuffle(150).batch(16);
//   data::Table people = data::read_csv("people.csv");
//   Tensor age = people.numbers("age");
//
// RFC 4180: fields may stand in quotes, and then hold separators, line ends and doubled quotes. Lines end with LF, CRLF
// or CR; a byte order mark and empty lines are skipped; the text is UTF-8. The file may be compressed with gzip. What
// is wrong with it is a UserError with line, column and byte.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/data/labeled.h"

namespace stet::data {

struct CsvOptions {
  std::vector<std::string> features = {};  // csv(): the columns, in this order; none: all but the label
  std::string label = {};                  // csv(): the column
  bool header = true;                      // the first row has the names; without, columns are called "0", "1", …
  std::vector<std::string> columns = {};   // the names, instead of the file's own
  char separator = ',';
  char quote = '"';                       // 0: quotes are nothing special
  char comment = 0;                       // lines that begin with it are left out
  std::vector<std::string> strings = {};  // read_csv(): columns that are strings even if all look like numbers
  /// What stands for a value that is not there, besides spaces.
  std::vector<std::string> missing = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"};
  std::optional<double> missing_value = {};            // the number that a missing one becomes; none: NaN
  std::int64_t max_row_bytes = std::int64_t{1} << 26;  // a longer row is an error: a quote that is never closed
};

/// Rows as (features f32[n], label), read as they are needed; the file may be larger than memory. It is read once
/// before, to count its rows and to see what the labels are: i64 if all are integers, f32 if all are numbers, else
/// they are names of classes, and i64 numbers of them in sorted order (class_names()). A feature that is no number, and
/// a missing label, are a UserError.
STET_API LabeledDataset csv(const std::string& path, CsvOptions options = {}, Where where = Where::here());

/// Columns by name. Copies share them.
class STET_API Table {
 public:
  struct Column;
  std::int64_t rows() const { return rows_; }
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const;
  /// Whether numbers() gives it; strings() gives the others.
  bool is_number(const std::string& name, Where where = Where::here()) const;
  /// i64[rows] if all are integers, else f64[rows]. UserError if there is no such column, or it has something that is
  /// no number: the first is named, with its line.
  Tensor numbers(const std::string& name, Where where = Where::here()) const;
  /// Several, side by side: [rows, names], f32 unless said otherwise.
  Tensor matrix(const std::vector<std::string>& names, DType dtype = DType::f32, Where where = Where::here()) const;
  /// "" where it is missing. UserError if it is a column of numbers.
  const std::vector<std::string>& strings(const std::string& name, Where where = Where::here()) const;
  /// How many values of the column are not there.
  std::int64_t missing(const std::string& name, Where where = Where::here()) const;
  /// These columns alone, in this order.
  Table select(const std::vector<std::string>& names, Where where = Where::here()) const;

 private:
  friend STET_API Table read_csv(const std::string& path, CsvOptions options, Where where);
  const Column& column(const char* call, const std::string& name, Where where) const;
  std::string path_;
  std::int64_t rows_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, std::shared_ptr<const Column>> columns_;
};

/// The whole file. A column is numbers if all that is there are numbers, else strings.
STET_API Table read_csv(const std::string& path, CsvOptions options = {}, Where where = Where::here());

}  // namespace stet::data
