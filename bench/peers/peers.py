"""`make bench-peers`: times stet and its peers on the workloads of workloads.py, process by process in turns, and writes the tables of
docs/benchmarks.md.

    python3 bench/peers/peers.py [--quick] [--workloads cnn,lstm] [--sides stet,jax] [--runs FILE] …      --help tells all

Python's own modules are all that this needs; the peers run with the Python of --python. Every run is a line of the --runs file, and
the tables are made of that file alone: a measurement can be done in pieces (the same --runs again), and what is not in it is "not
measured". A file with runs of another build of stet, or with other threads, is refused.
"""
import argparse
import datetime
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import time

import table
from workloads import BY_NAME, WORKLOADS

HERE = os.path.dirname(os.path.abspath(__file__))


def seconds_of_neighbours():
    """CPU seconds that everybody but this process and the children that it waited for has used since the machine started."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, soft_irq, steal = (int(word) for word in file.readline().split()[1:9])
    used = (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")
    for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(whose)
        used -= usage.ru_utime + usage.ru_stime
    return used


def wait_for_quiet(at_most_s):
    """Until other processes leave the cores alone, but not long: they may never."""
    end = time.monotonic() + at_most_s
    while time.monotonic() < end:
        used = seconds_of_neighbours()
        time.sleep(0.1)
        if seconds_of_neighbours() - used < 0.02:
            return


def peer_environment(threads, cache):
    """As quick as they get: AVX-512 kernels where there are any, a malloc that keeps its memory, no look for a GPU."""
    out = dict(os.environ)
    out |= {"OMP_NUM_THREADS": str(threads), "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    out |= {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
    out["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(cache, "inductor")
    with open("/proc/cpuinfo") as file:
        if "avx512f" in file.read():
            out["ATEN_CPU_CAPABILITY"] = "avx512"
    return out


def run_side(options, workload, side, cores):
    """One process. A side that fails leaves a run that says so."""
    measured = [options.data, str(options.threads), str(options.seconds)]
    if side == "stet":
        command = [options.program, "run", workload.name, *measured, str(workload.steps)]
        environment = None
    else:
        command = [options.python, os.path.join(HERE, "side.py"), side, workload.name, *measured]
        environment = peer_environment(options.threads, options.cache)
    wait_for_quiet(1)
    used, begin = seconds_of_neighbours(), time.monotonic()
    run = {"workload": workload.name, "side": side}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=options.timeout,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        last = done.stdout.strip().splitlines()[-1:]
        if done.returncode != 0 or not last:
            complaints = done.stderr.strip().splitlines()[-1:]
            run["failed"] = f"status {done.returncode}" + "".join(f", {line[:200]}" for line in complaints)
        else:
            run |= json.loads(last[0])
    except subprocess.TimeoutExpired:
        run["failed"] = f"took longer than {options.timeout:g} s"
    except (OSError, ValueError) as error:
        run["failed"] = str(error)
    run["neighbours"] = (seconds_of_neighbours() - used) / (time.monotonic() - begin)
    run["date"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return run


def build_of(program):
    """Names the program with the libraries that it loads from its own tree."""
    hashed = hashlib.sha256()
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    libraries = [line.split()[2] for line in loaded.splitlines() if "libstet" in line and len(line.split()) > 2]
    for path in [program, *libraries]:
        with open(path, "rb") as file:
            hashed.update(file.read())
    return hashed.hexdigest()[:16]


def machine_text(threads):
    model = "a processor without a name"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{platform.machine()}, {model}, {threads} threads each"


def read_runs(path, setting):
    """The runs of a file, which begins with the setting they were made with."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    if lines and lines[0] != setting:
        sys.exit(
            f"bench-peers: {path} was made with {lines[0]}, and this is {setting}\n"
            "  fix: name another file (--runs), or remove it; figures of two builds do not belong in one table"
        )
    return lines[1:]


def append(path, line):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "a") as file:
        file.write(json.dumps(line) + "\n")


def names(known, what):
    def parsed(text):
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no {what} {', '.join(unknown)}; there are {', '.join(known)}")
        return chosen

    return parsed


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--program", default="build/release/bench/peer_workloads", help="stet's side")
    parser.add_argument("--python", default="build/peers-venv/bin/python", help="of the peers")
    parser.add_argument("--cache", default="build/peers", help="a folder for arrays, runs and compiled code")
    parser.add_argument("--runs", help="the file of runs; a new one unless told")
    parser.add_argument("--page", help="the page whose tables are written; none unless told")
    parser.add_argument("--workloads", type=names(list(BY_NAME), "workload"), default=list(BY_NAME))
    parser.add_argument("--sides", type=names(list(table.TITLES), "side"), default=list(table.TITLES))
    parser.add_argument("--rounds", type=int, default=5, help="processes of each side and workload")
    parser.add_argument("--seconds", type=float, default=3, help="that warm steps are timed for in each")
    parser.add_argument("--threads", type=int, default=2, help="of each side, which also has so many cores")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for a process")
    parser.add_argument("--quick", action="store_true", help="one round of half a second: to see that all of it works")
    options = parser.parse_args(words)
    if options.quick:
        options.rounds, options.seconds = 1, 0.5
    if options.rounds < 1 or options.seconds <= 0 or options.threads < 1:
        parser.error("--rounds and --threads are at least 1, --seconds is more than 0")
    options.data = os.path.join(options.cache, "data")
    return options


def measure_all(options, cores, runs, path):
    for number in range(options.rounds):
        for workload in (workload for workload in WORKLOADS if workload.name in options.workloads):
            turn = number % len(options.sides)
            for side in options.sides[turn:] + options.sides[:turn]:
                if not table.applies(side, workload):
                    continue
                run = run_side(options, workload, side, cores)
                runs.append(run)
                append(path, run)
                told = run.get("failed") or f"{table.time_text(run['us'][0])}, numbers {' '.join(f'{n:.6g}' for n in run['numbers'])}"
                print(f"round {number + 1}: {workload.name}, {side}: {told}", file=sys.stderr, flush=True)


def main():
    options = parse(sys.argv[1:])
    allowed = sorted(os.sched_getaffinity(0))
    if options.threads > len(allowed):
        sys.exit(f"bench-peers: {options.threads} threads on {len(allowed)} cores would measure the scheduler\n  fix: --threads {len(allowed)}")
    cores = set(allowed[: options.threads])
    setting = {"build": build_of(options.program), "threads": options.threads, "machine": machine_text(options.threads)}
    started = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H%M%S")
    path = options.runs or os.path.join(options.cache, "runs", started + ".jsonl")
    runs = read_runs(path, setting)
    if not runs and not os.path.exists(path):
        append(path, setting)
    subprocess.run([options.python, os.path.join(HERE, "arrays.py"), options.data, *options.workloads], check=True)
    try:
        measure_all(options, cores, runs, path)
    except KeyboardInterrupt:
        sys.exit(f"bench-peers: interrupted, and no page was written\n  fix: to go on, the same command with --runs {path}")
    text = table.page_text(runs, setting["machine"])
    print(text)
    if options.page:
        with open(options.page) as file:
            page = table.page_with(file.read(), text)
        with open(options.page, "w") as file:
            file.write(page)
    print(f"runs: {path}", file=sys.stderr)
    if table.problems(table.grouped(runs)):
        sys.exit(1)


if __name__ == "__main__":
    main()
