// On paper everything is open and white. What was opened for it is closed again afterwards.

const paper = {
  openers: new Set(),  // () → () => close again
  closers: [],
  most: 40,            // pictures of graphs: a run of a thousand traces is still to be printed
  width: 690,          // of A4 between its margins, in pixels of CSS; a letter's is nearly that
  picture_height: 300,
  printing: false,

  start() {
    window.addEventListener("beforeprint", () => this.begin());
    window.addEventListener("afterprint", () => this.end());
  },
  begin() {
    if (this.printing) return;
    this.printing = true;
    this.graphs_left = this.most;
    this.closers = [() => theme.set(this.was)];
    this.was = document.documentElement.dataset.theme;
    // What is opened may bring openers of its own.
    const done = new Set();
    for (let fresh = [...this.openers]; fresh.length; fresh = [...this.openers].filter((opener) => !done.has(opener))) {
      for (const opener of fresh) {
        done.add(opener);
        this.closers.push(opener());
      }
    }
    theme.set("light");
  },
  end() {
    if (!this.printing) return;
    this.printing = false;
    for (const close of this.closers.reverse()) if (close) close();
    this.closers = [];
  },
};
