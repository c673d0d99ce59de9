#!/usr/bin/env bash
# Fuzzes every fuzz target of the module, one after the other.
# Minimising is bounded by tries: bounded by time, as Go does it, it takes all there is.
set -euo pipefail
time=${1:-30s}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
  for target in $(grep -ho '^func Fuzz[A-Za-z]*' "$dir"/*_test.go | sed 's/func //'); do
    echo "== $dir $target"
    go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x
  done
done
