// Synthetic homes, each a small picture.

import { latest, post } from "./api.js";
import { $, element, line, number, problem, saveTable, svg } from "./dom.js";

const question = latest();
let made = null;

function picture(name, values, target) {
  const width = 300, height = 92, stride = Math.max(1, Math.floor(values.length / 700));
  const highest = values.reduce((most, value) => Math.max(most, value), 1e-9);
  const points = values.filter((_, at) => at % stride === 0)
    .map((value, at, all) => [(at / Math.max(all.length - 1, 1)) * width, height - 4 - (Math.max(value, 0) / highest) * (height - 8)]);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const words = `mean ${number(mean)}, highest ${number(highest)}`;
  return element("figure", {},
    svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${name}: ${target}, ${words}` },
      svg("path", { class: "seen", d: line(points), "vector-effect": "non-scaling-stroke" })),
    element("figcaption", {}, `${name} · ${words}`));
}

function show() {
  const [target, homes] = Object.entries(made.values)[0];
  const shown = homes.slice(0, 60);
  $("homes-grid").replaceChildren(...shown.map((values, at) => picture(made.homes[at], values, target)));
  $("homes-download").hidden = false;
  $("homes-status").textContent = `${homes.length} homes of ${made.times.length.toLocaleString("en")} rows, each drawn to its own scale`
    + (shown.length < homes.length ? `; the first ${shown.length} are shown.` : ".");
}

function download() {
  const targets = Object.keys(made.values);
  const rows = made.homes.flatMap((home, at) => made.times.map((time, row) => [home, time, ...targets.map((name) => made.values[name][at][row])]));
  saveTable("synthetic-homes.csv", ["home", "time", ...targets], rows);
}

async function generate(event) {
  event.preventDefault();
  problem($("homes-problem"), null);
  $("homes-status").textContent = "Making homes … the first ones take longest.";
  $("homes-stop").hidden = false;
  try {
    const found = await question.ask((signal) => post("/api/generate", {
      homes: Number($("homes-count").value), days: Number($("homes-days").value), start: $("homes-start").value, seed: Number($("homes-seed").value),
    }, signal));
    if (found) { made = found; show(); } else $("homes-status").textContent = "Stopped.";
  } catch (error) {
    $("homes-status").textContent = "";
    problem($("homes-problem"), error);
  }
  $("homes-stop").hidden = !question.busy;
}

export function startHomes() {
  $("homes-form").addEventListener("submit", generate);
  $("homes-stop").addEventListener("click", () => question.stop());
  $("homes-download").addEventListener("click", download);
}
