// What another trace of a function recorded that the one it is compared with did not: where its sizes and numbers went.

const most_different = 200;

function graph_difference(trace, before) {
  if (!before || !before.graph || !trace.graph) return null;
  const lines = ({nodes}) => nodes.map((node) => `${node.op} ${node.text}`);
  const pairs = list_difference(lines(before.graph), lines(trace.graph)).filter(([sort]) => sort !== "=");
  const name = trace_name(before, "the trace before");
  if (!pairs.length) return el("p", {class: "muted small"}, `Its graph before fusion is that of ${name}.`);
  const count = Math.max(...["-", "+"].map((side) => pairs.filter(([sort]) => sort === side).length));
  return folded(el("span", {}, `Graph beside that of ${name}: ${plural(count, "node")} of ${count_text(trace.graph.nodes.length)} `,
    count === 1 ? "differs" : "differ"), () => el("div", {class: "graph-difference"},
    pairs.slice(0, most_different).map(([sort, text]) => el("div", {},
      el("span", {class: "muted"}, sort === "-" ? "− " : "+ "), el("code", {class: "wrap"}, el(sort === "-" ? "del" : "ins", {}, shortened(text, 400))))),
    pairs.length > most_different && el("p", {class: "muted"}, `and ${count_text(pairs.length - most_different)} more`)),
  {style: "inner", on_paper: false});
}
