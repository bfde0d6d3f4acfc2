// Where the marks of an axis stand.

/** About `count` round numbers from `low` to `high`. */
function linear_ticks(low, high, count) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
  const ticks = [];
  const first = Math.ceil(low / step - 1e-9);
  for (let at = first; at * step <= high + step * 1e-9 && ticks.length < 200; ++at) ticks.push(at * step);
  return ticks;
}

/** As linear_ticks, for bytes: round in powers of two. */
function byte_ticks(low, high, count) {
  if (!(high > low)) return [low];
  const step = 2 ** Math.ceil(Math.log2((high - low) / Math.max(1, count)));
  const ticks = [];
  for (let at = Math.ceil(low / step); at * step <= high && ticks.length < 200; ++at) ticks.push(at * step);
  return ticks;
}

/** Powers of ten from `low` to `high`, thinned out to about `count`. */
function log_ticks(low, high, count) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, count)));
  const ticks = [];
  for (let power = first; power <= last; power += step) ticks.push(10 ** power);
  return ticks;
}

/** Times on an axis up to `last`, which says their unit, with as many digits as their distance needs. */
function time_tick_text(value, step, last) {
  const size = Math.max(Math.abs(last), step);
  const [factor, unit] = size >= 0.9995 ? [1, "s"] : size >= 0.9995e-3 ? [1e3, "ms"] : size >= 0.9995e-6 ? [1e6, "µs"] : [1e9, "ns"];
  const places = clamp(Math.ceil(-Math.log10(step * factor) - 1e-9), 0, 9);
  return with_minus((value * factor).toFixed(places)) + gap + unit;
}
