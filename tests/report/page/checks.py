"""What tests of the page have in common: scripts that look at the document, numbers as the page writes them, a browser."""

import json
import tempfile
import unittest

from browser import Browser

# The least contrast of all text that is seen, with what it was found on. What is drawn behind text is put together from
# the backgrounds of the elements that it stands in.
CONTRAST = """(() => {
  const parse = (text) => {
    let found = /^color\\(srgb ([\\d.e+-]+) ([\\d.e+-]+) ([\\d.e+-]+)(?: \\/ ([\\d.e+-]+))?\\)$/.exec(text);
    if (found) return [found[1] * 255, found[2] * 255, found[3] * 255, found[4] === undefined ? 1 : Number(found[4])];
    found = /^rgba?\\(([\\d.]+), ([\\d.]+), ([\\d.]+)(?:, ([\\d.]+))?\\)$/.exec(text);
    if (!found) throw new Error("a colour that is not understood: " + text);
    return [Number(found[1]), Number(found[2]), Number(found[3]), found[4] === undefined ? 1 : Number(found[4])];
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
  const luminance = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, at) => {
    const value = colour[at] / 255;
    return sum + weight * (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  }, 0);
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  let least = {contrast: 99}, count = 0;
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const node = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || node.closest("script, style, noscript, title, [aria-hidden]")) continue;
    const box = node.getBoundingClientRect(), style = getComputedStyle(node);
    if (!box.width || !box.height || style.visibility !== "visible") continue;
    const below = behind(node), ink = over(parse(node.closest("svg") ? style.fill : style.color), below);
    const [light, dark] = [luminance(ink), luminance(below)].sort((a, b) => b - a);
    const contrast = (light + 0.05) / (dark + 0.05);
    count += 1;
    if (contrast < least.contrast) least = {contrast, text: words.currentNode.data.slice(0, 40), on: node.outerHTML.slice(0, 120), ink, below};
  }
  return {...least, count};
})()"""

# Elements of the page that stand out of the window, those aside that scroll or are cut off on purpose.
STANDING_OUT = """[...document.querySelectorAll("main *")].filter((node) => {
  const box = node.getBoundingClientRect();
  if (!box.width || box.right <= innerWidth + 1) return false;
  for (let at = node; at; at = at.parentElement) if (getComputedStyle(at).overflowX !== "visible") return false;
  return true;
}).map((node) => node.outerHTML.slice(0, 100))"""

# Words of charts that lie over each other.
OVERLAPS = """[...document.querySelectorAll("main svg")].flatMap((picture) => {
  const words = [...picture.querySelectorAll("text")].map((node) => ({text: node.textContent, box: node.getBoundingClientRect()}));
  return words.flatMap((one, at) => words.slice(at + 1).filter((other) => one.box.left < other.box.right - 1 && other.box.left < one.box.right - 1 &&
    one.box.top < other.box.bottom - 3 && other.box.top < one.box.bottom - 3).map((other) => `${one.text} | ${other.text}`));
})"""

# Tables that have to be scrolled sideways.
WIDE_TABLES = """[...document.querySelectorAll("main .table")].filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.innerText.slice(0, 80))"""

OPEN_ALL = """document.querySelectorAll(".opener[aria-expanded=false]").forEach((node) => node.click());
  document.querySelectorAll("main details:not([open]) > summary").forEach((node) => node.click());"""


def seconds(value):
    """As numbers.js writes them."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")):
        size = value * factor
        if size >= 0.9995:
            return f"{size:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}\u202f{unit}"
    return "0\u202fs"


def count(value):
    """As numbers.js writes it."""
    return f"{value:,}".replace(",", "\u202f")


class BrowserTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__(None, None, None)
        cls.folder.cleanup()

    def quiet(self):
        """Nothing was complained about, and nothing but the page was asked for."""
        self.assertEqual(self.browser.complaints(), [])
        self.assertTrue(
            all(url.startswith("file:///") and url.endswith(".html") for url in self.browser.requests()),
            self.browser.requests(),
        )
        self.assertEqual(len(self.browser.requests()), 1)

    def words(self, selector):
        return self.browser.ask(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def all_words(self, selector):
        return self.browser.ask(
            f"[...document.querySelectorAll({json.dumps(selector)})].map(node => node.innerText.trim())"
        )

    def open_all(self):
        """Rows, traces, and what folds open in them."""
        for _ in range(2):
            self.browser.ask(OPEN_ALL)
            self.browser.settle()
