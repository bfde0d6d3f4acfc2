#include "stet/data/csv_rows.h"

#include <locale.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "stet/base/text.h"
#include "stet/files/utf8.h"

namespace stet::data {
namespace {

constexpr std::size_t most_columns = std::size_t{1} << 18;

std::string_view trimmed(std::string_view field) {
  while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.remove_suffix(1);
  return field;
}

/// A sign that from_chars does not take.
std::string_view without_plus(std::string_view field) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-' && field[1] != '+') field.remove_prefix(1);
  return field;
}

bool distinct(const std::vector<char>& characters) {
  return std::set<char>(characters.begin(), characters.end()).size() == characters.size();
}

}  // namespace

std::optional<std::int64_t> csv_integer(std::string_view field) {
  field = without_plus(trimmed(field));
  std::int64_t value;
  auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (problem != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return value;
}

std::optional<double> csv_number(std::string_view field) {
  field = without_plus(trimmed(field));
  double value = 0;
  auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (end != field.data() + field.size() || field.empty()) return std::nullopt;
  if (problem == std::errc::result_out_of_range) {
    // Too large is infinite, too small 0; which one, from_chars does not say.
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    return strtod_l(std::string(field).c_str(), nullptr, plain);
  }
  if (problem != std::errc()) return std::nullopt;
  return value;
}

std::string columns_text(const std::vector<std::string>& names) {
  if (names.empty()) return "it has no columns";
  std::vector<std::string> some;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 20); ++i)
    some.push_back(stet::files::quoted_name(names[i]));
  return text("its columns are ", joined(some, ", "), some.size() < names.size() ? ", …" : "");
}

CsvRows::CsvRows(const std::string& path, const char* call, const CsvOptions& options, Where where)
    : stream_(path, call, where), options_(options) {
  auto refuse = [&](const std::string& what, const std::string& advice) {
    throw UserError(error_text(text(call, ": ", what), where, advice));
  };
  std::vector<char> special = {options.separator};
  if (options.quote) special.push_back(options.quote);
  if (options.comment) special.push_back(options.comment);
  if (!distinct(special) || std::count(special.begin(), special.end(), '\n') ||
      std::count(special.begin(), special.end(), '\r') || options.separator == 0)
    refuse("separator, quote and comment are not three different characters other than line ends",
           "the defaults are ',' '\"' and none");
  if (options.max_row_bytes < 1)
    refuse(text("max_row_bytes is ", options.max_row_bytes), "give the length of the longest row, or more");

  for (char c : {options.separator, '\n', '\r'}) plain_end_[static_cast<unsigned char>(c)] = true;
  for (char c : {'\n', '\r'}) quoted_end_[static_cast<unsigned char>(c)] = true;
  if (options.quote) quoted_end_[static_cast<unsigned char>(options.quote)] = true;

  for (const std::string& word : options.missing) longest_missing_ = std::max(longest_missing_, word.size());

  take_bom();
  CsvRow row;
  const bool any = read_row(row);
  if (!any && options.header)
    stream_.fail("has no header: it is empty", stream_.at(), "say .header = false if it may be");
  if (options.header)
    for (std::size_t i = 0; i < row.fields.size(); ++i) names_.emplace_back(trimmed(row[i]));
  else
    for (std::size_t i = 0; i < row.fields.size(); ++i) names_.push_back(text(i));
  if (!options.columns.empty()) {
    if (any && options.columns.size() != names_.size())
      fail_at(text("has ", names_.size(), " columns, the option columns names ", options.columns.size()), row.line,
              row.offset, "name all of them, in order");
    names_ = options.columns;
  }
  check_text(row);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!seen.insert(names_[i]).second) {
      const std::string reason = text("has two columns called ", stet::files::quoted_name(names_[i]));
      const char* advice = "give them names with the option columns";
      if (i < row.fields.size()) fail_at(reason, row.fields[i].line, row.fields[i].offset, advice);
      stream_.fail(reason, 0, advice);
    }
  if (!options.header && any) first_ = std::move(row);
}

std::size_t CsvRows::column(const std::string& name, const char* option) const {
  auto at = std::find(names_.begin(), names_.end(), name);
  if (at == names_.end())
    reading().fail(text("has no column ", stet::files::quoted_name(name), ", which ", option, " names"),
                   columns_text(names_));
  return static_cast<std::size_t>(at - names_.begin());
}

void CsvRows::fail_at(const std::string& reason, std::int64_t line, std::uint64_t offset,
                      const std::string& advice) const {
  stream_.fail(text(reason, ", in line ", line), offset, advice);
}

void CsvRows::fail(const std::string& reason, const CsvRow& row, std::size_t column, const std::string& advice) const {
  const CsvRow::Field& field = row.fields[column];
  stream_.fail(text(reason, ", in column ", stet::files::quoted_name(names_[column]), " of line ", field.line),
               field.offset, advice);
}

bool CsvRows::is_missing(std::string_view field) const {
  field = trimmed(field);
  if (field.empty()) return true;
  if (field.size() > longest_missing_) return false;
  for (const std::string& word : options_.missing)
    if (field == word) return true;
  return false;
}

bool CsvRows::next(CsvRow& row) {
  if (first_) {
    row = std::move(*first_);
    first_.reset();
    return true;
  }
  if (!read_row(row)) return false;
  if (row.field_count != names_.size())
    fail_at(text("the row has ", row.field_count, row.field_count == 1 ? " field" : " fields", ", not ", names_.size()),
            row.line, row.offset, "mend the row: a field with a separator in it stands in quotes");
  check_text(row);
  return true;
}

/// Fields beyond the columns are another error.
void CsvRows::check_text(const CsvRow& row) const {
  if (stet::files::is_utf8(row.text)) return;
  for (std::size_t column = 0; column < row.fields.size(); ++column)
    if (!stet::files::is_utf8(row[column]))
      fail(text(stet::files::quoted_name(row[column]), " is not UTF-8"), row, column, "save the file as UTF-8");
}

void CsvRows::take_bom() {
  std::span<const char> ahead = stream_.window();
  auto starts = [&](std::string_view mark) { return std::string_view(ahead.data(), ahead.size()).starts_with(mark); };
  if (starts("\xEF\xBB\xBF")) stream_.skip(3);
  if (starts("\xFF\xFE") || starts("\xFE\xFF")) stream_.fail("is UTF-16", 0, "save it as UTF-8");
}

/// The rest of a line that is left out; false at the end of the file.
bool CsvRows::skip_line() {
  for (;;) {
    std::span<const char> ahead = stream_.window();
    if (ahead.empty()) return false;
    for (std::size_t i = 0; i < ahead.size(); ++i)
      if (char c = ahead[i]; c == '\n' || c == '\r') {
        stream_.skip(i + 1);
        end_line(c);
        return true;
      }
    stream_.skip(ahead.size());
  }
}

/// Behind the first character of a line end: CRLF is one.
void CsvRows::end_line(char ending) {
  ++line_;
  if (ending != '\r') return;
  if (std::span<const char> ahead = stream_.window(); !ahead.empty() && ahead[0] == '\n') stream_.skip(1);
}

bool CsvRows::read_row(CsvRow& row) {
  row.text.clear();
  row.fields.clear();
  row.field_count = 0;
  // Lines without a row.
  for (;;) {
    std::span<const char> ahead = stream_.window();
    if (ahead.empty()) return false;
    const char c = ahead[0];
    if (c == '\n' || c == '\r') {
      stream_.skip(1);
      end_line(c);
    } else if (options_.comment && c == options_.comment) {
      if (!skip_line()) return false;
    } else {
      break;
    }
  }
  row.line = line_;
  row.offset = stream_.at();

  auto run = [&](std::span<const char> ahead, const std::array<bool, 256>& end) {
    std::size_t i = 0;
    while (i < ahead.size() && !end[static_cast<unsigned char>(ahead[i])]) ++i;
    row.text.append(ahead.data(), i);
    stream_.skip(i);
    return i;
  };
  const auto most = static_cast<std::uint64_t>(options_.max_row_bytes);

  for (;;) {  // fields
    CsvRow::Field field{row.text.size(), 0, stream_.at(), line_};
    std::span<const char> ahead = stream_.window();
    const bool quoted = !ahead.empty() && options_.quote && ahead[0] == options_.quote;
    if (quoted) {
      stream_.skip(1);
      for (;;) {
        if (stream_.at() - row.offset > most)
          fail_at(text("the row is longer than ", most, " bytes; a quote may not be closed"), field.line, field.offset,
                  "mend the quotes, or give a larger max_row_bytes");
        ahead = stream_.window();
        if (ahead.empty())
          fail_at("a quote is not closed", field.line, field.offset, "close it; a quote inside of a field is doubled");
        if (run(ahead, quoted_end_) == ahead.size()) continue;
        const char c = stream_.window()[0];
        stream_.skip(1);
        if (c != options_.quote) {
          row.text += c;
          if (c == '\r') {
            if (std::span<const char> next = stream_.window(); !next.empty() && next[0] == '\n') {
              row.text += '\n';
              stream_.skip(1);
            }
          }
          ++line_;
          continue;
        }
        ahead = stream_.window();
        if (ahead.empty() || ahead[0] != options_.quote) break;
        row.text += options_.quote;
        stream_.skip(1);
      }
    } else {
      while (!ahead.empty() && run(ahead, plain_end_) == ahead.size()) {
        if (stream_.at() - row.offset > most)
          fail_at(text("the row is longer than ", most, " bytes"), row.line, row.offset,
                  "give a larger max_row_bytes if it is as it should be");
        ahead = stream_.window();
      }
    }
    field.size = row.text.size() - field.begin;
    // A field is worth one byte of a file, and 40 of memory.
    if (names_.empty() && row.fields.size() == most_columns)
      fail_at(text("there are more than ", most_columns, " columns"), row.line, field.offset,
              "check the separator, and that it is a CSV file");
    ++row.field_count;
    if (names_.empty() || row.fields.size() < names_.size()) row.fields.push_back(field);
    ahead = stream_.window();
    if (ahead.empty()) return true;
    const char c = ahead[0];
    if (c == options_.separator) {
      stream_.skip(1);
      if (stream_.at() - row.offset > most)
        fail_at(text("the row is longer than ", most, " bytes"), row.line, row.offset,
                "give a larger max_row_bytes if it is as it should be");
      continue;
    }
    if (c == '\n' || c == '\r') {
      stream_.skip(1);
      end_line(c);
      return true;
    }
    fail_at(text("something follows a closing quote, in field ", row.field_count), field.line, stream_.at(),
            "a quote inside of a field is doubled; a field that begins with one ends with one");
  }
}

}  // namespace stet::data
