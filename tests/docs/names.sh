#!/bin/sh
# names.sh <source folder> <folder of generated headers>: every function that docs/names.md names is declared.
set -eu
cd "$1"
declared=$(mktemp)
trap 'rm -f "$declared"' EXIT
{
  sed -n 's/^STET_[A-Z]*( *\([a-z0-9_]*\),.*/\1/p' stet/ops/elementwise.def
  cat "$2/stet/ops/declarations.h" stet/ops/ops.h stet/core/tensor.h stet/core/dlpack.h stet/base/dtype.h |
    grep -o '[a-z][a-z0-9_]*(' | tr -d '('
} | sort -u > "$declared"
missing=0
for name in $(sed -n 's/^| [^|]* | `[^|]*` | \(`[^|]*`\) |$/\1/p' docs/names.md | grep -v 'std::' | grep -v ' itself' | tr -d '`,' | sed 's/linalg:://g'); do
  grep -q -x "$name" "$declared" || { echo "docs/names.md names $name, which is not declared"; missing=1; }
done
[ $missing = 0 ]
