#!/bin/sh
# Compiles the programs in cases.txt and looks whether each does what its title says.
#   run.sh <source folder> <compiler> <folder of generated headers>
# A title is "=== compiles: name" or "=== fails: name: what the compiler must say" (a basic regular expression).
set -eu
source=$1 compiler=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
options="-std=c++20 -Wall -Wextra -I$source -I$3"
# The header once for all.
printf '#include "stet/stet.h"\n' > "$folder/all.h"
$compiler $options -x c++-header "$folder/all.h" -o "$folder/all.h.gch"
awk -v folder="$folder" '
  /^=== / { ++n; file = sprintf("%s/%03d", folder, n); print substr($0, 5) > (file ".title"); next }
  n { print > (file ".cpp") }
' "$source/tests/compile/cases.txt"
failed=0 count=0
for program in "$folder"/*.cpp; do
  title=$(cat "${program%.cpp}.title")
  count=$((count + 1))
  if $compiler $options -fsyntax-only -include "$folder/all.h" "$program" > "$folder/said" 2>&1; then outcome=compiles; else outcome=fails; fi
  case $title in
    compiles:*)
      [ $outcome = compiles ] && [ ! -s "$folder/said" ] && continue ;;
    *)
      wanted=$(printf '%s' "$title" | sed 's/^fails: [^:]*: //')
      [ $outcome = fails ] && grep -q -e "$wanted" "$folder/said" && continue ;;
  esac
  failed=$((failed + 1))
  printf 'compile test: "%s" %s; the compiler said:\n' "$title" "$outcome"
  head -30 "$folder/said"
done
[ $count -gt 0 ] || { echo "compile test: no programs"; exit 1; }
echo "$count programs, $failed wrong"
[ $failed = 0 ]
