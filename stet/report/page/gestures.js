// What fingers, mice and wheels do over a canvas, as three things: move by pixels, zoom about a point, tap.
//
// The wheel belongs to the page until the reader has clicked into the canvas; with Ctrl, and by pinching, it zooms always.

function gestures(node, {move, zoom, tap, hover, scrolls = false}) {
  const pointers = new Map();
  let travelled = 0, pinch = 0;
  node.style.touchAction = scrolls ? "pan-y" : "none";
  const place = (event) => {
    const box = node.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return {size: Math.hypot(a[0] - b[0], a[1] - b[1]), x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2};
  };
  node.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    pointers.set(event.pointerId, place(event));
    travelled = pointers.size === 1 ? 0 : 100;
    if (pointers.size === 2) pinch = spread().size;
  });
  node.addEventListener("pointermove", (event) => {
    const now = place(event), before = pointers.get(event.pointerId);
    if (!before) {
      if (hover) hover(now[0], now[1], event);
      return;
    }
    pointers.set(event.pointerId, now);
    travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (pointers.size === 2) {
      const fingers = spread();
      if (pinch > 0 && fingers.size > 0) zoom(fingers.size / pinch, fingers.x, fingers.y);
      pinch = fingers.size;
    } else if (travelled > 4) {
      // Captured now and not before: a click must reach what was clicked.
      if (!node.hasPointerCapture(event.pointerId)) node.setPointerCapture(event.pointerId);
      node.classList.add("dragging");
      move(now[0] - before[0], now[1] - before[1]);
    }
  });
  const ends = (event) => {
    const last = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    node.classList.remove("dragging");
    if (last && event.type === "pointerup" && travelled <= 4 && tap) tap(last[0], last[1], event);
  };
  node.addEventListener("pointerup", ends);
  node.addEventListener("pointercancel", ends);
  node.addEventListener("pointerleave", (event) => {
    if (hover && !pointers.size) hover(null, null, event);
  });
  node.addEventListener("wheel", (event) => {
    const [x, y] = place(event);
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (event.ctrlKey || event.metaKey || (!sideways && document.activeElement === node)) {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      zoom(Math.exp(-clamp(event.deltaY * lines, -120, 120) * (event.ctrlKey ? 0.008 : 0.003)), x, y);
    } else if (sideways) {
      event.preventDefault();
      move(-(event.deltaX || event.deltaY), 0);
    }
  }, {passive: false});
}

/** Keys of a canvas: {"ArrowLeft": () => …}; those with Ctrl and the like stay the browser's. */
function keys(node, actions) {
  node.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
}

const tip = {
  show(lines, event) {
    const node = document.getElementById("tip");
    if (!lines) {
      node.hidden = true;
      return;
    }
    node.replaceChildren(...lines.filter(Boolean).map((line, at) => el(at ? "div" : "b", {}, line)));
    node.hidden = false;
    const box = node.getBoundingClientRect();
    node.style.left = clamp(event.clientX + 14, 4, Math.max(4, window.innerWidth - box.width - 4)) + "px";
    const below = event.clientY + 18;
    node.style.top = (below + box.height > window.innerHeight ? event.clientY - box.height - 12 : below) + "px";
  },
};
