#!/bin/sh
# Installs the Debian packages named in the given files, one per line, `#` for comments. Quick when all are there.
set -eu

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "install-packages: this is not a Debian system; see $* for what is needed" >&2
  exit 0
fi

wanted=$(sed -e 's/#.*//' "$@" | tr -s ' \t\n' ' ')
missing=""
for package in $wanted; do
  case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) in
    # Packages of several architectures answer once each.
    installed*) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -z "$missing" ] && exit 0

echo "install-packages: installing$missing"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "install-packages: neither root nor sudo; ask your administrator for:$missing" >&2
    exit 1
  fi
  as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
# shellcheck disable=SC2086  # a list of words
$as_root apt-get install -q -y --no-install-recommends $missing
