#!/bin/sh
# check-layers.sh <source folder> <layer>...: a file includes only from its own layer and the layers before it, and only
# cpu/ includes LLVM or oneDNN, and nobody above names its types; keras/ is written as a user could, with installed headers; only runtime/log.cpp writes to stderr; what answers about sizes
# without a record is out of sight of users, ops/, data/ and keras/. Prints every line that does not keep to it.
set -eu
cd "$1"
shift

allowed=""
status=0
for layer in "$@"; do
  allowed="${allowed:+$allowed|}$layer"
  [ -d "stet/$layer" ] || continue
  if grep -n -r -E '^#include "stet/' "stet/$layer" | grep -v -E "#include \"stet/($allowed)/"; then
    echo "^ $layer/ may include only from: $allowed" >&2
    status=1
  fi
  case $layer in compiler | core | ops | data | report | keras)
    # But for report/machine*, which measures what the processor can do.
    if grep -n -r -E 'cpu::|^#include "stet/cpu/' "stet/$layer" | grep -v '^stet/report/machine'; then
      echo "^ only tools may know a device's types: lowering asks a Target" >&2
      status=1
    fi ;;
  esac
  if [ "$layer" != cpu ] && grep -n -r -E '^#include [<"](llvm|dnnl)' "stet/$layer"; then
    echo "^ only cpu/ may include LLVM or oneDNN" >&2
    status=1
  fi
done
if grep -n -r -E 'stderr\)|stderr,|STDERR_FILENO|std::(cerr|clog)' stet --include='*.h' --include='*.cpp' |
  grep -v -E '^stet/(tools/|runtime/log[.]cpp:)|^[^:]*:[0-9]*: *//'; then
  echo "^ what the library says on stderr goes through runtime/log.h" >&2
  status=1
fi
for header in $(grep -r -h -E '^#include "stet/' stet/keras 2>/dev/null | sed 's/.*"\(.*\)"/\1/' | sort -u); do
  # Besides: files; the library's own locks, which fork() waits for; the terminal; lines (Frame) and sizes in messages; what layers inherit,
  # which Variables they read, what goes along with tensors (masks), what is kept for the length of a trace (added losses),
  # what fit() tells a recording, and what is said on stderr.
  case $header in
    stet/keras/* | stet/files/* | stet/base/lock.h | stet/base/thread_end.h | stet/base/terminal.h) continue ;;
    stet/core/call.h | stet/core/size_words.h | stet/core/ambient.h | stet/core/variable_watch.h | stet/core/companion.h | stet/core/kept_tensors.h | stet/runtime/recording.h | stet/runtime/log.h) continue ;;
  esac
  if ! grep -q "$header" cmake/install.cmake; then
    grep -n -r "\"$header\"" stet/keras
    echo "^ keras/ may include only headers that cmake/install.cmake installs" >&2
    status=1
  fi
done
# What `using namespace stet` must not bring: users' names are theirs.
for header in $(sed -n '/set(STET_PUBLIC_HEADERS/,/)/p' cmake/install.cmake | grep -o 'stet/[a-z_/]*\.h'); do
  if grep -n '#include "stet/base/inside.h"' "$header" /dev/null; then
    echo "^ an installed header may not include inside.h" >&2
    status=1
  fi
done

# Every header through which stet/base/dim_inside.h is seen, found by going from a header to those that include it.
seen="stet/base/dim_inside.h"
fresh=$seen
while [ -n "$fresh" ]; do
  pattern=$(echo $fresh | sed 's/[.]/[.]/g; s/ /|/g')
  found=$(grep -r -l --include='*.h' -E "^#include \"($pattern)\"" stet || true)
  fresh=""
  for header in $found; do
    case " $seen " in *" $header "*) continue ;; esac
    fresh="${fresh:+$fresh }$header"
  done
  seen="$seen${fresh:+ $fresh}"
done
pattern=$(echo $seen | sed 's/[.]/[.]/g; s/ /|/g')
if grep -n -r -E "^#include \"($pattern)\"" stet/ops stet/data stet/keras stet/stet.h; then
  echo "^ answers about sizes that are not recorded: only base/, ir/, runtime/, cpu/, compiler/ and core/ may see them" >&2
  status=1
fi
for header in $seen; do
  if grep -n -E "(^| )$header( |$|\))" cmake/install.cmake; then
    echo "^ users would see stet/base/dim_inside.h" >&2
    status=1
  fi
done
exit $status
