// What an ε means: the plan, every unit, and measured runs.

import { get, latest, post } from "./api.js";
import { $, element, epsilonText, line, number, options, problem, svg, ticks } from "./dom.js";

const EPSILONS = [0.5, 1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30];
const TASKS = [["imputation", "Filling gaps"], ["forecast", "Forecasting a day"], ["cold_start_24", "A home known for one day"],
  ["cold_start_48", "A home known for two days"], ["long_gap", "Gaps of 2 to 5 days"]];
const PAUSE = 400, LEFT = 46, RIGHT = 14, TOP = 14, BOTTOM = 44;
const asking = latest();
let timer, measured = null;

const epsilon = () => EPSILONS[Number($("epsilon").value)];
const unit = () => ($("unit-series").checked ? "series" : "week");
const unitWords = () => (unit() === "week" ? "a week of a home" : "a whole home");

function said() {
  $("epsilon-now").textContent = epsilon();
  $("epsilon").setAttribute("aria-valuetext", `ε = ${epsilon()} for ${unitWords()}`);
}

function changed() {
  said();
  drawMeasured();
  $("plan-status").textContent = "Computing the plan … this takes some seconds.";
  clearTimeout(timer);
  timer = setTimeout(plan, PAUSE);
}

async function plan() {
  problem($("plan-problem"), null);
  $("plan-result").setAttribute("aria-busy", "true");
  try {
    const found = await asking.ask((signal) => post("/api/plan", {
      homes: Number($("plan-homes").value), weeks: Number($("plan-weeks").value), epsilon: epsilon(), unit: unit(),
    }, signal));
    if (!found) return;
    show(found);
    $("plan-status").textContent = "";
  } catch (error) {
    $("plan-status").textContent = "";
    problem($("plan-problem"), error);
  }
  $("plan-result").removeAttribute("aria-busy");
}

function show(found) {
  $("plan-result").hidden = false;
  $("plan-examples").textContent = found.examples.toLocaleString("en");
  $("plan-noise").textContent = number(found.noise_multiplier);
  $("plan-steps").textContent = found.steps;
  $("plan-batch").textContent = found.batch_size.toLocaleString("en");
  $("plan-words").textContent = `Signal-to-noise ${number(found.signal_to_noise)}: ${number(found.share_of_limit * 100, 2)} % of what full batches would give. `
    + `Learning rate: ${found.expectation}. ${found.warning ?? ""}`;
  $("plan-units").replaceChildren(...found.units.map((one) => element("tr", one.unit === unit() ? { class: "own" } : {},
    element("th", { scope: "row" }, one.words, element("span", { class: "why" }, one.reason)),
    element("td", { class: "number" }, epsilonText(one.epsilon)), element("td", {}, one.protection))));
}

// Dots: measured runs at their ε; the ends are the shipped model as it is, and the same tuned without privacy.
function drawMeasured() {
  const place = $("measured"), { width, height } = place.getBoundingClientRect();
  if (!measured || width < 10) return;
  const rows = measured.units[unit()], task = $("task").value;
  const logs = EPSILONS.map(Math.log), low = logs[0] - 0.9, high = logs.at(-1) + 0.9;
  const x = (row) => place_of(row.epsilon === null ? (row.tuned ? high : low) : Math.log(row.epsilon));
  const place_of = (at) => LEFT + ((at - low) / (high - low)) * (width - LEFT - RIGHT - 30) + 15;
  const all = rows.flatMap((row) => [row.low[task], row.high[task]]);
  const bottom = Math.min(...all) - 0.01, top = Math.max(1.01, ...all);
  const y = (value) => TOP + (1 - (value - bottom) / (top - bottom)) * (height - TOP - BOTTOM);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const text = (at, level, words, anchor = "middle") => {
    const made = svg("text", { x: at, y: level, "text-anchor": anchor });
    made.textContent = words;
    drawing.append(made);
  };
  for (const value of ticks(bottom, top, 4)) {
    drawing.append(svg("line", { class: value === 1 ? "one" : "axis", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
    text(LEFT - 7, y(value) + 4, number(value), "end");
  }
  for (const value of width < 480 ? [1, 3, 8] : [0.5, 1, 3, 8, 30]) text(place_of(Math.log(value)), height - 24, `${value}`);
  text(place_of(low), height - 24, "untuned");
  text(place_of(high), height - 24, "ε = ∞");
  text((LEFT + width - RIGHT) / 2, height - 6, "ε per unit");
  drawing.append(svg("line", { class: "now", x1: place_of(Math.log(epsilon())), x2: place_of(Math.log(epsilon())), y1: TOP - 6, y2: height - BOTTOM + 4 }));
  for (const row of rows) {
    drawing.append(svg("path", { class: "whisker", d: line([[x(row), y(row.low[task])], [x(row), y(row.high[task])]]) }));
    drawing.append(svg("circle", { class: row.seeds > 1 ? "dot" : "hollow", cx: x(row), cy: y(row.ratio[task]), r: 5 }));
  }
  place.replaceChildren(drawing);
  words(rows, task);
}

function words(rows, task) {
  const runs = rows.filter((row) => row.epsilon !== null);
  const nearest = runs.reduce((best, row) => (Math.abs(Math.log(row.epsilon / epsilon())) < Math.abs(Math.log(best.epsilon / epsilon())) ? row : best));
  const without = rows.find((row) => row.tuned && row.epsilon === null), untuned = rows.find((row) => !row.tuned);
  const gain = (row) => `${number((1 - row.ratio[task]) * 100, 2)} %`;
  $("measured-words").textContent = `Smaller is better; 1 is the free distribution, which costs nothing. The measured run nearest to your ε, ε = ${nearest.epsilon} for `
    + `${unitWords()}, has a CRPS ${gain(nearest)} below it; the shipped model as it is ${gain(untuned)}; tuned without privacy ${gain(without)}.`;
  $("measured").setAttribute("aria-label", `CRPS over that of the free distribution: ${rows.map((row) =>
    `${row.epsilon === null ? (row.tuned ? "without privacy" : "untuned") : `ε ${row.epsilon}`} ${number(row.ratio[task])}`).join(", ")}`);
}

export async function startBudget() {
  $("epsilon").max = EPSILONS.length - 1;
  $("epsilon").value = EPSILONS.indexOf(3);
  options($("task"), TASKS);
  said();
  for (const id of ["epsilon", "plan-homes", "plan-weeks", "unit-week", "unit-series"]) $(id).addEventListener("input", changed);
  $("task").addEventListener("change", drawMeasured);
  new ResizeObserver(drawMeasured).observe($("measured"));
  try {
    measured = await get("/api/measured");
    $("measured-source").textContent = `${measured.source} Lines: lowest to highest seed; hollow: one seed. Other data will differ.`;
  } catch (error) {
    problem($("plan-problem"), error);
  }
  changed();
}
