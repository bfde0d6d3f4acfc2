// The roofline: a kernel's speed over how much it computes for each byte, under what the machine can do at most.

const roofline_height = 340;

function roofline(data, rates, total) {
  const points = data.kernels.map((kernel) => ({kernel, ...rates.get(kernel), part: divided(kernel.seconds, total) || 0}))
    .filter((point) => on_paper(point.intensity) && on_paper(point.flops_rate)).sort((a, b) => b.part - a.part).slice(0, 400);
  if (!points.length) return null;
  const {bytes, flops} = data.limits;
  const roofed = on_paper(bytes) && on_paper(flops) && on_paper(flops / bytes);
  const range = roofline_range(points, roofed ? {bytes, flops} : null);
  const words = roofed
    ? `Left of the bend the memory's ${byte_rate_text(bytes)} bound a kernel, right of it the ${flop_rate_text(flops)} ` +
      "of the processor. Areas are shares of the time."
    : "The limits of this machine were not measured, so there is no roof. Areas are shares of the time.";
  return el("figure", {class: "roofline"},
    responsive_svg(roofline_height, "Roofline of the kernels", (width) => draw_roofline(points, range, roofed ? {bytes, flops} : null, width)),
    el("figcaption", {class: "muted"}, words));
}

// What no machine does was not measured right, and would leave nothing to see of the others.
const on_paper = (value) => value > 1e-12 && value < 1e24;

/** Whole powers of ten about all points, and about the bend of the roof where it is not far. */
function roofline_range(points, limits) {
  const xs = points.map((point) => point.intensity), ys = points.map((point) => point.flops_rate);
  if (limits) {
    xs.push(limits.flops / limits.bytes * 3, limits.flops / limits.bytes / 10);
    ys.push(limits.flops * 1.5);
  }
  const low = (values) => 10 ** Math.floor(Math.log10(Math.min(...values)) - 0.15);
  const high = (values) => 10 ** Math.ceil(Math.log10(Math.max(...values)) + 0.1);
  return {x: [low(xs), high(xs)], y: [low(ys), high(ys)]};
}

function draw_roofline(points, range, limits, width) {
  const left = 78, right = 12, top = 14, bottom = roofline_height - 44;
  const along = (value, [low, high]) => Math.log(value / low) / Math.log(high / low);
  const x = (value) => left + (width - left - right) * along(value, range.x);
  const y = (value) => bottom - (bottom - top) * along(value, range.y);
  const labels = [];
  return [
    value_axis(y, log_ticks(...range.y, 7), left, width - right, flop_rate_text),
    log_ticks(...range.x, width / 80).map((tick) => [svg("line", {x1: x(tick), x2: x(tick), y1: top, y2: bottom, class: "grid"}),
      svg("text", {x: x(tick), y: bottom + 17, class: "tick", "text-anchor": anchor(x(tick), width)}, number_text(tick))]),
    svg("text", {x: (left + width - right) / 2, y: bottom + 37, class: "tick", "text-anchor": "middle"}, "flop for each byte"),
    limits && svg("path", {class: "roof", d: roof_path(limits, range, x, y)}),
    points.map((point) => {
      const name = shortened(point.kernel.name, 200), speed = flop_rate_text(point.flops_rate);
      return svg("a", {href: "#kernel-" + point.kernel.id, "aria-label": `${name}: ${speed}`},
        svg("circle", {cx: x(point.intensity), cy: y(point.flops_rate), r: radius_of(point).toFixed(1), class: "dot"}),
        svg("title", {}, `${name}\n${speed}, ${number_text(point.intensity)} flop for each byte, ` +
          `${percent_text(point.part)} of the time in kernels`));
    }),
    points.slice(0, 8).map((point) =>
      label_beside(labels, points, point, x, y, {left, right: width - right, top, bottom}, limits)),
  ];
}

const radius_of = (point) => 4 + 22 * Math.sqrt(point.part);

/** Up along the memory's slope, then level: cut off where the picture ends. */
function roof_path({bytes, flops}, {x: [low, high], y: [bottom]}, x, y) {
  const bend = flops / bytes;
  const from = Math.max(low, bottom / bytes);
  if (from >= bend) return `M${x(low)} ${y(flops)}L${x(high)} ${y(flops)}`;
  return `M${x(from)} ${y(from * bytes)}L${x(bend)} ${y(flops)}L${x(high)} ${y(flops)}`;
}

/** A name right of its dot, or left of it, or above or below; none where all of that is taken. */
function label_beside(taken, points, point, x, y, room, limits) {
  const words = shortened(point.kernel.name, 28);
  measuring.font = canvas_font(11);
  const wide = measuring.measureText(words).width + 2, high = 14, radius = radius_of(point);
  const cx = x(point.intensity), cy = y(point.flops_rate);
  const places = [[cx + radius + 4, cy - 7], [cx - radius - 4 - wide, cy - 7],
    [cx - wide / 2, cy - radius - 17], [cx - wide / 2, cy + radius + 3]];
  const inside = (px, py) => px >= room.left && px + wide <= room.right && py >= room.top - 4 && py + high <= room.bottom;
  const on_words = (px, py) =>
    taken.some((box) => px < box.right && px + wide > box.left && py < box.bottom && py + high > box.top);
  const on_dots = (px, py) => points.some((other) => other !== point &&
    near_box(x(other.intensity), y(other.flops_rate), radius_of(other), px, py, wide, high));
  const free = places.find(([px, py]) => inside(px, py) && !on_words(px, py) && !on_dots(px, py) &&
    !crosses_roof(limits, x, y, px, py, wide, high));
  if (!free) return null;
  taken.push({left: free[0], right: free[0] + wide, top: free[1], bottom: free[1] + high});
  return svg("text", {x: free[0], y: free[1] + 11, class: "label"}, words);
}

function crosses_roof(limits, x, y, left, top, wide, high) {
  if (!limits) return false;
  // The roof at the box's ends, found by asking the axis backwards: both axes are straight in the logarithm.
  const [one, ten] = [x(1), x(10)];
  const roof_at = (px) => y(Math.min(limits.flops, limits.bytes * 10 ** ((px - one) / (ten - one))));
  return roof_at(left) > top - 2 && roof_at(left + wide) < top + high + 2;
}

const near_box = (cx, cy, radius, left, top, wide, high) =>
  Math.hypot(cx - clamp(cx, left, left + wide), cy - clamp(cy, top, top + high)) < radius + 1;
