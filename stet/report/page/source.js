// Lines of the program's own files, around those that the recording names.

const place_text = (file, line) => (file ? `${file}${line > 0 ? ":" + line : ""}` : "");
/** The end of a path says which file it is. */
const short_place = (file, line) => place_text(String(file || "").split("/").slice(-2).join("/"), line);

function source_lines(data, file, line) {
  const found = file ? data.sources[place_text(file, line)] : null;
  if (!found || !(found.lines || []).length) return null;
  const indents = found.lines.filter((text) => text.trim()).map((text) => /^ */.exec(text)[0].length);
  const indent = indents.length ? Math.min(...indents) : 0;  // that all of them share
  return el("pre", {class: "source", "aria-label": `Lines around ${short_place(file, line)}`, tabindex: "0"},
    found.lines.map((text, at) => {
      const number = found.first + at;
      return el("span", {class: number === line ? "line here" : "line"},
        el("span", {class: "line-number"}, number === line ? `▸${number}` : number), shortened(text.slice(indent), 400), "\n");
    }));
}

/** The place, which opens to its lines where they are known; `open` ones show them at once, and on paper. */
function place(data, file, line, open = false) {
  if (!file) return null;
  const lines = source_lines(data, file, line);
  const words = el("code", {title: place_text(file, line)}, short_place(file, line));
  if (!lines) return words;
  return folded(words, () => lines, {style: "place", open, on_paper: open});
}

/** A part that opens; what is in it is made when it is first opened, or when the page is printed if it is to be `on_paper`. */
function folded(title, make, {open = false, style = "", id = null, on_paper = true} = {}) {
  const node = el("details", {class: style, id});
  node.append(el("summary", {}, title));
  let made = false;
  node.fill = () => {
    if (!made) node.append(make());
    made = true;
  };
  node.addEventListener("toggle", () => node.open && node.fill());
  if (open) {
    node.fill();
    node.open = true;
  }
  if (on_paper) paper.openers.add(() => {
    if (node.open || !node.isConnected) return null;
    node.fill();
    node.open = true;
    return () => { node.open = false; };
  });
  return node;
}
