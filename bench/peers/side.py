"""One peer, one workload, one process: prints one line of JSON (see measured() for what is in it).

    python side.py SIDE WORKLOAD FOLDER THREADS SECONDS

SIDE is one of SIDES below, FOLDER has what arrays.py wrote.
"""
import ctypes
import gc
import importlib
import json
import os
import sys
import time

import numpy as np

import models
import arrays as stored
import workloads

# The name of a side: its module, and the mode of the Peer in it.
SIDES = {
    "tf_function": ("with_tensorflow", "function"),
    "tf_xla": ("with_tensorflow", "xla"),
    "jax": ("with_jax", "jit"),
    "torch_eager": ("with_torch", "eager"),
    "torch_last": ("with_torch", "channels last"),
    "torch_compile": ("with_torch", "compile"),
}
RESTART_AFTER = 100  # calls


def memory_mib(field):
    """VmRSS: memory that the process has now; VmHWM: the most that it had since it started, or since forget_peak()."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field + ":")) / 1024


def forget_peak():
    """What was freed by then is given back first: a malloc may keep it."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def measured(repeated, steps, seconds, base_mib):
    """first_ms: the first call, compiling included. us: the quantiles 0, 1 % … 100 % of the microseconds of a warm step. numbers: what
    sides must agree on. peak_mib and warm_mib: the most memory, of all calls and of the warm ones, beyond `base_mib`."""
    begin = time.perf_counter()
    repeated.call()
    first_ms = (time.perf_counter() - begin) * 1e3
    calls = 1
    begin = time.perf_counter()
    while calls * repeated.per_call < max(steps, 5) or time.perf_counter() - begin < seconds / 3:
        repeated.call()
        calls += 1
        if repeated.restart and calls % RESTART_AFTER == 0:
            repeated.restart()
    peak_mib = memory_mib("VmHWM")
    forget_peak()
    repeated.call()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        calls += 1
        if repeated.restart and calls % RESTART_AFTER == 0:
            repeated.restart()
            repeated.call()
        begin = time.perf_counter()
        repeated.call()
        times.append((time.perf_counter() - begin) * 1e6 / repeated.per_call)
    warm_mib = memory_mib("VmHWM")
    return {
        "first_ms": first_ms,
        "us": [float(f"{value:.6g}") for value in np.quantile(times, np.linspace(0, 1, 101))],
        "calls": len(times),
        "numbers": repeated.numbers(steps),  # last: it may take memory of its own
        "peak_mib": max(peak_mib, warm_mib) - base_mib,
        "warm_mib": warm_mib - base_mib,
    }


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    side, name, folder, threads, seconds = sys.argv[1:]
    workload = workloads.BY_NAME[name]
    module_name, mode = SIDES[side]
    module = importlib.import_module(module_name)
    peer = module.Peer(mode, int(threads))
    # What the library makes when it wakes up is not the workload's. Batches, weights and all that follows are.
    peer.wait(peer.tensor(np.ones(4, np.float32)) + peer.tensor(np.ones(4, np.float32)))
    base_mib = memory_mib("VmRSS")
    repeated = models.MODELS[workload.model](peer, dict(np.load(stored.path_of(folder, name))))
    forget_peak()
    line = measured(repeated, workload.steps, float(seconds), base_mib)
    line |= {"traces": peer.traces, "version": module.VERSION}
    print(json.dumps(line), flush=True)
    os._exit(0)  # without minutes of tidying up


if __name__ == "__main__":
    main()
