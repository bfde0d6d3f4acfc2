// Above the lanes: the whole recording with the part that is shown, the axis, and what happened when.

const overview_height = 26, axis_height = 20, events_height = 18;

const event_styles = {
  retrace: {variable: "--kind-trace", shape: "down", word: "retrace"},
  eviction: {variable: "--kind-callback", shape: "square", word: "eviction"},
  warning: {variable: "--warning-mark", shape: "up", word: "warning"},
  audit: {variable: "--kind-audit", shape: "round", word: "audit"},
};
const event_style = (kind) =>
  (Object.hasOwn(event_styles, kind) ? event_styles[kind] : {variable: "--kind-user", shape: "square", word: String(kind ?? "note")});

/** The mark of an event as a letter, for where it is written and not drawn. */
const event_sign = (kind) => ({down: "▼", up: "▲", square: "■", round: "●"})[event_style(kind).shape];
const event_mark = (kind) =>
  el("span", {class: "event-mark", style: `color:var(${event_style(kind).variable})`, "aria-hidden": "true"}, event_sign(kind));

function draw_head(state, context, width, pixel) {
  const {spans, data, whole, view} = state;
  const all = {...whole, width};
  context.fillStyle = theme.colour("--sunken");
  context.fillRect(0, 0, width, overview_height);
  // The busiest lane of each depth below the main thread's first says most; three are enough here.
  const main = spans.lanes.size ? spans.lanes.values().next().value : [];
  main.slice(0, 3).forEach((lane, depth) => {
    const y = 2 + depth * 8;
    const paint = (span, x, wide, share) => {
      context.globalAlpha = share;
      context.fillStyle = theme.colour(kind_variable(data.kinds[spans.kind[span]]));
      context.fillRect(x, y, wide, 7);
    };
    walk_lane(spans, lane, lane.sums, all, pixel, (span, x, wide) => paint(span, x, wide, 1),
      (first, past, x, share) => paint(longest_of(spans, lane, first, past), x, 1, 0.3 + 0.7 * share));
  });
  context.globalAlpha = 1;
  const x = (time) => (time - whole.from) / (whole.to - whole.from) * width;
  const left = clamp(x(view.from), 0, width - 2), right = clamp(x(view.to), left + 2, width);
  context.fillStyle = theme.colour("--veil");
  context.fillRect(0, 0, left, overview_height);
  context.fillRect(right, 0, width - right, overview_height);
  context.strokeStyle = theme.colour("--ink");
  context.lineWidth = 1.5;
  context.strokeRect(left + 0.75, 0.75, right - left - 1.5, overview_height - 1.5);
  draw_axis(view, context, width);
  draw_events(state, context, width);
}

function draw_axis(view, context, width) {
  const ticks = linear_ticks(view.from, view.to, width / 110);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : view.to - view.from;
  context.font = canvas_font(11);
  context.fillStyle = theme.colour("--muted");
  for (const tick of ticks) {
    const words = time_tick_text(tick, step, view.to), wide = context.measureText(words).width;
    const at = (tick - view.from) * width / (view.to - view.from);
    context.fillText(words, clamp(at - wide / 2, 0, width - wide), overview_height + 15);
  }
}

function draw_events({data, view}, context, width) {
  const y = overview_height + axis_height + events_height / 2;
  const drawn = new Set();  // one of a kind per pixel
  for (const event of data.events) {
    const x = Math.round((event.time - view.from) * width / (view.to - view.from));
    if (!(x >= 0 && x <= width) || drawn.has(event.kind + x)) continue;
    drawn.add(event.kind + x);
    const style = event_style(event.kind);
    context.fillStyle = theme.colour(style.variable);
    mark(context, style.shape, clamp(x, 6, width - 6), y);
  }
}

function mark(context, shape, x, y) {
  const r = 6;
  context.beginPath();
  if (shape === "round") context.arc(x, y, r - 1, 0, 2 * Math.PI);
  else if (shape === "square") context.rect(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2);
  else {
    const way = shape === "down" ? 1 : -1;
    context.moveTo(x, y + r * way);
    context.lineTo(x - r, y - r * 0.8 * way);
    context.lineTo(x + r, y - r * 0.8 * way);
  }
  context.fill();
}

function event_at({data, view, head}, x) {
  const scale = head.clientWidth / (view.to - view.from);
  let best = null, nearest = 8;
  for (const event of data.events) {
    const far = Math.abs((event.time - view.from) * scale - x);
    if (far < nearest) {
      nearest = far;
      best = event;
    }
  }
  return best;
}
