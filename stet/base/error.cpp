#include "stet/base/error.h"

#include "stet/base/text.h"

namespace stet {

std::string error_text(const std::string& what, Where where, const std::string& advice) {
  std::string out = what;
  if (where.known()) out += text("\n  at ", where.file, ':', where.line);
  if (!advice.empty()) out += text("\n  fix: ", advice);
  return out;
}

}  // namespace stet
