// What happened when: retraces, warnings, audits, evictions.

function events_part(data) {
  if (!data.events.length) return null;
  return make_table({
    caption: "Events", rows: data.events, most: 30, style: "events",
    search: (event) => `${event.kind} ${event.text}`,
    columns: [
      {title: "event", value: (event) => event.kind,
        cell: (event) => [event_mark(event.kind), " ", shortened(event_style(event.kind).word, 40)]},
      {title: "at", number: true, value: (event) => event.time, cell: (event) => time_cell(event)},
      {title: "what", value: (event) => event.text,
        cell: (event) => [event_text(event.text), event_link(data, event)]},
    ],
  });
}

/** Its first line says what happened; the others, which say why and at what cost, open below. */
function event_text(text) {
  const [first, ...more] = shortened(text, 2000).replace(/\n+$/, "").split("\n");
  if (!more.length) return el("span", {class: "wrap"}, first);
  return folded(el("span", {class: "wrap"}, first), () => el("pre", {class: "wrap"}, more.join("\n")), {style: "inner"});
}

function time_cell({time}) {
  if (!links.timeline) return seconds_text(time);
  return button(seconds_text(time), () => links.show_time(time), {class: "link", title: "Show it in the timeline"});
}

function event_link(data, event) {
  const its = function_of(data, event.function);
  if (!its) return null;
  const at = event.kind === "retrace" ? links.trace_told(its, event.time) : null;
  const name = shortened(its.name, 60);
  if (at === null) return [" ", el("a", {href: "#function-" + its.id, class: "to"}, "open ", name)];
  return [" ", el("a", {href: "#" + trace_id(its, at), class: "to"}, `open trace ${its.traces[at].number ?? at + 1} of `, name)];
}
