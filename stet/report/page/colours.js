// The theme, and colours for what is drawn on a canvas. The colours themselves stand in page.css, as variables.

const theme = {
  choice: "auto",  // or "light", "dark": what the reader chose
  system: window.matchMedia("(prefers-color-scheme: dark)"),
  watchers: [],
  cache: new Map(),

  start(switcher) {
    try {
      // Pages from a disk may have no storage; then the choice lasts as long as the page.
      const kept = window.localStorage.getItem("stet-report-theme");
      if (kept === "light" || kept === "dark") this.choice = kept;
    } catch { /* as said */ }
    switcher.addEventListener("click", () => {
      this.choice = {auto: "light", light: "dark", dark: "auto"}[this.choice];
      try {
        window.localStorage.setItem("stet-report-theme", this.choice);
      } catch { /* as said */ }
      this.show(switcher);
    });
    this.system.addEventListener("change", () => this.show(switcher));
    this.show(switcher);
  },
  show(switcher) {
    const words = {auto: "◐ system", light: "○ light", dark: "● dark"};
    switcher.textContent = words[this.choice];
    switcher.setAttribute("aria-label", `Colours: ${words[this.choice].slice(2)}. Change.`);
    const dark = this.choice === "dark" || (this.choice === "auto" && this.system.matches);
    this.set(dark ? "dark" : "light");
  },
  /** Also what printing does, for as long as it takes. */
  set(name) {
    document.documentElement.dataset.theme = name;
    this.cache.clear();
    for (const watcher of this.watchers) watcher();
  },
  colour(variable) {
    let found = this.cache.get(variable);
    if (found === undefined) {
      found = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
      this.cache.set(variable, found);
    }
    return found;
  },
};

function luminance(colour) {
  const channel = (at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

/** Black or white, whichever reads better: one of them always has a contrast of 4.5 and more. */
const ink_on = (colour) => ((luminance(colour) + 0.05) ** 2 > 0.0525 ? "#000000" : "#ffffff");

// Kinds of spans share a hue where they are of one sort: running is blue, tracing is orange, data is green and yellow,
// training is purple.
const kind_variable = (kind) => (known_kinds.has(kind) ? "--kind-" + kind : "--kind-user");
const known_kinds = new Set(["call", "trace", "pass", "compile", "bind", "run", "step", "region", "stage", "wait", "epoch",
  "batch", "callback", "audit", "user"]);

/** The colour of a part of the program's time, by what its name speaks of. */
function share_variable(name, at) {
  const words = String(name).toLowerCase();
  const rules = [[/callback/, "--kind-callback"], [/kernel|step|comput/, "--kind-run"],
    [/compil|pass/, "--kind-compile"], [/trac/, "--kind-trace"],
    [/wait/, "--kind-wait"], [/data|stage|input/, "--kind-stage"], [/audit/, "--kind-audit"], [/bind/, "--kind-bind"],
    [/call|launch/, "--kind-call"], [/eager/, "--kind-region"],
    [/other|host|rest|user|outside|record/, "--kind-user"]];
  const rule = rules.find(([pattern]) => pattern.test(words));
  return rule ? rule[1] : ["--kind-batch", "--kind-epoch", "--kind-region", "--kind-bind", "--kind-pass"][at % 5];
}
