// A graph to look at: drawn on a canvas, moved and zoomed; its scopes open and close; a node that is clicked says what it is.

const node_height = 36, most_pills = 16, most_nodes_open = 36;

function graphs_part(data, its, trace) {
  const before = trace.graph, after = trace.program;
  if (!before && !after) {
    const others = its.traces.some((other) => other.graph || other.program);
    return others && el("p", {class: "muted small"}, "Its graph is not in the recording, which has those of a function's first traces.");
  }
  const counts = [before && `${plural(before.nodes.length, "node")} before fusion`, after && `${count_text(after.nodes.length)} after`];
  return folded(el("span", {}, "Graph: ", counts.filter(Boolean).join(", ")), () => el("div", {class: "graphs"},
    before && graph_view(data, before, "Before fusion"), after && graph_view(data, after, "After fusion")),
  {style: "inner", open: (before ? before.nodes.length : 0) + (after ? after.nodes.length : 0) <= 400});
}

function graph_view(data, graph, title) {
  const scopes = scopes_of(graph);
  const state = {data, graph, scopes, closed: scopes_to_close(graph, scopes, most_nodes_open), selected: -1, hovered: -1, view: null};
  const about = el("div", {class: "node-details", "aria-live": "polite"});
  state.canvas = make_canvas((context, width, height) => draw_graph(state, context, width, height), {class: "graph", tabindex: "0",
    role: "application", "aria-roledescription": "graph",
    "aria-label": `${title}: ${plural(graph.nodes.length, "node")}. Arrows move, plus and minus zoom, N and P go from node to node, ` +
      "Enter opens or closes a scope, 0 shows all. The nodes are also a list below."});
  state.canvas.paper_width = 620;
  state.lay_out = () => {
    Object.assign(state, visible_graph(graph, state.closed));
    state.nodes.forEach((node) => Object.assign(node, node_face(graph, node), {height: node_height}));
    Object.assign(state, lay_out_graph(state.nodes));
    state.boxes = scope_boxes(state);
    state.view = null;
    state.whole = false;
    state.canvas.redraw();
  };
  state.show_all = () => {
    state.whole = true;
    state.view = null;
    state.canvas.redraw();
  };
  state.select = (at) => {
    state.selected = at;
    about.replaceChildren(at < 0 ? el("p", {class: "muted"}, graph_hint(state)) : node_details(state, at));
    state.canvas.redraw();
  };
  state.toggle = (scope) => {
    if (!state.closed.delete(scope)) state.closed.add(scope);
    state.lay_out();
    state.select(-1);
    pills.replaceChildren(...scope_pills(state));
  };
  const pills = el("div", {class: "pills", role: "group", "aria-label": "Scopes"});
  graph_input(state);
  state.lay_out();
  state.select(-1);
  pills.append(...scope_pills(state));
  paper.openers.add(() => {
    // Measured anew: on paper it is as wide as the paper.
    state.canvas.hidden_on_paper = paper.graphs_left-- <= 0;
    state.view = null;
    return () => {
      state.view = null;
      state.canvas.redraw();
    };
  });
  const node = el("figure", {class: "graph-view"}, el("figcaption", {}, el("b", {}, title), " ",
    el("span", {class: "muted"}, plural(graph.nodes.length, "node")),
    el("span", {class: "actions"}, button("−", () => state.zoom(1 / 1.4), {"aria-label": "Zoom out"}),
      button("+", () => state.zoom(1.4), {"aria-label": "Zoom in"}), button("all", () => state.show_all(), {"aria-label": "Show all"}))),
  pills, state.canvas, about, folded("as a list", () => node_list(graph), {style: "inner list", on_paper: false}));
  return node;
}

function graph_hint(state) {
  return state.scopes.size ? "Click a node to read it; a scope to open it; the title of a frame to close it." : "Click a node to read it.";
}

/** Scopes as buttons: those that are closed, and those that could be. The others are found in the picture. */
function scope_pills(state) {
  const hidden = (scope) => scopes_above(scope.name).slice(0, -1).some((above) => state.closed.has(above));
  const scopes = [...state.scopes.values()].filter((scope) => scope.nodes > 1 && !hidden(scope));
  const more = scopes.length - most_pills;
  return [scopes.slice(0, most_pills).map((scope) => scope_pill(state, scope)),
  more > 0 ? el("span", {class: "muted small"}, `and ${count_text(more)} more in the picture`) : []].flat();
}

function scope_pill(state, scope) {
  const closed = state.closed.has(scope.name), name = scope.name.split("/").slice(-2).join("/");
  const words = [closed ? "▸ " : "▾ ", shortened(name, 50), " ", el("span", {class: "muted"}, count_text(scope.nodes))];
  return button(words, () => state.toggle(scope.name), {"aria-pressed": String(!closed), title: shortened(scope.name, 300)});
}

const measuring = document.createElement("canvas").getContext("2d");

/** What is written on a node, and how wide it is for that. */
function node_face(graph, node) {
  const first = graph.nodes[node.first];
  const made_of = first.made_of && first.made_of.length > 1 ? first.made_of : null;
  const title = node.closed ? `▸ ${node.scope.split("/").pop()}` : first.op;
  const under = node.closed ? plural(node.members.length, "node") : first.text;
  measuring.font = canvas_font(12, "600");
  const wide = measuring.measureText(shortened(title, 60)).width;
  measuring.font = canvas_font(11);
  const sort = node.closed ? "scope" : made_of ? "fused" : ["input", "variable", "constant"].includes(first.op) ? first.op : "op";
  return {title: shortened(title, 60), under: shortened(under, 60), sort,
    width: clamp(Math.max(wide, measuring.measureText(shortened(under, 60)).width) + 20, 64, 230)};
}

/** Frames around open scopes, where nothing else stands in between. */
function scope_boxes(state) {
  const boxes = new Map();
  state.nodes.forEach((node, at) => {
    for (const scope of scopes_above(node.scope)) {
      if (node.closed && scope === node.scope) continue;
      const box = boxes.get(scope) || {scope, left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity, own: new Set()};
      box.left = Math.min(box.left, node.x - node.width / 2);
      box.right = Math.max(box.right, node.x + node.width / 2);
      box.top = Math.min(box.top, node.y - node.height / 2);
      box.bottom = Math.max(box.bottom, node.y + node.height / 2);
      box.own.add(at);
      boxes.set(scope, box);
    }
  });
  if (boxes.size > 200) return [];
  return [...boxes.values()].filter((box) => box.own.size > 1 && !state.nodes.some((node, at) => !box.own.has(at) &&
    node.x + node.width / 2 > box.left - 6 && node.x - node.width / 2 < box.right + 6 &&
    node.y + node.height / 2 > box.top - 12 && node.y - node.height / 2 < box.bottom + 6));
}

function node_details(state, at) {
  const shown = state.nodes[at], node = state.graph.nodes[shown.first];
  if (shown.closed) {
    return el("div", {}, el("b", {class: "wrap"}, shown.scope), " ", el("span", {class: "muted"}, plural(shown.members.length, "node")), " ",
      button("Open it", () => state.toggle(shown.scope)));
  }
  return el("div", {},
    el("b", {class: "mono wrap"}, shortened(node.op, 2000)), " ", el("code", {class: "wrap"}, shortened(node.text, 4000)),
    node.made_of && node.made_of.length > 0 && el("p", {}, "made of ", el("code", {class: "wrap"}, shortened(node.made_of.join(" → "), 4000))),
    node.scope && el("p", {class: "muted wrap"}, "in ", shortened(node.scope, 2000), " ",
      scopes_above(node.scope).length > 0 && button("Close this scope", () => state.toggle(scopes_above(node.scope).pop()))),
    place(state.data, node.file, node.line));
}

/** For those who do not see the picture, and for searching. */
function node_list(graph) {
  const number = new Map(graph.nodes.map((node, at) => [node, at]));
  return make_table({
    caption: "Nodes", rows: graph.nodes, most: 50,
    columns: [
      {title: "#", number: true, value: (node) => number.get(node)},
      {title: "op", value: (node) => node.op, cell: (node) => name_text(node.op, "mono")},
      {title: "result", value: (node) => node.text, cell: (node) => name_text(node.text, "mono")},
      {title: "of", value: (node) => (node.in || []).join(" "), cell: (node) => shortened((node.in || []).join(" "), 40)},
      {title: "scope", wide: true, value: (node) => node.scope, cell: (node) => name_text(node.scope || "–")},
      {title: "at", wide: true, value: (node) => place_text(node.file, node.line),
        cell: (node) => el("code", {class: "muted"}, short_place(node.file, node.line))},
    ],
  });
}
