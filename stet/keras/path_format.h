// Paths with values in them, as Python's str.format writes them: "{epoch:02d}-{val_loss:.2f}.keras". Not a public
// header.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "stet/base/where.h"

namespace stet::keras {

using FormatValues = std::map<std::string, std::variant<std::int64_t, double>>;

class PathFormat {
 public:
  /// UserError, with `callback` in it, for what is no format.
  PathFormat(std::string format, const char* callback, Where where);
  /// UserError for a name that has no value, and for an integer's format of a floating number.
  std::string operator()(const FormatValues& values) const;
  const std::string& str() const { return format_; }

 private:
  struct Field {
    std::string text;  // before it
    std::string name;  // none: only the text
    char fill = ' ', align = 0, sign = '-', type = 0;
    bool alternate = false;
    int width = 0, precision = -1;
  };
  [[noreturn]] void refuse(const std::string& what, const std::string& advice) const;
  Field parsed(const std::string& inside) const;
  std::string written(const Field& field, const std::variant<std::int64_t, double>& value) const;

  std::string format_;
  const char* callback_;
  Where where_;
  std::vector<Field> fields_;
};

}  // namespace stet::keras
