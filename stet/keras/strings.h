// Strings: texts and tokens on the host, as layers that look them up take and give them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/core/tensor.h"

namespace stet::keras {

/// One string, a list of them, or rows of them: {"a", "b"}, {{"a", "b"}, {"c", "d"}}. Rows may have any lengths.
class STET_API Strings {
 public:
  Strings(std::string one) : values_{std::move(one)}, lengths_{1}, rank_(0) {}
  Strings(const char* one) : Strings(std::string(one)) {}
  Strings(std::vector<std::string> list) : values_(std::move(list)), lengths_{values_.size()} {}
  Strings(const std::vector<std::vector<std::string>>& rows);
  Strings(std::initializer_list<const char*> list) : Strings(std::vector<std::string>(list.begin(), list.end())) {}
  Strings(std::initializer_list<std::string> list) : Strings(std::vector<std::string>(list)) {}
  Strings(std::initializer_list<std::initializer_list<const char*>> rows);

  /// 0 of one string, 1 of a list, 2 of rows.
  int rank() const { return rank_; }
  /// All of them, row by row.
  const std::vector<std::string>& values() const { return values_; }
  /// The lengths of the rows; one string and a list are one row.
  const std::vector<std::size_t>& lengths() const { return lengths_; }
  std::vector<std::vector<std::string>> rows() const;
  bool operator==(const Strings&) const = default;

 private:
  std::vector<std::string> values_;
  std::vector<std::size_t> lengths_;
  int rank_ = 1;
};
/// ["a" "b"], as NumPy writes it.
STET_API std::ostream& operator<<(std::ostream&, const Strings&);

}  // namespace stet::keras
