// Rows of a CSV file, one after the other, as texts. Not a public header.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stet/data/csv.h"
#include "stet/data/stream.h"

namespace stet::data {

struct CsvRow {
  struct Field {
    std::size_t begin, size;  // in `text`
    std::uint64_t offset;     // in the file
    std::int64_t line;
  };
  std::string text;
  std::vector<Field> fields;    // not those beyond the number of columns
  std::size_t field_count = 0;  // those too
  std::int64_t line = 0;
  std::uint64_t offset = 0;

  std::string_view operator[](std::size_t column) const {
    return std::string_view(text).substr(fields[column].begin, fields[column].size);
  }
};

class CsvRows {
 public:
  /// Reads the names of the columns. `options` must outlive it.
  CsvRows(const std::string& path, const char* call, const CsvOptions& options, Where where);

  const std::vector<std::string>& names() const { return names_; }
  /// False at the end. UserError for a row that has another number of fields than there are columns.
  bool next(CsvRow& row);
  /// The position of a column; UserError if there is none of that name.
  std::size_t column(const std::string& name, const char* option) const;
  /// UserError about a field: "<reason>, in column 'age' of line 7, at byte 112".
  [[noreturn]] void fail(const std::string& reason, const CsvRow& row, std::size_t column,
                         const std::string& advice) const;
  [[noreturn]] void fail_at(const std::string& reason, std::int64_t line, std::uint64_t offset,
                            const std::string& advice) const;
  const files::Reading& reading() const { return stream_.input().reading(); }
  bool is_missing(std::string_view field) const;

 private:
  bool read_row(CsvRow& row);
  void check_text(const CsvRow& row) const;
  void take_bom();
  bool skip_line();
  void end_line(char ending);

  Stream stream_;
  const CsvOptions& options_;
  std::vector<std::string> names_;
  std::optional<CsvRow> first_;  // a file without a header: its first row was read for its length
  std::int64_t line_ = 1;
  std::size_t longest_missing_ = 0;
  // What ends a run of plain characters.
  std::array<bool, 256> plain_end_{}, quoted_end_{};
};

/// A field as a number. Spaces around it do not count.
std::optional<double> csv_number(std::string_view field);
std::optional<std::int64_t> csv_integer(std::string_view field);
/// "its columns are 'a', 'b'": the first of many.
std::string columns_text(const std::vector<std::string>& names);

}  // namespace stet::data
