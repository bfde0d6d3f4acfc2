"""What runs of all sides come to: which of them count, and the tables of docs/benchmarks.md.

A run is a dictionary: what side.py printed, with `workload`, `side`, `date` and `neighbours`; one that failed has `failed`, the reason.
"""
import dataclasses
import math
import statistics

from workloads import BY_NAME, WORKLOADS

TITLES = {
    "stet": "stet",
    "tf_function": "tf.function",
    "tf_xla": "TF, XLA",
    "jax": "JAX",
    "torch_eager": "PyTorch",
    "torch_last": "PyTorch, channels last",
    "torch_compile": "torch.compile",
}
TOLERANCE = 1e-3  # relative, of numbers that sides must agree on

BEGIN = "<!-- made by: make bench-peers -->"
END = "<!-- end of what make bench-peers made -->"


@dataclasses.dataclass
class Side:
    """All runs of a side on a workload. `refused` says why none of its figures count."""

    runs: list
    refused: str = ""

    def quantile(self, part):
        """Of the times of all its processes, in microseconds; each process counts alike."""
        return quantile(sorted(time for run in self.runs for time in run["us"]), part)

    least = property(lambda self: self.quantile(0))
    median = property(lambda self: self.quantile(0.5))

    def typical(self, field):
        return statistics.median(run[field] for run in self.runs)


def quantile(ordered, part):
    at = part * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def far(a, b):
    """The relative difference; a NaN is far from everything."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(abs(a), abs(b), 1e-30)


def sides_of(workload, runs):
    """The sides that ran, by name. One whose process failed, whose numbers are not those of the others, or which made more traces than
    it may, is refused."""
    sides = {}
    for side in TITLES:
        mine = [run for run in runs if run["workload"] == workload and run["side"] == side]
        if mine:
            failed = [run["failed"] for run in mine if "failed" in run]
            sides[side] = Side([run for run in mine if "failed" not in run], "failed: " + failed[0] if failed else "")
    sound = {name: side for name, side in sides.items() if not side.refused}
    for name, side in sound.items():
        traces = max(run["traces"] for run in side.runs)
        if name == "stet" and traces > BY_NAME[workload].traces:
            side.refused = f"{traces} traces, {BY_NAME[workload].traces} allowed"
    refuse_other_numbers(sound)
    return sides


def refuse_other_numbers(sides):
    """Numbers must be near the median of all sides'. Of two sides that differ nobody knows which one is right."""
    if len(sides) < 2:
        return
    first = {name: side.runs[0]["numbers"] for name, side in sides.items()}
    if len({len(numbers) for numbers in first.values()}) != 1:
        for side in sides.values():
            side.refused = "sides give different counts of numbers"
        return
    for at in range(len(next(iter(first.values())))):
        agreed = statistics.median(numbers[at] for numbers in first.values())
        for name, side in sides.items():
            others = [numbers[at] for other, numbers in first.items() if other != name] if len(sides) == 2 else [agreed]
            for number in (run["numbers"][at] for run in side.runs):
                if far(number, others[0]) > TOLERANCE and not side.refused:
                    side.refused = f"number {at + 1} is {number:.6g}, not {others[0]:.6g}"


# --- words


def time_text(us):
    return f"{us:.0f} µs" if us < 999.5 else f"{us / 1e3:.2f} ms" if us < 9995 else f"{us / 1e3:.1f} ms"


def ratio_text(ratio):
    return f"{ratio:.2f}"


def mib_text(mib):
    return f"{mib:.0f}" if mib >= 9.5 else f"{mib:.1f}"


def row(cells):
    return "| " + " | ".join(cells) + " |\n"


def head(cells):
    return row(cells) + "|" + "---|" * len(cells) + "\n"


def applies(side, workload):
    return workload.images or side != "torch_last"


def cell(workload, sides, name, words):
    """What `words` says of a side that ran and counts."""
    if not applies(name, workload):
        return "–"
    if name not in sides:
        return "not measured"
    return "refused" if sides[name].refused else words(sides[name])


def best_peer(sides, key):
    sound = [side for name, side in sides.items() if name != "stet" and not side.refused]
    return min(sound, key=key, default=None)


def ratios(workload, sides):
    """The best peer's time over stet's: of minima and of medians, the goal, and whether it is met by minima."""
    peer = best_peer(sides, lambda side: side.least)
    if "stet" not in sides or sides["stet"].refused or not peer:
        return ["", "", f"{workload.goal:g}", ""]
    ours = sides["stet"]
    of_minima = peer.least / ours.least
    of_medians = best_peer(sides, lambda side: side.median).median / ours.median
    return [ratio_text(of_minima), ratio_text(of_medians), f"{workload.goal:g}", "yes" if of_minima >= workload.goal else "NO"]


def times_table(by_workload):
    out = head(["workload", *TITLES.values(), "best peer ÷ stet", "of medians", "goal", "met"])
    for workload in WORKLOADS:
        sides = by_workload[workload.name]
        times = [cell(workload, sides, name, lambda side: time_text(side.least)) for name in TITLES]
        out += row([workload.title, *times, *ratios(workload, sides)])
    return out


def spread_table(by_workload):
    def spread(side):
        return f"{time_text(side.median)} [{time_text(side.quantile(0.1))} to {time_text(side.quantile(0.9))}]"

    out = head(["workload", *TITLES.values()])
    for workload in WORKLOADS:
        out += row([workload.title, *(cell(workload, by_workload[workload.name], name, spread) for name in TITLES)])
    return out


def memory_table(by_workload):
    def memory(side):
        return f"{mib_text(side.typical('warm_mib'))}, {mib_text(side.typical('peak_mib'))}"

    out = head(["workload", *TITLES.values()])
    for workload in WORKLOADS:
        out += row([workload.title, *(cell(workload, by_workload[workload.name], name, memory) for name in TITLES)])
    return out


def agreement_table(by_workload):
    out = head(["workload", "steps", "numbers of stet", "largest difference", "sides", "stet's traces", "measured"])
    for workload in WORKLOADS:
        sides = by_workload[workload.name]
        sound = {name: side for name, side in sides.items() if not side.refused}
        if "stet" not in sound:
            out += row([workload.title, str(workload.steps), *[cell(workload, sides, "stet", str)] * 5])
            continue
        ours = sound["stet"].runs[0]["numbers"]
        others = [run["numbers"] for name, side in sound.items() for run in side.runs if name != "stet"]
        largest = max((far(a, b) for numbers in others for a, b in zip(ours, numbers)), default=None)
        out += row(
            [
                workload.title,
                str(workload.steps),
                ", ".join(f"{number:.6g}" for number in ours),
                "not compared" if largest is None else f"{largest:.1e}",
                str(len(sound)),
                str(max(run["traces"] for run in sound["stet"].runs)),
                max(run["date"] for side in sound.values() for run in side.runs)[:16],
            ]
        )
    return out


def problems(by_workload):
    return [
        f"{workload}, {TITLES[name]}: {side.refused}"
        for workload, sides in by_workload.items()
        for name, side in sides.items()
        if side.refused
    ]


def grouped(runs):
    return {workload.name: sides_of(workload.name, runs) for workload in WORKLOADS}


def page_text(runs, machine):
    by_workload = grouped(runs)
    sound = [run for run in runs if "failed" not in run]
    rounds = max((len(side.runs) for sides in by_workload.values() for side in sides.values()), default=0)
    versions = sorted({run["version"] for run in sound})
    neighbours = sorted(run["neighbours"] for run in sound)
    out = f"{machine}; {', '.join(versions)}. Up to {rounds} process{'' if rounds == 1 else 'es'} a cell, in turns. "
    if neighbours:
        out += f"Other processes used {quantile(neighbours, 0.5):.2f} cores meanwhile (median; {neighbours[-1]:.2f} at most)."
    out += "\n\n"
    out += "The least time of a step:\n\n" + times_table(by_workload)
    out += "\nMedians, and the 10th and 90th percentile:\n\n" + spread_table(by_workload)
    out += "\nMemory in MiB, of warm steps, and with tracing and compiling:\n\n" + memory_table(by_workload)
    out += "\nNumbers that all sides must agree on (losses after the first and the last of the steps, or weighted sums of results):\n\n"
    out += agreement_table(by_workload)
    if problems(by_workload):
        out += "\nRefused, so that their figures are not above:\n\n" + "".join(f"- {line}\n" for line in problems(by_workload))
    return out


def page_with(page, text):
    """The page with the text between the two markers. ValueError: they are not there, once each and in this order."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page must have the lines '{BEGIN}' and '{END}', once each and in this order")
    before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
    return f"{before}\n{text}{after}"
