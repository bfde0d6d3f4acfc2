// A graph with some of its scopes (layers) closed: each becomes one node, so that large graphs can be read.

/** "sequential/dense" → ["sequential", "sequential/dense"]. */
function scopes_above(scope) {
  const parts = String(scope || "").split("/").filter(Boolean).slice(0, 32);
  return parts.map((part, at) => parts.slice(0, at + 1).join("/"));
}

/** All scopes: name → {name, depth, nodes: how many are in it}. */
function scopes_of(graph) {
  const scopes = new Map();
  for (const node of graph.nodes) {
    scopes_above(node.scope).forEach((name, depth) => {
      if (!scopes.has(name)) scopes.set(name, {name, depth, nodes: 0});
      scopes.get(name).nodes += 1;
    });
  }
  return scopes;
}

/** Which scopes to close so that about `most` nodes are left, the deepest ones first; but not down to nearly nothing. */
function scopes_to_close(graph, scopes, most) {
  const deepest = [...scopes.values()].reduce((depth, scope) => Math.max(depth, scope.depth), -1);
  const closed_from = (depth) =>
    new Set([...scopes.values()].filter((scope) => scope.depth >= depth && scope.nodes > 1).map((scope) => scope.name));
  const left = (closed) =>
    new Set(graph.nodes.map((node, at) => scopes_above(node.scope).find((scope) => closed.has(scope)) || at)).size;
  let closed = new Set(), count = graph.nodes.length;
  for (let depth = deepest; depth >= 0 && count > most; --depth) {
    const next = closed_from(depth);
    const after = left(next);
    if (after < 6 && count < 6 * most) break;
    closed = next;
    count = after;
  }
  return closed;
}

/**
 * The graph as it is shown: nodes {first: a node of the graph, members, scope, closed}, edges by place.
 *
 * What a scope does before and after others (forwards and backwards, say) is shown as several nodes, or there would be
 * circles: a member that depends on the scope by way of others counts to the next one.
 */
function visible_graph(graph, closed) {
  const owner = graph.nodes.map((node) => scopes_above(node.scope).find((scope) => closed.has(scope)) || null);
  const rounds = rounds_of(graph, owner);
  const nodes = [], place_of = new Map(), shown_as = new Int32Array(graph.nodes.length);
  graph.nodes.forEach((node, at) => {
    const key = owner[at] === null ? at : `${rounds[at]} ${owner[at]}`;
    if (!place_of.has(key)) {
      place_of.set(key, nodes.length);
      nodes.push({first: at, members: [], scope: owner[at] ?? node.scope, closed: owner[at] !== null, in: [], out: []});
    }
    shown_as[at] = place_of.get(key);
    nodes[shown_as[at]].members.push(at);
  });
  const seen = new Set();
  graph.nodes.forEach((node, at) => {
    for (const from of inputs_of(graph, at)) {
      const a = shown_as[from], b = shown_as[at];
      // Which comes first follows from the first members; an edge against it would close a circle, and is left out.
      if (a >= b || seen.has(a * nodes.length + b)) continue;
      seen.add(a * nodes.length + b);
      nodes[a].out.push(b);
      nodes[b].in.push(a);
    }
  });
  return {nodes, shown_as};
}

/** Inputs that are earlier nodes: others would be no graph. */
const inputs_of = (graph, at) => (graph.nodes[at].in || []).filter((from) => Number.isInteger(from) && from >= 0 && from < at);

/** Per node, how often the way to it has left its closed scope and come back. */
function rounds_of(graph, owner) {
  const rounds = new Int32Array(graph.nodes.length);
  for (const scope of new Set(owner.filter(Boolean))) {
    // For nodes outside: the round that one behind them would belong to.
    const reached = new Int32Array(graph.nodes.length).fill(-1);
    graph.nodes.forEach((node, at) => {
      let round = -1;
      const mine = owner[at] === scope;
      for (const from of inputs_of(graph, at)) {
        round = Math.max(round, reached[from] + (mine && owner[from] !== scope && reached[from] >= 0 ? 1 : 0));
      }
      reached[at] = mine ? Math.max(round, 0) : round;
      if (mine) rounds[at] = reached[at];
    });
  }
  return rounds;
}
