// What is said of a span: in a line under the pointer, and in full when it was clicked.

function span_summary({data, spans}, span) {
  return [shortened(data.names[spans.name[span]] ?? "?", 120),
    `${data.kinds[spans.kind[span]] ?? "?"}, ${seconds_text(spans.duration[span])} at ${seconds_text(spans.begin[span])}`];
}

function span_details(state, span) {
  const {data, spans} = state;
  const name = data.names[spans.name[span]] ?? "?", kind = data.kinds[spans.kind[span]] ?? "?";
  const seconds = spans.duration[span], bytes = measured(spans.bytes[span]), flops = measured(spans.flops[span]);
  const {limits} = data, itself = Math.max(0, spans.self[span]);
  const rows = [
    ["kind", [swatch(kind_variable(kind)), kind]],
    ["duration", seconds_text(seconds)],
    ["of it itself", `${seconds_text(itself)} (${percent_text(divided(itself, seconds))})`],
    ["begins at", seconds_text(spans.begin[span])],
    ["thread", shortened(data.threads[spans.thread[span]] ?? spans.thread[span], 80)],
    bytes !== null && ["bytes", [bytes_text(bytes), rate(byte_rate_text, bytes, seconds, limits.bytes)]],
    flops !== null && ["flops", [flops_text(flops), rate(flop_rate_text, flops, seconds, limits.flops)]],
    ["of this name", same_name(state, span)],
  ];
  return el("div", {class: "span-card"},
    el("div", {class: "path"}, ancestors(spans, span).map((one) =>
      [button(shortened(data.names[spans.name[one]] ?? "?", 30), () => state.select(one)), " › "])),
    el("h4", {class: "wrap mono"}, shortened(name, 12000)),
    el("dl", {class: "pairs"}, rows.filter(Boolean).map(([word, value]) => [el("dt", {}, word), el("dd", {}, value)])),
    el("div", {class: "actions"},
      button("Zoom to it", () => state.show_span(span)),
      button("Find all of this name", () => find.set(shortened(name, 200))),
      span_link(data, spans, span),
      button("Close", () => state.select(-1))));
}

// Not measured is not a number; nothing moved or computed is not worth a line.
const measured = (value) => (value > 0 && Number.isFinite(value) ? value : null);

function rate(text, amount, seconds, limit) {
  const speed = divided(amount, seconds);
  if (speed === null) return null;
  return [" · ", el("b", {}, text(speed)),
    limit > 0 && el("span", {class: "muted"}, ` ${percent_text(speed / limit)} of this machine's ${text(limit)}`)];
}

function ancestors(spans, span) {
  const above = [];
  for (let at = spans.parent[span]; at >= 0 && above.length < 12; at = spans.parent[at]) above.unshift(at);
  return above;
}

function same_name({spans}, span) {
  let count = 0, seconds = 0, longest = 0;
  for (let at = 0; at < spans.count; ++at) {
    if (spans.name[at] !== spans.name[span] || spans.kind[at] !== spans.kind[span]) continue;
    count += 1;
    seconds += spans.duration[at];
    longest = Math.max(longest, spans.duration[at]);
  }
  if (count < 2) return "the only one";
  return `${plural(count, "span")}, ${seconds_text(seconds)} together, ${seconds_text(seconds / count)} each, ` +
    `${seconds_text(longest)} at most`;
}

/** A span of a function, or of what it called: the way to the function, or to the trace that it is. */
function span_link(data, spans, span) {
  for (const at of [span, ...ancestors(spans, span).reverse()]) {
    const its = data.function_named.get(data.names[spans.name[at]]);
    if (!its) continue;
    const is_trace = ["trace", "compile", "pass"].includes(data.kinds[spans.kind[span]]);
    const trace = is_trace ? links.trace_near(its, spans.begin[at]) : null;
    if (trace === null) return el("a", {href: "#function-" + its.id, class: "to"}, "open ", shortened(its.name, 40));
    return el("a", {href: "#" + trace_id(its, trace), class: "to"}, `open trace ${its.traces[trace].number} of `, shortened(its.name, 40));
  }
  return null;
}

function timeline_hint({spans}) {
  if (!spans.count) return el("p", {class: "sentence"}, "No spans were recorded.");
  return el("p", {class: "muted hint"},
    el("span", {class: "for-mouse"}, "Click a span for its details. Drag moves; the wheel zooms with Ctrl, and without it after a click; "),
    el("span", {class: "for-touch"}, "Tap a span for its details. Drag moves, pinch zooms. "),
    el("span", {class: "for-mouse"}, ["←", "→", "+", "−", "0"].map((key) => el("kbd", {}, key)), " move, zoom, show all; ",
      ["N", "P", "↑", "↓"].map((key) => el("kbd", {}, key)), " go from span to span."));
}

/** The kinds that occur, each with its colour, and the marks of events. */
function timeline_legend(data, spans) {
  const there = new Set();
  for (let at = 0; at < spans.count; ++at) there.add(spans.kind[at]);
  const kinds = data.kinds.filter((kind, at) => there.has(at));
  const events = [...new Set(data.events.map((event) => event.kind))];
  return el("ul", {class: "legend"},
    kinds.map((kind) => el("li", {}, swatch(kind_variable(kind)), kind)),
    events.map((kind) => el("li", {}, event_mark(kind), event_style(kind).word)));
}
