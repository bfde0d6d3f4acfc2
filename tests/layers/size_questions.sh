#!/bin/sh
# size_questions.sh <compiler> <source folder>: what answers about a size without a record does not compile for a user.
set -eu
compiles() {
  printf '#include "stet/stet.h"\nusing namespace stet;\nauto ask(const Dim& d, const Dim& e, const Shape& s) { (void)d, (void)e, (void)s; return %s; }\n' "$1" |
    "$compiler" -std=c++20 -fsyntax-only -I"$source" -I"$generated" -x c++ - > /dev/null 2>&1
}
compiler=$1
source=$2
generated=$3
status=0
for question in 'd.value()' 'd == e' 's.sizes()' 'd + e' 'size_text(d)' 'inside::require(d, Relation::equal, e, {})'; do
  compiles "$question" || { echo "does not compile: $question" >&2; status=1; }
done
for question in 'd.hint()' 'd.constant()' 'd.is_constant()' 'd.is_constant(1)' 'd.scope()' 'd.as_symbol()' 'd.symbols()' 'd.hash()' \
  'd.substitute({})' 'identical(d, e)' 'identical(s, s)' 'prove(d, Relation::equal, e)' 'prove_equal(d, e)' 'simplified(d)' \
  'exact_quotient(d, e)' 's.is_constant()' 's.hash()' 's.substitute({})' 'SymbolScope()' 'RecordingScope()'; do
  if compiles "$question"; then
    echo "compiles, but asks about a size without a record: $question" >&2
    status=1
  fi
done
exit $status
