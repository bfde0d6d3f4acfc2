// One trace of a function: why it was made, on what it relies, what it cost, what became of it in the compiler.

const most_on_paper = 6;  // traces of a function that are opened there

function trace_card(data, its, at, open) {
  const trace = its.traces[at], before = compared_with(its, at);
  // Each has its column, whether there is something in it or not.
  const title = [
    el("b", {}, `Trace ${trace.number ?? at + 1}`),
    el("span", {}, known(trace.begin) && ["at ", seconds_text(trace.begin)]),
    el("span", {}, known(trace.seconds) && ["took ", seconds_text(trace.seconds), trace.compile_seconds > 0 &&
      el("span", {class: "muted"}, `, ${seconds_text(trace.compile_seconds)} compiling`)]),
    el("span", {}, known(trace.calls) && ["served ", plural(trace.calls, "call")],
      trace.evicted && el("span", {class: "badge warn"}, "evicted")),
    el("code", {class: "muted"}, trace.call_file && name_text(short_place(trace.call_file, trace.call_line))),
  ];
  const card = folded(el("span", {class: "trace-title"}, title), () => card_body(data, its, trace, before),
    {open, style: "trace", id: trace_id(its, at), on_paper: at < most_on_paper || at === its.traces.length - 1});
  return card;
}

/** The trace that its cause speaks of: the one that fitted its call best. Where that is not known, the one before. */
function compared_with(its, at) {
  const nearest = its.traces[at].nearest;
  for (let other = at - 1; known(nearest) && other >= 0; --other) {
    if (its.traces[other].number === nearest) return its.traces[other];
  }
  return at > 0 ? its.traces[at - 1] : null;
}

const trace_name = (trace, otherwise) => (known(trace.number) ? `trace ${trace.number}` : otherwise);

const trace_id = (its, at) => `function-${its.id}-trace-${at}`;

/** Fixes of one line share its picture, below the last of them. */
const is_same_place = (fix, next) => Boolean(next) && next.file === fix.file && next.line === fix.line;

const titled = (title, ...content) => (content.flat().some(Boolean) ? el("section", {}, el("h5", {}, title), ...content) : null);

function card_body(data, its, trace, before) {
  return el("div", {class: "trace-body"},
    trace.cause && el("p", {class: "cause"}, shortened(trace.cause, 4000)),
    el("div", {class: "columns"},
      el("div", {},
        arguments_part(trace, before),
        titled("Fix", trace.fixes.map((fix, at) => el("div", {class: "fix"},
          el("p", {}, shortened(fix.text, 4000)), !is_same_place(fix, trace.fixes[at + 1]) && place(data, fix.file, fix.line, true)))),
        titled("Called at", place(data, trace.call_file, trace.call_line)),
        links.timeline && trace.begin >= 0 &&
          button("Show it in the timeline", () => links.show_time(trace.begin, trace.seconds || 0), {class: "link to"})),
      el("div", {},
        facts_part(data, its, trace, before),
        titled("Constants in it", trace.constants.length > 0 && el("ul", {class: "plain"},
          trace.constants.map((constant) => el("li", {}, el("code", {class: "wrap"}, shortened(constant.text, 2000)),
            known(constant.bytes) && el("span", {class: "muted"}, " ", bytes_text(constant.bytes)))))),
        trace.bytes > 0 && titled("Holds", el("p", {}, bytes_text(trace.bytes))))),
    passes_of_trace(trace),
    graphs_part(data, its, trace),
    graph_difference(trace, before));
}

/** For which arguments it was made, and by which call; beside those of the trace that fitted best. */
function arguments_part(trace, before) {
  return [titled("Arguments", beside(trace, before, "arguments")),
    trace.called_with && titled("Of the call", beside(trace, before, "called_with"))];
}

function beside(trace, before, which) {
  const given = shortened(trace[which], 12000) || "none", earlier = before && shortened(before[which], 12000);
  if (!earlier) return el("p", {}, el("code", {class: "wrap"}, given));
  if (earlier === given) {
    return [el("p", {}, el("code", {class: "wrap"}, given)),
      el("p", {class: "muted"}, `as in ${trace_name(before, "the trace before")}`)];
  }
  const pairs = difference(earlier, given);
  return el("dl", {class: "difference"},
    el("dt", {}, trace_name(before, "before")), el("dd", {}, difference_side(pairs, "-")),
    el("dt", {}, trace_name(trace, "this one")), el("dd", {}, difference_side(pairs, "+")));
}

function facts_part(data, its, trace, before) {
  const facts = trace.facts;
  // Lines that stand beside a fix already need not be open twice.
  const fixed = new Set(trace.fixes.map((fix) => place_text(fix.file, fix.line)));
  const shown = new Set(fixed);
  // Sizes that code pins are what makes other traces: where there are any, the line is to be seen.
  const opens = (fact) => {
    const at = place_text(fact.file, fact.line);
    const is_first = fact.pin && its.retraces > 0 && !shown.has(at);
    if (is_first) shown.add(at);
    return is_first;
  };
  const earlier = new Set((before ? before.facts : []).map((fact) => fact.text));
  if (!facts.length) return titled("Relies on", el("p", {class: "muted"}, "nothing: it serves all sizes."));
  return titled("Relies on", el("ul", {class: "facts-list"}, facts.map((fact) => el("li", {},
    el("code", {class: "wrap"}, shortened(fact.text, 2000)),
    fact.pin && el("span", {class: "badge warn", title: "A size was fixed to one value."}, "pin"),
    before && !earlier.has(fact.text) && el("span", {class: "badge"}, "new"),
    fact.asked_by && el("span", {class: "muted"}, " for ", shortened(fact.asked_by, 80)),
    fact.file && el("div", {}, place(data, fact.file, fact.line, opens(fact)))))));
}

function passes_of_trace(trace) {
  const passes = trace.passes;
  if (!passes.length) return null;
  const total = passes.reduce((sum, pass) => sum + (pass.seconds || 0), 0);
  return folded(el("span", {}, `Passes: ${plural(passes.length, "pass", "passes")}, ${seconds_text(total)}`), () => make_table({
    caption: "Passes of the compiler over this trace",
    rows: passes, style: "compact",
    columns: [
      {title: "pass", value: (pass) => pass.name, cell: (pass) => name_text(pass.name, "mono")},
      {title: "time", number: true, value: (pass) => pass.seconds, cell: (pass) => seconds_text(pass.seconds)},
      {title: "share", number: true, value: (pass) => pass.seconds,
        cell: (pass) => metered(divided(pass.seconds, total), "--kind-compile")},
      {title: "nodes before", number: true, wide: true, value: (pass) => pass.nodes_before,
        cell: (pass) => count_text(pass.nodes_before)},
      {title: "after", number: true, value: (pass) => pass.nodes_after, cell: (pass) => nodes_left(pass)},
    ],
  }), {style: "inner", on_paper: false});
}

const nodes_left = (pass) =>
  (pass.nodes_after < pass.nodes_before ? el("b", {}, count_text(pass.nodes_after)) : count_text(pass.nodes_after));
