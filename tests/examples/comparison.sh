#!/bin/sh
# comparison.sh: run.sh accepts the texts that it should, and refuses the others with the reason.
set -eu
run=$(cd "$(dirname "$0")" && pwd)/run.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#!/bin/sh\nprintf "a\\nb 12 c 13 d\\n\\nx\\nx (y)\\n"\n' > "$work/program"
printf '#!/bin/sh\necho a\nexit 3\n' > "$work/failing"
chmod +x "$work/program" "$work/failing"
bad=0

# accepts <text>
accepts() {
  printf "$1" > "$work/text"
  sh "$run" "$work/program" "$work/text" > "$work/log" 2>&1 || { echo "refused: $1"; cat "$work/log"; bad=1; }
}
# refuses <text> <reason> [program]
refuses() {
  printf "$1" > "$work/text"
  if sh "$run" "$work/${3:-program}" "$work/text" > "$work/log" 2>&1; then
    echo "accepted: $1"
    bad=1
  fi
  grep -q -F -- "$2" "$work/log" || { echo "refused without '$2': $1"; cat "$work/log"; bad=1; }
}

accepts 'a\nb 12 c 13 d\n\nx\nx (y)\n'
accepts 'a\nb … c … d\n\nx\n…(y)\n'
accepts '…\nx\n…\n'
accepts 'a\n…\nx (…\n'
accepts '…\nx (y)\n…\n'
refuses 'a\nb … c … e\n\nx\nx (y)\n' 'line 2 is'
refuses 'a\nb … c … 13 d\n…\n' 'line 2 is'
refuses 'b …\n…\n' 'line 1 is'
refuses 'a\nb…\n\nx\n' 'line 5 is not in it'
refuses '…\nx\n' 'line 5 is not in it'
refuses '…\nx\n…\nb … d\n…\n' 'did not print'
refuses '…\nx .y.\n' 'did not print'
refuses '…\nx (y)\nz\n' 'did not print'
refuses '…\n' 'no line to compare with'
refuses '' 'line 1 is not in it'
refuses 'a\n' 'ended with status 3' failing
rm "$work/text"
sh "$run" "$work/program" "$work/text" > "$work/log" 2>&1 && { echo "accepted: no text"; bad=1; }
grep -q "every example has a text" "$work/log" || { echo "refused no text without the reason"; bad=1; }
exit $bad
