"""What stet writes for TensorBoard, read by TensorBoard.

The test SummaryWriterTest.WritesEventsForOthers writes the files into the folder that STET_WRITTEN_EVENTS names:

    STET_WRITTEN_EVENTS=/tmp/events build/release/stet_public_tests --gtest_filter=*WritesEventsForOthers
    python3 -m venv venv && venv/bin/pip install tensorboard xprof "setuptools<81"
    venv/bin/python check_events.py /tmp/events [folder for pictures]

Run by hand with TensorBoard 2.21 and xprof 2.24, the plugin of the profile tab, as no test needs Python. The events are
read by its loader, the profiles by the plugin's, and both are asked for as a browser does, from the server that it
starts. With a folder, and chromium, it takes pictures of the pages, to be looked at; the profile tab draws tables and
charts only where the browser may load a library from the network.
"""

import gzip
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import numpy as np
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import graph_pb2
from tensorboard.util import tensor_util
from xprof.profile_data import ProfileData

folder = pathlib.Path(sys.argv[1])
pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None

# ---- The files.


def events_of(run):
    events = event_accumulator.EventAccumulator(str(folder / run), {event_accumulator.TENSORS: 0})
    events.Reload()
    return events


def tensors(events, tag):
    return [(e.step, tensor_util.make_ndarray(e.tensor_proto)) for e in events.Tensors(tag)]


events = events_of("all")
sine = tensors(events, "curve/sine")
assert [step for step, _ in sine] == list(range(100))
assert all(abs(value - math.sin(step * 0.1)) < 1e-6 for step, value in sine)
assert [float(v) for _, v in tensors(events, "curve/größe")] == list(range(100))
nan, inf, number = (float(v) for _, v in tensors(events, "odd"))
assert math.isnan(nan) and math.isinf(inf) and number == -2
normal = tensors(events, "normal")
assert len(normal) == 10 and all(h.shape == (30, 3) and h[:, 2].sum() == 500 for _, h in normal)
assert tensors(events, "empty")[0][1].sum() == 0
assert tensors(events, "same")[0][1][-1].tolist() == [3, 3, 7]
width, height, png = tensors(events, "grey")[0][1]
assert (width, height) == (b"48", b"64") and png.startswith(b"\x89PNG")
assert len(tensors(events, "colours")[0][1]) == 2 + 2
assert tensors(events, "note")[0][1].item().decode() == "A *note* with `code`, ü"
assert tensors(events, "table")[0][1].tolist() == [[b"name", b"value"], [b"rate", b"0.1"]]

train = events_of("training/train")
graph = train.Graph()
names = {node.name for node in graph.node}
assert len(names) == len(graph.node) > 100
assert {"functional/wide/matmul", "functional/conv2d/conv", "functional/conv2d/kernel"} <= names, sorted(names)[:50]
for node in graph.node:
    for name in node.input:
        assert name.split(":")[0] in names, (node.name, name)
print(f"files: {len(names)} nodes of the training step, {len(train.Tags()['tensors'])} tags of the training")

profiles = sorted(folder.glob("**/*.xplane.pb"))
assert [p.relative_to(folder).parts[:-2] for p in profiles] == [
    ("retraces", "plugins", "profile"),
    ("training", "train", "plugins", "profile"),
], profiles
planes = {plane.name: plane for plane in ProfileData.from_serialized_xspace(profiles[1].read_bytes()).planes}
assert planes.keys() == {"/host:CPU", "Task Environment"}, planes
events = [event for line in planes["/host:CPU"].lines for event in line.events]
steps = [event for event in events if event.name == "step"]
assert [dict(step.stats)["step_num"] for step in steps] == [str(number) for number in range(6, 16)]
assert sum(event.name == "train_step" for event in events) >= 2 * len(steps)  # the batches, and the calls in them
print(f"files: a profile of {len(steps)} steps and {len(events)} events")

# ---- The server.

port = 6106
server = subprocess.Popen(
    [pathlib.Path(sys.executable).parent / "tensorboard", "--logdir", folder, "--port", str(port)],
    stderr=subprocess.PIPE,
    text=True,
)
told = []
while line := server.stderr.readline():
    told.append(line)
    if "http://" in line:
        break
page = f"http://localhost:{port}/"


def asked(path, **arguments):
    query = "?" + urllib.parse.urlencode(arguments) if arguments else ""
    with urllib.request.urlopen(page + path + query) as answer:
        content = answer.read()
        return gzip.decompress(content) if answer.headers["Content-Encoding"] == "gzip" else content


def data(plugin, call, **arguments):
    return json.loads(asked(f"data/plugin/{plugin}/{call}", **arguments))


try:
    runs = set()
    for _ in range(60):
        runs = set(json.loads(asked("data/runs")))
        if len(runs) == 6:
            break
        time.sleep(0.5)
    assert runs == {"all", "trials/0", "trials/1", "trials/2", "training/train", "training/validation"}, runs
    curve = data("scalars", "scalars", run="training/train", tag="epoch_loss")
    assert [step for _, step, _ in curve] == [0, 1, 2, 3, 4] and curve[0][2] > curve[-1][2]
    validation = data("scalars", "tags")["training/validation"]
    assert {"epoch_loss", "epoch_accuracy", "evaluation_loss_vs_iterations"} <= validation.keys()
    histograms = data("histograms", "tags")["training/train"]
    assert "conv2d/kernel/histogram" in histograms and "wide/bias/histogram" in histograms
    assert len(data("histograms", "histograms", run="all", tag="normal")) == 10
    images = data("images", "images", run="all", tag="colours", sample=1)
    assert asked("data/plugin/images/individualImage?" + images[0]["query"]).startswith(b"\x89PNG")
    note = data("text", "text", run="all", tag="note")[0]["text"]
    assert "<em>note</em>" in note and "<code>code</code>" in note, note
    assert "<table>" in data("text", "text", run="all", tag="table")[0]["text"]
    request = urllib.request.Request(
        page + "data/plugin/hparams/session_groups",
        json.dumps(
            {
                "experimentName": "",
                "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
                "colParams": [],
                "startIndex": 0,
                "sliceSize": 10,
            }
        ).encode(),
        {"Content-Type": "application/json"},
    )
    groups = json.loads(urllib.request.urlopen(request).read())["sessionGroups"]
    assert [g["name"] for g in groups] == ["trial 0", "trial 1", "trial 2"], groups
    assert groups[1]["hparams"] == {"rate": 0.2, "layers": 1.0, "bias": True, "optimizer": "adam"}, groups[1]
    assert abs(groups[2]["metricValues"][0]["value"] - 0.7) < 1e-6
    assert groups[0]["sessions"][0]["status"] == "STATUS_SUCCESS"
    graphs = data("graphs", "info")
    assert graphs["training/train"]["run_graph"], graphs
    assert graphs["training/train"]["tags"]["keras"]["conceptual_graph"], graphs
    ops = asked("data/plugin/graphs/graph", run="training/train", conceptual="false").decode()
    layers = asked("data/plugin/graphs/graph", run="training/train", tag="keras", conceptual="true").decode()
    in_ops, in_layers = (set(re.findall(r'^  name: "(.*)"$', text, re.M)) for text in (ops, layers))
    assert "functional/wide/matmul" in in_ops
    assert {"functional/image", "functional/conv2d", "functional/add", "functional/classes"} <= in_layers, in_layers
    assert layers.count("input:") == 8, layers  # a chain of eight, and one that goes around a layer
    print(f"server: {len(runs)} runs, {len(in_ops)} nodes, {len(in_layers)} layers")

    def tool_of(run, tool):
        """Tables: their properties, and a list of rows."""
        host = data("profile", "hosts", run=run, tag=tool)[0]["hostname"]
        return data("profile", "data", run=run, tag=tool, host=host)

    def rows(table):
        names = [column["id"] for column in table["cols"]]
        return [dict(zip(names, [cell["v"] for cell in row["c"]], strict=True)) for row in table["rows"]]

    def table_with(tables, column):
        return next(t for t in tables if any(c["id"] == column for c in t.get("cols", [])))

    profiled = {run.split("/2")[0]: run for run in data("profile", "runs")}
    assert profiled.keys() == {"training/train", "retraces"}, profiled
    training = profiled["training/train"]
    assert {"overview_page", "trace_viewer@", "framework_op_stats", "input_pipeline_analyzer"} <= set(
        data("profile", "run_tools", run=training)
    )
    overview = tool_of(training, "overview_page")
    times = table_with(overview, "stepnum")
    # It leaves out the first and the last step.
    assert [row["stepnum"] for row in rows(times)] == [f"step {number}" for number in range(7, 15)], rows(times)
    for row in rows(times):
        parts = row["hostComputeTimeMs"] + row["infeedTimeMs"] + row["otherTimeMs"]
        assert row["hostComputeTimeMs"] > 0 and row["infeedTimeMs"] > 0, row
        assert abs(parts - row["stepTimeMs"]) < 1e-3, row
    assert "of the total step time sampled" in times["p"]["input_conclusion"], times["p"]
    kernels = {row["operation"]: row for row in rows(tool_of(training, "framework_op_stats")[0])}
    assert kernels["functional/wide/matmul_add_tanh"]["occurrences"] == 10, kernels.keys()
    assert any(name.startswith("gradients/functional/conv2d/") for name in kernels), kernels.keys()
    timeline = tool_of(training, "trace_viewer@")["traceEvents"]
    drawn = {event["name"] for event in timeline if event["ph"] == "X"}
    assert {f"step {number}" for number in range(6, 16)} | {"train_step"} <= drawn, drawn
    assert any(event["ph"] == "C" and event["name"] == "memory of tensors" for event in timeline)
    first = min(event["ts"] for event in timeline if event["ph"] == "X")
    assert first < 1e6, first  # microseconds from the beginning
    told = [row["message"] for row in rows(table_with(tool_of(profiled["retraces"], "overview_page"), "severity"))]
    assert any(message.startswith("'scaled' was traced again") for message in told), told
    print(f"profile: {len(kernels)} kernels, {len(timeline)} events in the timeline")
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
        for name, place in {
            "scalars": "?darkMode=false#timeseries",
            "scalars_dark": "?darkMode=true#scalars",
            "graph": "?darkMode=false&run=training%2Ftrain#graphs&run=training%2Ftrain",
            "histograms": "#histograms",
            "images": "#images",
            "text": "#text",
            "hparams": "#hparams",
            "profile_overview": f"#profile&run={training}&tool=overview_page",
            "profile_trace": f"?tool=trace_viewer@&run={training}#profile&run={training}&tool=trace_viewer@",
            "profile_input": f"?tool=input_pipeline_analyzer&run={training}#profile",
            "profile_ops": f"?tool=framework_op_stats&run={training}#profile",
        }.items():
            subprocess.run(
                [shutil.which("chromium"), "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu",
                 "--window-size=1400,1000", "--virtual-time-budget=30000", f"--screenshot={pictures / name}.png",
                 page + place],
                check=True, stderr=subprocess.DEVNULL, timeout=180,
            )  # fmt: skip
            print(pictures / f"{name}.png")
finally:
    server.terminate()
    server.wait()
told += server.stderr.readlines()
# Those of the profile plugin are about files and tools of its own that there may be.
its_own = re.compile(r"[WE]0000|.*security_validator|.*In 3.0, this warning")
warnings = [
    line
    for line, next_line in zip(told, told[1:] + [""])
    if re.match(r"[WE]\d{4}|Traceback", line) and not its_own.match(line) and "xprof/profile_io.py" not in next_line
]
assert not warnings, warnings
print("TensorBoard reads all of it")
