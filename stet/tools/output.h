// How commands write for people: to the width of the terminal, with colours where there is one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/terminal.h"
#include "stet/files/json.h"

namespace stet::tools {

enum class Color { bold, red, yellow, green };
/// As it is where no colours are wanted.
std::string in_color(Color color, std::string_view text);

/// Paragraphs broken into lines of at most `width` columns, each behind `indent` blanks. Lines that begin with two
/// blanks stay as they are.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);
/// That help is broken to: COLUMNS, else the terminal's, else 80, and neither narrow nor wide.
std::size_t help_width();

/// Columns of characters, not bytes.
std::size_t columns_of(std::string_view text);
/// With blanks up to so many columns.
std::string padded(std::string_view text, std::size_t columns);

/// Rows whose cells stand below each other. On a terminal the last cell is cut where the line ends.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string str(std::size_t indent = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "1.3 MiB".
std::string bytes_text(std::int64_t bytes);
/// Three digits and a prefix of a thousand: "21.3 G".
std::string prefixed(double value);
/// How long ago: "3 days ago".
std::string ago_text(std::int64_t seconds);
/// "1 file", "2 files".
std::string counted(std::int64_t count, std::string_view thing);

void print_json(const files::Json& value);

}  // namespace stet::tools
