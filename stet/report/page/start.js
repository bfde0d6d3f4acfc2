// The page as a whole: its parts in the order in which one reads them. A part that has nothing to show is left out, or says
// in a line why it is empty where its absence would be a riddle.

function start_page() {
  const main = document.getElementById("main");
  theme.start(document.getElementById("theme"));
  paper.start();
  let data;
  try {
    data = read_report(document.getElementById("data").textContent);
    data.spans = read_spans(data.spans);
  } catch (error) {
    main.replaceChildren(el("h1", {}, "This report cannot be read"),
      el("p", {class: "doubt"}, shortened(error.message, 400), " The file is cut off, or was made by another version of stet."));
    return;
  }
  find.start(document.getElementById("find"), document.getElementById("found"));
  document.title = `${shortened(data.program.name, 60) || "stet"} – report`;
  const timeline = data.spans.count || data.events.length ? drawn(() => timeline_part(data)) : null;
  if (timeline && timeline.node) links.timeline = timeline;
  const parts = [
    ["findings", "Changes", "What to change", drawn(() => findings_part(data))],
    ["functions", "Functions", "Functions", drawn(() => functions_part(data)) || "No function was traced."],
    ["timeline", "Timeline", "Timeline", timeline ? timeline.node || timeline : "No spans were recorded."],
    ["kernels", "Kernels", "Kernels", drawn(() => kernels_part(data)) || "No kernel ran in a traced function."],
    ["stages", "Input", "Input", drawn(() => stages_part(data))],
    ["counters", "Memory", "Memory and counters", drawn(() => counters_part(data))],
    ["training", "Training", "Training", drawn(() => training_part(data))],
    ["compiling", "Compiling", "Compile time", drawn(() => compiling_part(data))],
    ["events", "Events", "Events", drawn(() => events_part(data))],
  ].filter((part) => part[3]);
  main.replaceChildren(verdict_part(data), ...parts.map(([id, , title, content]) => section(id, title, content)), colophon(data));
  const nav = document.getElementById("nav");
  nav.append(el("a", {href: "#verdict"}, "Verdict"), ...parts.map(([id, word]) => el("a", {href: "#" + id}, word)));
  mark_current(nav, [...main.children].filter((part) => part.id));
  links.start(data);
}

/** What `make` makes. Where the data is none that this page knows what to do with, the other parts are still to be read. */
function drawn(make) {
  try {
    return make();
  } catch (error) {
    console.error(error);
    return "This part could not be drawn: " + shortened(error.message, 200);
  }
}

const section = (id, title, content) => el("section", {id, "aria-labelledby": "title-" + id},
  el("h2", {id: "title-" + id}, title), typeof content === "string" ? el("p", {class: "muted"}, content) : content);

/** What all numbers are from. */
function colophon({limits, program}) {
  const known_limits = [limits.bytes > 0 && byte_rate_text(limits.bytes), limits.flops > 0 && flop_rate_text(limits.flops)].filter(Boolean);
  return el("footer", {class: "muted"}, el("p", {},
    known_limits.length > 0 && `This machine's limits as measured: ${known_limits.join(" and ")}. `,
    "All numbers are of one recording, which stands in this file; a dash is what was not measured. ",
    program.stet && `Made by stet ${shortened(program.stet, 40)}.`));
}

/** The part in which one reads is marked in the bar. */
function mark_current(nav, parts) {
  const link_of = new Map([...nav.children].map((link) => [link.getAttribute("href").slice(1), link]));
  let waiting = false;
  const mark_now = () => {
    waiting = false;
    let current = parts[0];
    for (const part of parts) {
      if (window.scrollY > 0 && part.getBoundingClientRect().top < window.innerHeight * 0.3) current = part;
    }
    const link = link_of.get(current.id);
    if (!link || link.getAttribute("aria-current")) return;
    for (const other of nav.children) other.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    if (nav.scrollWidth > nav.clientWidth) nav.scrollTo({left: link.offsetLeft - nav.offsetLeft - 40});
  };
  window.addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(mark_now);
    waiting = true;
  }, {passive: true});
  mark_now();
}
