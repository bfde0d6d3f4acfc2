// Training: a curve for each thing that was measured, training and validation together, and the epochs as a table.

const curve_height = 180;

function training_part(data) {
  const fits = data.training.filter((fit) => fit.epochs.length);
  if (!fits.length) return null;
  return fits.map((fit) => el("div", {class: "training"},
    (fits.length > 1 || fit.name) && el("h3", {class: "wrap"}, shortened(fit.name, 400) || "training"),
    el("div", {class: "charts"}, measured_things(fit).map((thing) => curve(fit, thing))),
    epochs_table(fit)));
}

/** "loss" and "val_loss" are two lines of one picture. */
function measured_things(fit) {
  const names = values_of(fit).filter((name) => fit.epochs.some((epoch) => known(object_of(epoch.values)[name])));
  const things = new Map();
  for (const name of names) {
    const thing = name.replace(/^val_/, "");
    things.set(thing, [...(things.get(thing) || []), name]);
  }
  return [...things].map(([name, lines]) => ({name, lines})).slice(0, 40);
}

const values_of = (fit) => [...new Set(fit.epochs.flatMap((epoch) => Object.keys(object_of(epoch.values))))];

function curve(fit, {name, lines}) {
  const {epochs} = fit;
  const number_of = (at) => epochs[at].epoch ?? at + 1;
  const value = (line, at) => object_of(epochs[at].values)[line];
  const all = lines.flatMap((line) => epochs.map((epoch, at) => value(line, at))).filter(known);
  const least = all.reduce((a, b) => Math.min(a, b)), most = all.reduce((a, b) => Math.max(a, b));
  if (!known(most - least)) return null;  // no axis holds that
  const slack = (most - least) * 0.06 || Math.abs(most) * 0.06 || 1;
  const [low, high] = [least - slack, most + slack];
  const margin = {left: 62, right: 14};
  const best = best_of(fit, lines[lines.length - 1]);
  const frame = responsive_svg(curve_height, `${shortened(name)} by epoch`, (width) => {
    const top = 8, bottom = curve_height - 24, room = width - margin.left - margin.right;
    const x = (at) => margin.left + (epochs.length > 1 ? room * at / (epochs.length - 1) : room / 2);
    const y = (number) => bottom - (bottom - top) * (number - low) / (high - low);
    const ticks = linear_ticks(low, high, 4);
    const every = Math.max(1, Math.ceil(epochs.length / Math.max(1, room / 34)));
    return [
      value_axis(y, ticks, margin.left, width - margin.right, number_text),
      svg("line", {x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom, class: "axis"}),
      epochs.map((epoch, at) => at % every === 0 &&
        svg("text", {x: x(at), y: bottom + 16, class: "tick", "text-anchor": "middle"}, count_text(number_of(at)))),
      lines.map((line) => {
        const points = epochs.map((epoch, at) => [x(at), known(value(line, at)) ? y(value(line, at)) : null]);
        const style = line.startsWith("val_") ? "curve validation" : "curve";
        return [svg("path", {class: style, d: path_through(points)}),
          epochs.length <= 40 && points.filter((point) => point[1] !== null).map(([px, py]) =>
            svg("circle", {cx: px, cy: py, r: 2.6, class: style + " point"}))];
      }),
    ];
  });
  const key = (line) => el("span", {class: "key"},
    el("span", {class: "line-key" + (line.startsWith("val_") ? " validation" : ""), "aria-hidden": "true"}),
    el("b", {}, name_text(line)), " ", number_text(last_known(epochs.map((epoch, at) => value(line, at)))));
  return el("figure", {class: "chart-box"},
    el("figcaption", {}, lines.map(key),
    best && el("span", {class: "muted"}, best)),
    readout(frame, (x, width) => {
      const at = Math.round(clamp((x - margin.left) / (width - margin.left - margin.right), 0, 1) * (epochs.length - 1));
      return `epoch ${count_text(number_of(at))}: ` + lines.map((line) => `${shortened(line, 60)} ${number_text(value(line, at))}`).join(", ");
    }));
}

const last_known = (values) => values.filter(known).pop() ?? null;

/** Losses and errors are best where they are least. Of other things nobody says which way is better. */
function best_of(fit, line) {
  if (!/loss|error/i.test(line)) return null;
  let best = -1;
  const value = (at) => object_of(fit.epochs[at].values)[line];
  fit.epochs.forEach((epoch, at) => {
    if (known(value(at)) && (best < 0 || value(at) < value(best))) best = at;
  });
  return best < 0 || best === fit.epochs.length - 1 ? null : `least in epoch ${count_text(fit.epochs[best].epoch ?? best + 1)}`;
}

function epochs_table(fit) {
  const waited = fit.epochs.some((epoch) => known(epoch.waited));
  return make_table({
    caption: "Epochs", rows: fit.epochs, most: 30, style: "compact",
    columns: [
      {title: "epoch", number: true, value: (epoch) => epoch.epoch, cell: (epoch) => count_text(epoch.epoch)},
      {title: "batches", number: true, wide: true, value: (epoch) => epoch.batches, cell: (epoch) => count_text(epoch.batches)},
      {title: "time", number: true, value: (epoch) => epoch.seconds, cell: (epoch) => seconds_text(epoch.seconds)},
      {title: "per batch", number: true, wide: true, value: (epoch) => divided(epoch.seconds, epoch.batches),
        cell: (epoch) => seconds_text(divided(epoch.seconds, epoch.batches))},
      waited && {title: "waited", hint: "For data", number: true, value: (epoch) => epoch.waited,
        cell: (epoch) => [seconds_text(epoch.waited), el("span", {class: "muted small"}, " ", percent_text(divided(epoch.waited, epoch.seconds)))]},
      ...values_of(fit).slice(0, 20).map((name) => {
        const value = (epoch) => object_of(epoch.values)[name];
        const text = column_text(fit.epochs.map(value));
        return {title: shortened(name, 40), number: true, value, cell: (epoch) => text(value(epoch))};
      }),
    ].filter(Boolean),
  });
}
