#!/bin/sh
# op_headers.sh <source folder> <output folder>: what other files need to know of the ops in stet/ops/*.cpp.
#   declarations.h   the blocks between "#ifdef STET_DECLARATIONS" and "#endif": what users call
#   structured.def   STET_STRUCTURED(name) for every row that stands there
#   functions.def    STET_FUNCTION(name, signatures, documentation, names elsewhere, example) for every function with a
#                    "///" comment: its lines "Names: …" and "Example: …", the rest the documentation, with what its
#                    structs of options and results hold; functions without an example as
#                    STET_FUNCTION_WITHOUT_EXAMPLE(name, signatures, documentation, names elsewhere). Overloads without
#                    a comment belong to the function before them. Rows of elementwise.def have names and example in
#                    elementwise_names.txt. STET_FAMILY(name) before functions that belong together: a line
#                    "// --- name" in a block.
# So an op is in one place: its declaration with its documentation, its row and its callable. A file that would not
# change is not touched, and what includes it is not compiled again.
set -eu
cd "$1"
out=$2
mkdir -p "$out"

replace() {
  if cmp -s "$out/$1.new" "$out/$1"; then rm "$out/$1.new"; else mv "$out/$1.new" "$out/$1"; fi
}

{
  echo "// Made by cmake/op_headers.sh from stet/ops/*.cpp, where each op is declared, described and written: look there."
  echo "// Included by stet/ops/ops.h."
  echo "#pragma once"
  echo
  echo "namespace stet {"
  awk '/^#ifdef STET_DECLARATIONS/ { inside = 1; print ""; next }
       inside && /^#endif/ { inside = 0; next }
       inside { print }' stet/ops/*.cpp
  echo
  echo "}  // namespace stet"
} > "$out/declarations.h.new"
replace declarations.h

awk -f cmake/op_functions.awk \
  stet/ops/elementwise_names.txt stet/ops/elementwise.def stet/ops/ops.h stet/ops/*.cpp > "$out/functions.def.new"
replace functions.def

sed -n 's/^constinit const OpDef \([a-z0-9_]*\)_row{.*/STET_STRUCTURED(\1)/p' stet/ops/*.cpp > "$out/structured.def.new"
echo "#undef STET_STRUCTURED" >> "$out/structured.def.new"
replace structured.def
