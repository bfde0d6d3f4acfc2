#!/bin/sh
# op_headers.sh <source folder> <output folder>: what other files need to know of the ops in stet/ops/*.cpp.
#   declarations.h   the blocks between "#ifdef STET_DECLARATIONS" and "#endif": what users call
#   structured.def   STET_STRUCTURED(name) for every row that stands there
#   functions.def    STET_FUNCTION(name, documentation, names elsewhere, example) for every function with a "///" comment:
#                    its lines "Names: …" and "Example: …", the rest the documentation; functions without an example as
#                    STET_FUNCTION_WITHOUT_EXAMPLE(name, documentation, names elsewhere). Rows of elementwise.def have
#                    theirs in elementwise_names.txt. STET_FAMILY(name) before functions that belong together: a line
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

awk '
  function text(value) { return "R\"doc(" value ")doc\"" }
  function trimmed(value) { gsub(/^ +| +$/, "", value); return value }
  function tell(name) {
    if (family != told) print "STET_FAMILY(" text(toupper(substr(family, 1, 1)) substr(family, 2)) ")"
    told = family
    head = text(name) ", " text(words) ", " text(names)
    if (example == "") print "STET_FUNCTION_WITHOUT_EXAMPLE(" head ")"
    else print "STET_FUNCTION(" head ", " example ")"
  }
  FILENAME ~ /elementwise_names\.txt$/ {
    if (!/^#/ && split($0, column, / *\| */) == 3) { names_of[column[1]] = column[2]; example_of[column[1]] = column[3] }
    next
  }
  FILENAME ~ /elementwise\.def$/ {
    if (!/^STET_[A-Z]+\(/) next
    family = "elementwise"
    name = $0; sub(/^STET_[A-Z]+\( */, "", name); sub(/,.*/, "", name)
    words = $0; sub(/^[^"]*"/, "", words); sub(/".*/, "", words)
    names = names_of[name]; example = example_of[name]
    tell(name)
    words = names = example = ""
    next
  }
  FNR == 1 { inside = FILENAME ~ /ops\.h$/; member = body = 0; space = "" }
  /^#ifdef STET_DECLARATIONS/ { inside = 1; next }
  inside && /^#endif/ { inside = 0; next }
  !inside { next }
  /^\/\/ --- / { family = substr($0, 8); sub(/[;.].*/, "", family); next }
  /^namespace [a-z]+ \{/ { space = $2 == "stet" ? "" : $2 "::"; next }
  /^}/ { if (body) body = 0; else space = "" }  # of a class or function, or of the namespace
  /\{$/ { body = 1 }
  /^class STET_API Source / { member = 1 }  # its draws are functions of random:: too
  /^};/ { member = 0 }
  member { sub(/^  /, "") }
  /^\/\/\/ Names: / { names = substr($0, 12); next }
  /^\/\/\/ Example: / { example = substr($0, 14); next }
  /^\/\/\/ / { words = words (words == "" ? "" : " ") substr($0, 5); next }
  words names example != "" && /^template / { signature = $0; next }
  signature != "" { signature = signature " " trimmed($0) }
  signature != "" && !/[{;]$/ { next }
  signature != "" && match(signature, /[a-z0-9_]+\((In|A|const Tensor&) /) {
    name = substr(signature, RSTART); sub(/\(.*/, "", name)
    tell(space name)
  }
  signature == "" && words names example != "" && (/^STET_API [^(]*\(/ || (member && /^Tensor [a-z0-9_]+\(/)) {
    name = $0; sub(/\(.*/, "", name); sub(/.* /, "", name)
    tell(space name)
  }
  { words = names = example = signature = "" }' \
  stet/ops/elementwise_names.txt stet/ops/elementwise.def stet/ops/ops.h stet/ops/*.cpp > "$out/functions.def.new"
replace functions.def

sed -n 's/^constinit const OpDef \([a-z0-9_]*\)_row{.*/STET_STRUCTURED(\1)/p' stet/ops/*.cpp > "$out/structured.def.new"
echo "#undef STET_STRUCTURED" >> "$out/structured.def.new"
replace structured.def
