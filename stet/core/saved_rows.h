// The rows that a file may name: a closed list. Not a public header.
#pragma once
#include <span>
#include <string_view>

#include "stet/core/saved_fields.h"
#include "stet/ir/op.h"

namespace stet {

struct SavedRow {
  const OpDef* row = nullptr;
  const AttributeCodec* attributes = nullptr;  // null: the row has none
  bool any_number = false;                     // of operands, from one on
};

/// Every row of the table that nodes of a trace have: maps stand there by their bodies. Defined in ops/.
std::span<const SavedRow> saved_rows();
/// Null if there is none.
const SavedRow* find_saved_row(std::string_view name);

}  // namespace stet
