"""Recordings that no program made, to try the page with: an ordinary one, hostile ones, nearly empty ones, long ones."""

import array
import base64
import math
import random
import sys

KINDS = [
    "call",
    "trace",
    "pass",
    "compile",
    "bind",
    "run",
    "step",
    "region",
    "stage",
    "wait",
    "epoch",
    "batch",
    "callback",
    "audit",
    "user",
]


def encoded(code, values):
    numbers = array.array(code, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()


class Spans:
    def __init__(self):
        self.names, self.threads, self.all = [], [], []

    def add(self, thread, kind, name, begin, duration, moved=math.nan, flops=math.nan):
        for known, one in ((self.names, name), (self.threads, thread)):
            if one not in known:
                known.append(one)
        self.all.append(
            (self.threads.index(thread), begin, -duration, KINDS.index(kind), self.names.index(name), moved, flops)
        )

    def into(self, report):
        self.all.sort(key=lambda span: span[:3])
        column = lambda at: [span[at] for span in self.all]  # noqa: E731
        report |= {"kinds": KINDS, "names": self.names, "threads": self.threads}
        report["spans"] = {
            "count": len(self.all),
            "thread": encoded("H", column(0)),
            "kind": encoded("B", column(3)),
            "name": encoded("I", column(4)),
            "begin": encoded("d", column(1)),
            "duration": encoded("d", [-value for value in column(2)]),
            "bytes": encoded("d", column(5)),
            "flops": encoded("d", column(6)),
        }


def bare(**more):
    """Nothing was recorded."""
    report = {
        "format": 1,
        "program": {
            "name": "nothing",
            "stet": "0.1.0",
            "began": "2026-11-19T10:11:12Z",
            "cpu": "Some CPU",
            "threads": 2,
            "seconds": 0.5,
            "complete": True,
            "lost_spans": 0,
        },
        "limits": None,
        "verdict": [],
        "findings": [],
        "shares": [],
        "functions": [],
        "sources": {},
        "kernels": [],
        "counters": [],
        "training": [],
        "stages": [],
        "events": [],
    }
    Spans().into(report)
    return report | more


def one_span():
    report = bare(verdict=["1 call, and that was it."])
    spans = Spans()
    spans.add("main", "call", "only", 0.1, 0.2)
    spans.into(report)
    return report


def nulls():
    """Everything that may be unknown is, and some things that may not are missing."""
    report = bare(
        program={
            "name": None,
            "stet": None,
            "began": None,
            "cpu": None,
            "threads": None,
            "seconds": None,
            "complete": None,
            "lost_spans": None,
        },
        verdict=None,
        findings=[{"weight": None, "text": None, "function": None}, {}],
        shares=[{"name": None, "seconds": None}, {"name": None, "seconds": 1}],
        functions=[
            {},
            {
                "name": None,
                "traces": [
                    {},
                    {
                        "number": None,
                        "graph": {"nodes": [{}, {"in": [0, 7, -1, None], "op": None}]},
                        "program": None,
                        "facts": [{}],
                        "fixes": [{}],
                        "constants": [{}],
                        "passes": [{}],
                    },
                ],
            },
        ],
        kernels=[{}, {"name": None, "seconds": None, "function": None, "bytes": None, "made_of": None}],
        caches=[{}, {"name": None, "found": None, "of": None}, {"of": 3}],
        counters=[{}, {"name": None, "unit": None, "time": encoded("d", [0.0]), "value": encoded("d", [0.0])}],
        training=[{}, {"name": None, "epochs": [{}, {"epoch": None, "values": {"loss": None}}]}],
        stages=[{}, {"name": None, "depth": None}],
        events=[{}, {"time": 0.1, "kind": None, "text": None, "function": None}],
    )
    report.pop("limits")
    spans = Spans()
    spans.add("main", "call", "began, and never ended", 0.1, math.nan)
    spans.add("main", "step", "of no time", 0.2, 0.0)
    spans.into(report)
    return report


def graph_before(length=57):
    nodes = []

    def add(op, text, scope, *of):
        nodes.append(
            {
                "op": op,
                "text": text,
                "scope": scope,
                "in": list(of),
                "file": "examples/sentiment.cpp",
                "line": 31 + len(nodes) % 5,
                "made_of": [],
            }
        )
        return len(nodes) - 1

    x, y = add("input", f"x f32[b,{length}]", ""), add("input", "y i32[b]", "")
    table = add("variable", "embedding f32[8000,32]", "model/embedding")
    h = add("gather", f"f32[b,{length},32]", "model/embedding", table, x)
    for layer, size in (("model/dense", 64), ("model/dense_1", 64), ("model/dense_2", 10)):
        w, b = add("variable", f"kernel f32[·,{size}]", layer), add("variable", f"bias f32[{size}]", layer)
        h = add("matmul", f"f32[b,{size}]", layer, h, w)
        h = add("add", f"f32[b,{size}]", layer, h, b)
        if size == 64:
            h = add("relu", f"f32[b,{size}]", layer, h)
            keep = add("constant", "0.9", layer + "/dropout")
            noise = add("random_uniform", f"f32[b,{size}]", layer + "/dropout")
            mask = add("less", f"bool[b,{size}]", layer + "/dropout", noise, keep)
            h = add("where", f"f32[b,{size}]", layer + "/dropout", mask, h)
    m = add("max", "f32[b,1]", "loss", h)
    d = add("subtract", "f32[b,10]", "loss", h, m)
    e = add("exp", "f32[b,10]", "loss", d)
    s = add("sum", "f32[b,1]", "loss", e)
    lg = add("log", "f32[b,1]", "loss", s)
    lp = add("subtract", "f32[b,10]", "loss", d, lg)
    pick = add("take_along_axis", "f32[b]", "loss", lp, y)
    loss = add("mean", "f32[]", "loss", pick)
    g = add("softmax_gradient", "f32[b,10]", "gradient", h, y, loss)
    for layer, size in (("model/dense_2", 10), ("model/dense_1", 64), ("model/dense", 64)):
        w = add("transpose", "", layer, 9)
        gw = add("matmul", f"f32[·,{size}]", layer, g, 3)
        gb = add("sum", f"f32[{size}]", layer, g)
        g = add("matmul", "f32[b,64]", layer, g, w)
        for grad, what in ((gw, "kernel"), (gb, "bias")):
            scope = "adam/" + what + "_" + layer.split("/")[-1]
            a = add("multiply", "0.1 g", scope, grad)
            sq = add("square", "g²", scope, grad)
            v = add("multiply", "0.001 g²", scope, sq)
            r = add("sqrt", "√v", scope, v)
            add("divide", what, scope, a, r)
    return {"nodes": nodes}


def graph_after():
    n = []

    def add(op, text, scope, *of, made_of=()):
        n.append(
            {
                "op": op,
                "text": text,
                "scope": scope,
                "in": list(of),
                "file": "examples/sentiment.cpp",
                "line": 33,
                "made_of": list(made_of),
            }
        )
        return len(n) - 1

    x, y = add("input", "x f32[b,57]", ""), add("input", "y i32[b]", "")
    t = add("variable", "embedding f32[8000,32]", "model/embedding")
    h = add("gather", "f32[b,57,32]", "model/embedding", t, x)
    for layer, size in (("model/dense", 64), ("model/dense_1", 64), ("model/dense_2", 10)):
        w = add("variable", f"kernel f32[·,{size}]", layer)
        b = add("variable", f"bias f32[{size}]", layer)
        extra = ["matmul", "add", "relu", "less", "where"] if size == 64 else ["matmul", "add"]
        h = add("matmul+" + str(len(extra) - 1), f"f32[b,{size}]", layer, h, w, b, made_of=extra)
    s = add(
        "rows", "f32[b]", "loss", h, y, made_of=["max", "subtract", "exp", "sum", "log", "subtract", "take_along_axis"]
    )
    loss = add("mean", "f32[]", "loss", s)
    g = add("rows", "f32[b,10]", "gradient", h, y, loss, made_of=["exp", "subtract", "multiply"])
    for layer in ("model/dense_2", "model/dense_1", "model/dense"):
        gw = add("matmul", "f32[·,·]", layer, g, h)
        gb = add("sum", "f32[·]", layer, g)
        add(
            "map",
            "kernel, m, v",
            "adam/" + layer.split("/")[-1],
            gw,
            made_of=["multiply", "square", "multiply", "sqrt", "divide", "subtract"],
        )
        add(
            "map",
            "bias, m, v",
            "adam/" + layer.split("/")[-1],
            gb,
            made_of=["multiply", "square", "multiply", "sqrt", "divide", "subtract"],
        )
        g = add("matmul+1", "f32[b,64]", layer, g, made_of=["matmul", "multiply"])
    return {"nodes": n}


PASSES = [
    ("merge_loops", 0.01, 0),
    ("simplify", 0.09, 14),
    ("fold", 0.03, 4),
    ("share", 0.05, 6),
    ("dead", 0.02, 3),
    ("trim_loops", 0.004, 0),
    ("reuse", 0.02, 0),
    ("fuse_maps", 0.16, 17),
    ("fuse_reductions", 0.08, 5),
    ("fuse_epilogues", 0.06, 4),
    ("fuse_rows", 0.12, 9),
    ("merge_maps", 0.04, 2),
    ("lower", 0.31, 0),
    ("plan", 0.11, 0),
    ("code", 2.6, 0),
]


def passes_of(scale, nodes):
    passes = []
    for name, part, gone in PASSES:
        passes.append({"name": name, "seconds": part * scale, "nodes_before": nodes, "nodes_after": nodes - gone})
        nodes -= gone
    return passes


def ordinary(seconds=41.3, batches=300, epochs=6):
    """A training that is traced again for every length of its texts, because a loop of the host reads the length."""
    dice = random.Random(5)
    spans, clock = Spans(), 0.4
    kernels = {}
    step_kernels = [
        ("matmul+4 dense", 0.21, 3.1e6, 4.1e8),
        ("gather embedding", 0.12, 7.4e6, 0),
        ("matmul dense_1 gradient", 0.17, 3.4e6, 2.7e8),
        ("rows softmax loss", 0.04, 4.2e5, 9e5),
        ("map adam embedding", 0.24, 1.2e7, 6.1e6),
        ("scatter_add embedding gradient", 0.15, 9.1e6, 4e5),
        ("sum bias gradient", 0.05, 2e6, 5e5),
    ]
    traces = []
    lengths = [57, 61, 48, 73, 66]
    nearest = [None, 1, 2, 3, 1]  # the trace that each is compared with
    memory_time, memory_value, cache_value = [0.0], [0.0], [0.0]
    fits = []
    for epoch in range(epochs):
        epoch_began, waited = clock, 0.0
        clock += 0.002
        for batch in range(batches):
            wait = dice.expovariate(1 / 0.0012) if batch % 40 else 0.03
            spans.add("main", "wait", "wait for data", clock, wait)
            waited += wait
            clock += wait
            batch_began = clock
            call_began = clock + 0.00004
            clock = call_began + 0.00002
            if epoch == 0 and batch % 60 == 1 and len(traces) < len(lengths):
                took = 0.24 + 0.05 * len(traces)
                spans.add("main", "trace", "train_step", clock, took)
                spans.add("main", "compile", "train_step", clock + took * 0.3, took * 0.68)
                passing = clock + took * 0.3
                for name, part, _ in PASSES:
                    share = part / 3.8 * took * 0.68
                    spans.add("main", "pass", name, passing, share)
                    passing += share
                traces.append({"begin": clock, "seconds": took})
                clock += took
            run_began = clock
            for name, part, moved, flops in step_kernels:
                took = 0.018 * part * dice.uniform(0.85, 1.3)
                spans.add("main", "step", name, clock, took, moved, flops or math.nan)
                for worker in (1, 2, 3):
                    spans.add(f"worker {worker}", "region", name, clock + 2e-5, took * dice.uniform(0.75, 0.99))
                total = kernels.setdefault(name, [0, 0.0, 0.0, 0.0])
                kernels[name] = [total[0] + 1, total[1] + took, total[2] + moved, total[3] + flops]
                clock += took
            spans.add("main", "run", "train_step", run_began, clock - run_began)
            spans.add("main", "call", "train_step", call_began, clock + 1e-5 - call_began)
            clock += 3e-5
            spans.add("main", "batch", "batch", batch_began, clock - batch_began)
            spans.add("prefetch", "stage", "batch(64)", batch_began + 1e-4, 0.011)
            spans.add("prefetch", "stage", "map(tokenize)", batch_began + 1.2e-4, 0.009)
            memory_time.append(clock)
            memory_value.append(2.1e7 + 3.1e6 * len(traces) + 9e6 * math.sin(batch / 9) ** 2)
            cache_value.append(epoch * batches + batch)
        spans.add("main", "callback", "on_epoch_end", clock, 0.012)
        clock += 0.013
        spans.add("main", "epoch", f"epoch {epoch + 1}", epoch_began, clock - epoch_began)
        fits.append(
            {
                "epoch": epoch + 1,
                "begin": epoch_began,
                "seconds": clock - epoch_began,
                "waited": waited,
                "batches": batches,
                "values": {
                    "loss": 0.62 * 0.78**epoch + 0.05,
                    "accuracy": 1 - 0.41 * 0.72**epoch,
                    "val_loss": 0.6 * 0.83**epoch + 0.11 + 0.012 * epoch,
                    "val_accuracy": 1 - 0.4 * 0.8**epoch - 0.03,
                    "learning_rate": 1e-3 * 0.5 ** (epoch // 2),
                },
            }
        )
    seconds = clock + 0.2
    made = []
    for at, (trace, length) in enumerate(zip(traces, lengths)):
        made.append(
            {
                "number": at + 1,
                "begin": trace["begin"],
                "seconds": trace["seconds"],
                "compile_seconds": trace["seconds"] * 0.68,
                "calls": [720, 380, 301, 251, 148][at],
                "evicted": at == 1,
                "bytes": 3_100_000 + 1000 * length,
                "arguments": f"x f32[b,{length}], y i32[b], training true",
                "called_with": f"f32[64,{length}], i32[64], true",
                "nearest": nearest[at],
                "call_file": "examples/sentiment.cpp",
                "call_line": 58,
                "facts": [
                    {
                        "text": f"x.dim(1) == {length}",
                        "pin": True,
                        "file": "examples/sentiment.cpp",
                        "line": 33,
                        "asked_by": "int(Dim)",
                    },
                    {
                        "text": "x.dim(0) == y.dim(0)",
                        "pin": False,
                        "file": "examples/sentiment.cpp",
                        "line": 41,
                        "asked_by": "sparse_categorical_crossentropy",
                    },
                ],
                "cause": (
                    ""
                    if at == 0
                    else f"argument 0 'x'  f32[b,{lengths[nearest[at] - 1]}] -> f32[b,{length}]   axis 1 is another size, and trace {nearest[at]} relies on {lengths[nearest[at] - 1]}:\nthe loop at sentiment.cpp:33 reads the size as a number."
                ),
                "fixes": (
                    []
                    if at == 0
                    else [
                        {
                            "text": "write the loop as scan(step, h, x): its number of turns is no part of the trace (5 traces -> 1)",
                            "file": "examples/sentiment.cpp",
                            "line": 33,
                        }
                    ]
                ),
                "constants": [{"text": "stop_words i32[174]", "bytes": 696}] if at == 0 else [],
                "passes": passes_of(trace["seconds"] * 0.68 / 3.8, 84),
                "graph": graph_before(length) if at in (0, 4) else None,
                "program": graph_after() if at in (0, 4) else None,
            }
        )
    traced = sum(trace["seconds"] for trace in traces)
    lost = sum(trace["seconds"] for trace in traces[1:])
    waited = sum(fit["waited"] for fit in fits)
    running = sum(kernel[1] for kernel in kernels.values())
    source = {
        "first": 30,
        "lines": [
            'Function train_step = function("train_step(x, y)", [=](Tensor x, Tensor y) {',
            "  GradientTape tape;",
            "  Tensor h = zeros({x.dim(0), 64});",
            "  for (int t = 0; t < int(x.dim(1)); ++t) {",
            "    h = cell(embedding(x[{Range{}, t}]), h);",
            "  }",
            "  Tensor loss = loss_fn(y, head(h));",
        ],
    }
    report = bare(
        program={
            "name": "build/release/examples/sentiment --epochs 6",
            "stet": "0.1.0",
            "began": "2026-11-19T10:11:12Z",
            "cpu": "AMD EPYC 7B13, AVX2",
            "threads": 4,
            "seconds": seconds,
            "complete": True,
            "lost_spans": 0,
        },
        limits={"flops": 1.12e11, "bytes": 2.4e10},
        verdict=[
            f"5 traces of train_step, {lost:.1f} s of {seconds:.1f} s lost to 4 retraces: a loop reads the length of the texts.",
            f"{100 * running / seconds:.0f} % of the time ran kernels; training waited {100 * waited / seconds:.0f} % of it for data.",
            "evaluate was traced once and needs nothing.",
        ],
        findings=[
            {
                "weight": lost / seconds,
                "text": "train_step is traced again for every length of x: the loop at sentiment.cpp:33 reads the size as a number.\nWrite it as scan(step, h, x), and one trace serves all lengths.",
                "function": 0,
            },
            {
                "weight": waited / seconds,
                "text": "Training waits for data. map(tokenize) runs on one thread: give it .num_parallel_calls = 4.",
                "function": None,
            },
            {
                "weight": 0,
                "text": "The scatter into the embedding's gradient is not fused with Adam's update, because rows may come twice.",
                "function": None,
            },
        ],
        shares=[
            {"name": "kernels", "seconds": running},
            {"name": "tracing", "seconds": traced * 0.32},
            {"name": "compiling", "seconds": traced * 0.68},
            {"name": "waiting for data", "seconds": waited},
            {"name": "callbacks", "seconds": 0.072},
            {"name": "other", "seconds": seconds - running - traced - waited - 0.072},
        ],
        functions=[
            {
                "name": "train_step",
                "file": "examples/sentiment.cpp",
                "line": 30,
                "calls": epochs * batches,
                "seconds": running + traced,
                "trace_seconds": traced,
                "lost_seconds": lost,
                "retraces": len(traces) - 1,
                "max_traces": 8,
                "on_limit": "evict",
                "traces": made,
                "warnings": ["4 traces more than one need 3 % of the time: axis 1 of argument 0 'x' has had 5 sizes."],
            },
            {
                "name": "evaluate",
                "file": "examples/sentiment.cpp",
                "line": 71,
                "calls": 48,
                "seconds": 0.61,
                "trace_seconds": 0.08,
                "lost_seconds": 0,
                "retraces": 0,
                "warnings": [],
                "traces": [
                    {
                        "number": 1,
                        "begin": seconds - 0.19,
                        "seconds": 0.08,
                        "compile_seconds": 0.05,
                        "calls": 48,
                        "evicted": False,
                        "arguments": "x f32[b,n]",
                        "call_file": "examples/sentiment.cpp",
                        "call_line": 80,
                        "facts": [],
                        "cause": "",
                        "fixes": [],
                        "constants": [],
                        "passes": passes_of(0.012, 31),
                        "graph": None,
                        "program": None,
                    }
                ],
            },
            {
                "name": "tokenize",
                "file": "examples/sentiment.cpp",
                "line": 18,
                "calls": 115200,
                "seconds": 3.4,
                "trace_seconds": 0.011,
                "lost_seconds": 0,
                "retraces": 0,
                "traces": [],
                "warnings": [],
            },
        ],
        sources={
            "examples/sentiment.cpp:33": source,
            "examples/sentiment.cpp:30": source,
            "examples/sentiment.cpp:41": {
                "first": 39,
                "lines": [
                    "",
                    "  // The mean of the batch.",
                    "  Tensor loss = loss_fn(y, head(h));",
                    "  auto variables = model.trainable_variables();",
                ],
            },
            "examples/sentiment.cpp:58": {
                "first": 56,
                "lines": [
                    "for (int epoch = 0; epoch < epochs; ++epoch) {",
                    "  for (auto [text, label] : train) {",
                    "    auto loss = train_step(text, label);",
                    "    mean.update(loss);",
                    "  }",
                ],
            },
        },
        kernels=[
            {
                "name": name,
                "function": 0,
                "count": count,
                "seconds": took,
                "bytes": moved,
                "flops": flops or None,
                "threads": 4,
                "made_of": (
                    ["matmul", "add", "relu", "less", "where"]
                    if "+4" in name
                    else ["multiply", "square", "sqrt", "divide", "subtract"] if "adam" in name else [name.split()[0]]
                ),
                "places": [
                    {
                        "scope": "model/" + name.split()[1] if len(name.split()) > 1 else "",
                        "file": "examples/sentiment.cpp",
                        "line": 33,
                    }
                ],
                "not_fused": (
                    "rows of the embedding may come twice, so that the sum must be whole before Adam reads it"
                    if "scatter" in name
                    else None
                ),
            }
            for name, (count, took, moved, flops) in kernels.items()
        ],
        counters=[
            {
                "name": "memory in use",
                "unit": "bytes",
                "time": encoded("d", memory_time),
                "value": encoded("d", memory_value),
            },
            {
                "name": "calls served by a trace",
                "unit": "",
                "time": encoded("d", memory_time),
                "value": encoded("d", cache_value),
            },
        ],
        caches=[
            {"name": "calls, served at once", "found": epochs * batches - 5, "of": epochs * batches},
            {"name": "eager ops, served at once", "found": 0, "of": 0},
        ],
        training=[{"name": "fit", "epochs": fits}],
        stages=[
            {"name": "prefetch(2)", "depth": 0, "elements": epochs * batches, "seconds": 0.03},
            {"name": "batch(64)", "depth": 1, "elements": epochs * batches, "seconds": 0.4},
            {"name": "map(tokenize)", "depth": 2, "elements": 115200, "seconds": 3.4},
            {"name": "shuffle(10000)", "depth": 3, "elements": 115200, "seconds": 0.21},
            {"name": "from_csv(reviews.csv)", "depth": 4, "elements": 115200, "seconds": 1.1},
        ],
        events=[
            {
                "time": trace["begin"] + trace["seconds"],  # when it was made it is told
                "kind": "retrace",
                "text": f"train_step is traced again: axis 1 of argument 0 'x' is {length}",
                "function": 0,
            }
            for trace, length in list(zip(traces, lengths))[1:]
        ]
        + [
            {
                "time": traces[-1]["begin"] + 0.5,
                "kind": "warning",
                "text": "4 traces more than one need 3 % of the time",
                "function": 0,
            },
            {"time": 6.0, "kind": "audit", "text": "train_step would be traced as it was", "function": 0},
            {
                "time": traces[-1]["begin"] + 0.1,
                "kind": "eviction",
                "text": "trace 2 of train_step made room",
                "function": 0,
            },
        ],
    )
    spans.into(report)
    return report


HOSTILE = [
    "</script><script>window.broken = 1</script>",
    "<!--<script>",
    "\"quotes\" 'and' `ticks` \\ ${1}",
    "<img src=x onerror=window.broken=1>",
    "שלום עולם \u202etxet\u202c",
    "line\u2028and\u2029paragraph\nand\ttab\u0000\u0007",
    "👩‍👩‍👧‍👦🏳️‍🌈 emoji",
    "x" * 5000,
    "word " * 400,
    "@data@ @js@ @css@",
    "&lt;b&gt; &amp;",
    "__proto__",
    "constructor",
    "",
    "]]>",
    "javascript:alert(1)",
    "%s %d",
    "Z" + "\u0301" * 60,
]


def hostile():
    """Every string is one that a page could stumble over."""
    report = ordinary(batches=12, epochs=2)
    names = iter(HOSTILE * 10000)

    def spoil(value, key=""):
        if isinstance(value, dict):
            if key in ("spans", "values"):
                return (
                    value
                    if key == "spans"
                    else {next(names) or "loss": number for number in value.values()}
                    | {"__proto__": 1.0, "val___proto__": 0.5}
                )
            return {name: spoil(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [spoil(inner, key) for inner in value]
        if isinstance(value, str) and key not in ("time", "value", "kinds", "unit"):
            return next(names)
        return value

    report = spoil(report)
    report["sources"] = {f"{name}:33": {"first": 30, "lines": HOSTILE} for name in HOSTILE} | {
        "__proto__": {"first": 1, "lines": ["x"]}
    }
    for its in report["functions"]:
        its["file"] = HOSTILE[0]
        its["line"] = 33
    report["events"].append({"time": 0.1, "kind": "constructor", "text": HOSTILE[0], "function": 0})
    report["kinds"][3] = "</script>"
    return report


def wild_numbers():
    """Numbers at the ends of what there is: as JSON has no other way, these are 1e308, 0 and less."""
    report = ordinary(batches=4, epochs=1)
    report["limits"] = {"flops": 1e308, "bytes": 5e-324}
    report["kernels"] = [
        {
            "name": f"kernel {at}",
            "count": at,
            "seconds": value,
            "bytes": other,
            "flops": value,
            "threads": -1,
            "made_of": [],
            "not_fused": None,
            "function": 99,
        }
        for at, (value, other) in enumerate([(0, 0), (1e308, 1e-308), (5e-324, 1e308), (-1, -1), (1e-9, 1e18)])
    ]
    report["counters"] = [
        {"name": "negative", "unit": "bytes", "time": encoded("d", [0, 1, 2]), "value": encoded("d", [-1e9, 3, -5])},
        {"name": "constant", "unit": "", "time": encoded("d", [0, 1]), "value": encoded("d", [7, 7])},
        {
            "name": "not numbers",
            "unit": "seconds",
            "time": encoded("d", [0, 1, 2]),
            "value": encoded("d", [math.nan, math.inf, 1]),
        },
        {"name": "all holes", "unit": "", "time": encoded("d", [0, 1]), "value": encoded("d", [math.nan, math.nan])},
    ]
    report["training"][0]["epochs"] = [
        {"epoch": at, "begin": 0, "seconds": 1, "waited": 2, "batches": 0, "values": {"loss": value}}
        for at, value in enumerate([1e308, -1e308, 0, None, math.nan, math.inf, 5e-324])
    ]
    report["findings"] = [
        {"weight": 7.0, "text": "more than all", "function": 99},
        {"weight": -1, "text": "less than none", "function": -1},
    ]
    report["program"] |= {"seconds": 1e-12, "lost_spans": 12345678, "complete": False}
    report["events"] = [{"time": time, "kind": "note", "text": "when?", "function": 1000} for time in (-5, 0, 1e300)]
    return report


def deep_spans(depth=20000, threads=300):
    """Spans in spans in spans, and many threads with a span each."""
    report = bare(verdict=["It goes deep."])
    spans = Spans()
    spans.names, spans.threads = ["recursion"], ["main"] + [f"thread {at}" for at in range(1, threads)]
    call = KINDS.index("call")
    spans.all = [(0, at * 1e-6, at * 1e-6 - 1, call, 0, math.nan, math.nan) for at in range(depth)]
    spans.all += [(at, 0.2, -0.1, call, 0, math.nan, math.nan) for at in range(1, threads)]
    spans.into(report)
    return report


def many_functions(count=1000):
    """A leak of functions, each traced; and one that was traced five hundred times."""
    report = ordinary(batches=4, epochs=1)
    first = report["functions"][0]
    report["functions"] = [
        first
        | {
            "name": f"made_in_a_loop_{at}",
            "lost_seconds": at * 1e-3,
            "traces": [first["traces"][0] | {"graph": None, "program": None}],
        }
        for at in range(count)
    ]
    report["functions"][0] = first | {
        "traces": [
            first["traces"][0] | {"number": at + 1, "begin": at * 0.01, "graph": None, "program": None}
            for at in range(500)
        ],
        "retraces": 499,
    }
    return report


def deep_graph(layers=40):
    """A graph of some thousand nodes in scopes of scopes."""
    report = ordinary(batches=4, epochs=1)
    nodes = [{"op": "input", "text": "x", "scope": "", "in": [], "file": None, "line": 0, "made_of": []}]
    for layer in range(layers):
        entry = len(nodes) - 1
        for head in range(8):
            scope = f"transformer/block_{layer}/attention/head_{head}"
            for at, op in enumerate(["matmul", "matmul", "softmax", "multiply"]):
                nodes.append(
                    {
                        "op": op,
                        "text": f"f32[b,{head}]",
                        "scope": scope,
                        "in": [entry if at < 2 else len(nodes) - 1],
                        "file": None,
                        "line": 0,
                        "made_of": [],
                    }
                )
        nodes.append(
            {
                "op": "concat",
                "text": "f32[b,n,512]",
                "scope": f"transformer/block_{layer}",
                "in": [entry + 4 * head + 4 for head in range(8)],
                "file": None,
                "line": 0,
                "made_of": [],
            }
        )
        nodes.append(
            {
                "op": "add",
                "text": "f32[b,n,512]",
                "scope": f"transformer/block_{layer}",
                "in": [entry, len(nodes) - 1],
                "file": None,
                "line": 0,
                "made_of": [],
            }
        )
    trace = report["functions"][0]["traces"][0]
    trace["graph"], trace["program"] = {"nodes": nodes}, graph_after()
    report["functions"][0] |= {"traces": [trace], "lost_seconds": 1.0}
    return report


def many_spans(count=1_000_000, threads=8):
    """Batches of calls of steps, until there are `count` spans."""
    report = ordinary(batches=4, epochs=1)
    dice = random.Random(3)
    thread, kind, name, begin, duration, moved, flops = [], [], [], [], [], [], []
    each = count // threads
    for at in range(threads):
        clock, left = 0.0, each
        while left > 0:
            steps = min(left - 1, 18)
            took = [dice.expovariate(1e4) for _ in range(max(0, steps))]
            whole = sum(took) * 1.05 + 1e-6
            thread += [at] * (len(took) + 1)
            kind += [0] + [6] * len(took)
            name += [0] + [1 + dice.randrange(40) for _ in took]
            begin.append(clock)
            duration.append(whole)
            inner = clock
            for one in took:
                begin.append(inner)
                duration.append(one)
                inner += one
            moved += [math.nan] + [1e6] * len(took)
            flops += [math.nan] + [1e7] * len(took)
            clock += whole + dice.expovariate(2e4)
            left -= len(took) + 1
    report |= {
        "kinds": KINDS,
        "names": ["train_step"] + [f"kernel_{at}" for at in range(40)],
        "threads": ["main"] + [f"worker {at}" for at in range(1, threads)],
    }
    report["program"]["seconds"] = max(b + d for b, d in zip(begin, duration))
    report["spans"] = {
        "count": len(thread),
        "thread": encoded("H", thread),
        "kind": encoded("B", kind),
        "name": encoded("I", name),
        "begin": encoded("d", begin),
        "duration": encoded("d", duration),
        "bytes": encoded("d", moved),
        "flops": encoded("d", flops),
    }
    return report
