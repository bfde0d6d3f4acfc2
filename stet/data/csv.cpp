#include "stet/data/csv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/csv_rows.h"
#include "stet/files/utf8.h"
#include "stet/ops/ops.h"

namespace stet::data {
namespace {

using stet::files::quoted_name;

void require_distinct(const char* call, const char* option, const std::vector<std::string>& names, Where where) {
  std::set<std::string> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second)
      throw UserError(error_text(text(call, ": ", option, " names '", name, "' twice"), where, "name it once"));
}

enum class LabelKind : std::uint8_t { integers, numbers, names };

/// What one pass over the file finds out.
struct CsvPlan {
  std::string path;
  CsvOptions options;
  Where where;
  std::vector<std::string> names;  // of all columns: positions count only while they are the same
  std::vector<std::size_t> features;
  std::size_t label = 0;
  LabelKind kind = LabelKind::integers;
  std::vector<std::string> class_names;
  std::int64_t rows = 0;
};

/// The label as all rows have it. Classes are remembered up to the first million: more are no classes.
void survey(CsvPlan& plan) {
  constexpr std::size_t most_classes = 1'000'000;
  CsvRows file(plan.path, "csv", plan.options, plan.where);
  plan.names = file.names();
  plan.label = file.column(plan.options.label, "label");
  if (plan.options.features.empty()) {
    for (std::size_t i = 0; i < file.names().size(); ++i)
      if (i != plan.label) plan.features.push_back(i);
  } else {
    for (const std::string& name : plan.options.features) plan.features.push_back(file.column(name, "features"));
  }
  std::set<std::string, std::less<>> classes;
  bool integers = true, numbers = true;
  CsvRow row;
  for (; file.next(row); ++plan.rows) {
    std::string_view field = row[plan.label];
    if (file.is_missing(field))
      file.fail("a label is missing", row, plan.label, "leave such rows out: every sample has a label");
    integers = integers && csv_integer(field);
    numbers = numbers && (integers || csv_number(field));
    // Until the first that is no number, those before may yet turn out to be names.
    if (classes.size() <= most_classes && classes.find(field) == classes.end()) classes.emplace(field);
    if (!numbers && classes.size() > most_classes)
      file.fail(text("there are more than ", most_classes, " different labels"), row, plan.label,
                "labels that are numbers may be any; other ones are names of classes");
  }
  plan.kind = integers ? LabelKind::integers : numbers ? LabelKind::numbers : LabelKind::names;
  if (plan.kind == LabelKind::names) plan.class_names.assign(classes.begin(), classes.end());
}

/// One pass over the rows.
class CsvWalk {
 public:
  explicit CsvWalk(std::shared_ptr<const CsvPlan> plan)
      : plan_(std::move(plan)), file_(plan_->path, "csv", plan_->options, plan_->where) {
    if (file_.names() != plan_->names)
      file_.reading().fail("has other columns than when the dataset was made", changed);
  }

  bool operator()(Tensors& out) {
    const bool more = file_.next(row_);
    if (more ? rows_ == plan_->rows : rows_ < plan_->rows)
      file_.reading().fail(text("has ", more ? "more" : "fewer", " rows than the ", plan_->rows,
                                " that were there when the dataset was made"),
                           changed);
    if (!more) return false;
    ++rows_;
    const auto count = static_cast<std::int64_t>(plan_->features.size());
    Buffer buffer = memory_for_file(file_.reading(), plan_->features.size() * sizeof(float));
    auto* to = reinterpret_cast<float*>(buffer.data());
    for (std::size_t column : plan_->features) *to++ = feature(column);
    out.push_back(dense_tensor(DType::f32, {&count, 1}, std::move(buffer)));
    out.push_back(label());
    return true;
  }

 private:
  float feature(std::size_t column) {
    std::string_view field = row_[column];
    if (file_.is_missing(field))
      return static_cast<float>(plan_->options.missing_value.value_or(std::numeric_limits<double>::quiet_NaN()));
    std::optional<double> number = csv_number(field);
    if (!number)
      file_.fail(text(quoted_name(field), " is no number"), row_, column,
                 "name the columns that are in .features; read_csv() gives strings, for StringLookup");
    return static_cast<float>(*number);
  }
  Tensor label() {
    std::string_view field = row_[plan_->label];
    if (plan_->kind == LabelKind::integers) {
      if (std::optional<std::int64_t> number = csv_integer(field)) return tensor(*number);
    } else if (plan_->kind == LabelKind::numbers) {
      if (std::optional<double> number = csv_number(field)) return tensor(static_cast<float>(*number));
    } else {
      auto at = std::lower_bound(plan_->class_names.begin(), plan_->class_names.end(), field);
      if (at != plan_->class_names.end() && *at == field) return tensor(std::int64_t{at - plan_->class_names.begin()});
    }
    file_.fail(text("label ", quoted_name(field), " was not there when the dataset was made"), row_, plan_->label,
               changed);
  }

  static constexpr const char* changed = "make the dataset anew after the file has changed";
  std::shared_ptr<const CsvPlan> plan_;
  CsvRows file_;
  CsvRow row_;
  std::int64_t rows_ = 0;  // that came
};

}  // namespace

LabeledDataset csv(const std::string& path, CsvOptions options, Where where) {
  if (options.label.empty())
    throw UserError(error_text("csv: label is not given", where,
                               "name the column that is to be learned in .label; read_csv() reads all columns"));
  require_distinct("csv", "features", options.features, where);
  auto plan =
      std::make_shared<CsvPlan>(CsvPlan{path, std::move(options), where, {}, {}, 0, LabelKind::integers, {}, 0});
  const files::Reading reading{"csv", path, where};
  keeping(reading, [&] { survey(*plan); });
  auto open = [plan = std::shared_ptr<const CsvPlan>(plan), reading]() -> std::function<bool(Tensors&)> {
    auto walk = keeping(reading, [&] { return std::make_shared<CsvWalk>(plan); });
    return [walk, reading](Tensors& out) { return keeping(reading, [&] { return (*walk)(out); }); };
  };
  return LabeledDataset(source::walked(plan->rows, std::move(open), where, "csv"), plan->class_names);
}

// --- tables

struct Table::Column {
  Tensor numbers;                    // or, undefined,
  std::vector<std::string> strings;  // these
  std::int64_t missing = 0;
  bool asked = false;      // to be strings
  std::string first_word;  // of strings: the first that is no number
  std::int64_t first_line = 0;
};

namespace {

/// A column while it is read: all texts one after the other, because what a column is shows at its end.
struct Growing {
  std::string texts;
  std::vector<std::uint64_t> ends;
  std::int64_t missing = 0;
  bool integers = true, numbers = true, asked = false;
  std::string first_word;
  std::int64_t first_line = 0;
};

}  // namespace

bool Table::has(const std::string& name) const { return columns_.contains(name); }

const Table::Column& Table::column(const char* call, const std::string& name, Where where) const {
  auto at = columns_.find(name);
  if (at == columns_.end())
    throw UserError(error_text(text(call, ": the table of '", path_, "' has no column ", quoted_name(name)), where,
                               columns_text(names_)));
  return *at->second;
}

bool Table::is_number(const std::string& name, Where where) const {
  return column("is_number", name, where).numbers.defined();
}

Tensor Table::numbers(const std::string& name, Where where) const {
  const Column& found = column("numbers", name, where);
  if (!found.numbers.defined())
    throw UserError(error_text(
        text("numbers: column '", name, "' of '", path_, "' is strings",
             found.asked ? ", as asked for"
                         : text(": ", quoted_name(found.first_word), " in line ", found.first_line, " is no number")),
        where,
        found.asked ? "leave it out of the option strings"
                    : "strings() gives it; if the word stands for a missing value, name it in the option missing"));
  return found.numbers;
}

Tensor Table::matrix(const std::vector<std::string>& names, DType dtype, Where where) const {
  if (names.empty()) throw UserError(error_text("matrix: no column is named", where, "name one or more"));
  std::vector<Tensor> columns;
  for (const std::string& name : names) columns.push_back(cast(numbers(name, where), dtype));
  return stack(columns, 1);
}

const std::vector<std::string>& Table::strings(const std::string& name, Where where) const {
  const Column& found = column("strings", name, where);
  if (found.numbers.defined())
    throw UserError(
        error_text(text("strings: column '", name, "' of '", path_, "' is numbers, ", type_text(found.numbers)), where,
                   text("numbers() gives it; read it with .strings = {\"", name, "\"} to have its texts")));
  return found.strings;
}

std::int64_t Table::missing(const std::string& name, Where where) const {
  return column("missing", name, where).missing;
}

Table Table::select(const std::vector<std::string>& names, Where where) const {
  require_distinct("select", "names", names, where);
  Table out;
  out.path_ = path_;
  out.rows_ = rows_;
  for (const std::string& name : names) {
    column("select", name, where);
    out.names_.push_back(name);
    out.columns_.emplace(name, columns_.at(name));
  }
  return out;
}

Table read_csv(const std::string& path, CsvOptions options, Where where) {
  return keeping({"read_csv", path, where}, [&] {
    CsvRows file(path, "read_csv", options, where);
    if (!options.features.empty() || !options.label.empty())
      throw UserError(error_text("read_csv: the options features and label are csv()'s", where,
                                 "read_csv reads all columns; select() takes some of them"));
    std::vector<Growing> growing(file.names().size());
    for (const std::string& name : options.strings) growing[file.column(name, "strings")].asked = true;
    Table table;
    table.path_ = path;
    table.names_ = file.names();
    CsvRow row;
    for (; file.next(row); ++table.rows_)
      for (std::size_t i = 0; i < growing.size(); ++i) {
        Growing& column = growing[i];
        std::string_view field = row[i];
        if (file.is_missing(field)) {
          ++column.missing;
          field = {};
        } else if (column.numbers && !column.asked) {
          column.integers = column.integers && csv_integer(field);
          column.numbers = column.integers || csv_number(field);
          if (!column.numbers) {
            column.first_word = field;
            column.first_line = row.fields[i].line;
          }
        }
        column.texts += field;
        column.ends.push_back(column.texts.size());
      }

    // An integer stands for missing ones where that is what was asked for; NaN is none.
    const double missing_value = options.missing_value.value_or(std::numeric_limits<double>::quiet_NaN());
    const bool missing_is_integer = std::abs(missing_value) <= 0x1p53 && std::trunc(missing_value) == missing_value;
    for (std::size_t i = 0; i < growing.size(); ++i) {
      Growing column = std::move(growing[i]);
      auto done = std::make_shared<Table::Column>();
      done->missing = column.missing;
      done->asked = column.asked;
      done->first_word = std::move(column.first_word);
      done->first_line = column.first_line;
      auto each = [&](auto&& take) {
        std::uint64_t begin = 0;
        for (std::size_t r = 0; r < column.ends.size(); ++r) {
          take(r, std::string_view(column.texts).substr(begin, column.ends[r] - begin));
          begin = column.ends[r];
        }
      };
      // A column in which nothing is there at all is numbers that are missing.
      if (!column.numbers || column.asked) {
        done->strings.resize(column.ends.size());
        each([&](std::size_t r, std::string_view field) { done->strings[r] = field; });
      } else {
        const bool integers = column.integers && (column.missing == 0 || missing_is_integer);
        Buffer buffer = memory_for_file(file.reading(), column.ends.size() * 8);
        if (integers)
          each([&, to = reinterpret_cast<std::int64_t*>(buffer.data())](std::size_t r, std::string_view field) {
            to[r] = field.empty() ? static_cast<std::int64_t>(missing_value) : *csv_integer(field);
          });
        else
          each([&, to = reinterpret_cast<double*>(buffer.data())](std::size_t r, std::string_view field) {
            to[r] = field.empty() ? missing_value : *csv_number(field);
          });
        done->numbers = dense_tensor(integers ? DType::i64 : DType::f64, {&table.rows_, 1}, std::move(buffer));
      }
      table.columns_.emplace(table.names_[i], std::move(done));
    }
    return table;
  });
}

}  // namespace stet::data
