// The kernels: where the running time went, and how near each came to what the machine can do.

/** Adds up what is known of a kernel: rates, and the larger part of the machine's limits that it reached. */
function kernel_rates(kernel, limits) {
  const bytes_rate = positive(divided(kernel.bytes, kernel.seconds));
  const flops_rate = positive(divided(kernel.flops, kernel.seconds));
  const of_memory = divided(bytes_rate, limits.bytes), of_compute = divided(flops_rate, limits.flops);
  const by_memory = (of_memory ?? 0) >= (of_compute ?? 0);
  return {bytes_rate, flops_rate, reached: by_memory ? of_memory : of_compute, bound: by_memory ? "memory" : "compute",
    intensity: positive(divided(kernel.flops, kernel.bytes))};
}

const most_chips = 24;

const positive = (value) => (value > 0 ? value : null);

function kernels_part(data) {
  const {kernels, limits} = data;
  if (!kernels.length) return null;
  const total = kernels.reduce((sum, kernel) => sum + (kernel.seconds || 0), 0);
  const rates = new Map(kernels.map((kernel) => [kernel, kernel_rates(kernel, limits)]));
  const limited = limits.bytes > 0 || limits.flops > 0;
  const columns = [
    {title: "kernel", value: (kernel) => kernel.name, cell: (kernel) => name_text(kernel.name, "mono")},
    {title: "function", wide: true, value: (kernel) => function_name(data, kernel.function),
      cell: (kernel) => name_text(function_name(data, kernel.function) || dash, "mono muted narrow")},
    {title: "runs", number: true, wide: true, value: (kernel) => kernel.count, cell: (kernel) => count_text(kernel.count)},
    {title: "per run", number: true, wide: true, value: (kernel) => divided(kernel.seconds, kernel.count),
      cell: (kernel) => seconds_text(divided(kernel.seconds, kernel.count))},
    {title: "time", hint: "All runs together", number: true, value: (kernel) => kernel.seconds,
      cell: (kernel) => seconds_text(kernel.seconds)},
    {title: "share", hint: "Of the time in kernels", number: true, value: (kernel) => kernel.seconds,
      cell: (kernel) => metered(divided(kernel.seconds, total), "--kind-run")},
    {title: "memory", hint: "Bytes read and written in a second", number: true, wide: true,
      value: (kernel) => rates.get(kernel).bytes_rate, cell: (kernel) => byte_rate_text(rates.get(kernel).bytes_rate)},
    {title: "compute", hint: "Floating point operations in a second", number: true, wide: true,
      value: (kernel) => rates.get(kernel).flops_rate, cell: (kernel) => flop_rate_text(rates.get(kernel).flops_rate)},
  ];
  if (limited) {
    columns.push({title: "reached", hint: "Of this machine's measured limit, the nearer one of the two", number: true,
      value: (kernel) => rates.get(kernel).reached, cell: (kernel) => reached_text(rates.get(kernel))});
  }
  const table = make_table({
    caption: "Kernels", rows: kernels, columns, sorted: {column: 4, down: true}, most: 30,
    key: (kernel) => "kernel-" + kernel.id,
    search: (kernel) => `${kernel.name} ${function_name(data, kernel.function)} ${kernel.places.map((one) => one.scope).join(" ")}`,
    details: (kernel) => kernel_details(data, kernel, rates.get(kernel)),
  });
  links.kernels = table;
  return [roofline(data, rates, total), table];
}

const function_name = (data, which) => function_of(data, which)?.name ?? (typeof which === "string" ? which : "");

const reached_text = ({reached, bound}) => (reached === null ? dash : el("span", {class: "metered"},
  el("span", {class: "muted small"}, bound, " "), metered(reached, bound === "memory" ? "--kind-stage" : "--kind-run")));

function kernel_details(data, kernel, {bytes_rate, flops_rate, intensity}) {
  const {limits} = data, its = function_of(data, kernel.function);
  const of_limit = (rate, limit, text) => limit > 0 &&
    el("span", {class: "muted"}, ` ${percent_text(rate / limit)} of this machine's ${text(limit)}`);
  const each = (amount) => divided(amount, kernel.count);
  const rows = [
    ["runs", [count_text(kernel.count), known(each(kernel.seconds)) && `, ${seconds_text(each(kernel.seconds))} each`]],
    bytes_rate && ["memory", [`${bytes_text(each(kernel.bytes))} a run, `, el("b", {}, byte_rate_text(bytes_rate)),
      of_limit(bytes_rate, limits.bytes, byte_rate_text)]],
    flops_rate && ["compute", [`${flops_text(each(kernel.flops))} a run, `, el("b", {}, flop_rate_text(flops_rate)),
      of_limit(flops_rate, limits.flops, flop_rate_text)]],
    intensity && ["intensity", `${number_text(intensity)} flop for each byte`],
    known(kernel.threads) && ["threads", count_text(kernel.threads)],
    kernel.made_of.length > 0 && ["made of", el("span", {class: "chips"},
      kernel.made_of.slice(0, most_chips).map((op) => el("code", {class: "chip"}, shortened(op, 200))),
      kernel.made_of.length > most_chips && el("span", {class: "muted"}, `and ${count_text(kernel.made_of.length - most_chips)} more`))],
    kernel.not_fused && ["not fused", shortened(Array.isArray(kernel.not_fused) ? kernel.not_fused.join("; ") : kernel.not_fused, 2000)],
    kernel.places.length > 0 && ["computes", kernel.places.map((one) => el("div", {class: "computes"},
      one.scope && el("span", {}, shortened(one.scope, 200)), place(data, one.file, one.line)))],
    its && ["function", el("a", {href: "#function-" + its.id, class: "to"}, shortened(its.name, 80))],
  ];
  return el("div", {class: "details"},
    is_long(kernel.name) && el("h4", {class: "mono wrap"}, shortened(kernel.name, 12000)), pairs(rows));
}

const pairs = (rows) => el("dl", {class: "pairs"},
  rows.filter(Boolean).map(([word, value]) => [el("dt", {}, word), el("dd", {}, value)]));
