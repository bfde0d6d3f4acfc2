// How a graph is drawn, and what the reader does to it.

function fit_view(state, width, height) {
  const {box} = state;
  const wide = box.right - box.left + 32, high = box.bottom - box.top + 44;
  const scale = Math.min(1.15, width / wide, height / high);
  // A large graph begins readable at its top rather than whole and grey; on paper, and when asked for, it is whole.
  const readable = paper.printing || state.whole ? scale : Math.max(scale, 0.8);
  const x = width / 2 - middle_of(state, width / readable, height / readable) * readable;
  return {scale: readable, x, y: high * readable <= height ? (height - (box.bottom - box.top) * readable) / 2 + 4 : 26};
}

/** What stands in the middle at first: all of it where it fits, or what begins at the top. */
function middle_of({box, nodes}, width, height) {
  const seen = nodes.filter((node) => node.y < height);
  for (const shown of [nodes, seen]) {
    const left = shown.reduce((least, node) => Math.min(least, node.x - node.width / 2), Infinity);
    const right = shown.reduce((most, node) => Math.max(most, node.x + node.width / 2), -Infinity);
    if (right - left + 16 <= width) return (left + right) / 2;
  }
  if (!seen.length) return (box.left + box.right) / 2;
  const least = box.left + width / 2 - 12;
  return clamp(seen[0].x, least, Math.max(least, box.right - width / 2 + 12));
}

function draw_graph(state, context, width, height) {
  if (paper.printing && state.canvas.hidden_on_paper) {
    context.fillStyle = theme.colour("--muted");
    context.font = canvas_font(12);
    context.fillText("On paper only the first graphs are drawn.", 8, 20);
    return;
  }
  if (!state.view) state.view = fit_view(state, width, height);
  const {scale, x, y} = state.view;
  const seen = {left: -x / scale, right: (width - x) / scale, top: -y / scale, bottom: (height - y) / scale};
  context.save();
  context.translate(x, y);
  context.scale(scale, scale);
  draw_boxes(state, context, scale);
  draw_edges(state, context, scale, seen);
  draw_titles(state, context, scale);
  state.nodes.forEach((node, at) => {
    if (node.x + node.width / 2 < seen.left || node.x - node.width / 2 > seen.right ||
        node.y + node_height / 2 < seen.top || node.y - node_height / 2 > seen.bottom) return;
    draw_node(state, context, node, at, scale);
  });
  context.restore();
}

function draw_boxes(state, context, scale) {
  for (const box of state.boxes) {
    const inset = 6;
    context.fillStyle = theme.colour("--box");
    context.strokeStyle = theme.colour("--line-strong");
    context.lineWidth = 1 / scale;
    context.setLineDash([4, 3]);
    rounded(context, box.left - inset, box.top - 14, box.right - box.left + 2 * inset, box.bottom - box.top + 14 + inset, 6);
    context.fill();
    context.stroke();
    context.setLineDash([]);
  }
}

/** After the edges, which do not run through them. */
function draw_titles(state, context, scale) {
  if (scale < 0.45) return;
  context.font = canvas_font(10);
  for (const box of state.boxes) {
    const words = fitting(context, "▾ " + box.scope.split("/").pop(), box.right - box.left);
    context.fillStyle = theme.colour("--paper");
    context.fillRect(box.left - 3, box.top - 13, context.measureText(words).width + 4, 11);
    context.fillStyle = theme.colour("--muted");
    context.fillText(words, box.left - 1, box.top - 4);
  }
}

function draw_edges(state, context, scale, seen) {
  const {selected} = state;
  const draw = (edge) => {
    context.beginPath();
    const points = edge.points;
    context.moveTo(...points[0]);
    for (let at = 1; at < points.length; ++at) {
      const [px, py] = points[at - 1], [qx, qy] = points[at];
      const middle = (py + qy) / 2;
      context.bezierCurveTo(px, middle, qx, middle, qx, qy);
    }
    context.stroke();
  };
  const near = (edge) => {
    const last = edge.points[edge.points.length - 1];
    return last[1] >= seen.top && edge.points[0][1] <= seen.bottom;
  };
  context.strokeStyle = theme.colour("--edge");
  context.lineWidth = Math.max(1, 0.6 / scale);
  for (const edge of state.edges) if (near(edge) && edge.from !== selected && edge.to !== selected) draw(edge);
  context.lineWidth = 2.2;
  for (const edge of state.edges) {
    if (edge.from !== selected && edge.to !== selected) continue;
    context.strokeStyle = theme.colour(edge.to === selected ? "--accent" : "--kind-trace");
    draw(edge);
  }
  if (scale < 0.3) return;
  context.fillStyle = theme.colour("--edge");
  for (const edge of state.edges) {
    const [x, y] = edge.points[edge.points.length - 1];
    if (y < seen.top || y > seen.bottom || x < seen.left || x > seen.right) continue;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - 3.5, y - 6);
    context.lineTo(x + 3.5, y - 6);
    context.fill();
  }
}

const node_looks = {
  op: {fill: "--paper", line: "--line-strong"}, fused: {fill: "--node-fused", line: "--accent", thick: 1.5},
  scope: {fill: "--node-scope", line: "--line-strong", thick: 1.5}, input: {fill: "--sunken", line: "--line-strong", round: 18},
  variable: {fill: "--node-variable", line: "--line-strong", round: 18}, constant: {fill: "--sunken", line: "--line-strong", dashes: [3, 3]},
};

function draw_node(state, context, node, at, scale) {
  const look = node_looks[node.sort];
  const left = node.x - node.width / 2, top = node.y - node_height / 2;
  context.fillStyle = theme.colour(look.fill);
  context.strokeStyle = theme.colour(at === state.selected || at === state.hovered ? "--ink" : look.line);
  context.lineWidth = at === state.selected ? 2.5 : look.thick || 1;
  context.setLineDash(look.dashes || []);
  if (node.closed) {
    // A second edge behind it: there is more inside.
    rounded(context, left + 3, top + 3, node.width, node_height, 5);
    context.stroke();
  }
  rounded(context, left, top, node.width, node_height, look.round || 5);
  context.fill();
  context.stroke();
  context.setLineDash([]);
  if (scale < 0.35) return;
  context.fillStyle = theme.colour("--ink");
  context.font = canvas_font(12, "600");
  context.textAlign = "center";
  context.fillText(fitting(context, node.title, node.width - 10), node.x, node.under ? node.y - 3 : node.y + 4);
  if (node.under) {
    context.font = canvas_font(11);
    context.fillStyle = theme.colour("--muted");
    context.fillText(fitting(context, node.under, node.width - 10), node.x, node.y + 12);
  }
  context.textAlign = "start";
}

function rounded(context, x, y, width, height, radius) {
  context.beginPath();
  if (context.roundRect) context.roundRect(x, y, width, height, radius);
  else context.rect(x, y, width, height);
}

function graph_input(state) {
  const {canvas} = state;
  const at_point = (x, y) => {
    const gx = (x - state.view.x) / state.view.scale, gy = (y - state.view.y) / state.view.scale;
    const on_node = (node) => Math.abs(node.x - gx) <= node.width / 2 && Math.abs(node.y - gy) <= node_height / 2;
    const on_title = (box) => gx >= box.left - 6 && gx <= box.right + 6 && gy >= box.top - 14 && gy <= box.top;
    const at = state.nodes.findIndex(on_node);
    const box = at >= 0 ? null : state.boxes.filter(on_title).pop();
    return {at, box};
  };
  const move = (dx, dy) => {
    if (!state.view) return;
    state.view.x += dx;
    state.view.y += dy;
    canvas.redraw();
  };
  state.zoom = (factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
    if (!state.view) return;
    const scale = clamp(state.view.scale * factor, 0.02, 4);
    const by = scale / state.view.scale;
    state.view = {scale, x: x - (x - state.view.x) * by, y: y - (y - state.view.y) * by};
    canvas.redraw();
  };
  gestures(canvas, {
    move, zoom: state.zoom,
    hover: (x, y, event) => {
      const {at, box} = x === null || !state.view ? {at: -1} : at_point(x, y);
      const node = state.nodes[at];
      tip.show(node ? [node.title, node.under, node.scope] : box ? [box.scope, "Click to close"] : null, event);
      canvas.style.cursor = node || box ? "pointer" : "";
      if (at !== state.hovered) {
        state.hovered = at;
        canvas.redraw();
      }
    },
    tap: (x, y) => {
      canvas.focus({preventScroll: true});
      const {at, box} = at_point(x, y);
      if (box) state.toggle(box.scope);
      else if (at >= 0 && state.nodes[at].closed) state.toggle(state.nodes[at].scope);
      else state.select(at);
    },
  });
  const step = (way) => {
    if (!state.nodes.length) return;
    const at = state.selected < 0 ? 0 : clamp(state.selected + way, 0, state.nodes.length - 1);
    state.select(at);
    const node = state.nodes[at], view = state.view;
    if (view) {
      view.x = canvas.clientWidth / 2 - node.x * view.scale;
      view.y = canvas.clientHeight / 2 - node.y * view.scale;
    }
  };
  keys(canvas, {
    ArrowLeft: () => move(60, 0), ArrowRight: () => move(-60, 0), ArrowUp: () => move(0, 60), ArrowDown: () => move(0, -60),
    "+": () => state.zoom(1.4), "=": () => state.zoom(1.4), "-": () => state.zoom(1 / 1.4),
    "0": () => state.show_all(), n: () => step(1), p: () => step(-1),
    Enter: () => {
      const node = state.nodes[state.selected];
      const scope = node && scopes_above(node.scope).pop();
      if (scope) state.toggle(scope);
    },
    Escape: () => state.select(-1),
  });
}
