#!/bin/sh
# check-layers.sh <source folder> <layer>...: a file includes only from its own layer and the layers before it, and only
# cpu/ includes LLVM or oneDNN; keras/ is written as a user could, with installed headers. Prints every line that does
# not keep to it.
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
  if [ "$layer" != cpu ] && grep -n -r -E '^#include [<"](llvm|dnnl)' "stet/$layer"; then
    echo "^ only cpu/ may include LLVM or oneDNN" >&2
    status=1
  fi
done
for header in $(grep -r -h -E '^#include "stet/' stet/keras 2>/dev/null | sed 's/.*"\(.*\)"/\1/' | sort -u); do
  # The library's own locks, which fork() waits for, are no part of what keras/ is written with.
  case $header in stet/keras/* | stet/base/lock.h | stet/base/thread_end.h) continue ;; esac
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
exit $status
