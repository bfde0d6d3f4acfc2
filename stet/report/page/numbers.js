// Numbers as people read them: three digits, a unit, and a dash for what was not measured.

const dash = "–";
const gap = "\u202f";

function digits(value) {
  const size = Math.abs(value);
  if (size >= 1e7) return value.toExponential(2).replace("e+", "e");
  return with_minus(value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2));
}

/** The sign that is as wide as a digit. */
const with_minus = (text) => text.replace(/^-/, "−");

function count_text(value) {
  if (!known(value)) return dash;
  if (!Number.isInteger(value)) return digits(value);
  return with_minus(String(value)).replace(/\B(?=(\d{3})+(?!\d))/g, gap);
}

function seconds_text(value) {
  if (!known(value)) return dash;
  const size = Math.abs(value);
  if (size === 0) return "0" + gap + "s";
  if (size >= 119.5 && size < 1e10) {
    const whole = Math.round(value);
    const parts = [[Math.floor(whole / 3600), "h"], [Math.floor(whole / 60) % 60, "min"], [whole % 60, "s"]];
    while (parts[0][0] === 0) parts.shift();
    return parts.slice(0, 2).map(([number, unit]) => number + gap + unit).join(" ");
  }
  if (size >= 0.9995) return digits(value) + gap + "s";
  if (size >= 0.9995e-3) return digits(value * 1e3) + gap + "ms";
  if (size >= 0.9995e-6) return digits(value * 1e6) + gap + "µs";
  return digits(value * 1e9) + gap + "ns";
}

function scaled(value, base, units) {
  if (!known(value)) return dash;
  let at = 0;
  while (Math.abs(value) >= base * 0.9995 && at + 1 < units.length) {
    value /= base;
    at += 1;
  }
  return (at === 0 && Number.isInteger(value) ? with_minus(String(value)) : digits(value)) + gap + units[at];
}

const bytes_text = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
const byte_rate_text = (value) => scaled(value, 1000, ["B/s", "KB/s", "MB/s", "GB/s", "TB/s"]);
const flop_rate_text = (value) => scaled(value, 1000, ["F/s", "KF/s", "MF/s", "GF/s", "TF/s", "PF/s"]);
const flops_text = (value) => scaled(value, 1000, ["flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop"]);

function unit_text(value, unit) {
  if (unit === "bytes") return bytes_text(value);
  if (unit === "seconds") return seconds_text(value);
  return (Number.isInteger(value) ? count_text(value) : number_text(value)) + (unit ? gap + unit : "");
}

/** A loss, an accuracy: four digits that say something, whatever the size. */
function number_text(value) {
  if (!known(value)) return dash;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return with_minus(value.toExponential(2).replace(/\.?0*e\+?/, "e"));
  return with_minus(String(Number(value.toPrecision(4))));
}

/** As number_text, but all of a column with the same number of places, so that points stand under points. */
function column_text(values) {
  const places = values.map(number_text).map((words) => (words.includes("e") ? 0 : (words.split(".")[1] || "").length));
  const most = Math.min(6, Math.max(0, ...places));
  return (value) => (known(value) && !number_text(value).includes("e") ? with_minus(value.toFixed(most)) : number_text(value));
}

/** Of a round number, as axes have them: "16 MiB", not "16.0 MiB". */
const tick_text = (words) => words.replace(/\.0+(?=\D|$)/, "");

function percent_text(part) {
  if (!known(part)) return dash;
  const percent = part * 100;
  if (percent > 0 && percent < 0.1) return "<" + gap + "0.1" + gap + "%";
  const few = Math.abs(percent) < 9.95 && percent !== 0;
  return (few ? percent.toFixed(1) : percent.toFixed(0)) + gap + "%";
}

/** "2026-11-19 10:11 UTC"; what is no date is shown as it came. */
function date_text(value) {
  const date = new Date(value ?? NaN);
  if (Number.isNaN(date.getTime())) return shortened(value, 40);
  return date.toISOString().slice(0, 16).replace("T", " ") + " UTC";
}

const divided = (value, by) => (known(value) && known(by) && by > 0 ? value / by : null);
