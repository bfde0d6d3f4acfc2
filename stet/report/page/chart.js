// Charts of lines, drawn as SVG: sharp on paper, and readable by what reads pages aloud.

/** An SVG as wide as its place; drawn again when that changes. `draw(width)` gives its children. */
function responsive_svg(height, label, draw) {
  const picture = svg("svg", {height, class: "chart", role: "group", "aria-label": label});
  let width = 0;
  const show = (wanted) => {
    if (wanted === width || wanted < 10) return;
    width = wanted;
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.replaceChildren();
    fill(picture, {}, draw(width));
  };
  const frame = el("div", {class: "chart-frame"}, picture);
  new ResizeObserver(() => { if (!paper.printing) show(Math.floor(frame.clientWidth)); }).observe(frame);
  // Printing begins before anybody says how wide the paper is.
  paper.openers.add(() => {
    show(paper.width - 10);
    return () => show(Math.floor(frame.clientWidth));
  });
  return frame;
}

function time_axis(x, low, high, y, width) {
  const ticks = linear_ticks(low, high, width / 110);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : high - low || 1;
  return [svg("line", {x1: x(low), x2: x(high), y1: y, y2: y, class: "axis"}),
    ticks.map((tick) => [svg("line", {x1: x(tick), x2: x(tick), y1: y, y2: y + 4, class: "axis"}),
      svg("text", {x: x(tick), y: y + 16, class: "tick", "text-anchor": anchor(x(tick), width)}, time_tick_text(tick, step, high))])];
}

/** Words at the ends of an axis stay inside. */
const anchor = (x, width) => (x < 24 ? "start" : x > width - 24 ? "end" : "middle");

function value_axis(y, ticks, left, right, text) {
  return ticks.map((tick) => [svg("line", {x1: left, x2: right, y1: y(tick), y2: y(tick), class: "grid"}),
    svg("text", {x: left - 6, y: y(tick) + 4, class: "tick", "text-anchor": "end"}, tick_text(text(tick)))]);
}

/** The line through points [x, y]; a y that is no number is a hole in it. */
function path_through(points) {
  let path = "", drawing = false;
  for (const [x, y] of points) {
    if (!known(y)) {
      drawing = false;
      continue;
    }
    path += `${drawing ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    drawing = true;
  }
  return path;
}

/** Says what lies under the pointer, in a line below the picture. */
function readout(frame, nearest) {
  const line = el("p", {class: "readout muted", role: "status"}, "\u00a0");
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect();
    line.textContent = nearest(event.clientX - box.left, box.width) || "\u00a0";
  });
  frame.addEventListener("pointerleave", () => { line.textContent = "\u00a0"; });
  return el("div", {}, frame, line);
}

/** The first place in sorted numbers that holds at least `value`. */
function lower_bound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
