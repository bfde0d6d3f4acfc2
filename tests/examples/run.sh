#!/bin/sh
# run.sh <program> <text> [argument…]: runs an example, which must end well, and compares what it prints with the text. In it … stands
# for any part of a line, and a line of … alone for any lines, or none.
set -eu
program=$1 text=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -f "$text" ] || { echo "$text is missing: every example has a text of what it prints" >&2; exit 1; }
status=0
"$program" "$@" > "$work/printed" || status=$?
if [ "$status" != 0 ]; then
  cat "$work/printed"
  echo "$program ended with status $status" >&2
  exit 1
fi
awk -v text="$text" '
  # Pieces between … are looked for one after the other; the first and the last stand at the ends of the line.
  function fits(line, pattern,    count, pieces, i, at) {
    count = split(pattern, pieces, "…")
    if (count < 2) return line == pattern
    if (substr(line, 1, length(pieces[1])) != pieces[1]) return 0
    line = substr(line, length(pieces[1]) + 1)
    for (i = 2; i < count; i++) {
      at = index(line, pieces[i])
      if (!at) return 0
      line = substr(line, at + length(pieces[i]))
    }
    at = length(line) - length(pieces[count])
    return at >= 0 && substr(line, at + 1) == pieces[count]
  }
  function expect_next() { skipping = 0; while ((getline expected < text) > 0) { if (expected != "…") return; skipping = 1 }; expected = ""; over = 1 }
  function fail(why) { print text ": " why > "/dev/stderr"; failed = 1; exit 1 }
  BEGIN { expect_next() }
  !over && fits($0, expected) { matched++; expect_next(); next }
  skipping { next }
  over { fail("line " NR " is not in it:\n  " $0) }
  { fail("line " NR " is\n  " $0 "\nexpected was\n  " expected) }
  END {
    if (failed) exit 1
    if (!over) fail("the program did not print\n  " expected)
    if (!matched) fail("it has no line to compare with")
  }' "$work/printed" || { echo "what $program printed:"; cat "$work/printed"; exit 1; }
