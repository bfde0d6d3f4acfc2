#!/bin/sh
# names.sh <source folder> <folder of generated headers>: docs/names.md names every function of the array API standard,
# what it says to be here is declared, and what it says not to be here is not.
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
  sed -n 's/^STET_[A-Z]*( *\([a-z0-9_]*\),.*/\1/p' stet/ops/elementwise.def
  cat "$2/stet/ops/declarations.h" stet/ops/ops.h stet/core/tensor.h stet/core/dlpack.h stet/base/dtype.h |
    sed 's|//.*||' | grep -o '[a-z][a-z0-9_]*(' | tr -d '('
} | sort -u > "$work/declared"
sed -n 's/^STET_FUNCTION[A-Z_]*(R"doc(\([^)]*\))doc".*/\1/p' "$2/stet/ops/functions.def" | sed 's/.*:://' | sort -u > "$work/functions"
bad=0
# | group | `name elsewhere` | `name here` |
for name in $(sed -n 's/^| [^|]* | `[^|]*` | \(`[^|]*`\) |$/\1/p' docs/names.md | grep -v 'std::' | grep -v ' itself' | tr -d '`,' | sed 's/linalg:://g'); do
  grep -q -x "$name" "$work/declared" || { echo "docs/names.md names $name, which is not declared"; bad=1; }
done
for name in $(grep -v '^#' tests/docs/array_api_2024_12.txt); do
  grep -q "^| [^|]* | \`$name\` | .* |\$" docs/names.md || { echo "docs/names.md does not have $name of the array API"; bad=1; }
done
# | `library.name`, … | words | between the heading and the next one
sed -n '/^## What is not here/,/^## [^W]/s/^| \(`[^|]*`\) |.*/\1/p' docs/names.md | tr -d '` ' | tr ',' '\n' > "$work/absent"
[ -s "$work/absent" ] || { echo "docs/names.md: no names under 'What is not here'"; bad=1; }
for name in $(sed 's/.*\.//' "$work/absent" | grep -v '\*'); do
  ! grep -q -x "$name" "$work/functions" || { echo "docs/names.md says that $name is not here, but it is declared"; bad=1; }
done
[ $bad = 0 ]
