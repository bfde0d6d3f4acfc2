// Where the nodes of a graph stand: in layers from the inputs down, ordered so that few edges cross, each as near as it can
// be to those it is joined to.
//
// An edge over several layers goes by way of points in them, which are placed as nodes are. Everything is about linear in
// nodes and points; where the points would be too many, edges go straight.

const layer_gap = 34, node_gap = 18, most_points = 20000;

/** Gives every node {x, y} (its middle) and every edge its points; node.width and node.height are given. */
function lay_out_graph(nodes) {
  const layer = layers_of(nodes);
  const {items, edges} = with_points(nodes, layer);
  const rows = order_rows(items);
  place_rows(rows, items);
  let y = 0;
  for (const row of rows) {
    const high = Math.max(...row.map((at) => items[at].height));
    for (const at of row) items[at].y = y + high / 2;
    y += high + layer_gap;
  }
  nodes.forEach((node, at) => Object.assign(node, {x: items[at].x, y: items[at].y}));
  const left = items.reduce((least, item) => Math.min(least, item.x - item.width / 2), Infinity);
  const right = items.reduce((most, item) => Math.max(most, item.x + item.width / 2), -Infinity);
  const paths = edges.map(({from, to, points}) => ({from, to, points: [
    [items[from].x, items[from].y + items[from].height / 2],
    ...points.map((at) => [items[at].x, items[at].y]),
    [items[to].x, items[to].y - items[to].height / 2]]}));
  return {edges: paths, box: {left, right, top: 0, bottom: Math.max(0, y - layer_gap)}};
}

/** The longest way from the inputs; what has no inputs stands right above its first user. */
function layers_of(nodes) {
  const layer = new Int32Array(nodes.length);
  nodes.forEach((node, at) => {
    for (const from of node.in) layer[at] = Math.max(layer[at], layer[from] + 1);
  });
  nodes.forEach((node, at) => {
    if (node.in.length || !node.out.length) return;
    layer[at] = Math.max(0, node.out.reduce((least, to) => Math.min(least, layer[to]), Infinity) - 1);
  });
  return layer;
}

function with_points(nodes, layer) {
  const items = nodes.map((node, at) => ({width: node.width, height: node.height, layer: layer[at], up: [], down: [], weight: 1}));
  let points = 0;
  nodes.forEach((node, at) => node.in.forEach((from) => { points += layer[at] - layer[from] - 1; }));
  const straight = points > most_points;
  const edges = [];
  const join = (a, b) => {
    items[a].down.push(b);
    items[b].up.push(a);
  };
  nodes.forEach((node, to) => {
    for (const from of node.in) {
      const edge = {from, to, points: []};
      let last = from;
      for (let at = layer[from] + 1; at < layer[to] && !straight; ++at) {
        items.push({width: 6, height: 0, layer: at, up: [], down: [], weight: 6});
        edge.points.push(items.length - 1);
        join(last, items.length - 1);
        last = items.length - 1;
      }
      join(last, to);
      edges.push(edge);
    }
  });
  return {items, edges};
}

/** Layers as lists, ordered by the mean place of their neighbours above and below, in turns. */
function order_rows(items) {
  const rows = [];
  items.forEach((item, at) => (rows[item.layer] = rows[item.layer] || []).push(at));
  for (let at = 0; at < rows.length; ++at) rows[at] = rows[at] || [];
  const place = new Float64Array(items.length);
  const number = (row) => row.forEach((at, place_in_row) => { place[at] = place_in_row; });
  rows.forEach(number);
  const sweeps = items.length > 8000 ? 4 : 12;
  for (let sweep = 0; sweep < sweeps; ++sweep) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : rows.slice().reverse()) {
      const wanted = new Map(row.map((at) => {
        const near = down ? items[at].up : items[at].down;
        return [at, near.length ? near.reduce((sum, other) => sum + place[other], 0) / near.length : place[at]];
      }));
      row.sort((a, b) => wanted.get(a) - wanted.get(b) || place[a] - place[b]);
      number(row);
    }
  }
  return rows.filter((row) => row.length);
}

/** Each wants to stand at the mean of its neighbours; in the order of its row, and not over others. */
function place_rows(rows, items) {
  for (const row of rows) {
    let x = 0;
    for (const at of row) {
      items[at].x = x + items[at].width / 2;
      x += items[at].width + node_gap;
    }
    for (const at of row) items[at].x -= x / 2;
  }
  for (let sweep = 0; sweep < 12; ++sweep) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : rows.slice().reverse()) {
      const wanted = row.map((at) => {
        const near = sweep >= 8 ? [...items[at].up, ...items[at].down] : down ? items[at].up : items[at].down;
        if (!near.length) return items[at].x;
        // Ways from point to point count for more: long edges become straight.
        const weights = near.map((other) => Math.sqrt(items[other].weight * items[at].weight));
        return near.reduce((sum, other, k) => sum + items[other].x * weights[k], 0) / weights.reduce((a, b) => a + b, 0);
      });
      spread(row, wanted, items);
    }
  }
}

/**
 * The places nearest to the wanted ones (in squares) that keep order and distance: with the distances taken away that is a
 * regression which only rises, and neighbours that would fall are put together at their mean.
 */
function spread(row, wanted, items) {
  const offset = new Float64Array(row.length);
  for (let k = 1; k < row.length; ++k) {
    offset[k] = offset[k - 1] + (items[row[k - 1]].width + items[row[k]].width) / 2 + node_gap;
  }
  const blocks = [];
  for (let k = 0; k < row.length; ++k) {
    const weight = items[row[k]].weight;
    let block = {sum: (wanted[k] - offset[k]) * weight, weight, first: k};
    while (blocks.length && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].weight > block.sum / block.weight) {
      const last = blocks.pop();
      block = {sum: last.sum + block.sum, weight: last.weight + block.weight, first: last.first};
    }
    blocks.push(block);
  }
  blocks.forEach((block, at) => {
    const past = at + 1 < blocks.length ? blocks[at + 1].first : row.length;
    for (let k = block.first; k < past; ++k) items[row[k]].x = block.sum / block.weight + offset[k];
  });
}
