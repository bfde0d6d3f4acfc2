#include "stet/ops/table.h"

namespace stet {

std::vector<const OpDef*> all_rows() {
  std::vector<const OpDef*> out;
  for (const OpDef& row : elementwise_rows()) out.push_back(&row);
  for (const OpDef& row : cast_rows()) out.push_back(&row);
#define STET_STRUCTURED(name) out.push_back(&name##_row);
#include "stet/ops/structured.def"
  return out;
}

}  // namespace stet
