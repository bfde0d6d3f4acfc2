#!/usr/bin/env python3
"""Compares two builds: starts their bench/calls by turns, and prints what a call costs with either.

    bench/two_builds.py BEFORE AFTER [ROUNDS]

A round is one process of each; who begins changes. The difference that counts is the median over rounds of the
difference within a round, with its 10th and 90th percentile beside it, as in the other benchmarks; least times are of
all rounds.
"""
import os
import statistics
import subprocess
import sys


def times_of(program):
    out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: (float(least), float(median)) for name, least, median in (line.split() for line in out.splitlines())}


def part(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    programs, rounds = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) == 4 else 30
    told = []
    for round_number in range(rounds):
        order = [0, 1] if round_number % 2 == 0 else [1, 0]
        both = [None, None]
        for side in order:
            both[side] = times_of(programs[side])
        told.append(both)
    print(f"{rounds} rounds, load {os.getloadavg()[0]:.2f}; ns a call\n")
    print("| call | before, median | after, median | after - before | 10 % to 90 % | before, least | after, least |")
    print("|---|---|---|---|---|---|---|")
    for name in told[0][0]:
        least = [[both[side][name][0] for both in told] for side in (0, 1)]
        median = [[both[side][name][1] for both in told] for side in (0, 1)]
        # Within a process the least time is that without neighbours.
        more = [after - before for before, after in zip(*least)]
        print(f"| {name} | {statistics.median(median[0]):.1f} | {statistics.median(median[1]):.1f} "
              f"| {statistics.median(more):+.1f} | {part(more, 0.1):+.1f} to {part(more, 0.9):+.1f} "
              f"| {min(least[0]):.1f} | {min(least[1]):.1f} |")


main()
