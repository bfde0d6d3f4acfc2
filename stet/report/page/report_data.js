// The recording as the page was given it. After this nothing is missing: what is not known is null or an empty list.

const known_format = 1;
const list_of = (value) => (Array.isArray(value) ? value.filter((one) => one !== null && one !== undefined) : []);
const object_of = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});

function read_report(text) {
  const given = object_of(JSON.parse(text));
  if (given.format !== known_format) {
    throw new Error(`The data has format ${shortened(given.format, 20) || "none"}, and this page reads format ${known_format}.`);
  }
  const data = {
    program: object_of(given.program), limits: object_of(given.limits), sources: object_of(given.sources),
    verdict: list_of(given.verdict), findings: list_of(given.findings).filter((finding) => finding.text),
    shares: list_of(given.shares),
    // Places in these three are numbers of spans: holes stay.
    kinds: given.kinds || [], names: given.names || [], threads: given.threads || [],
    spans: object_of(given.spans),
    counters: list_of(given.counters),
    functions: list_of(given.functions).map(read_function),
    kernels: list_of(given.kernels).map((kernel, id) => ({...kernel, id, made_of: list_of(kernel.made_of), places: list_of(kernel.places)})),
    caches: list_of(given.caches),
    training: list_of(given.training).map((fit) => ({...fit, epochs: list_of(fit.epochs)})),
    stages: list_of(given.stages),
    events: list_of(given.events).filter((event) => known(event.time)).sort((a, b) => a.time - b.time),
  };
  data.function_named = new Map(data.functions.map((its) => [its.name, its]).reverse());
  return data;
}

function read_function(its, id) {
  const said = (things) => list_of(things).filter((thing) => thing.text);
  const traces = list_of(its.traces).map((trace) => ({...trace, facts: said(trace.facts), fixes: said(trace.fixes),
    constants: said(trace.constants), passes: list_of(trace.passes), graph: read_graph(trace.graph), program: read_graph(trace.program)}));
  return {...its, id, traces, warnings: list_of(its.warnings)};
}

function read_graph(graph) {
  const nodes = list_of(object_of(graph).nodes);
  return nodes.length ? {nodes: nodes.map((node) => ({...node, in: list_of(node.in), made_of: list_of(node.made_of)}))} : null;
}

/** Functions are named by their place in the list, or by their name. */
const function_of = (data, which) =>
  (typeof which === "number" ? data.functions[which] : typeof which === "string" ? data.function_named.get(which) : null) || null;
