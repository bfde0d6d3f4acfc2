// What the reader does to the timeline.

function timeline_input(state) {
  const {spans, lanes, head, data} = state;
  const per_pixel = (node) => (state.view.to - state.view.from) / node.clientWidth;
  const move = (pixels) => {
    const by = -pixels * per_pixel(lanes);
    state.show(state.view.from + by, state.view.to + by);
  };
  const zoom = (factor, x) => {
    const {from, to} = state.view;
    const about = from + x * per_pixel(lanes);
    state.show(about - (about - from) / factor, about + (to - about) / factor);
  };
  const hover = (x, y, event) => {
    const span = x === null ? -1 : span_at(state, x, y);
    tip.show(span < 0 ? null : span_summary(state, span), event);
    if (span === state.hovered) return;
    state.hovered = span;
    lanes.style.cursor = span < 0 ? "" : "pointer";
    lanes.redraw();
  };
  gestures(lanes, {
    scrolls: true, zoom, hover,
    move: (dx, dy) => {
      move(dx);
      state.scroller.scrollTop -= dy;
    },
    tap: (x, y) => {
      lanes.focus({preventScroll: true});
      const row = row_at(state, y);
      if (row && !row.lane) {
        if (!state.closed.delete(row.thread)) state.closed.add(row.thread);
        state.lay_out();
        return;
      }
      state.select(span_at(state, x, y));
    },
  });

  const overview = (x) => {
    const middle = state.whole.from + x / head.clientWidth * (state.whole.to - state.whole.from);
    const half = (state.view.to - state.view.from) / 2;
    state.show(middle - half, middle + half);
  };
  let grabbed = 0;
  gestures(head, {
    scrolls: true,
    zoom: (factor, x) => zoom(factor, x),
    move: (dx) => {
      // Above one grabs the window, below the axis.
      if (grabbed < overview_height) {
        const by = dx / head.clientWidth * (state.whole.to - state.whole.from);
        state.show(state.view.from + by, state.view.to + by);
      } else {
        move(dx);
      }
    },
    tap: (x, y) => {
      if (y < overview_height) overview(x);
      const event = y >= overview_height + axis_height ? event_at(state, x) : null;
      if (event) follow_event(data, event);
    },
    hover: (x, y, at) => {
      const event = x !== null && y >= overview_height + axis_height ? event_at(state, x) : null;
      head.style.cursor = event ? "pointer" : "";
      tip.show(event && [`${event_style(event.kind).word} at ${seconds_text(event.time)}`, shortened(event.text, 200)], at);
    },
  });
  head.addEventListener("pointerdown", (event) => { grabbed = event.clientY - head.getBoundingClientRect().top; }, true);

  const neighbour = (way) => {
    if (state.selected < 0) {
      const first = state.rows.find((row) => row.lane);
      return first ? first.lane[Math.min(first_ending_after(spans, first.lane, state.view.from), first.lane.length - 1)] : -1;
    }
    let lane = spans.lanes.get(spans.thread[state.selected])[spans.depth[state.selected]];
    if (state.matches) lane = state.matches.lanes.get(lane) || lane;
    let at = first_beginning_at(spans, lane, 0, spans.begin[state.selected]);
    while (at < lane.length && lane[at] < state.selected) ++at;
    return lane[clamp(at + way, 0, lane.length - 1)];
  };
  const step_to = (span) => {
    if (span < 0) return;
    const {from, to} = state.view, begin = spans.begin[span], end = begin + spans.duration[span];
    if (end < from || begin > to) state.show(begin - (to - from) / 2, begin + (to - from) / 2);
    state.select(span);
  };
  const child = () => {
    const next = state.selected + 1;
    return state.selected >= 0 && next < spans.count && spans.parent[next] === state.selected ? next : state.selected;
  };
  const middle = () => lanes.clientWidth / 2;
  keys(lanes, {
    ArrowLeft: () => move(lanes.clientWidth / 8), ArrowRight: () => move(-lanes.clientWidth / 8),
    "+": () => zoom(1.6, middle()), "=": () => zoom(1.6, middle()), "-": () => zoom(1 / 1.6, middle()),
    "0": () => state.show(state.whole.from, state.whole.to), Home: () => state.show(state.whole.from, state.whole.to),
    n: () => step_to(neighbour(1)), p: () => step_to(neighbour(-1)),
    ArrowDown: () => step_to(state.selected < 0 ? neighbour(1) : child()),
    ArrowUp: () => state.selected >= 0 && step_to(spans.parent[state.selected] >= 0 ? spans.parent[state.selected] : state.selected),
    Enter: () => state.selected >= 0 && state.show_span(state.selected),
    Escape: () => state.select(-1),
  });
}

/** Where there is more to read about an event: its trace's card. */
function follow_event(data, event) {
  const its = function_of(data, event.function);
  if (!its) return;
  const trace = links.trace_told(its, event.time);
  location.hash = trace === null ? "#function-" + its.id : "#" + trace_id(its, trace);
}

/** Spans whose names have the words: they keep their colours, the others fade. Gives how many there are. */
function find_spans(state, words) {
  const {spans, data} = state;
  state.matches = null;
  let count = 0;
  if (words) {
    const wanted = data.names.map((name) => find.matches(name, words));
    state.matches = {lanes: new Map()};
    for (const lanes of spans.lanes.values()) {
      for (const lane of lanes) {
        const found = lane_where(lane, (span) => wanted[spans.name[span]]);
        if (!found.length) continue;
        found.sums = durations_before(found, spans.duration);
        state.matches.lanes.set(lane, found);
        count += found.length;
      }
    }
  }
  state.redraw();
  return count;
}
