#!/bin/sh
# Runs the benchmarks one after the other and prints one table.
#
#   bench/run.sh <build folder>     (make bench does it)
#
# gemm_bench is not one of them: it makes the table of docs/gemm.md. mlp_stet, mlp_libtorch and mlp_hand are started by
# mlp_step, first_step and varying_sizes, fit_stet and fit_libtorch by fit_epoch.
set -eu
programs=${1:?usage: bench/run.sh <build folder>}/bench

# LibTorch as fast as it gets on the machine: it uses AVX2 unless told, and fresh memory from the system is slow.
if grep -q avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512; fi
export MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824
# Of the BLAS libraries that Debian has, it is quickest with OpenBLAS for OpenMP, whose threads are LibTorch's own.
blas=$(find /usr/lib -path '*openblas-openmp/libblas.so.3' 2>/dev/null | head -n 1)
if [ -n "$blas" ]; then
  export LD_LIBRARY_PATH="$(dirname "$blas")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
else
  echo "bench: libopenblas0-openmp is missing: LibTorch's matrix products will be slow" >&2
fi

echo "$(date -u '+%Y-%m-%d %H:%M') UTC, $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
  "load $(cut -d ' ' -f 1 /proc/loadavg)"
echo
for program in add_of_four memory matmul ops scan sort linalg window random lstm derivatives mlp_step fit_epoch workloads first_use first_step varying_sizes recording; do
  "$programs/$program"
  export STET_BENCH_NO_HEAD=1
done
