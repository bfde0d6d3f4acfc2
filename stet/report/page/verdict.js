// First of all: what the recording says, in sentences, and where the time went, as a bar.

function verdict_part(data) {
  const {program} = data;
  const [first, ...rest] = data.verdict || [];
  const facts = [date_text(program.began), program.cpu, known(program.threads) && plural(program.threads, "thread"),
    program.stet && "stet " + program.stet];
  const doubts = [];
  if (program.complete === false) doubts.push("The recording ends before the program did: what came later is not in it.");
  if (program.lost_spans > 0) {
    doubts.push(`${plural(program.lost_spans, "span")} found no room and ${program.lost_spans === 1 ? "is" : "are"} missing ` +
      "from the timeline; the tables count them.");
  }
  return el("section", {id: "verdict", class: "verdict", "aria-labelledby": "title"},
    el("p", {class: "kicker"}, "Report of a run"),
    el("h1", {id: "title"}, shortened(program.name, 300) || "(no name)", " ",
      known(program.seconds) && el("span", {class: "total"}, seconds_text(program.seconds))),
    el("p", {class: "muted facts"}, facts.filter(Boolean).map((fact) => el("span", {}, shortened(fact, 200)))),
    el("div", {class: "sentences"},
      first === undefined && el("p", {class: "first"}, "Nothing was found out about this run."),
      first !== undefined && el("p", {class: "first"}, shortened(first, 2000)),
      rest.map((sentence) => el("p", {}, shortened(sentence, 2000)))),
    doubts.map((doubt) => el("p", {class: "doubt"}, doubt)),
    shares_bar(data));
}

function shares_bar(data) {
  const shares = (data.shares || []).filter((share) => share.seconds > 0);
  if (!shares.length) return null;
  const total = Math.max(data.program.seconds || 0, shares.reduce((sum, share) => sum + share.seconds, 0));
  const parts = shares.map((share, at) => ({...share, part: share.seconds / total, variable: share_variable(share.name, at)}));
  return el("figure", {class: "shares"},
    el("figcaption", {}, "Where the time went"),
    el("div", {class: "shares-bar", role: "img",
      "aria-label": parts.map((part) => `${part.name} ${percent_text(part.part)}`).join(", ")},
      parts.map((part) => el("span", {style: `flex-grow:${part.part};background-color:var(${part.variable})`,
        class: part.variable === "--kind-wait" ? "hatched" : null,
        title: `${shortened(part.name)}: ${seconds_text(part.seconds)}`}))),
    el("ul", {class: "legend"}, parts.map((part) => el("li", {},
      swatch(part.variable), name_text(part.name),
      el("b", {}, percent_text(part.part)), el("span", {class: "muted"}, seconds_text(part.seconds))))));
}

const swatch = (variable) =>
  el("span", {class: "swatch" + (variable === "--kind-wait" ? " hatched" : ""), "aria-hidden": "true",
    style: `background-color:var(${variable})`});
