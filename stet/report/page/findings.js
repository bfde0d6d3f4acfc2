// What to do, the dearest first.

function findings_part(data) {
  const findings = data.findings.slice().sort((a, b) => (b.weight || 0) - (a.weight || 0));
  if (!findings.length) return null;
  return el("ol", {class: "findings"}, findings.map((finding) => {
    const costs = known(finding.weight) && finding.weight > 0;
    const its = function_of(data, finding.function);
    return el("li", {},
      el("span", {class: "weight"}, costs ? percent_text(finding.weight) : "note", costs && bar(finding.weight, "--kind-trace")),
      el("div", {}, finding_text(shortened(finding.text, 4000)),
        its && el("a", {href: "#function-" + its.id, class: "to"}, "open ", shortened(its.name, 60))));
  }));
}

/** What is the matter, and below it what to do about it. */
function finding_text(text) {
  const at = text.indexOf(" Fix: ");
  if (at < 0) return el("p", {}, text);
  return [el("p", {}, text.slice(0, at)), el("p", {class: "remedy"}, el("b", {}, "Fix:"), text.slice(at + " Fix:".length))];
}
