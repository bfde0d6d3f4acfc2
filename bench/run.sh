#!/bin/sh
# Runs the benchmarks one after the other and prints one table.
#
#   bench/run.sh <build folder>     (make bench does it)
#
# gemm_bench is not one of them: it makes the table of docs/gemm.md.
set -eu
programs=${1:?usage: bench/run.sh <build folder>}/bench

# LibTorch as fast as it gets on the machine: it uses AVX2 unless told, and fresh memory from the system is slow.
if grep -q avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512; fi
export MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824

echo "$(date -u '+%Y-%m-%d %H:%M') UTC, $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
  "load $(cut -d ' ' -f 1 /proc/loadavg)"
echo
for program in add_of_four memory matmul first_use; do
  "$programs/$program"
  export STET_BENCH_NO_HEAD=1
done
