// Elements made of data. Nothing is ever parsed as HTML: whatever a name holds, it is text.

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** Names may have ten thousand characters; where there is room for some, these are they. */
function shortened(text, most = 80) {
  const whole = String(text ?? "");
  if (whole.length <= most) return whole;
  // By code points: half an emoji is no character.
  return [...whole.slice(0, most)].slice(0, -1).join("") + "…";
}

/** A name on one line, cut off by the style sheet where the room ends; the whole of it on hover. */
const name_text = (text, style = "") =>
  el("span", {class: "name " + style, title: shortened(text, 400)}, shortened(text, 200) || "(no name)");

/** Whether name_text may have cut it off. */
const is_long = (text) => String(text ?? "").length > 24;

const button = (text, act, attributes) => el("button", {type: "button", ...attributes, onclick: act}, text);

const plural = (count, one, many = one + "s") => `${count_text(count)} ${count === 1 ? one : many}`;

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const known = (value) => typeof value === "number" && Number.isFinite(value);
