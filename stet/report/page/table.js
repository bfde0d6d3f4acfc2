// A table that is sorted by its headers, filtered by the field at the top, and opens rows.
//
// columns: {title, hint, value(row), cell(row), number, wide}; `wide` ones are left out on a phone.
// details(row) gives what a row opens to, when it is first opened; key(row) is the id to link to. A table of the style
// "compact" is as wide as what is in it.

function make_table({caption, columns, rows, sorted, details, key, search, style, most = 100}) {
  const lines = new Map();  // row → {line, opened, toggle}
  const body = el("tbody");
  let order = sorted;       // {column, down}; null: as they came
  let shown = most, seen = [];
  let words = "";

  const heads = columns.map((column, at) => {
    const head = el("th", {scope: "col", class: cell_class(column)},
      button(column.title, () => {
        order = {column: at, down: order && order.column === at ? !order.down : Boolean(column.number)};
        draw();
      }, {title: column.hint}));
    return head;
  });
  const more = button("", () => {
    shown = Infinity;
    draw();
  }, {class: "more"});
  const table = el("table", {class: style}, el("caption", {class: "unseen"}, caption), el("thead", {}, el("tr", {}, heads)), body);

  function cell_class(column) {
    return [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ") || null;
  }

  function line_of(row) {
    let made = lines.get(row);
    if (made) return made;
    made = {opened: null, open: false};
    const cells = columns.map((column, at) => {
      let content = column.cell ? column.cell(row) : column.value(row);
      if (at === 0 && details) {
        made.opener = button(content, () => made.toggle(), {class: "opener", "aria-expanded": "false"});
        content = made.opener;
      }
      return el(at === 0 ? "th" : "td", {class: cell_class(column), scope: at === 0 ? "row" : null}, content);
    });
    made.line = el("tr", {id: key ? key(row) : null, class: details ? "opens" : null}, cells);
    made.toggle = (open = !made.open) => {
      if (open && !made.opened) {
        made.opened = el("tr", {class: "opened"}, el("td", {colspan: columns.length}, details(row)));
      }
      made.open = open;
      made.opener.setAttribute("aria-expanded", String(open));
      if (open) made.line.after(made.opened);
      else if (made.opened) made.opened.remove();
    };
    if (details) {
      made.line.addEventListener("click", (event) => {
        if (!event.target.closest("button, a") && !String(getSelection())) made.toggle();
      });
    }
    lines.set(row, made);
    return made;
  }

  function compare(a, b) {
    const column = columns[order.column];
    const x = column.value(a), y = column.value(b);
    // What was not measured stands last, whichever way the others go.
    if (column.number) {
      if (!known(x) || !known(y)) return Number(known(y)) - Number(known(x));
      return order.down ? y - x : x - y;
    }
    const way = String(x ?? "") < String(y ?? "") ? -1 : String(x ?? "") > String(y ?? "") ? 1 : 0;
    return order.down ? -way : way;
  }

  function draw() {
    heads.forEach((head, at) => {
      const is = order && order.column === at;
      if (is) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const kept = words ? rows.filter((row) => find.matches(search(row), words)) : rows.slice();
    if (order) kept.sort(compare);
    const drawn = [];
    seen = kept.slice(0, shown);
    for (const row of seen) {
      const line = line_of(row);
      drawn.push(line.line);
      if (line.open) drawn.push(line.opened);
    }
    if (!drawn.length) {
      drawn.push(el("tr", {}, el("td", {colspan: columns.length, class: "muted"}, "No name here has what you look for.")));
    }
    body.replaceChildren(...drawn);
    more.hidden = kept.length <= shown;
    more.textContent = `Show all ${count_text(kept.length)} rows`;
    return kept.length;
  }

  if (search) {
    find.parts.push((asked) => {
      words = asked;
      const count = draw();
      return asked ? count : 0;
    });
  }
  if (details) {
    paper.openers.add(() => {
      const most_opened = 12;  // those that stand first
      const closed = seen.slice(0, most_opened).map(line_of).filter((line) => !line.open && line.line.isConnected);
      closed.forEach((line) => line.toggle(true));
      return () => closed.forEach((line) => line.toggle(false));
    });
  }
  draw();
  const node = el("div", {class: "table"}, table, more);
  /** Opens a row, wherever it stands. */
  node.reveal = (row) => {
    if (!line_of(row).line.isConnected) {
      find.set("");
      shown = Infinity;
      draw();
    }
    if (details) line_of(row).toggle(true);
    return line_of(row).line;
  };
  return node;
}

/** A share as a bar and a number: "▮▮▮ 42 %". */
const metered = (part, variable, words = null) => (!known(part) ? words ?? dash
  : el("span", {class: words === null ? "metered" : "metered timed"}, bar(part, variable), el("span", {}, words ?? percent_text(part))));

/** A bar as long as `part` of the column; the number stands beside it. */
const bar = (part, variable = "--accent") =>
  el("span", {class: "meter", "aria-hidden": "true"},
    el("span", {style: `width:${clamp((part || 0) * 100, 0, 100).toFixed(2)}%;background:var(${variable})`}));
