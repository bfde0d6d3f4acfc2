// The compiler's passes over all traces: which of them takes the time, and what each leaves.

function compiling_part(data) {
  const passes = new Map();
  for (const its of data.functions) {
    for (const trace of its.traces) {
      for (const pass of trace.passes) {
        const sum = passes.get(pass.name) || {name: pass.name, runs: 0, seconds: 0, removed: 0};
        sum.runs += 1;
        sum.seconds += pass.seconds || 0;
        sum.removed += (pass.nodes_before || 0) - (pass.nodes_after || 0);
        passes.set(pass.name, sum);
      }
    }
  }
  if (!passes.size) return null;
  const rows = [...passes.values()];
  const total = rows.reduce((sum, pass) => sum + pass.seconds, 0);
  return make_table({
    caption: "Passes of the compiler", rows, most: 40, style: "compact", sorted: {column: 2, down: true},
    columns: [
      {title: "pass", value: (pass) => pass.name, cell: (pass) => name_text(pass.name, "mono")},
      {title: "runs", number: true, wide: true, value: (pass) => pass.runs, cell: (pass) => count_text(pass.runs)},
      {title: "time", number: true, value: (pass) => pass.seconds, cell: (pass) => seconds_text(pass.seconds)},
      {title: "share", number: true, value: (pass) => pass.seconds,
        cell: (pass) => metered(divided(pass.seconds, total), "--kind-compile")},
      {title: "nodes", hint: "How many nodes of graphs it took away, or added", number: true, value: (pass) => pass.removed,
        cell: (pass) => change_text(-pass.removed)},
    ],
  });
}

/** "−12", "+3", or a dash where nothing changed. */
const change_text = (change) => (change === 0 || !known(change) ? dash : (change < 0 ? "−" : "+") + count_text(Math.abs(change)));
