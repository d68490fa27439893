// Small helpers. Texts become text, never markup.

export const $ = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((one) => one !== null && one !== undefined));
  return made;
}

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential(1);
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

export const scoreText = (value) => (value === null || value === undefined ? "–" : value === 0 ? "0" : value.toPrecision(3));

export const epsilonText = (value) => (value === null ? "no limit" : number(value));

export function problem(place, error) {
  place.hidden = !error;
  place.textContent = error ? error.message : "";
  if (error && error.constructor.name !== "Problem") console.error(error);
}

export function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => element("option", { value }, text)));
  if (chosen !== undefined) select.value = chosen;
}

const cell = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export function saveTable(name, heads, rows) {
  const text = [heads, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// Round marks on an axis: about `count` of them between two numbers.
export function ticks(low, high, count) {
  const raw = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find((one) => one * power >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

// A line through points; a null lifts the pen.
export function line(points) {
  let text = "", down = false;
  for (const [x, y] of points) {
    if (y === null || Number.isNaN(y)) { down = false; continue; }
    text += `${down ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    down = true;
  }
  return text;
}
