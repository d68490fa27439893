// Fill and forecast: a series, gaps that the user makes or a horizon, the answer, and how good it was.

import { get, latest, post, send } from "./api.js";
import { SeriesChart } from "./chart.js";
import { $, element, number, options, problem, saveTable, scoreText } from "./dom.js";

const SHOWN_DAYS = 10, NARROW = 600, EVEN = 0.02, PAUSE = 350;
const opening = latest(), asking = latest();
const state = { model: null, file: null, table: null, points: null, channel: null, hidden: new Set(), answer: null, seed: 1 };
let chart, timer;

const forecasting = () => $("mode-forecast").checked;
const steps = () => Number($("horizon").value);
const times = () => state.points.times;
const origin = () => (forecasting() && $("hold").checked ? times().length - steps() : times().length);
const rowsOfDay = () => Math.max(1, Math.round(86400 / state.model.step_seconds));

// A stamp as it was sent, or counted on after the last one.
function stamp(row) {
  if (!state.points || row < 0) return null;
  const known = row < times().length ? times()[row] : state.answer?.times[state.answer.rows.indexOf(row)];
  return known ? known.slice(0, 16).replace("T", " ") : null;
}

function ranges(rows) {
  const sorted = [...rows].sort((one, other) => one - other), found = [];
  for (const row of sorted) {
    if (found.length && found.at(-1)[1] === row) found.at(-1)[1]++; else found.push([row, row + 1]);
  }
  return found;
}

function draw(view) {
  const hidden = forecasting() ? new Set(Array.from({ length: times().length - origin() }, (_, at) => origin() + at)) : state.hidden;
  const answer = state.answer && { ...state.answer, ...state.answer.channels[state.channel] };
  chart.hideable = !forecasting();
  chart.show({
    times: times(), values: state.points.values[state.channel], hidden, answer, stamp, unit: state.channel,
    ahead: forecasting() ? origin() + steps() - times().length : 0, paths: $("show-paths").checked, free: $("show-free").checked,
  }, view);
  $("clear").disabled = state.hidden.size === 0;
}

function lookAtEnd() {
  const end = forecasting() ? origin() + steps() : times().length;
  const days = $("chart").clientWidth < NARROW ? SHOWN_DAYS / 2 : SHOWN_DAYS;
  draw([Math.max(0, end - days * rowsOfDay()), end]);
}

function status(text) { $("explore-status").textContent = text; }

function forget() {
  state.answer = null;
  $("result").hidden = true;
}

function take(points, words) {
  asking.stop();
  state.points = points;
  state.hidden = new Set();
  forget();
  const channels = Object.keys(points.values);
  state.channel = channels[0];
  options($("channel"), channels.map((name) => [name, name]));
  $("channel-choice").hidden = channels.length < 2;
  $("workbench").hidden = false;
  lookAtEnd();
  const missing = points.values[state.channel].filter((value) => value === null).length;
  status(`${words}: ${points.times.length.toLocaleString("en")} rows, ${missing} missing.`);
  $("chart").setAttribute("aria-label", `${words}, from ${stamp(0)} to ${stamp(points.times.length - 1)}`);
}

function notes(lines) {
  $("notes").hidden = lines.length === 0;
  $("notes").querySelector("summary").textContent = `How the table was read (${lines.length})`;
  $("notes").querySelector("ul").replaceChildren(...lines.map((one) => element("li", {}, one)));
}

async function attempt(work) {
  problem($("explore-problem"), null);
  try {
    await work();
  } catch (error) {
    status("");
    problem($("explore-problem"), error);
  }
}

const openFile = (file, meter, column) => attempt(async () => {
  if (file.size > state.model.upload_bytes) {
    throw new Error(`${file.name} has ${number(file.size / 1e6)} MB, and this server takes ${number(state.model.upload_bytes / 1e6)} MB; open a part of it.`);
  }
  const asked = new URLSearchParams({ name: file.name });
  if (meter) asked.set("meter", meter);
  if (column) asked.set("column", column);
  const table = await opening.ask((signal) => send(`/api/read?${asked}`, file, signal));
  if (!table) return;
  Object.assign(state, { file, table });
  const target = state.model.targets.length === 1 ? Object.keys(table.series.values)[0] : "";
  options($("meter"), table.meters.map((name) => [name, name]), table.meter);
  options($("column"), table.columns.map((name) => [name, name]), target);
  $("meter-choice").hidden = table.meters.length < 2;
  $("column-choice").hidden = state.model.targets.length > 1 || table.columns.length < 2;
  $("choices").hidden = false;
  notes(table.notes);
  take(table.series, table.meter ? `${file.name}, meter ${table.meter}` : file.name);
});

const openSample = () => attempt(async () => {
  const points = await opening.ask((signal) => get(`/api/sample?seed=${state.seed}`, signal));
  if (!points) return;
  state.file = null;
  $("choices").hidden = Object.keys(points.values).length < 2;
  $("meter-choice").hidden = $("column-choice").hidden = true;
  notes([]);
  take(points, `Simulated home ${state.seed}`);
  state.seed += 1;
  $("sample").textContent = "Another sample";
});

const compute = () => attempt(async () => {
  clearTimeout(timer);
  if (!state.points) return;
  const shared = { series: state.points, samples: Number($("samples").value), seed: Number($("seed").value) };
  const message = forecasting() ? { ...shared, horizon: steps(), origin: origin() } : { ...shared, hide: ranges(state.hidden) };
  status("Drawing samples …");
  $("stop").hidden = false;
  $("chart").classList.add("busy");
  try {
    const found = await asking.ask((signal) => post(forecasting() ? "/api/forecast" : "/api/impute", message, signal));
    if (!found) { if (!asking.busy) status("Stopped."); return; }
    state.answer = found;
    draw();
    report(found, shared.samples);
  } finally {
    $("stop").hidden = !asking.busy;
    $("chart").classList.toggle("busy", asking.busy);
  }
});

function report(found, samples) {
  const { model, free, truth } = found.channels[state.channel];
  const compared = truth.filter((value) => value !== null).length;
  status(`Done: ${found.rows.length} rows from ${samples} samples.`);
  $("result").hidden = false;
  $("crps-model").textContent = scoreText(model.crps);
  $("crps-free").textContent = scoreText(free?.crps);
  $("compared").textContent = compared;
  const apart = compared > 0 && free ? 1 - model.crps / free.crps : 0;
  const better = Math.abs(apart) > EVEN ? Math.sign(apart) : 0;
  $("crps-model").parentElement.classList.toggle("better", better > 0);
  $("crps-free").parentElement.classList.toggle("better", better < 0);
  $("verdict").textContent = compared === 0 || !free ? "Nothing was hidden here, so there is no truth to compare with."
    : `${better > 0 ? "The model is closer to the truth here" : better < 0 ? "The free distribution is closer to the truth here" : "Both are about equally close"}`
      + ` (${number(Math.abs(apart) * 100, 2)} %). One gap decides nothing: tamedit evaluate scores many, with intervals.`;
}

function gapsChanged() {
  forget();
  draw();
  asking.stop();
  clearTimeout(timer);
  const count = ranges(state.hidden).length;
  status(count ? `${count} gap${count > 1 ? "s" : ""}, ${state.hidden.size} rows hidden.` : "No gaps.");
  if (count) timer = setTimeout(compute, PAUSE);
}

function hide(first, end) {
  for (let row = first; row < end; row++) state.hidden.add(row);
  gapsChanged();
}

function undo(row) {
  if (!state.hidden.has(row)) return;
  for (const [first, end] of ranges(state.hidden)) {
    if (row >= first && row < end) for (let one = first; one < end; one++) state.hidden.delete(one);
  }
  gapsChanged();
}

function modeChanged() {
  for (const one of document.querySelectorAll(".for-forecast")) one.hidden = !forecasting();
  for (const one of document.querySelectorAll(".for-fill")) one.hidden = forecasting();
  $("go").textContent = forecasting() ? "Forecast" : "Fill the gaps";
  asking.stop();
  forget();
  if (state.points) lookAtEnd();
  status("");
}

function download() {
  const { answer, points } = state, name = (state.file?.name ?? "sample.csv").replace(/\.\w+$/, "");
  const channels = Object.keys(answer.channels), levels = ["0.05", "0.25", "0.75", "0.95"];
  const heads = ["time", ...channels, ...channels.flatMap((one) => levels.map((level) => `${one}_q${level.slice(2)}`)), "filled"];
  const place = new Map(answer.rows.map((row, at) => [row, at]));
  const row = (number) => {
    const at = place.get(number), known = channels.map((one) => points.values[one][number]);
    const drawn = at !== undefined;
    const cells = drawn ? channels.map((one) => answer.channels[one].model.median[at]) : known;
    const bands = channels.flatMap((one, k) => levels.map((level) => (drawn ? answer.channels[one].model.quantiles[level][at] : known[k])));
    return [drawn ? answer.times[at] : points.times[number], ...cells, ...bands, drawn ? 1 : 0];
  };
  const rows = forecasting() ? answer.rows : points.times.map((_, number) => number);
  saveTable(`${name}-${forecasting() ? "forecast" : "filled"}.csv`, heads, rows.map(row));
}

function listen() {
  $("file").addEventListener("change", (event) => { if (event.target.files[0]) openFile(event.target.files[0]); event.target.value = ""; });
  $("meter").addEventListener("change", () => openFile(state.file, $("meter").value, state.model.targets.length === 1 ? $("column").value : ""));
  $("column").addEventListener("change", () => openFile(state.file, "", $("column").value));
  $("channel").addEventListener("change", () => {
    state.channel = $("channel").value;
    draw();
    if (state.answer) report(state.answer, Number($("samples").value));
  });
  $("sample").addEventListener("click", openSample);
  $("go").addEventListener("click", compute);
  $("stop").addEventListener("click", () => { clearTimeout(timer); asking.stop(); });
  $("clear").addEventListener("click", () => { state.hidden.clear(); gapsChanged(); });
  $("download").addEventListener("click", download);
  for (const id of ["show-paths", "show-free"]) $(id).addEventListener("change", () => state.points && draw());
  for (const id of ["mode-fill", "mode-forecast"]) $(id).addEventListener("change", modeChanged);
  for (const id of ["horizon", "hold"]) $(id).addEventListener("change", () => { asking.stop(); forget(); if (state.points) lookAtEnd(); });
  for (const [id, share] of [["earlier", -0.5], ["later", 0.5]]) $(id).addEventListener("click", () => chart.move(share));
  for (const [id, factor] of [["closer", 0.5], ["wider", 2]]) $(id).addEventListener("click", () => chart.zoom(factor));
  document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    if (event.dataTransfer.files[0]) { $("tab-explore").click(); openFile(event.dataTransfer.files[0]); }
  });
}

export function startExplore(model) {
  state.model = model;
  $("sample").hidden = !model.samples;
  const day = rowsOfDay();
  options($("horizon"), [[day / 4, "6 hours"], [day, "1 day"], [2 * day, "2 days"], [7 * day, "1 week"]]
    .filter(([count]) => count >= 1 && Number.isInteger(count)), day);
  if (day === 1) options($("horizon"), [1, 7, 28].map((count) => [count, `${count} steps`]), 7);
  chart = new SeriesChart($("chart"), { chosen: hide, undone: undo, said: status });
  listen();
}
