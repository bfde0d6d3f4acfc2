#!/bin/sh
# generate.sh <build folder> [--check]: makes the parts of docs/ that come from commands. A block that follows a line
#   <!-- made by: stet … -->
# is replaced by what the command prints. `stet+` runs a stet built with the line of docs/one_op.md's example added to the
# table of elementwise ops, in a copy of the tree. docs/keras_names.md is made whole, by keras_names.py. With --check nothing is written: pages that would change are named, and
# `stet+`, which takes a build of its own, is left alone.
set -eu
build=$(cd "$1" && pwd)
check=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "$check" ]; then
  # The example of docs/one_op.md, as a stranger would add it.
  line=$(sed -n 's/^+\(STET_UNARY(.*\)$/\1/p' "$root/docs/one_op.md")
  mkdir "$work/tree"
  (cd "$root" && tar cf - CMakeLists.txt CMakePresets.json cmake stet bench docs/generate.sh) | (cd "$work/tree" && tar xf -)
  awk -v line="$line" '{ print } /^STET_UNARY\(  relu,/ { print line }' "$root/stet/ops/elementwise.def" \
    > "$work/tree/stet/ops/elementwise.def"
  CCACHE_BASEDIR="$work"
  export CCACHE_BASEDIR
  cmake -S "$work/tree" --preset release -B "$work/build" -DSTET_TESTS=OFF -DSTET_EXAMPLES=OFF > "$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
  cmake --build "$work/build" --target stet_command >> "$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
fi

# Help is broken to it.
unset COLUMNS

# Constants of 16 equal lanes are written once, and what does not help a reader is left out.
cat > "$work/shorten" <<'END'
s/<\(\(float\|i32\|i64\|double\) [^,>]*\)\(, \1\)\{3,\}>/splat(\1)/g
/^; ModuleID/d
/^source_filename/d
/^target /d
/^attributes/d
/^declare/d
/^; Function Attrs/d
END

render() {
  awk -v check="$check" -v build="$build" -v plus="$work/build" -v shorten="$work/shorten" '
    /^<!-- made by: / {
      print
      command = $0
      sub(/^<!-- made by: /, "", command); sub(/ -->$/, "", command)
      if (command ~ /^stet\+ / && check != "") next
      if (command ~ /^stet\+ /) { sub(/^stet\+/, plus "/stet", command) } else { sub(/^stet/, build "/stet", command) }
      fence = 1
      if (command ~ /\/stet ops( functions| names)?$/) fence = 0
      if (fence) { getline; print }
      pipe = command " | sed -f " shorten
      while ((pipe | getline out) > 0) print out
      close(pipe)
      while ((getline old) > 0) if (fence ? old == "```" : old == "<!-- end -->") break
      print old
      next
    }
    { print }' "$1" > "$work/page"
  if [ -z "$check" ]; then
    cp "$work/page" "$1"
  elif ! diff "$1" "$work/page"; then
    echo "docs/$(basename "$1") is not what its commands print now: make docs"
    stale=1
  fi
}
stale=0
for page in one_op.md ops.md names.md command.md; do render "$root/docs/$page"; done
# Reports keep what was measured when they were made (make reports), in the page as it is now.
for report in "$root"/docs/reports/*.html; do
  name=$(basename "$report")
  sed -n 's/^<script id="data" type="application\/json">\(.*\)<\/script>$/\1/p' "$report" | "$build/stet_make_page" > "$work/$name"
  if [ -z "$check" ]; then
    cp "$work/$name" "$report"
  elif ! cmp -s "$report" "$work/$name"; then
    echo "docs/reports/$name is not the page that reports are now: make docs"
    stale=1
  fi
done
python3 "$root/docs/keras_names.py" "$root" "$build/generated" $check || stale=1
exit $stale
