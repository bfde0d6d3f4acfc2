#include "stet/keras/history.h"

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet::keras {

const std::vector<double>& History::operator[](const HistoryKey& key) const& {
  auto found = values.find(key.name);
  if (found != values.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, series] : values) known.push_back(name);
  throw UserError(error_text(text("the history has no '", key.name, "'"), key.where,
                             known.empty() ? "no epoch was run" : text("it has ", joined(known, ", "))));
}

}  // namespace stet::keras
