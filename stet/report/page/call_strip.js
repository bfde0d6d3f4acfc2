// Every call of a function, in order: those that a trace served, and those that had one made. A pattern is seen at a glance.

const strip_height = 26;

function call_strip(data, its) {
  const {calls, made} = calls_of(data, its);
  if (calls.length < 2) return null;
  const kinds = [{word: "traced first", variable: "--kind-run"}, {word: "traced again", variable: "--kind-trace"},
    {word: "served by a trace", variable: "--kind-region"}];
  const kind_of = (at) => (made[at] < 0 ? 2 : its.traces[made[at]].number > 1 ? 1 : 0);
  const counts = [0, 0, 0];
  calls.forEach((call, at) => { counts[kind_of(at)] += 1; });
  const words = `${plural(calls.length, "call")} in order: ` +
    kinds.map((kind, at) => `${count_text(counts[at])} ${kind.word}`).filter((_, at) => counts[at] > 0).join(", ");
  const cell = (width) => Math.min(14, width / calls.length);
  const canvas = make_canvas((context, width) => draw_calls(context, calls.length, cell(width), kind_of, kinds),
    {class: "call-strip", role: "img", "aria-label": words});
  const under = (event) => {
    const box = canvas.getBoundingClientRect(), size = cell(box.width);
    const first = Math.floor((event.clientX - box.left) / size), past = Math.max(first + 1, Math.floor((event.clientX - box.left + 1) / size));
    // Of those that share a pixel, the one that was drawn.
    for (let at = first; at < Math.min(past, calls.length); ++at) if (kind_of(at) < 2) return at;
    return first >= 0 && first < calls.length ? first : -1;
  };
  canvas.addEventListener("pointermove", (event) => {
    const at = under(event);
    tip.show(at < 0 ? null : [`call ${count_text(at + 1)} at ${seconds_text(data.spans.begin[calls[at]])}`,
      seconds_text(data.spans.duration[calls[at]]), made[at] >= 0 && `made trace ${its.traces[made[at]].number}`], event);
  });
  canvas.addEventListener("pointerleave", (event) => tip.show(null, event));
  canvas.addEventListener("click", (event) => {
    const at = under(event);
    if (at >= 0) links.show_span(calls[at]);
  });
  return el("figure", {class: "calls"},
    el("figcaption", {class: "legend"}, el("span", {}, `${plural(calls.length, "call")} in order`),
      kinds.map((kind, at) => counts[at] > 0 && el("span", {class: "key"}, swatch(kind.variable), `${count_text(counts[at])} ${kind.word}`)),
      data.program.lost_spans > 0 && el("span", {class: "muted"}, "calls whose spans found no room are missing")),
    canvas);
}

/** The spans of a function's calls by begin, and the place of the trace that each had made, or -1. */
function calls_of(data, its) {
  const {spans} = data, name = data.names.indexOf(its.name), kind = data.kinds.indexOf("call");
  const calls = [];
  for (let at = 0; at < spans.count; ++at) if (spans.name[at] === name && spans.kind[at] === kind) calls.push(at);
  calls.sort((a, b) => spans.begin[a] - spans.begin[b]);
  const made = new Int32Array(calls.length).fill(-1);
  const begins = Float64Array.from(calls, (call) => spans.begin[call]);
  its.traces.forEach((trace, place) => {
    if (!known(trace.begin)) return;
    // Other threads may have called it since: the call that holds the trace began last, or a little earlier.
    const last = lower_bound(begins, trace.begin + 1e-9) - 1;
    for (let at = last; at >= 0 && at > last - 64; --at) {
      if (made[at] >= 0 || begins[at] + spans.duration[calls[at]] < trace.begin) continue;
      made[at] = place;
      return;
    }
  });
  return {calls, made};
}

/** Calls that made a trace are higher, and hide those that share a pixel with them. */
function draw_calls(context, count, size, kind_of, kinds) {
  const draw = (left, wide, kind) => {
    const high = kind < 2 ? strip_height : strip_height / 2;
    context.fillStyle = theme.colour(kinds[kind].variable);
    context.fillRect(left, strip_height - high, wide, high);
  };
  const narrow = size < 3, gap = narrow ? 0 : 1;
  for (const traced of [false, true]) {
    let drawn = -1;
    for (let at = 0; at < count; ++at) {
      const kind = kind_of(at), column = Math.floor(at * size);
      if (kind < 2 !== traced || (narrow && column === drawn)) continue;
      drawn = column;
      // Narrow ones join: between cells of uneven pixels a pattern would be seen that is none.
      if (narrow) draw(column, Math.ceil(size), kind);
      else draw(at * size, size - gap, kind);
    }
  }
}
