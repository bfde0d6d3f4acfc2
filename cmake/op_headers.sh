#!/bin/sh
# op_headers.sh <source folder> <output folder>: what other files need to know of the ops in stet/ops/*.cpp.
#   declarations.h   the blocks between "#ifdef STET_DECLARATIONS" and "#endif": what users call
#   structured.def   STET_STRUCTURED(name) for every row that stands there
#   functions.def    STET_FUNCTION(name, documentation, names elsewhere, example) for every function with a "///" comment:
#                    its lines "Names: …" and "Example: …", the rest the documentation; functions without an example as
#                    STET_FUNCTION_WITHOUT_EXAMPLE(name, documentation, names elsewhere)
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

awk '
  function text(value) { return "R\"doc(" value ")doc\"" }
  /^#ifdef STET_DECLARATIONS/ { inside = 1; next }
  inside && /^#endif/ { inside = 0; next }
  !inside { next }
  /^namespace [a-z]+ \{/ { space = $2 "::"; next }
  /^}( .*)?$/ { space = ""; next }
  /^\/\/\/ Names: / { names = substr($0, 12); next }
  /^\/\/\/ Example: / { example = substr($0, 14); next }
  /^\/\/\/ / { words = words (words == "" ? "" : " ") substr($0, 5); next }
  /^STET_API [^(]*\(/ && words != "" {
    name = $0; sub(/\(.*/, "", name); sub(/.* /, "", name)
    head = text(space name) ", " text(words) ", " text(names)
    if (example == "") print "STET_FUNCTION_WITHOUT_EXAMPLE(" head ")"
    else print "STET_FUNCTION(" head ", " example ")"
  }
  { words = names = example = "" }' stet/ops/*.cpp > "$out/functions.def.new"
replace functions.def

sed -n 's/^constinit const OpDef \([a-z0-9_]*\)_row{.*/STET_STRUCTURED(\1)/p' stet/ops/*.cpp > "$out/structured.def.new"
echo "#undef STET_STRUCTURED" >> "$out/structured.def.new"
replace structured.def
