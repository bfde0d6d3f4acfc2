// A canvas that is sharp on every screen, and drawn again, once a frame at most, when anything changed.

function make_canvas(draw, attributes) {
  const node = el("canvas", attributes);
  const context = node.getContext("2d");
  let waiting = false;
  const show = () => {
    waiting = false;
    // How wide the paper is nobody says before it is too late to draw; nor how high what is opened for it will be.
    const width = paper.printing ? node.paper_width || paper.width : node.clientWidth;
    const height = node.clientHeight || (paper.printing ? paper.picture_height : 0);
    if (!width || !height) return;
    const dense = paper.printing ? 3 : window.devicePixelRatio || 1;
    if (node.width !== Math.round(width * dense) || node.height !== Math.round(height * dense)) {
      node.width = Math.round(width * dense);
      node.height = Math.round(height * dense);
    }
    context.setTransform(dense, 0, 0, dense, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, width, height, 1 / dense);
  };
  node.redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => waiting && show());
  };
  node.redraw_now = show;
  new ResizeObserver(() => node.redraw()).observe(node);
  // Printing takes the canvas as it is when the event ends, so a change of theme is shown at once then.
  theme.watchers.push(() => (paper.printing ? show() : node.redraw()));
  return node;
}

const canvas_font = (size, weight = "") => `${weight} ${size}px ${theme.colour("--font")}`;

/** As much of the text as `room` pixels hold; nothing where that is not worth it. */
function fitting(context, text, room) {
  if (room < 14) return "";
  let words = text.length > 200 ? text.slice(0, 200) : text;
  if (words.length * 3 < room || context.measureText(words).width <= room) {
    if (context.measureText(words).width <= room) return words;
  }
  let low = 0, high = Math.min(words.length, Math.ceil(room / 2));
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(words.slice(0, middle) + "…").width <= room) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? "" : words.slice(0, low) + "…";
}
