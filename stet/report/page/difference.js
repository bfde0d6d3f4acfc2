// What is different between two lines of text: the arguments of a trace and of the one before it.

const tokens_of = (text) => String(text ?? "").match(/[\p{L}\p{N}_.]+|\s+|[^]/gu) || [];

/** Pairs of [sort, text] with sort "=", "-" or "+". */
const difference = (before, after) => list_difference(tokens_of(before), tokens_of(after));

/** The same of two lists of texts: the longest common part is kept. */
function list_difference(a, b) {
  const same = [], end = [];
  while (a.length && b.length && a[0] === b[0]) {
    same.push(["=", a[0]]);
    a = a.slice(1);
    b = b.slice(1);
  }
  while (a.length && b.length && a[a.length - 1] === b[b.length - 1]) {
    end.unshift(["=", a[a.length - 1]]);
    a = a.slice(0, -1);
    b = b.slice(0, -1);
  }
  // The table below is as large as both together; longer ones are taken to be different altogether.
  if (a.length * b.length > 4e6) {
    return [...same, ...a.map((one) => ["-", one]), ...b.map((one) => ["+", one]), ...end];
  }
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; --i) {
    for (let j = b.length - 1; j >= 0; --j) {
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const middle = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      middle.push(["=", a[i]]);
      ++i;
      ++j;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      middle.push(["-", a[i++]]);
    } else {
      middle.push(["+", b[j++]]);
    }
  }
  return [...same, ...middle, ...end];
}

/** One side of a difference as code, with what is only there marked. */
function difference_side(pairs, mark) {
  const merged = [];
  for (const [sort, text] of pairs) {
    if (sort !== "=" && sort !== mark) continue;
    const last = merged[merged.length - 1];
    if (last && last[0] === sort) last[1] += text;
    else merged.push([sort, text]);
  }
  return el("code", {class: "wrap"}, merged.map(([sort, text]) =>
    (sort === "=" ? text : el(mark === "-" ? "del" : "ins", {}, text))));
}
