"""page_test.py <make_page> [<stet> <find_the_retrace>]: the page of a report in a real browser, headless: of recordings that no
program made, and of those of a program, beside what the command says of them. Ends with 77 (skipped) where there is no browser.
"""

import glob
import json
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import recordings  # noqa: E402
from browser import browser_program  # noqa: E402
from checks import CONTRAST, OPEN_ALL, OVERLAPS, STANDING_OUT, WIDE_TABLES, BrowserTest, count, seconds  # noqa: E402

# Other words are names of tests.
MAKE_PAGE, STET, EXAMPLE = ([os.path.abspath(word) for word in sys.argv[1:4] if os.path.isfile(word)] + ["", "", ""])[:3]
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
RECORDINGS = ("bare", "one_span", "nulls", "ordinary", "hostile", "wild_numbers", "many_functions", "deep_graph", "deep_spans")
LANE = 18  # the height of a lane of the timeline
THREAD = 22  # and of the line with a thread's name


class PageTest(BrowserTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reports = {}

    def page(self, name, report=None):
        """The path of the page of a recording."""
        path = os.path.join(self.folder.name, name + ".html")
        if name not in self.reports:
            self.reports[name] = report or getattr(recordings, name)()
            with open(path, "wb") as page:
                subprocess.run([MAKE_PAGE], input=json.dumps(self.reports[name]).encode(), stdout=page, check=True)
        return path

    def open(self, name, **how):
        self.browser.open(self.page(name), **how)
        return self.reports[name]

    def lanes(self):
        """Where the timeline's lanes stand: left, top, width."""
        return self.browser.place(".timeline-lanes")[:3]

    def click_function(self, name):
        at = self.browser.ask(
            f"[...document.querySelectorAll('#functions .opener')].findIndex(node => node.innerText === {json.dumps(name)})"
        )
        self.assertGreaterEqual(at, 0)
        row = self.browser.ask(f"document.querySelectorAll('#functions .opener')[{at}].closest('tr').id")
        self.browser.click(f"#{row} .opener")

    def test_opens_without_complaints(self):
        for name in RECORDINGS:
            for window in ({}, {"dark": True}, {"width": 390, "height": 800, "phone": True}):
                with self.subTest(name, **window):
                    self.open(name, **window)
                    if name != "many_functions":
                        self.browser.ask(OPEN_ALL)
                        self.browser.settle()
                        self.browser.ask(
                            "document.querySelectorAll('main details:not([open]) > summary').forEach((node) => node.click())"
                        )
                    self.quiet()
                    self.assertEqual(self.browser.ask(STANDING_OUT), [])
                    self.assertLessEqual(
                        self.browser.ask("document.documentElement.scrollWidth"), window.get("width", 1280)
                    )
                    self.assertIsNone(self.browser.ask("window.broken ?? null"))

    def test_nothing_is_cut_off_or_overlaps(self):
        for window in (
            {},
            {"width": 1024},
            {"width": 800},
            {"width": 390, "height": 800, "phone": True},
            {"width": 360, "height": 640, "phone": True},
        ):
            with self.subTest(**window):
                self.open("ordinary", **window)
                self.browser.ask(OPEN_ALL)
                self.browser.settle()
                self.browser.ask(OPEN_ALL)
                self.browser.settle()
                # A table with many columns of what was measured may be wider than a phone.
                wide = [table for table in self.browser.ask(WIDE_TABLES) if not table.startswith("Epochs")]
                self.assertEqual(wide, [])
                self.assertEqual(self.browser.ask(OVERLAPS), [])
                self.assertEqual(self.browser.ask(STANDING_OUT), [])

    def test_strings_are_text(self):
        report = self.open("hostile")
        self.assertEqual(self.browser.ask("document.querySelectorAll('script').length"), 2)
        self.assertEqual(self.browser.ask("document.querySelectorAll('img, iframe, link, object, embed').length"), 0)
        self.assertIn(report["program"]["name"], self.words("h1"))
        names = self.browser.ask("[...document.querySelectorAll('#functions tbody th')].map(node => node.textContent)")
        self.assertEqual(sorted(names), sorted(its["name"] or "(no name)" for its in report["functions"]))
        self.assertEqual(
            self.browser.ask(
                "[...document.querySelectorAll('a')].filter(node => !node.getAttribute('href').startsWith('#')).length"
            ),
            0,
        )

    def test_contrast(self):
        for name in ("ordinary", "nulls"):
            for dark in (False, True):
                with self.subTest(name, dark=dark):
                    self.open(name, dark=dark)
                    self.browser.ask(OPEN_ALL)
                    self.browser.settle()
                    left, top, width = self.lanes()
                    self.browser.click_at(left + width / 2, top + THREAD + LANE / 2)
                    found = self.browser.ask(CONTRAST)
                    self.assertGreaterEqual(found["contrast"], 4.5, found)
                    self.assertGreater(found["count"], 50)

    def test_every_kind_has_a_colour_that_text_is_read_on(self):
        for dark in (False, True):
            self.open("ordinary", dark=dark)
            colours = self.browser.ask(
                f"{json.dumps(recordings.KINDS)}.map(kind => getComputedStyle(document.documentElement).getPropertyValue('--kind-' + kind).trim())"
            )
            for kind, colour in zip(recordings.KINDS, colours):
                self.assertRegex(colour, "^#[0-9a-f]{6}$", kind)
            self.assertEqual(len(set(colours)), len(colours))

    def test_words_on_canvases_are_read(self):
        """What is written there is no text of the document: its colours are those of the style sheet."""
        for dark in (False, True):
            self.open("one_span", dark=dark)
            colours = self.browser.ask(
                "Object.fromEntries(['ink', 'muted', 'paper', 'sunken', 'node-fused', 'node-scope', 'node-variable'].map(name => "
                "[name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim()]))"
            )

            def luminance(name):
                parts = [int(colours[name][at : at + 2], 16) / 255 for at in (1, 3, 5)]
                light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
                return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]

            for words in ("ink", "muted"):
                for below in ("paper", "sunken", "node-fused", "node-scope", "node-variable"):
                    low, high = sorted((luminance(words), luminance(below)))
                    self.assertGreaterEqual((high + 0.05) / (low + 0.05), 4.5, (words, below, dark))

    def test_the_theme_follows_the_system_and_the_switch(self):
        paper = "getComputedStyle(document.body).backgroundColor"
        self.open("one_span", dark=False)
        light = self.browser.ask(paper)
        self.open("one_span", dark=True)
        dark = self.browser.ask(paper)
        self.assertNotEqual(light, dark)
        self.browser.click("#theme")
        self.assertEqual((self.words("#theme"), self.browser.ask(paper)), ("○ light", light))
        self.browser.click("#theme")
        self.assertEqual((self.words("#theme"), self.browser.ask(paper)), ("● dark", dark))
        self.browser.click("#theme")
        self.assertEqual((self.words("#theme"), self.browser.ask(paper)), ("◐ system", dark))
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        self.browser.settle()
        self.assertEqual(self.browser.ask(paper), light)

    def test_the_verdict_comes_first(self):
        report = self.open("ordinary")
        self.assertEqual(self.browser.ask("document.querySelector('main').firstElementChild.id"), "verdict")
        words = self.words("#verdict")
        for sentence in report["verdict"]:
            self.assertIn(sentence, words)
        legend = self.words("#verdict .legend")
        for share in report["shares"]:
            self.assertIn(share["name"], legend)
            self.assertIn(seconds(share["seconds"]), legend)
        # The dearest first.
        texts = self.browser.ask("[...document.querySelectorAll('#findings li p')].map(node => node.textContent)")
        self.assertEqual(
            texts, [finding["text"] for finding in sorted(report["findings"], key=lambda finding: -finding["weight"])]
        )

    def test_parts_without_data_are_left_out_or_say_why(self):
        self.open("bare")
        self.assertEqual(
            self.browser.ask("[...document.querySelectorAll('main > section')].map(node => node.id)"),
            ["verdict", "functions", "timeline", "kernels"],
        )
        self.assertEqual(
            self.browser.ask(
                "[...document.querySelectorAll('main > section:not(#verdict) > p.muted')].map(node => node.innerText)"
            ),
            ["No function was traced.", "No spans were recorded.", "No kernel ran in a traced function."],
        )
        self.assertIn("Nothing was found out about this run.", self.words("#verdict"))
        self.open("ordinary")
        self.assertEqual(
            self.browser.ask("[...document.querySelectorAll('main > section')].map(node => node.id)"),
            [
                "verdict",
                "findings",
                "functions",
                "timeline",
                "kernels",
                "stages",
                "counters",
                "training",
                "compiling",
                "events",
            ],
        )

    def test_no_number_is_the_pages_own(self):
        unknown = {key: None for key in recordings.bare()["program"]}
        self.browser.open(self.page("unknown", recordings.bare(program=unknown)))
        self.assertNotRegex(self.words("main"), "[0-9]")

    def test_what_was_lost_is_said(self):
        self.open("wild_numbers")
        self.assertIn("The recording ends before the program did", self.words("#verdict"))
        self.assertIn(
            "12\u202f345\u202f678 spans found no room and are missing from the timeline", self.words("#verdict")
        )

    def test_a_function_opens_at_a_click(self):
        report = self.open("ordinary")
        its = report["functions"][0]
        self.click_function("train_step")
        self.assertEqual(
            self.browser.ask("document.querySelector('#function-0 .opener').getAttribute('aria-expanded')"), "true"
        )
        titles = self.browser.ask("[...document.querySelectorAll('.trace > summary')].map(node => node.innerText)")
        self.assertEqual(len(titles), len(its["traces"]))
        for title, trace in zip(titles, its["traces"]):
            for part in (
                f"Trace {trace['number']}",
                "took " + seconds(trace["seconds"]),
                f"served {trace['calls']} calls",
                "sentiment.cpp:58",
            ):
                self.assertIn(part, title)
            self.assertEqual("evicted" in title, trace["evicted"])
        last = its["traces"][-1]
        body = self.words("#function-0-trace-4")
        for part in (last["cause"], last["fixes"][0]["text"], last["facts"][0]["text"], "pin", its["warnings"][0]):
            self.assertIn(part, body if part != its["warnings"][0] else self.words("#functions .doubt"))
        # The lines of the fix are there to be read, with the one that is meant marked.
        self.assertEqual(
            self.words("#function-0-trace-4 .fix .source .here").strip(),
            "▸33  for (int t = 0; t < int(x.dim(1)); ++t) {",
        )
        # What differs from the trace that it is compared with is marked, of the arguments and of the call.
        self.assertEqual(last["nearest"], 1)
        self.assertEqual(
            self.browser.ask(
                "[...document.querySelectorAll('#function-0-trace-4 .difference')].map(node => node.innerText.replace(/\\s+/g, ' '))"
            ),
            [
                f"trace 1 {its['traces'][0]['arguments']} trace 5 {last['arguments']}",
                f"trace 1 {its['traces'][0]['called_with']} trace 5 {last['called_with']}",
            ],
        )
        self.assertEqual(
            self.browser.ask(
                "[...document.querySelectorAll('#function-0-trace-4 ins, #function-0-trace-4 del')].map(node => node.innerText)"
            ),
            ["57", "66", "57", "66"],
        )
        # Of their graphs, too.
        self.assertIn("Graph beside that of trace 1: 2 nodes of 77 differ", body)
        self.browser.click("#function-0-trace-4 > .trace-body > details:last-child > summary")
        self.assertEqual(
            self.words("#function-0-trace-4 .graph-difference").split("\n"),
            ["− input x f32[b,57]", "+ input x f32[b,66]", "− gather f32[b,57,32]", "+ gather f32[b,66,32]"],
        )
        self.assertIn(f"Holds\n\n{last['bytes'] / 2**20:.2f}\u202fMiB", body)
        self.click_function("train_step")
        self.assertEqual(self.browser.ask("document.querySelectorAll('.trace').length"), 0)
        self.quiet()

    def test_what_is_kept_of_a_function_and_what_happens_at_the_limit_is_said(self):
        its = self.open("ordinary")["functions"][0]
        self.click_function("train_step")
        held = [trace for trace in its["traces"] if not trace["evicted"]]
        self.assertEqual(
            self.words("#functions .keeps").split("\n"),
            [
                f"{len(held)} of at most {its['max_traces']} traces kept, {sum(trace['bytes'] for trace in held) / 2**20:.1f}\u202fMiB, 1 forgotten",
                "at the limit: one that is cheap to make again and has not served for long is then forgotten, with a warning",
            ],
        )

    def test_calls_stand_in_a_strip(self):
        report = self.open("ordinary")
        its = report["functions"][0]
        self.click_function("train_step")
        self.assertEqual(
            self.words("#functions .calls figcaption").split("\n"),
            ["1\u202f800 calls in order", "1 traced first", "4 traced again", "1\u202f795 served by a trace"],
        )
        # The second trace was made in the call of batch 61; it leads to its span.
        left, top, width, height = self.browser.place("#functions .call-strip")
        x = left + (61 + 0.5) * width / its["calls"]
        self.browser.mouse("mouseMoved", x, top + height / 2)
        self.assertIn("made trace 2", self.words("#tip"))
        self.browser.click_at(x, top + height / 2)
        self.assertEqual(self.words(".span-card h4"), "train_step")
        self.assertIn("call", self.words(".span-card dl"))
        # A trace's own way there.
        self.browser.ask("document.querySelector('.timeline').scrollIntoView()")
        before = self.browser.ask("document.querySelector('.timeline-lanes').toDataURL()")
        self.browser.click("#function-0-trace-4 .trace-body button.to")
        self.browser.settle()
        self.assertNotEqual(self.browser.ask("document.querySelector('.timeline-lanes').toDataURL()"), before)
        self.quiet()

    def test_a_span_opens_at_a_click(self):
        report = self.open("ordinary")
        left, top, width = self.lanes()
        first = report["training"][0]["epochs"][0]
        at = left + width * (first["begin"] + first["seconds"] / 2) / report["program"]["seconds"]
        self.browser.mouse("mouseMoved", at, top + THREAD + LANE / 2)
        self.assertIn("epoch 1", self.words("#tip"))
        self.browser.click_at(at, top + THREAD + LANE / 2)
        card = self.words(".span-card")
        for part in ("epoch 1", seconds(first["seconds"]), "main", "epoch"):
            self.assertIn(part, card)
        # By keys: the next one, what is in it, and back.
        for key, name in (("n", "epoch 2"), ("ArrowDown", "wait for data"), ("ArrowUp", "epoch 2"), ("p", "epoch 1")):
            self.browser.key(key)
            self.assertEqual(self.words(".span-card h4"), name, key)
        self.browser.key("Escape")
        self.assertIsNone(self.words(".span-card"))
        self.quiet()

    def test_the_timeline_zooms(self):
        self.open("ordinary")
        picture = "document.querySelector('.timeline-lanes').toDataURL() + document.querySelector('.timeline-head').toDataURL()"
        left, top, width = self.lanes()
        self.browser.click_at(left + width / 2, top + THREAD + LANE / 2)
        self.browser.key("Escape")
        self.browser.mouse("mouseMoved", 1, 1)
        self.browser.settle()
        whole = self.browser.ask(picture)
        seen = {whole}
        for key in ("+", "+", "ArrowRight", "-"):
            self.browser.key(key)
            shown = self.browser.ask(picture)
            self.assertNotIn(shown, seen, key)
            seen.add(shown)
        left, top, width = self.lanes()
        self.browser.mouse("mouseWheel", left + width / 2, top + 60, deltaX=0, deltaY=-240)
        self.browser.mouse("mouseMoved", 1, 1)
        self.browser.settle()
        self.assertNotIn(self.browser.ask(picture), seen)
        self.browser.key("0")
        self.assertEqual(self.browser.ask(picture), whole)
        self.quiet()

    def test_a_retrace_opens_at_a_click(self):
        report = self.open("ordinary")
        retrace = [event for event in report["events"] if event["kind"] == "retrace"][1]
        left, top, width, height = self.browser.place(".timeline-head")
        x = left + width * retrace["time"] / report["program"]["seconds"]
        self.browser.mouse("mouseMoved", x, top + height - 9)
        self.assertIn(retrace["text"], self.words("#tip"))
        self.browser.click_at(x, top + height - 9)
        self.assertEqual(self.browser.ask("location.hash"), "#function-0-trace-2")
        self.assertTrue(self.browser.ask("document.querySelector('#function-0-trace-2').open"))
        self.assertIn(report["functions"][0]["traces"][2]["cause"], self.words("#function-0-trace-2"))
        # From the list of events too, and from the strip of traces.
        self.browser.click("#events a[href='#function-0-trace-1']")
        self.assertTrue(self.browser.ask("document.querySelector('#function-0-trace-1').open"))
        self.browser.click(".strip-cell:last-of-type")
        self.assertEqual(self.browser.ask("location.hash.slice(0, 18)"), "#function-0-trace-")
        self.quiet()

    def tab_to(self, selector):
        """Tabs until what matches has the focus; it shows that it has."""
        for _ in range(80):
            self.browser.key("Tab")
            if self.browser.ask(f"document.activeElement.matches({json.dumps(selector)})"):
                outline = self.browser.ask(
                    "(() => { const style = getComputedStyle(document.activeElement); return [style.outlineStyle, parseFloat(style.outlineWidth)]; })()"
                )
                self.assertTrue(outline[0] != "none" and outline[1] >= 1, (selector, outline))
                return
        self.fail(selector + " is not reached by the tabulator")

    def test_all_is_done_by_keys(self):
        report = self.open("ordinary")
        self.browser.key("Tab")
        self.assertEqual(self.browser.ask("document.activeElement.className"), "skip")
        self.assertGreaterEqual(self.browser.ask("document.activeElement.getBoundingClientRect().left"), 0)
        self.browser.key("Enter")
        self.assertEqual(self.browser.ask("document.activeElement.id"), "main")
        # A function opens, and one of its traces.
        self.tab_to("#functions .opener")
        self.browser.key("Enter")
        self.assertEqual(self.browser.ask("document.activeElement.getAttribute('aria-expanded')"), "true")
        self.tab_to("details.trace > summary")
        self.assertFalse(self.browser.ask("document.querySelector('#function-0-trace-0').open"))
        self.browser.key("Enter")
        self.assertTrue(self.browser.ask("document.querySelector('#function-0-trace-0').open"))
        self.browser.key("Enter")
        self.assertFalse(self.browser.ask("document.querySelector('#function-0-trace-0').open"))
        self.browser.key("Tab", shift=True)
        self.assertTrue(self.browser.ask("document.activeElement.matches('a:has(.strip-cell)')"))
        # The timeline: to a span, into it, and out of it.
        self.browser.ask("document.querySelectorAll('#functions .opener')[2].focus()")
        self.tab_to(".timeline-lanes")
        self.browser.key("n")
        self.assertIsNotNone(self.words(".span-card h4"))
        before = self.browser.ask("document.querySelector('.timeline-lanes').toDataURL()")
        self.browser.key("Enter")
        self.assertNotEqual(self.browser.ask("document.querySelector('.timeline-lanes').toDataURL()"), before)
        self.browser.key("Escape")
        self.assertIsNone(self.words(".span-card"))
        # A kernel opens; a retrace leads to its trace, which then has the focus.
        self.tab_to("#kernels .opener")
        self.browser.key("Enter")
        self.assertEqual(self.browser.ask("document.activeElement.getAttribute('aria-expanded')"), "true")
        self.browser.ask("document.querySelector('#events tbody button').focus()")
        self.tab_to("#events a")
        self.browser.key("Enter")
        self.assertEqual(self.browser.ask("location.hash"), "#function-0-trace-1")
        self.assertTrue(self.browser.ask("document.activeElement.matches('#function-0-trace-1 > summary')"))
        # Names are looked for from anywhere, and no longer after Escape.
        self.browser.key("/")
        self.assertEqual(self.browser.ask("document.activeElement.id"), "find")
        self.browser.call("Input.insertText", text=report["functions"][1]["name"])
        self.browser.ask("new Promise(done => setTimeout(done, 300))")
        self.assertEqual(self.browser.ask("document.querySelectorAll('#functions tbody > tr > th').length"), 1)
        self.browser.key("Escape")
        self.assertEqual(self.browser.ask("document.getElementById('find').value"), "")
        self.quiet()

    def test_an_address_names_a_place(self):
        self.open("ordinary", hash="#function-0-trace-3")
        self.assertTrue(self.browser.ask("document.querySelector('#function-0-trace-3').open"))
        self.open("ordinary", hash="#kernel-2")
        self.assertEqual(
            self.browser.ask("document.querySelector('#kernel-2 .opener').getAttribute('aria-expanded')"), "true"
        )
        for nowhere in ("#function-99", "#function-0-trace-99", "#kernel-99", "#function-x", "#"):
            self.open("ordinary", hash=nowhere)
            self.quiet()

    def test_scopes_of_a_graph_close_and_open(self):
        self.open("ordinary")
        self.click_function("train_step")
        graph = "#function-0-trace-4 .graph-view"
        picture = f"document.querySelector('{graph} canvas').toDataURL()"
        pressed = f"document.querySelectorAll('{graph} .pills button[aria-pressed=false]').length"
        self.browser.place(graph + " canvas")
        before, closed = self.browser.ask(picture), self.browser.ask(pressed)
        self.assertGreater(closed, 0)
        self.browser.click(graph + " .pills button[aria-pressed=false]")
        self.assertEqual(self.browser.ask(pressed), closed - 1)
        opened = self.browser.ask(picture)
        self.assertNotEqual(opened, before)
        # A node says what it is and where it was written.
        self.browser.ask(f"document.querySelector('{graph} canvas').focus()")
        self.browser.key("n")
        self.assertIn("input", self.words(graph + " .node-details"))
        self.assertIn("sentiment.cpp:31", self.words(graph + " .node-details"))
        self.browser.key("Escape")
        # All of it, then closed again.
        self.browser.click(graph + " figcaption button[aria-label='Show all']")
        self.assertNotEqual(self.browser.ask(picture), opened)
        self.browser.click(graph + " .pills button")
        self.assertNotEqual(self.browser.ask(picture), opened)
        self.quiet()

    def test_a_node_of_a_graph_opens_at_a_click(self):
        self.open("ordinary")
        self.click_function("train_step")
        canvas = "#function-0-trace-4 .graph-view + .graph-view canvas"
        left, top, width, height = self.browser.place(canvas)
        for x in range(int(left) + 10, int(left + width), 16):
            self.browser.mouse("mouseMoved", x, top + 36)
            if not self.browser.ask("document.getElementById('tip').hidden"):
                self.browser.click_at(x, top + 36)
                break
        else:
            self.fail("no node under the pointer anywhere in the first row")
        self.assertIn(self.words("#tip b"), self.words("#function-0-trace-4 .graph-view + .graph-view .node-details"))
        self.quiet()

    def test_tables_sort(self):
        report = self.open("ordinary")
        names = "[...document.querySelectorAll('#kernels tbody .name.mono:not(.muted)')].map(node => node.textContent)"
        by_time = [kernel["name"] for kernel in sorted(report["kernels"], key=lambda kernel: -kernel["seconds"])]
        self.assertEqual(self.browser.ask(names), by_time)
        self.browser.click("#kernels thead th:nth-child(5) button")
        self.assertEqual(self.browser.ask(names), by_time[::-1])
        self.browser.click("#kernels thead th:nth-child(1) button")
        self.assertEqual(self.browser.ask(names), sorted(by_time))
        self.assertEqual(
            self.browser.ask("document.querySelector('#kernels thead th').getAttribute('aria-sort')"), "ascending"
        )

    def test_a_kernel_says_what_it_reached(self):
        report = self.open("ordinary")
        kernel = report["kernels"][0]
        self.browser.click("#kernel-0 .opener")
        words = self.words("#kernel-0 + tr")
        self.assertIn(f"{kernel['flops'] / kernel['seconds'] / 1e9:.3g}\u202fGF/s", words)
        self.assertIn(
            f"{100 * kernel['flops'] / kernel['seconds'] / report['limits']['flops']:.0f}\u202f% of this machine's 112\u202fGF/s",
            words,
        )
        # Which layer it computes, and by which line.
        (place,) = kernel["places"]
        self.assertIn(f"{place['scope']}\nexamples/sentiment.cpp:33", words)
        self.browser.click("#kernel-0 + tr details.place > summary")
        self.assertIn("for (int t = 0; t < int(x.dim(1)); ++t) {", self.words("#kernel-0 + tr .source .here"))
        self.assertEqual(
            self.browser.ask("document.querySelectorAll('.roofline .dot').length"),
            sum(1 for kernel in report["kernels"] if kernel["flops"]),
        )
        self.assertEqual(self.browser.ask("document.querySelectorAll('.roof').length"), 1)
        self.browser.open(self.page("no_limits", recordings.ordinary(batches=4, epochs=1) | {"limits": None}))
        self.assertEqual(self.browser.ask("document.querySelectorAll('.roof').length"), 0)
        self.assertIn("The limits of this machine were not measured", self.words(".roofline"))

    def test_names_are_found(self):
        self.open("ordinary")
        self.browser.ask("document.getElementById('find').focus()")
        self.browser.call("Input.insertText", text="evaluate")
        self.browser.ask("new Promise(done => setTimeout(done, 300))")
        self.assertEqual(
            self.browser.ask("[...document.querySelectorAll('#functions tbody th')].map(node => node.innerText)"),
            ["evaluate"],
        )
        self.assertEqual(self.words("#found"), "1 match")
        self.assertIn("No name here has what you look for.", self.words("#kernels"))
        self.browser.key("Escape")
        self.assertEqual(self.browser.ask("document.querySelectorAll('#functions tbody th').length"), 3)

    def test_long_tables_are_cut_and_shown_whole_when_asked(self):
        report = self.open("many_functions")
        self.assertEqual(self.browser.ask("document.querySelectorAll('#functions tbody tr').length"), 100)
        self.browser.click("#functions button.more")
        self.assertEqual(
            self.browser.ask("document.querySelectorAll('#functions tbody tr').length"), len(report["functions"])
        )
        self.quiet()

    def test_curves_and_counters_are_read_under_the_pointer(self):
        report = self.open("ordinary")
        epochs = report["training"][0]["epochs"]
        left, top, width, height = self.browser.place("#training .chart-frame")
        self.browser.mouse("mouseMoved", left + width - 15, top + height / 2)
        self.assertEqual(
            self.words("#training .readout"),
            f"epoch {epochs[-1]['epoch']}: loss {epochs[-1]['values']['loss']:.4g}, val_loss {epochs[-1]['values']['val_loss']:.4g}",
        )
        left, top, width, height = self.browser.place("#counters .chart-frame")
        self.browser.mouse("mouseMoved", left + width / 2, top + height / 2)
        self.assertRegex(self.words("#counters .readout"), r"^\d+\.\d\u202fs: \d+\.\d\u202fMiB$")

    def test_caches_say_how_often_they_found_what_was_looked_for(self):
        report = self.open("ordinary")
        cache = report["caches"][0]
        self.assertEqual(
            self.browser.ask(
                "[...document.querySelectorAll('#counters tbody tr')].map(row => [...row.children].map(cell => cell.innerText.trim()))"
            ),
            [[cache["name"], count(cache["found"]), count(cache["of"]), "100\u202f%"]],
        )
        # Counters that are no memory open at a click.
        self.assertEqual(self.browser.ask("document.querySelectorAll('#counters .chart').length"), 1)
        self.browser.click("#counters details > summary")
        self.assertEqual(self.browser.ask("document.querySelectorAll('#counters .chart').length"), 2)
        self.quiet()

    def test_on_paper_all_is_open_and_light(self):
        self.open("ordinary", dark=True)
        dark = self.browser.ask("getComputedStyle(document.body).backgroundColor")
        pages = self.browser.call("Page.printToPDF", printBackground=True)["data"]
        self.assertGreater(len(pages), 20000)
        self.browser.ask("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.browser.ask("document.querySelectorAll('.opener[aria-expanded=false]').length"), 0)
        self.assertEqual(self.browser.ask("document.querySelectorAll('details.trace:not([open])').length"), 0)
        self.assertEqual(self.browser.ask("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.browser.ask("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.browser.ask("document.querySelectorAll('.opener[aria-expanded=true]').length"), 0)
        self.assertEqual(self.browser.ask("getComputedStyle(document.body).backgroundColor"), dark)
        self.quiet()

    def test_long_lists_are_not_all_open_on_paper(self):
        self.open("many_functions")
        self.browser.ask("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.browser.ask("document.querySelectorAll('#functions .opener[aria-expanded=true]').length"), 12)
        self.browser.ask("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.browser.ask("document.querySelectorAll('.opener[aria-expanded=true]').length"), 0)

    def test_many_spans(self):
        self.browser.open(self.page("many", recordings.many_spans(60000)))
        self.assertIn(
            "60\u202f000 spans in 8 threads",
            self.browser.ask("document.querySelector('.timeline-lanes').getAttribute('aria-label')"),
        )
        left, top, width = self.lanes()
        self.browser.click_at(left + width / 2, top + THREAD + LANE / 2)
        self.assertIn("train_step", self.words(".span-card"))
        self.quiet()

    def test_a_part_that_cannot_be_drawn_leaves_the_others(self):
        self.browser.open(self.page("odd", recordings.one_span() | {"kinds": {"0": "call"}}))
        self.assertIn("This part could not be drawn", self.words("#timeline"))
        self.assertIn("1 call, and that was it.", self.words("#verdict"))
        self.assertIn("No kernel ran in a traced function.", self.words("#kernels"))
        self.assertEqual(len(self.browser.complaints()), 1)

    def test_a_page_that_is_cut_off_says_so(self):
        with open(self.page("one_span"), "rb") as file:
            page = file.read()
        broken = os.path.join(self.folder.name, "broken.html")
        for was, becomes in (
            (b'"format":1', b'"format":2'),
            (b'"format":1', b'"format":'),
            (b'{"format"', b'[{"format"'),
            (b'"begin":"', b'"begin":"?'),
        ):
            self.assertTrue(was in page, was)
            with open(broken, "wb") as file:
                file.write(page.replace(was, becomes, 1))
            self.browser.open(broken)
            self.assertIn("This report cannot be read", self.words("main"))
            self.assertIn("The file is cut off, or was made by another version of stet.", self.words("main"))
            self.assertEqual(self.browser.complaints(), [])


@unittest.skipUnless(EXAMPLE, "no command and no example were named")
class RealRecordingTest(BrowserTest):
    """Of examples/find_the_retrace: its own pages, and the recording of the whole program."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slow, cls.fixed, cls.whole = (
            os.path.join(cls.folder.name, name + ".html")
            for name in ("find_the_retrace_slow", "find_the_retrace_fixed", "whole")
        )
        subprocess.run(
            [EXAMPLE, cls.folder.name],
            env=os.environ | {"STET_PROFILE": cls.folder.name},
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        (cls.recording,) = glob.glob(os.path.join(cls.folder.name, "*.stet-profile"))
        told = lambda *words: subprocess.run(  # noqa: E731
            [STET, "report", cls.recording, *words], cwd=ROOT, stdout=subprocess.PIPE, check=True
        ).stdout
        cls.json = json.loads(told("--json"))
        told("-o", cls.whole)

    def data(self):
        return self.browser.ask("JSON.parse(document.getElementById('data').textContent)")

    def rows(self, part):
        """The cells of a table's rows; rows that are open have none."""
        return self.browser.ask(
            f"[...document.querySelectorAll('#{part} > .table > table > tbody > tr:not(.opened)')]"
            ".map(row => [...row.children].map(cell => cell.innerText.trim()))"
        )

    def test_the_page_says_what_the_command_says(self):
        self.browser.open(self.whole)
        report = self.json
        self.assertEqual(self.data(), report)
        self.assertEqual(self.all_words("#verdict .sentences p"), report["verdict"])
        self.assertEqual(
            [words.split("\n")[0] for words in self.all_words("#verdict .legend li")],
            [share["name"] for share in report["shares"]],
        )
        for words, share in zip(self.all_words("#verdict .legend li"), report["shares"]):
            self.assertTrue(words.endswith(seconds(share["seconds"])), (words, share))
        self.assertEqual(
            [" ".join(words.split()) for words in self.all_words("#findings li > div")],
            [
                finding["text"] + (f" open {finding['function']}" if finding["function"] else "")
                for finding in report["findings"]
            ],
        )
        by_name = {its["name"]: its for its in report["functions"]}
        rows = self.rows("functions")
        self.assertEqual(len(rows), len(by_name))
        for name, place, calls, traces, retraces, each, tracing, total, lost in rows:
            its = by_name[name]
            self.assertEqual(calls, count(its["calls"]))
            within = [trace for trace in its["traces"] if trace["begin"] >= 0]
            self.assertEqual((traces, retraces), (count(len(within)), count(its["retraces"])))
            self.assertEqual(tracing, seconds(its["trace_seconds"]))
            self.assertEqual((total, lost), (seconds(its["seconds"]), seconds(its["lost_seconds"])))
            self.assertEqual(each, seconds(its["seconds"] / its["calls"]) if its["calls"] else "–")
        kernels = sorted(report["kernels"], key=lambda kernel: -kernel["seconds"])
        rows = self.rows("kernels")
        self.assertEqual(len(rows), min(len(kernels), 30))
        whole = sum(kernel["seconds"] for kernel in kernels)
        for row, kernel in zip(rows, kernels):
            self.assertEqual(row[:5], [kernel["name"], kernel["function"] or "–", count(kernel["count"]),
                                       seconds(kernel["seconds"] / kernel["count"]), seconds(kernel["seconds"])])  # fmt: skip
            share = 100 * kernel["seconds"] / whole
            if share > 0.1:
                self.assertAlmostEqual(float(row[5].split("\u202f")[0]), share, delta=0.06 if share < 9.9 else 0.6)
        self.quiet()

    def test_the_slow_training_names_function_line_cause_cost_and_fix(self):
        self.browser.open(self.slow)
        (its,) = [its for its in self.data()["functions"] if its["name"] == "train_step"]
        lost = sum(trace["seconds"] for trace in its["traces"] if trace["number"] > 1)
        self.assertAlmostEqual(its["lost_seconds"], lost, places=9)
        self.assertEqual(self.rows("functions")[0][-1], seconds(lost))
        with open(os.path.join(ROOT, "examples/find_the_retrace.cpp")) as file:
            lines = file.read().split("\n")
        (line,) = [number for number, text in enumerate(lines, 1) if "float(words.dim(1))" in text]
        words = self.words("#verdict .first")
        for part in ("'train_step'", "15 retraces", f"host code asked for it at find_the_retrace.cpp:{line}"):
            self.assertIn(part, words)
        (size, unit) = re.search(r"15 retraces: ([\d.]+) (ms|s) = ", words).groups()
        self.assertAlmostEqual(float(size) * {"ms": 1e-3, "s": 1}[unit], lost, delta=0.06 * lost)
        remedy = "\n".join(self.all_words("#findings .remedy"))
        self.assertIn("pad axis 1 of words to 35 (16 traces -> 1)", remedy)
        self.assertIn(f"keep the size a Dim in host code at find_the_retrace.cpp:{line}", remedy)
        # What is to be changed is there to be read.
        self.browser.click("#findings a.to")
        self.assertEqual(
            self.words("#function-0-trace-15 .fix .source .here").replace("\n", ""), f"▸{line}{lines[line - 1]}"
        )
        self.assertEqual(self.browser.ask("document.querySelectorAll('#function-0-trace-15 .fix .source').length"), 1)
        # Each retrace leads to its own trace.
        links = self.all_words("#events a")
        told = self.all_words("#events details > summary")
        self.assertEqual(len(told), 15)
        for words, link in zip(told, links):
            self.assertEqual(link, f"open trace {re.search('trace ([0-9]+)', words)[1]} of train_step")
        self.quiet()

    def test_after_the_fix_the_page_says_so(self):
        self.browser.open(self.fixed)
        self.assertEqual(self.words("#verdict .first"), "1 trace of 1 function, 0 retraces.")
        self.assertFalse([words for words in self.all_words("#findings li") if "traced again" in words])
        name, _, calls, traces, retraces, *_, lost = self.rows("functions")[0]
        self.assertEqual((name, calls, traces, retraces, lost), ("train_step", "48", "1", "0", "0\u202fs"))
        self.quiet()

    def test_it_is_read_in_any_window(self):
        for page in (self.slow, self.fixed, self.whole):
            for dark in (False, True):
                for window in ({}, {"width": 390, "height": 800, "phone": True}):
                    with self.subTest(page, dark=dark, **window):
                        self.browser.open(page, dark=dark, **window)
                        self.open_all()
                        self.assertEqual(self.browser.ask(STANDING_OUT), [])
                        self.assertLessEqual(
                            self.browser.ask("document.documentElement.scrollWidth"), window.get("width", 1280)
                        )
                        found = self.browser.ask(CONTRAST)
                        self.assertGreaterEqual(found["contrast"], 4.5, found)
                        self.quiet()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not browser_program():
        print("page_test.py: skipped: no chromium here (Debian's package chromium, or one that STET_CHROMIUM names)")
        sys.exit(77)
    sys.argv[1:] = [word for word in sys.argv[1:] if os.path.abspath(word) not in (MAKE_PAGE, STET, EXAMPLE)]
    unittest.main()
