#!/bin/sh
# reports.sh <source folder>: the pages of docs/reports are small enough to be cloned by everybody, and name no folder of the
# machine that they were made on.
set -eu
cd "$1/docs/reports"
bad=0
for page in find_the_retrace_slow.html find_the_retrace_fixed.html; do
  bytes=$(wc -c < "$page")
  [ "$bytes" -lt 500000 ] || { echo "$page has $bytes bytes"; bad=1; }
  data=$(grep '^<script id="data"' "$page")
  case $data in
    *'"file":"examples/find_the_retrace.cpp"'*) ;;
    *) echo "$page does not name the example's file as it is called in the repository"; bad=1 ;;
  esac
  if echo "$data" | grep -o -E '[" (]/[A-Za-z0-9_.-]+/.{0,40}'; then
    echo "$page names a folder of the machine that it was made on"
    bad=1
  fi
done
[ $bad = 0 ]
