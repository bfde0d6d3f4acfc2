// The timeline: lanes per thread and depth on a canvas, an overview above, details of what is clicked below.

const lane_height = 18, thread_height = 22;

function timeline_part(data) {
  const {spans} = data;
  const ends = spans.count ? spans.begin.reduce((last, begin, at) => Math.max(last, begin + spans.duration[at]), 0) : 0;
  const whole = {from: 0, to: Math.max(data.program.seconds || 0, ends) || 1};
  const state = {data, spans, whole, view: {...whole}, selected: -1, hovered: -1, closed: new Set(), matches: null};
  state.rows = rows_of(state);

  const head = make_canvas((context, width, height, pixel) => draw_head(state, context, width, pixel),
    {class: "timeline-head", "aria-hidden": "true"});
  const lanes = make_canvas((context, width, height, pixel) => draw_lanes(state, context, width, height, pixel),
    {class: "timeline-lanes", tabindex: "0", role: "application", "aria-roledescription": "timeline",
      "aria-label": `Timeline of ${plural(spans.count, "span")} in ${plural(spans.lanes.size, "thread")}. ` +
        "Left and right arrows move, plus and minus zoom, N and P go to the next and previous span, " +
        "up and down to what contains it and what it contains, Enter zooms to it, 0 shows all."});
  const spacer = el("div", {class: "timeline-spacer"});
  const scroller = el("div", {class: "timeline-scroll"}, lanes, spacer);
  const details = el("div", {class: "span-details", "aria-live": "polite"});
  Object.assign(state, {head, lanes, scroller, spacer, details});

  state.redraw = () => {
    head.redraw();
    lanes.redraw();
  };
  state.show = (from, to) => {
    const length = clamp(to - from, Math.min(1e-8, state.whole.to), state.whole.to * 1.04);
    const slack = state.whole.to * 0.02;
    const begin = clamp((from + to - length) / 2, -slack, state.whole.to + slack - length);
    state.view = {from: begin, to: begin + length};
    state.redraw();
  };
  state.select = (span) => {
    state.selected = span;
    details.replaceChildren(...(span >= 0 ? [span_details(state, span)] : [timeline_hint(state)]));
    scroll_to(state, span);
    state.redraw();
  };
  state.lay_out = () => {
    state.rows = rows_of(state);
    const last = state.rows[state.rows.length - 1];
    spacer.style.height = Math.max(0, (last ? last.y + last.height : 40) - visible_height(state)) + "px";
    lanes.style.height = visible_height(state) + "px";
    state.redraw();
  };
  state.show_span = (span) => {
    const begin = spans.begin[span], length = Math.max(spans.duration[span], 1e-8);
    state.show(begin - length * 0.1, begin + length * 1.1);
    state.select(span);
  };
  timeline_input(state);
  scroller.addEventListener("scroll", () => lanes.redraw());
  find.parts.push((words) => find_spans(state, words));
  paper.openers.add(() => {
    scroller.scrollTop = 0;
    return null;
  });
  state.lay_out();
  state.select(-1);
  state.node = el("div", {class: "timeline"}, timeline_legend(data, spans), head, scroller, details);
  return state;
}

// As high as there are lanes, up to most of a screen; then it scrolls.
function visible_height(state) {
  const last = state.rows[state.rows.length - 1];
  return Math.min(last ? last.y + last.height : 40, 440);
}

/** A row for each thread's name, then one for each of its lanes. */
function rows_of({data, spans, closed}) {
  const rows = [];
  let y = 0;
  for (const [thread, lanes] of spans.lanes) {
    rows.push({y, height: thread_height, thread, name: data.threads[thread] ?? "thread " + thread, lanes: lanes.length});
    y += thread_height;
    const open = closed.has(thread) ? lanes.slice(0, 1) : lanes;
    open.forEach((lane, depth) => {
      lane.sums = lane.sums || durations_before(lane, spans.duration);
      rows.push({y, height: lane_height, thread, lane, depth});
      y += lane_height;
    });
    y += 6;
  }
  return rows;
}

function scroll_to(state, span) {
  if (span < 0) return;
  const {thread, depth} = {thread: state.spans.thread[span], depth: state.spans.depth[span]};
  const row = state.rows.find((row) => row.lane && row.thread === thread && row.depth === depth);
  if (!row) return;
  const top = state.scroller.scrollTop, height = state.scroller.clientHeight;
  if (row.y < top) state.scroller.scrollTop = row.y - thread_height;
  else if (row.y + row.height > top + height) state.scroller.scrollTop = row.y + row.height - height;
}

function draw_lanes(state, context, width, height, pixel) {
  const {spans, data, view} = state;
  const top = state.scroller.scrollTop;
  const scale = width / (view.to - view.from);
  draw_grid(state, context, width, height);
  for (const row of state.rows) {
    const y = row.y - top;
    if (y + row.height < 0 || y > height) continue;
    if (!row.lane) continue;
    draw_row(state, context, row.lane, row.lane.sums, y, width, pixel, Boolean(state.matches));
    if (state.matches) {
      const found = state.matches.lanes.get(row.lane);
      if (found) draw_row(state, context, found, found.sums, y, width, pixel, false);
    }
  }
  for (const event of data.events) {
    if (event.time < view.from || event.time > view.to) continue;
    context.fillStyle = theme.colour(event_style(event.kind).variable);
    context.globalAlpha = 0.5;
    context.fillRect((event.time - view.from) * scale, 0, 1, height);
    context.globalAlpha = 1;
  }
  for (const row of state.rows) {
    if (!row.lane && row.y - top + row.height >= 0 && row.y - top <= height) thread_label(state, context, row, row.y - top, width);
  }
  outline(state, context, state.hovered, top, width, 1);
  outline(state, context, state.selected, top, width, 2);
}

function thread_label(state, context, row, y, width) {
  const mark = row.lanes > 1 ? (state.closed.has(row.thread) ? "▸ " : "▾ ") : "";
  context.font = canvas_font(12, "600");
  const words = fitting(context, mark + shortened(row.name, 100), width - 12);
  // Lines of events and of the axis do not run through the words.
  context.fillStyle = theme.colour("--paper");
  context.fillRect(0, y + 1, context.measureText(words).width + 10, row.height - 3);
  context.fillStyle = theme.colour("--ink");
  context.fillText(words, 4, y + 15);
}

function draw_row(state, context, lane, sums, y, width, pixel, faint) {
  const {spans, data} = state;
  const kind_colour = (span) => theme.colour(kind_variable(data.kinds[spans.kind[span]]));
  const inside = lane_height - 2;
  context.font = canvas_font(11);
  walk_lane(spans, lane, sums, {...state.view, width}, pixel, (span, x, wide) => {
    const colour = kind_colour(span);
    context.globalAlpha = faint ? 0.18 : 1;
    context.fillStyle = colour;
    context.fillRect(x, y, Math.max(pixel, wide - (wide > 3 ? 0.75 : 0)), inside);
    if (data.kinds[spans.kind[span]] === "wait" && wide > 4) hatch(context, x, y, wide, inside);
    const room = Math.min(x + wide, width) - Math.max(x, 0) - 6;
    if (room < 16 || faint) return;
    context.globalAlpha = 1;
    context.fillStyle = ink_on(colour);
    context.fillText(fitting(context, data.names[spans.name[span]] ?? "?", room), Math.max(x, 0) + 3, y + 12);
  }, (first, past, column, share) => {
    context.globalAlpha = (faint ? 0.18 : 1) * (0.3 + 0.7 * share);
    context.fillStyle = kind_colour(longest_of(spans, lane, first, past));
    context.fillRect(column, y, 1, inside);
  });
  context.globalAlpha = 1;
}

/** Waiting is told from working by more than a colour. */
function hatch(context, x, y, wide, high) {
  context.save();
  context.beginPath();
  context.rect(x, y, wide, high);
  context.clip();
  context.strokeStyle = "rgba(0,0,0,0.28)";
  context.lineWidth = 1;
  context.beginPath();
  for (let at = Math.floor(x / 7) * 7 - high; at < x + wide; at += 7) {
    context.moveTo(at, y + high);
    context.lineTo(at + high, y);
  }
  context.stroke();
  context.restore();
}

function outline(state, context, span, top, width, thick) {
  if (span < 0) return;
  const {spans, view} = state;
  const row = state.rows.find((row) => row.lane && row.thread === spans.thread[span] && row.depth === spans.depth[span]);
  if (!row) return;
  const scale = width / (view.to - view.from);
  const left = clamp((spans.begin[span] - view.from) * scale, -4, width + 4);
  const right = clamp((spans.begin[span] + spans.duration[span] - view.from) * scale, -4, width + 4);
  context.strokeStyle = theme.colour("--ink");
  context.lineWidth = thick;
  context.strokeRect(left - 0.5, row.y - top - 0.5, Math.max(right - left, 3) + 0.5, lane_height - 1);
}

function draw_grid({view}, context, width, height) {
  context.fillStyle = theme.colour("--line");
  for (const tick of linear_ticks(view.from, view.to, width / 110)) {
    context.fillRect(Math.round((tick - view.from) * width / (view.to - view.from)), 0, 1, height);
  }
}

/** The row at a height of the lanes as they are scrolled. */
function row_at({rows, scroller}, y) {
  const down = y + scroller.scrollTop;
  return rows.find((row) => down >= row.y && down < row.y + row.height);
}

/** The span under a point of the lanes; of narrow ones the nearest within some pixels. */
function span_at(state, x, y) {
  const {spans, view} = state;
  const row = row_at(state, y);
  if (!row || !row.lane) return -1;
  const width = state.lanes.clientWidth;
  const time = view.from + x * (view.to - view.from) / width, reach = 4 * (view.to - view.from) / width;
  const lane = state.matches ? state.matches.lanes.get(row.lane) || row.lane : row.lane;
  let best = -1, nearest = reach;
  const from = first_ending_after(spans, lane, time - reach);
  for (let at = from; at < lane.length && at < from + 2000; ++at) {
    const begin = spans.begin[lane[at]], end = begin + spans.duration[lane[at]];
    if (begin > time + reach) break;
    const far = time < begin ? begin - time : time > end ? time - end : 0;
    if (far < nearest || (far === 0 && nearest === 0 && spans.duration[lane[at]] > spans.duration[best])) {
      best = lane[at];
      nearest = far;
    }
  }
  return best;
}
