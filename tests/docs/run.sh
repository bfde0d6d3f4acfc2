#!/bin/sh
# run.sh <build folder> <source folder> <compiler>: compiles and runs every complete program (a ```cpp block with a main) in
# README.md and docs/, and compares what it prints with the ```text block that follows it.
set -eu
build=$1 source=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The header once for all programs.
mkdir -p "$work/header/stet"
echo "#include \"$source/stet/stet.h\"" > "$work/header/stet/stet.h"
compile="$compiler -std=c++20 -Wall -Wextra -I$work/header -I$source -I$build/generated"
$compile -x c++-header "$work/header/stet/stet.h" -o "$work/header/stet/stet.h.gch"
count=0
for page in "$source/README.md" "$source"/docs/*.md; do
  rm -f "$work"/block*
  awk -v work="$work" '
    /^```cpp$/ { n++; file = work "/block" n ".cpp"; next }
    /^```text$/ && after == n && n { file = work "/block" n ".txt"; next }
    /^```$/ { if (file ~ /\.cpp$/) after = n; else if (file) after = 0; if (file) close(file); file = ""; next }
    file { print > file }
    !file && NF { after = 0 }' "$page"
  for block in "$work"/block*.cpp; do
    [ -f "$block" ] && grep -q "int main" "$block" || continue
    count=$((count + 1))
    $compile "$block" -o "$work/program" -L"$build" -lstet -Wl,-rpath,"$build" || { echo "$page: a program does not compile" >&2; exit 1; }
    "$work/program" > "$work/printed" || { echo "$page: a program fails" >&2; exit 1; }
    if [ -f "${block%.cpp}.txt" ] && ! diff "${block%.cpp}.txt" "$work/printed"; then
      echo "$page: a program prints something else than the page says" >&2
      exit 1
    fi
  done
done
[ "$count" -gt 0 ] || { echo "no program found in the documentation" >&2; exit 1; }
echo "$count programs"
