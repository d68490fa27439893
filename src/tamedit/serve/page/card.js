// The privacy card.

import { get } from "./api.js";
import { $, element, epsilonText, problem } from "./dom.js";

function unitRow(one) {
  return element("tr", one.own ? { class: "own" } : {},
    element("th", { scope: "row" }, one.words.split(" (")[0], one.own ? " (promised)" : "", element("span", { class: "why" }, one.reason)),
    element("td", { class: "number" }, epsilonText(one.epsilon)),
    element("td", {}, one.protection ?? "–"),
    element("td", { class: "number" }, one.certainty));
}

function unitTable(units) {
  const heads = [["What one guarantee covers", ""], ["ε", "number"], ["Protection", ""], ["50 % becomes at most", "number"]];
  return element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map(([text, kind]) => element("th", { scope: "col", class: kind }, text)))),
    element("tbody", {}, ...units.map(unitRow))));
}

const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

export async function startCard() {
  const panel = $("card-panel");
  try {
    const card = await get("/api/card");
    panel.replaceChildren(element("h2", {}, card.title));
    const statement = element("p", { class: "statement" }, card.statement);
    if (!card.units.length) panel.append(statement);
    if (card.units.length) {
      panel.append(element("h2", {}, "What one guarantee covers, and what the same training means for every unit"), unitTable(card.units),
        element("p", { class: "hint" }, "The last column: someone thought it as likely as not that the training data contained this unit. "
          + "So sure can the model make them at most, in the worst case."));
    }
    if (card.not_covered.length) {
      panel.append(element("h2", {}, "What is not covered"),
        element("ul", {}, ...card.not_covered.map((one) => element("li", {}, capital(one)))));
    }
    if (card.units.length) panel.append(element("h2", {}, "The statement"), statement);
    const checks = Object.entries(card.checks);
    if (checks.length) {
      panel.append(element("h2", {}, "What a sceptic can check, and how"),
        element("dl", {}, ...checks.flatMap(([claim, how]) => [element("dt", {}, claim), element("dd", {}, how)])));
    }
    if (card.cannot_be_checked) panel.append(element("p", {}, `What nobody can check: ${card.cannot_be_checked}`));
    if (card.private && !card.released) panel.append(element("p", { class: "hint" }, "This run is not released. tamedit release makes the folder that may leave."));
  } catch (error) {
    const place = element("p", { class: "problem", role: "alert" });
    panel.replaceChildren(place);
    problem(place, error);
  }
}
