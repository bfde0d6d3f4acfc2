// Places in the page that others lead to: functions, traces, kernels. An address may name one (#function-3-trace-1).

const links = {
  functions: null,
  kernels: null,
  timeline: null,

  start(data) {
    this.data = data;
    window.addEventListener("hashchange", () => this.follow(true));
    // A second click on the same link changes no address.
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      if (link && link.getAttribute("href") === location.hash) this.follow(true);
    });
    this.follow(false);
  },
  follow(asked) {
    const match = /^#function-(\d+)(?:-trace-(\d+))?$/.exec(location.hash);
    if (match) this.show_function(Number(match[1]), match[2] === undefined ? null : Number(match[2]), asked);
    const kernel = /^#kernel-(\d+)$/.exec(location.hash);
    if (kernel) this.show_kernel(Number(kernel[1]));
  },
  show_function(id, trace) {
    const its = this.data.functions[id];
    if (!its || !this.functions) return;
    let node = this.functions.reveal(its);
    const card = trace === null ? null : document.getElementById(trace_id(its, trace));
    if (card) {
      card.fill();
      card.open = true;
      node = card;
    }
    this.arrive(node);
  },
  show_kernel(id) {
    const kernel = this.data.kernels[id];
    if (kernel && this.kernels) this.arrive(this.kernels.reveal(kernel));
  },
  /** A moment in the timeline, or what took so long from then on. */
  show_time(time, seconds = 0) {
    const about = seconds > 0 ? seconds / 2 : this.timeline.whole.to / 50;
    this.timeline.show(time - about, time + seconds + about);
    this.timeline.node.scrollIntoView({block: "center"});
  },
  show_span(span) {
    if (!this.timeline) return;
    this.timeline.show_span(span);
    this.timeline.node.scrollIntoView({block: "center"});
  },
  arrive(node) {
    node.scrollIntoView({block: "start", behavior: "auto"});
    (node.querySelector("button, summary") || node).focus({preventScroll: true});
    document.querySelectorAll(".arrived").forEach((old) => old.classList.remove("arrived"));
    node.classList.add("arrived");
  },
  /** The trace that was told at a time: the last that had begun. */
  trace_told(its, time) {
    let last = null;
    its.traces.forEach((trace, at) => {
      if (known(trace.begin) && trace.begin <= time && (last === null || trace.begin >= its.traces[last].begin)) last = at;
    });
    return last ?? this.trace_near(its, time);
  },
  /** The trace of a function that began nearest to a time. */
  trace_near(its, time) {
    let best = null;
    its.traces.forEach((trace, at) => {
      const far = known(trace.begin) ? Math.abs(trace.begin - time) : Infinity;
      if (far < Infinity && (!best || far < best.far)) best = {at, far};
    });
    return best ? best.at : null;
  },
};
