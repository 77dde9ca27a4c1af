// Numbers as people read them.

const number = new Intl.NumberFormat("en");

export const count = (value) => (value == null ? "–" : number.format(value));

/** A number with a prefix: 1500 → "1.5 k". */
function prefixed(value, unit) {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let step = 0;
  while (value >= 999.5 && step < prefixes.length - 1) {
    value /= 1000;
    step += 1;
  }
  const digits = step === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${prefixes[step]}${unit}`;
}

/** A rate in bits per second. */
export const rate = (bits) => (bits == null ? "–" : prefixed(bits, "bit/s"));

export const bytes = (value) => (value == null ? "–" : prefixed(value, "B"));

/** A time in seconds: "3 min". */
export function seconds(value) {
  if (value == null) return "–";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (value >= 2 * size) return `${Math.floor(value / size)} ${unit}`;
  }
  return `${Math.floor(value)} s`;
}

/** The seconds of a time as people write it: "90", "30 min", "2h". None if it is none. */
export function readSeconds(text) {
  const [, value, unit] = text.match(/^(\d+) ?(s|min|h|d)?$/) ?? [];
  return value ? Number(value) * { s: 1, min: 60, h: 3600, d: 86400 }[unit ?? "s"] : null;
}

/** A time of day, from milliseconds since 1970. */
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

/** A time of day, with its date unless it is today, from milliseconds since 1970. */
export function time(ms) {
  const at = new Date(ms);
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? clock(ms) : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${clock(ms)}`;
}

/** The zone of the times that are shown: "UTC+01:00". */
export function zone() {
  const minutes = -new Date().getTimezoneOffset();
  const two = (value) => String(value).padStart(2, "0");
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return minutes === 0 ? "UTC" : `UTC${minutes < 0 ? "-" : "+"}${two(hours)}:${two(rest)}`;
}

/** A day, from seconds since 1970: "2030-01-31". */
export const day = (s) => new Date(s * 1000).toISOString().slice(0, 10);

/** A plural: plural(2, "switch", "switches"). */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
