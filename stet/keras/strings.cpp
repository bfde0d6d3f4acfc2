#include "stet/keras/strings.h"

#include <ostream>

namespace stet::keras {

Strings::Strings(const std::vector<std::vector<std::string>>& rows) : rank_(2) {
  for (const auto& row : rows) {
    values_.insert(values_.end(), row.begin(), row.end());
    lengths_.push_back(row.size());
  }
}
Strings::Strings(std::initializer_list<std::initializer_list<const char*>> rows) : rank_(2) {
  for (const auto& row : rows) {
    values_.insert(values_.end(), row.begin(), row.end());
    lengths_.push_back(row.size());
  }
}

std::vector<std::vector<std::string>> Strings::rows() const {
  std::vector<std::vector<std::string>> out;
  auto at = values_.begin();
  for (std::size_t length : lengths_) {
    out.emplace_back(at, at + static_cast<std::ptrdiff_t>(length));
    at += static_cast<std::ptrdiff_t>(length);
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Strings& strings) {
  auto write_row = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) out << (i == 0 ? "\"" : " \"") << row[i] << '"';
  };
  const auto rows = strings.rows();
  if (strings.rank() == 0) {
    write_row(rows[0]);
    return out;
  }
  if (strings.rank() == 2) out << '[';
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out << (i == 0 ? "[" : "\n [");
    write_row(rows[i]);
    out << ']';
  }
  if (strings.rank() == 2) out << ']';
  return out;
}

}  // namespace stet::keras
