// The functions: which cost what, and when they were traced.

function functions_part(data) {
  const functions = data.functions;
  if (!functions.length) return null;
  const total = data.program.seconds;
  const table = make_table({
    caption: "Functions",
    rows: functions,
    key: (its) => "function-" + its.id,
    search: (its) => its.name + " " + place_text(its.file, its.line),
    sorted: {column: functions.some((its) => its.lost_seconds > 0) ? 8 : 7, down: true},
    columns: [
      {title: "function", value: (its) => its.name, cell: (its) => name_text(its.name, "mono")},
      {title: "defined at", wide: true, value: (its) => place_text(its.file, its.line),
        cell: (its) => el("code", {class: "muted", title: place_text(its.file, its.line)}, short_place(its.file, its.line))},
      {title: "calls", number: true, value: (its) => its.calls, cell: (its) => count_text(its.calls)},
      {title: "traces", hint: "Made in the time of the recording", number: true, value: traces_within,
        cell: (its) => count_text(traces_within(its))},
      {title: "retraces", hint: "Traces after the first one", wide: true, number: true, value: (its) => its.retraces,
        cell: (its) => warned(its.retraces, count_text)},
      {title: "per call", number: true, wide: true, value: (its) => divided(its.seconds, its.calls),
        cell: (its) => seconds_text(divided(its.seconds, its.calls))},
      {title: "tracing", hint: "Tracing and compiling", number: true, wide: true, value: (its) => its.trace_seconds,
        cell: (its) => seconds_text(its.trace_seconds)},
      {title: "total", number: true, value: (its) => its.seconds,
        cell: (its) => metered(divided(its.seconds, total), "--accent", seconds_text(its.seconds))},
      {title: "lost", hint: "What fewer traces would have saved", number: true, value: (its) => its.lost_seconds,
        cell: (its) => warned(its.lost_seconds, seconds_text)},
    ],
    details: (its) => function_details(data, its),
  });
  links.functions = table;
  return table;
}

const traces_within = (its) => its.traces.filter((trace) => !(trace.begin < 0)).length;

const warned = (value, text) => (value > 0 ? el("b", {class: "warn-text"}, text(value)) : text(value));

function function_details(data, its) {
  const definition = source_lines(data, its.file, its.line);
  return el("div", {class: "details"},
    is_long(its.name) && el("h4", {class: "mono wrap"}, shortened(its.name, 12000)),
    (its.warnings || []).map((warning) => el("p", {class: "doubt"}, shortened(warning, 4000))),
    its.file && folded(el("span", {}, "Defined at ", el("code", {}, place_text(its.file, its.line))),
      () => definition || el("p", {class: "muted"}, "The file was not there when the report was made."), {style: "inner"}),
    its.traces.length ? [traces_kept(its), call_strip(data, its), traces_strip(data, its), its.traces.map((trace, at) => trace_card(data, its, at, opens_at_once(its, at)))]
      : el("p", {class: "muted"}, "It was not traced in this recording."));
}

// The first says what was traced, the last why again; all of them where they are few.
const opens_at_once = (its, at) => its.traces.length <= 2 || at === its.traces.length - 1;

const at_limit = {evict: "one that is cheap to make again and has not served for long is then forgotten, with a warning",
  eager: "what none of them fits then runs eagerly, with a warning", error: "a call that needs one more is then a RetraceError"};

/** How many traces it holds of those that it may: their number is bounded, and what happens at the bound is no secret. */
function traces_kept(its) {
  if (!known(its.max_traces)) return null;
  const kept = its.traces.filter((trace) => !trace.evicted);
  const bytes = kept.reduce((sum, trace) => sum + (trace.bytes || 0), 0);
  const functions = its.traces.filter((trace) => trace.number === 1).length;
  const forgotten = its.traces.length - kept.length;
  const size = [bytes > 0 && `, ${bytes_text(bytes)}`, forgotten > 0 && el("b", {class: "warn-text"}, `, ${count_text(forgotten)} forgotten`)];
  const words = functions > 1
    ? el("span", {}, `${plural(kept.length, "trace")} of ${count_text(functions)} functions of this name`, size,
      `; each keeps at most ${count_text(its.max_traces)}`)
    : el("span", {}, `${count_text(kept.length)} of at most ${plural(its.max_traces, "trace")} kept`, size);
  const part = kept.length / its.max_traces;
  return el("p", {class: "keeps"}, words, functions <= 1 && bar(part, part < 1 ? "--kind-run" : "--kind-trace"),
    el("span", {class: "muted"}, "at the limit: ", at_limit[its.on_limit] || "not known"));
}

/** When it was traced, and how long each time took: a pattern is seen at a glance. */
function traces_strip(data, its) {
  const timed = its.traces.map((trace, at) => ({trace, at})).filter(({trace}) => known(trace.begin));
  if (timed.length < 2) return null;
  const end = Math.max(data.program.seconds || 0, ...timed.map(({trace}) => trace.begin + (trace.seconds || 0)));
  return responsive_svg(64, `Traces of ${shortened(its.name, 60)} in time`, (width) => {
    const left = 4, right = 4, room = width - left - right;
    const x = (time) => left + room * time / end;
    const longest = Math.max(...timed.map(({trace}) => trace.seconds || 0), 1e-12);
    return [
      time_axis(x, 0, end, 44, width),
      timed.map(({trace, at}) => {
        // The height says what is too short to be seen by its width.
        const high = 8 + 28 * Math.sqrt((trace.seconds || 0) / longest);
        const words = `Trace ${trace.number} at ${seconds_text(trace.begin)}, ${seconds_text(trace.seconds)}`;
        const mark = svg("a", {href: "#" + trace_id(its, at), "aria-label": words},
          svg("rect", {x: x(trace.begin), y: 42 - high, height: high, width: Math.max(4, room * (trace.seconds || 0) / end),
            class: "strip-cell", style: `fill:var(${at ? "--kind-trace" : "--kind-run"})`}),
          svg("title", {}, `Trace ${trace.number}: ${seconds_text(trace.seconds)}, served ${plural(trace.calls || 0, "call")}`));
        return mark;
      }),
    ];
  });
}
