#!/bin/sh
# check-layers.sh <source folder> <layer>...: a file includes only from its own layer and the layers before it, and only
# cpu/ includes LLVM or oneDNN. Prints every line that does not keep to it.
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
exit $status
