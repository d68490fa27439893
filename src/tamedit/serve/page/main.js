// Tabs, and the first look at the server.

import { get } from "./api.js";
import { startBudget } from "./budget.js";
import { startCard } from "./card.js";
import { $ } from "./dom.js";
import { startExplore } from "./explore.js";
import { startHomes } from "./homes.js";

const tabs = [...document.querySelectorAll("[role=tab]")];
const opened = new Set(["explore"]);
const onOpen = { budget: startBudget, card: startCard };

function open(tab, focus = false) {
  for (const one of tabs) {
    const own = one === tab;
    one.setAttribute("aria-selected", String(own));
    one.tabIndex = own ? 0 : -1;
    $(one.getAttribute("aria-controls")).hidden = !own;
  }
  if (focus) tab.focus();
  tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  const name = tab.getAttribute("aria-controls");
  if (!opened.has(name)) { opened.add(name); onOpen[name]?.(); }
}

for (const [at, tab] of tabs.entries()) {
  tab.addEventListener("click", () => open(tab));
  tab.addEventListener("keydown", (event) => {
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    open(tabs[(next + tabs.length) % tabs.length], true);
  });
}

startHomes();
try {
  const model = await get("/api/model");
  $("served").textContent = `${model.name} · ${model.targets.slice(0, 3).join(", ")} every ${model.step} · ${model.private ? "trained with privacy" : "no privacy guarantee"}`;
  startExplore(model);
} catch (error) {
  $("served").textContent = error.message;
}
