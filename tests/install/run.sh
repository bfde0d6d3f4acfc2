#!/bin/sh
# run.sh <build folder> <source folder> <compiler>: installs into an empty prefix, moves it, and builds a stranger's
# program against it, once with find_package and once with pkg-config, in folders that know nothing of the sources.
set -eu
build=$1
source=$2
CXX=$3
export CXX

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/prefix"
prefix=$work/prefix
library=$(find "$prefix" -name 'libstet.so')
library_folder=$(dirname "$library")

echo "-- nothing of LLVM or oneDNN shows"
if nm -D --defined-only "$library" | grep -i -E 'llvm|dnnl'; then
  echo "these symbols should be hidden" >&2
  exit 1
fi

echo "-- the command, its man page, and what shells look for"
"$prefix/bin/stet" version
for page in share/man/man1/stet.1 share/bash-completion/completions/stet share/zsh/site-functions/_stet \
  share/fish/vendor_completions.d/stet.fish; do
  [ -s "$prefix/$page" ] || { echo "$page is not installed" >&2; exit 1; }
done
"$prefix/bin/stet" manual | cmp - "$prefix/share/man/man1/stet.1"

echo "-- find_package"
mkdir "$work/cmake_user"
cp "$source/tests/install/user.cpp" "$work/cmake_user/"
cat >"$work/cmake_user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user CXX)
find_package(stet 0.1 CONFIG REQUIRED)
add_executable(user user.cpp)
target_link_libraries(user PRIVATE stet::stet)
END
cmake -S "$work/cmake_user" -B "$work/cmake_user/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/cmake.log" ||
  { cat "$work/cmake.log"; exit 1; }
cmake --build "$work/cmake_user/build" >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
"$work/cmake_user/build/user"

echo "-- pkg-config"
mkdir "$work/pkgconfig_user"
cd "$work/pkgconfig_user"
cp "$source/tests/install/user.cpp" .
PKG_CONFIG_PATH=$library_folder/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046  # words are meant
"$CXX" user.cpp $(pkg-config --cflags --libs stet) -o user
LD_LIBRARY_PATH=$library_folder ./user
