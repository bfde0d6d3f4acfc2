"""Tests of bench/peers/table.py and peers.py: which runs count, what the tables say of them, and what becomes of a page."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "peers"))
import peers  # noqa: E402
import table  # noqa: E402
from workloads import BY_NAME, WORKLOADS  # noqa: E402


def run(side, us, workload="cnn", numbers=(2.5, 0.125), traces=1, **more):
    """A process whose steps took from `us` to twice that."""
    return {
        "workload": workload,
        "side": side,
        "us": [us * (1 + at / 100) for at in range(101)],
        "numbers": list(numbers),
        "traces": traces,
        "peak_mib": 300.0,
        "warm_mib": 5.25,
        "version": side + " 1.0",
        "neighbours": 0.01,
        "date": "2026-01-02T03:04:05+00:00",
    } | more


def failed(side, workload="cnn"):
    return {"workload": workload, "side": side, "failed": "status 1, no module", "neighbours": 0, "date": "2026-01-02T03:04:05"}


def rows(text, title):
    return [line for line in text.splitlines() if line.startswith(f"| {title} |")]


class Times(unittest.TestCase):
    def test_of_several_processes_the_least_and_the_quantiles_of_all(self):
        side = table.Side([run("stet", 100), run("stet", 200)])
        self.assertEqual(side.least, 100)
        self.assertEqual(side.quantile(1), 400)
        self.assertEqual(side.median, 200)

    def test_the_best_peer_over_stet(self):
        runs = [run("stet", 100), run("jax", 300), run("torch_eager", 250), run("tf_xla", 999)]
        cells = rows(table.page_text(runs, "m"), BY_NAME["cnn"].title)[0].split(" | ")
        self.assertEqual(cells[1], "100 µs")
        self.assertEqual(cells[-4:], ["2.50", "2.50", "1.4", "yes |"])

    def test_a_goal_that_is_not_met(self):
        self.assertTrue(rows(table.page_text([run("stet", 100), run("jax", 139)], "m"), BY_NAME["cnn"].title)[0].endswith("| 1.4 | NO |"))

    def test_words_for_times(self):
        self.assertEqual([table.time_text(us) for us in (771.2, 999.6, 2185, 16270)], ["771 µs", "1.00 ms", "2.19 ms", "16.3 ms"])


class Refusals(unittest.TestCase):
    def refused(self, *runs):
        return {name: side.refused for name, side in table.sides_of("cnn", list(runs)).items() if side.refused}

    def test_numbers_within_a_thousandth_count(self):
        self.assertEqual(self.refused(run("stet", 1, numbers=(2.5, 0.125)), run("jax", 1, numbers=(2.5, 0.12511))), {})

    def test_one_of_three_that_differs(self):
        runs = [run("stet", 1), run("jax", 1), run("torch_eager", 1, numbers=(2.5, 0.1252))]
        self.assertEqual(self.refused(*runs), {"torch_eager": "number 2 is 0.1252, not 0.125"})

    def test_of_two_that_differ_neither_counts(self):
        self.assertEqual(set(self.refused(run("stet", 1), run("jax", 1, numbers=(2.5, 0.1252)))), {"stet", "jax"})

    def test_a_later_round_that_differs(self):
        runs = [run("stet", 1), run("jax", 1), run("tf_xla", 1), run("stet", 1, numbers=(2.5, 0.2))]
        self.assertEqual(set(self.refused(*runs)), {"stet"})

    def test_a_nan_differs_also_from_a_nan(self):
        nan = (2.5, float("nan"))
        self.assertEqual(set(self.refused(run("stet", 1, numbers=nan), run("jax", 1, numbers=nan))), {"stet", "jax"})

    def test_fewer_numbers(self):
        self.assertEqual(set(self.refused(run("stet", 1), run("jax", 1, numbers=(2.5,)))), {"stet", "jax"})

    def test_more_traces_than_allowed(self):
        self.assertEqual(self.refused(run("stet", 1, traces=41), run("jax", 1, traces=41)), {"stet": "41 traces, 1 allowed"})

    def test_a_process_that_failed(self):
        self.assertEqual(self.refused(run("stet", 1), run("jax", 1), failed("jax")), {"jax": "failed: status 1, no module"})

    def test_refused_figures_are_not_shown(self):
        text = table.page_text([run("stet", 100), run("tf_xla", 123), run("jax", 77, numbers=(9, 9)), failed("torch_eager")], "m")
        self.assertNotIn("77 µs", text)
        self.assertIn("- cnn, JAX: number 1 is 9, not 2.5", text)
        self.assertIn("- cnn, PyTorch: failed: status 1, no module", text)
        self.assertIn("| refused |", rows(text, BY_NAME["cnn"].title)[0])


class Pages(unittest.TestCase):
    def test_every_workload_has_a_row_and_what_was_not_measured_says_so(self):
        text = table.page_text([run("stet", 100)], "m")
        for workload in WORKLOADS:
            self.assertEqual(len(rows(text, workload.title)), 4)
        self.assertIn("not measured", rows(text, BY_NAME["lstm"].title)[0])
        self.assertIn("not compared", rows(text, BY_NAME["cnn"].title)[3])

    def test_layouts_of_images_are_asked_for_of_images_alone(self):
        text = table.page_text([run("stet", 100), run("torch_eager", 300), run("torch_last", 200)], "m")
        self.assertIn("| 200 µs |", rows(text, BY_NAME["cnn"].title)[0])
        self.assertIn("| 2.00 | 2.00 | 1.4 | yes |", rows(text, BY_NAME["cnn"].title)[0])
        self.assertIn("| – |", rows(text, BY_NAME["lstm"].title)[0])

    def test_no_runs_at_all(self):
        self.assertIn("not measured", table.page_text([], "m"))

    def test_nothing_is_left_of_the_text_between_the_markers(self):
        page = f"before\n{table.BEGIN}\n| old | 1 |\n{table.END}\nafter\n"
        self.assertEqual(table.page_with(page, "new\n"), f"before\n{table.BEGIN}\nnew\n{table.END}\nafter\n")

    def test_a_page_without_markers(self):
        for page in ("", table.BEGIN, table.END + table.BEGIN, 2 * (table.BEGIN + table.END)):
            with self.assertRaisesRegex(ValueError, "once each and in this order"):
                table.page_with(page, "new\n")

    def test_the_page_of_the_repository_has_the_markers(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "benchmarks.md")) as file:
            table.page_with(file.read(), "new\n")


class Driver(unittest.TestCase):
    """The driver with a side that is a shell script, in the place of stet's program."""

    def drive(self, script, *words, runs=None):
        with tempfile.TemporaryDirectory() as folder:
            program, python = os.path.join(folder, "program"), os.path.join(folder, "python")
            page = os.path.join(folder, "page.md")
            for path, text in ((program, script), (python, "#!/bin/sh\nexit 0\n")):
                with open(path, "w") as file:
                    file.write(text)
                os.chmod(path, 0o755)
            with open(page, "w") as file:
                file.write(f"{table.BEGIN}\n{table.END}\n")
            file_of_runs = os.path.join(folder, "runs.jsonl")
            if runs:
                with open(file_of_runs, "w") as file:
                    file.write(runs)
            arguments = ["peers.py", "--program", program, "--python", python, "--cache", folder, "--page", page, "--threads", "1"]
            arguments += ["--quick", "--sides", "stet", "--runs", file_of_runs, "--workloads", "cnn", *words]
            before, sys.argv, status = sys.argv, arguments, 0
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    peers.main()
                except SystemExit as error:
                    status = error.code
                finally:
                    sys.argv = before
            with open(page) as file, open(file_of_runs) as lines:
                return status, file.read(), [json.loads(line) for line in lines]

    def test_a_run_is_a_line_and_its_figures_are_in_the_page(self):
        line = json.dumps({key: value for key, value in run("stet", 4321.0).items() if key not in ("workload", "side", "neighbours", "date")})
        status, page, lines = self.drive(f"#!/bin/sh\necho '{line}'\n")
        self.assertEqual(status, 0)
        self.assertIn("| 4.32 ms |", page)
        self.assertEqual([line.get("workload") for line in lines], [None, "cnn"])

    def test_a_program_that_fails(self):
        status, page, lines = self.drive("#!/bin/sh\necho nothing goes >&2\nexit 3\n")
        self.assertEqual(status, 1)
        self.assertEqual(lines[1]["failed"], "status 3, nothing goes")
        self.assertIn("cnn, stet: failed: status 3, nothing goes", page)

    def test_a_program_that_prints_no_json(self):
        status, _, lines = self.drive("#!/bin/sh\necho hello\n")
        self.assertEqual((status, "failed" in lines[1]), (1, True))

    def test_a_program_that_hangs(self):
        status, _, lines = self.drive("#!/bin/sh\nexec sleep 100\n", "--timeout", "0.3")
        self.assertEqual((status, lines[1]["failed"]), (1, "took longer than 0.3 s"))

    def test_runs_of_another_build_are_refused(self):
        status, page, lines = self.drive("#!/bin/sh\nexit 0\n", runs='{"build": "other"}\n')
        self.assertIn("figures of two builds do not belong in one table", str(status))
        self.assertEqual(len(lines), 1)

    def test_a_workload_that_is_none(self):
        status, _, _ = self.drive("#!/bin/sh\n", "--workloads", "cnm", runs="{}\n")
        self.assertEqual(status, 2)


if __name__ == "__main__":
    unittest.main()
