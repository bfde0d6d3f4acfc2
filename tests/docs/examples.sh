#!/bin/sh
# examples.sh <source folder> <folder of generated headers>: every public function of ops has an example in its
# documentation, every row of elementwise.def one in elementwise_names.txt, and neither names what is not there. (That the
# examples compile and give what docs/ops.md says is the test docs_fresh.)
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Functions that cannot have one, and why.
cat > "$work/exempt" <<'END'
random::seed                 gives nothing: it restarts the process's generator
random::default_generator    gives a generator, of which there is nothing to print
random::next_initial_stream  gives something else at every call
END

sed -n 's/^STET_FUNCTION(R"doc(\([^)]*\))doc".*/\1/p' "$2/stet/ops/functions.def" | sort -u > "$work/with"
sed -n 's/^STET_FUNCTION_WITHOUT_EXAMPLE(R"doc(\([^)]*\))doc".*/\1/p' "$2/stet/ops/functions.def" | sort -u > "$work/without"
bad=0
for name in $(cat "$work/without"); do
  grep -q "^$name " "$work/exempt" || { echo "$name: a declaration is documented without an example: add /// Example: …"; bad=1; }
done

# What is declared, by namespace. A draw of random:: has a stateless_ twin, which is documented with it.
awk '
  /^namespace [a-z]+ \{/ { space = $2 == "stet" ? "" : $2 "::"; next }
  /^}/ { if (body) body = 0; else space = ""; next }
  space == "inside::" || space == "creation::" { next }
  /^(STET_API |inline )?(Tensor|TensorPart|Shape|[A-Z][A-Za-z]*Result|Sorted|Unique|Histogram|std::[a-z]+<[A-Za-z, ]*>) [a-z0-9_]+\(/ {
    name = $0; sub(/\(.*/, "", name); sub(/.* /, "", name); sub(/^stateless_/, "", name)
    print space name
  }
  /\{$/ { body = 1 }' "$2/stet/ops/declarations.h" | sort -u > "$work/declared"
sed -n 's/^STET_[A-Z]*( *\([a-z0-9_]*\),.*/\1/p' stet/ops/elementwise.def >> "$work/declared"
for name in $(cat "$work/declared"); do
  grep -q -x "$name" "$work/with" || grep -q "^$name " "$work/exempt" || { echo "$name has no example: /// Example: … at its declaration, or a line in stet/ops/elementwise_names.txt"; bad=1; }
done
for name in $(sed -n 's/^\([a-z0-9_][a-z0-9_]*\) *|.*/\1/p' stet/ops/elementwise_names.txt); do
  grep -q "^STET_[A-Z]*( *$name," stet/ops/elementwise.def || { echo "elementwise_names.txt: $name is no row of elementwise.def"; bad=1; }
done
grep -v '^#' stet/ops/elementwise_names.txt | awk -F' *[|] *' 'NF != 3 || $2 == "" || $3 == "" { print "elementwise_names.txt: " $0; bad = 1 } END { exit bad }' || bad=1
while read -r name why; do
  grep -q -x "$name" "$work/without" || { echo "$name is exempt, but has an example or is gone"; bad=1; }
done < "$work/exempt"
[ "$(wc -l < "$work/declared")" -gt 250 ] || { echo "found $(wc -l < "$work/declared") functions only: has their form changed?"; bad=1; }
echo "$(wc -l < "$work/declared") functions"
[ $bad = 0 ]
