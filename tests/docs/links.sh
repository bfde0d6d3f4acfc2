#!/bin/sh
# links.sh <source folder>: what README.md, docs/ and the pages of examples/ link to within the repository is there, headings
# included, and every page of docs/ is linked to from README.md.
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The anchors of a page, as GitHub makes them of headings.
anchors() {
  awk '/^```/ { code = !code } !code && /^#+ / { sub(/^#+ /, ""); print tolower($0) }' "$1" | sed 's/[^a-z0-9_ -]//g; s/ /-/g'
}
bad=0
for page in README.md docs/*.md examples/*/README.md; do
  awk '/^```/ { code = !code } !code' "$page" | grep -o '](\([^) ]*\))' | sed 's/^](//; s/)$//' | grep -v '^https\{0,1\}:' > "$work/links" || true
  while read -r link; do
    file=${link%%#*}
    target=$page
    [ -z "$file" ] || target=$(dirname "$page")/$file
    [ -e "$target" ] || { echo "$page: $link is not there"; bad=1; continue; }
    case $link in
      *#*) anchors "$target" | grep -q -x -- "${link#*#}" || { echo "$page: $link: no such heading"; bad=1; } ;;
    esac
  done < "$work/links"
done
for page in docs/*.md; do
  grep -q "($page)" README.md || { echo "README.md does not link to $page"; bad=1; }
done
[ $bad = 0 ]
