// History: what fit() measured, epoch by epoch.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"

namespace stet::keras {

/// A name with the line it was written on.
struct HistoryKey {
  template <class T>
  requires std::convertible_to<T, std::string_view> HistoryKey(const T& n, Where w = Where::here())
      : name(n), where(w) {}
  std::string_view name;
  Where where;
};

class STET_API History {
 public:
  /// One value per epoch: history["loss"], history["val_accuracy"]. Another name is a UserError that lists them.
  const std::vector<double>& operator[](const HistoryKey& key) const&;
  /// Of one that ends with the line: for (double loss : model.fit(x, y)["loss"]) …
  std::vector<double> operator[](const HistoryKey& key) const&& { return (*this)[key]; }

  std::map<std::string, std::vector<double>, std::less<>> values = {};
  std::vector<int> epochs = {};  // numbered from 0
};

}  // namespace stet::keras
