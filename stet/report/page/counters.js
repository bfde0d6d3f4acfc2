// Memory over time; how often caches found what was looked for; the other counters. Each keeps its value until it is
// counted again.

const counter_height = 132;

function counters_part(data) {
  const counters = data.counters.map(read_counter).filter((counter) => counter.time.length);
  const caches = data.caches.filter((cache) => cache.of > 0);
  if (!counters.length && !caches.length) return null;
  const last = Math.max(0, ...counters.map((counter) => counter.time[counter.time.length - 1]));
  const end = Math.max(data.program.seconds || 0, last) || 1;
  const charts = (some) => el("div", {class: "charts"}, some.map((counter) => counter_chart(counter, end)));
  const memory = counters.filter((counter) => counter.unit === "bytes"), others = counters.filter((counter) => counter.unit !== "bytes");
  return el("div", {class: "counters"}, memory.length > 0 && charts(memory), caches.length > 0 && caches_table(caches),
    others.length > 0 && folded(el("span", {}, `${plural(others.length, "counter")} over time`), () => charts(others),
      {style: "inner", open: !memory.length && !caches.length}));
}

const caches_table = (caches) => make_table({
  caption: "Caches", rows: caches, style: "compact",
  columns: [
    {title: "found again", value: (cache) => cache.name, cell: (cache) => name_text(cache.name)},
    {title: "found", number: true, value: (cache) => cache.found, cell: (cache) => count_text(cache.found)},
    {title: "of", number: true, value: (cache) => cache.of, cell: (cache) => count_text(cache.of)},
    {title: "share", number: true, value: (cache) => divided(cache.found, cache.of),
      cell: (cache) => metered(divided(cache.found, cache.of), "--kind-run")},
  ],
});

function read_counter(counter) {
  const time = numbers_of(counter.time, Float64Array), value = numbers_of(counter.value, Float64Array);
  const count = Math.min(time.length, value.length);
  const counted = (_, at) => Number.isFinite(time[at]) && Number.isFinite(value[at]);
  return {...counter, time: time.subarray(0, count).filter(counted), value: value.subarray(0, count).filter(counted)};
}

function counter_chart(counter, end) {
  const {time, value, unit} = counter;
  let low = 0, high = 0, highest = 0;
  for (let at = 0; at < value.length; ++at) {
    low = Math.min(low, value[at]);
    if (value[at] > high) {
      high = value[at];
      highest = at;
    }
  }
  const text = (number) => unit_text(number, unit);
  const margin = {left: 78, right: 8};
  const frame = responsive_svg(counter_height, `${shortened(counter.name)} over time`, (width) => {
    const top = 8, bottom = counter_height - 24;
    const room = width - margin.left - margin.right;
    const x = (at) => margin.left + room * at / end;
    const y = (number) => bottom - (bottom - top) * (number - low) / ((high - low) * 1.04 || 1);
    const whole = value.every(Number.isInteger);
    const ticks = unit === "bytes" ? byte_ticks(low, high, 4)
      : linear_ticks(low, high, 4).filter((tick) => !whole || Math.abs(tick - Math.round(tick)) < 1e-9);
    const points = steps_of(time, value, Math.ceil(room), end).map(([at, number]) => [x(at), y(number)]);
    const line = path_through(points), ground = y(Math.max(low, 0));
    return [value_axis(y, ticks, margin.left, width - margin.right, text),
      svg("path", {class: "counter-area", d: `${line}L${points[points.length - 1][0].toFixed(1)} ${ground}L${points[0][0].toFixed(1)} ${ground}Z`}),
      svg("path", {class: "counter-line", d: line}), time_axis(x, 0, end, bottom, width)];
  });
  return el("figure", {class: "chart-box"},
    el("figcaption", {}, el("b", {}, name_text(counter.name)),
      el("span", {class: "muted"}, `most ${text(high)} at ${seconds_text(time[highest])}`)),
    readout(frame, (x, width) => {
      const at = lower_bound(time, (x - margin.left) / (width - margin.left - margin.right) * end + 1e-12) - 1;
      return at < 0 ? "" : `${seconds_text(time[at])}: ${text(value[at])}`;
    }));
}

/** The steps as points; where there are more than pixels, the least and the most of each pixel's time. */
function steps_of(time, value, pixels, end) {
  const points = [];
  if (time.length <= 2 * pixels) {
    time.forEach((at, k) => {
      if (k) points.push([at, value[k - 1]]);
      points.push([at, value[k]]);
    });
  } else {
    for (let column = 0, at = 0; at < time.length; ++column) {
      const until = (column + 1) * end / pixels, first = at;
      let low = Infinity, high = -Infinity;
      for (; at < time.length && (time[at] < until || column >= pixels); ++at) {
        low = Math.min(low, value[at]);
        high = Math.max(high, value[at]);
      }
      if (at > first) points.push([time[first], low], [time[first], high], [time[at - 1], value[at - 1]]);
    }
  }
  points.push([end, value[value.length - 1]]);
  return points;
}
