// The chart of a series: readings, gaps, bands and paths, drawn as SVG; a part of it can be chosen by pointer or by keys.

import { line, number, svg, ticks } from "./dom.js";

const LEFT = 46, RIGHT = 10, TOP = 12, BOTTOM = 30, LEAST = 24;

export class SeriesChart {
  // `heard` has: chosen(first, end), undone(row), said(text)
  constructor(place, heard) {
    Object.assign(this, { place, heard, view: [0, 1], cursor: null, anchor: null, state: null, hideable: true });
    new ResizeObserver(() => this.draw()).observe(place);
    place.addEventListener("pointerdown", (event) => this.#press(event));
    place.addEventListener("pointermove", (event) => this.#drag(event));
    place.addEventListener("pointerup", (event) => this.#release(event));
    place.addEventListener("pointercancel", () => { this.pressed = null; this.anchor = null; this.draw(); });
    place.addEventListener("keydown", (event) => this.#key(event));
  }

  // state: {times, values, hidden: Set of rows, unit, answer: {rows, model, free, truth} | null, ahead: steps after the end, paths, free}
  show(state, view) {
    this.state = state;
    if (view) this.view = view;
    this.draw();
  }

  get length() { return this.state.times.length + this.state.ahead; }

  move(share) {
    const [first, end] = this.view, size = end - first;
    const start = Math.round(Math.min(Math.max(first + share * size, 0), Math.max(this.length - size, 0)));
    this.view = [start, start + size];
    this.draw();
  }

  zoom(factor) {
    const [first, end] = this.view, middle = (first + end) / 2;
    const size = Math.round(Math.min(Math.max((end - first) * factor, LEAST), this.length));
    const start = Math.round(Math.min(Math.max(middle - size / 2, 0), this.length - size));
    this.view = [start, start + size];
    this.draw();
  }

  draw() {
    const box = this.place.getBoundingClientRect();
    if (!this.state || box.width < 10) return;
    const [first, end] = this.view, { width, height } = box;
    const [low, high] = this.#range(first, end);
    this.x = (row) => LEFT + ((row - first) / Math.max(end - 1 - first, 1)) * (width - LEFT - RIGHT);
    this.row = (x) => Math.round(first + ((x - LEFT) / (width - LEFT - RIGHT)) * (end - 1 - first));
    const y = (value) => (value === null || value === undefined ? null : TOP + (1 - (value - low) / (high - low)) * (height - TOP - BOTTOM));
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const clip = svg("clipPath", { id: "inside" }, svg("rect", { x: LEFT, y: 0, width: width - LEFT - RIGHT, height: height - BOTTOM + 1 }));
    const inside = svg("g", { "clip-path": "url(#inside)" });
    this.#gaps(inside, height);
    drawing.append(svg("defs", {}, clip), inside);
    this.#axes(drawing, y, low, high, width, height);
    this.#lines(inside, y);
    this.#marks(inside, height);
    this.place.replaceChildren(drawing);
  }

  #range(first, end) {
    const { values, answer } = this.state;
    let low = 0, high = -Infinity;
    const see = (value) => { if (value !== null && value !== undefined) { low = Math.min(low, value); high = Math.max(high, value); } };
    for (let row = first; row < Math.min(end, values.length); row++) see(values[row]);
    answer?.rows.forEach((row, at) => {
      if (row < first || row >= end) return;
      see(answer.model.quantiles["0.95"][at]);
      see(answer.model.quantiles["0.05"][at]);
      if (this.state.paths) for (const path of answer.model.paths) see(path[at]);
    });
    return [low, high > low ? high + 0.06 * (high - low) : low + 1];
  }

  #axes(drawing, y, low, high, width, height) {
    for (const value of ticks(low, high, 4)) {
      drawing.append(svg("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
      const label = svg("text", { x: LEFT - 7, y: y(value) + 4, "text-anchor": "end" });
      label.textContent = number(value);
      drawing.append(label);
    }
    const unit = svg("text", { x: 4, y: height - 8 });
    unit.textContent = this.state.unit.length > 6 ? "" : this.state.unit;
    drawing.append(unit);
    const count = Math.max(2, Math.floor(width / 130));
    const [first, end] = this.view;
    for (let at = 0; at < count; at++) {
      const row = Math.round(first + ((at + 0.5) / count) * (end - 1 - first));
      const label = svg("text", { x: this.x(row), y: height - 8, "text-anchor": "middle" });
      label.textContent = this.spoken(row).slice(5);
      drawing.append(label);
    }
  }

  spoken(row) {
    const stamp = this.state.stamp(row);
    return stamp === null ? "" : stamp;
  }

  #gaps(inside, height) {
    const half = (this.x(1) - this.x(0)) / 2;
    const rows = new Set(this.state.hidden);
    for (let row = this.state.times.length; row < this.length; row++) rows.add(row);
    for (let row = this.view[0]; row < this.view[1]; row++) {
      if (!rows.has(row)) continue;
      const from = row;
      while (rows.has(row + 1)) row++;
      inside.append(svg("rect", { class: "gap", x: this.x(from) - half, y: 0, width: this.x(row) - this.x(from) + 2 * half, height: height - BOTTOM }));
    }
  }

  #lines(inside, y) {
    const { values, hidden, answer } = this.state;
    const [first, end] = [Math.max(this.view[0] - 1, 0), Math.min(this.view[1] + 1, values.length)];
    const seen = [];
    for (let row = first; row < end; row++) seen.push([this.x(row), hidden.has(row) ? null : y(values[row])]);
    if (answer) this.#answer(inside, y, answer);
    inside.append(svg("path", { class: "seen", d: line(seen) }));
    const truth = [];
    for (let row = first; row < end; row++) {
      const near = hidden.has(row) || hidden.has(row - 1) || hidden.has(row + 1);
      truth.push([this.x(row), near ? y(values[row]) : null]);
    }
    if (answer) inside.append(svg("path", { class: "truth", d: line(truth) }));
  }

  // Runs of neighbouring rows of an answer, with the reading on either side, so that nothing hangs in the air.
  *#runs(answer) {
    for (let at = 0; at < answer.rows.length; at++) {
      const from = at;
      while (answer.rows[at + 1] === answer.rows[at] + 1) at++;
      yield [from, at];
    }
  }

  #answer(inside, y, answer) {
    const { values, hidden } = this.state;
    const edge = (row) => (row >= 0 && row < values.length && !hidden.has(row) ? values[row] : null);
    for (const [from, to] of this.#runs(answer)) {
      const before = answer.rows[from] - 1, after = answer.rows[to] + 1;
      const run = (list) => {
        const points = list.slice(from, to + 1).map((value, at) => [this.x(answer.rows[from] + at), y(value)]);
        if (edge(before) !== null) points.unshift([this.x(before), y(edge(before))]);
        if (edge(after) !== null) points.push([this.x(after), y(edge(after))]);
        return points;
      };
      const area = (band, low, high) => line([...run(band.quantiles[low]), ...run(band.quantiles[high]).reverse()]) + "Z";
      inside.append(svg("path", { class: "band90", d: area(answer.model, "0.05", "0.95") }));
      inside.append(svg("path", { class: "band50", d: area(answer.model, "0.25", "0.75") }));
      if (answer.free && this.state.free) {
        for (const level of ["0.05", "0.95"]) inside.append(svg("path", { class: "free edge", d: line(run(answer.free.quantiles[level])) }));
        inside.append(svg("path", { class: "free", d: line(run(answer.free.median)) }));
      }
      if (this.state.paths) for (const path of answer.model.paths) inside.append(svg("path", { class: "path", d: line(run(path)) }));
      inside.append(svg("path", { class: "median", d: line(run(answer.model.median)) }));
    }
  }

  #marks(inside, height) {
    if (this.anchor !== null && this.cursor !== null) {
      const [from, to] = [Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)];
      inside.append(svg("rect", { class: "pick", x: this.x(from), y: 0, width: Math.max(this.x(to) - this.x(from), 2), height: height - BOTTOM }));
    }
    if (this.cursor !== null) inside.append(svg("line", { class: "cursor", x1: this.x(this.cursor), x2: this.x(this.cursor), y1: 0, y2: height - BOTTOM }));
  }

  #at(event) {
    const row = this.row(event.clientX - this.place.getBoundingClientRect().left);
    return Math.min(Math.max(row, Math.max(this.view[0], 0)), Math.min(this.view[1], this.state.times.length) - 1);
  }

  #press(event) {
    if (!this.state || !this.hideable || event.button > 0) return;
    this.pressed = event.clientX;
    this.place.setPointerCapture(event.pointerId);
    this.anchor = this.cursor = this.#at(event);
    this.draw();
  }

  #drag(event) {
    if (this.pressed === null || this.pressed === undefined) return;
    this.cursor = this.#at(event);
    this.draw();
  }

  #release(event) {
    if (this.pressed === null || this.pressed === undefined) return;
    const still = Math.abs(event.clientX - this.pressed) < 5, row = this.#at(event);
    this.pressed = null;
    if (still) { this.anchor = this.cursor = null; if (this.state.hidden.has(row)) this.heard.undone(row); else this.draw(); return; }
    this.#choose();
  }

  #choose() {
    const [from, to] = [Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)];
    this.anchor = this.cursor = null;
    this.heard.chosen(from, to + 1);
  }

  #key(event) {
    if (!this.state) return;
    const last = this.state.times.length - 1;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -24, PageDown: 24, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined) {
      const from = this.cursor ?? Math.min(Math.round((this.view[0] + this.view[1]) / 2), last);
      if (event.shiftKey && this.hideable) this.anchor ??= from; else this.anchor = null;
      this.cursor = Math.min(Math.max(this.cursor === null && !event.shiftKey ? from : from + step, 0), last);
      const size = this.view[1] - this.view[0];
      if (this.cursor < this.view[0] || this.cursor >= this.view[1]) this.move((this.cursor - this.view[0] - size / 2) / size);
      const value = this.state.values[this.cursor], hidden = this.state.hidden.has(this.cursor);
      const chosen = this.anchor === null ? "" : `, ${Math.abs(this.cursor - this.anchor) + 1} rows selected`;
      this.heard.said(`${this.spoken(this.cursor)}: ${hidden ? "hidden" : value === null ? "missing" : number(value)}${chosen}`);
    } else if ((event.key === "Enter" || event.key === " ") && this.hideable && this.cursor !== null) {
      this.anchor ??= this.cursor;
      this.#choose();
    } else if ((event.key === "Delete" || event.key === "Backspace") && this.cursor !== null) {
      this.heard.undone(this.cursor);
    } else if (event.key === "Escape") {
      this.anchor = null;
    } else if (event.key === "+" || event.key === "-") {
      this.zoom(event.key === "+" ? 0.5 : 2);
    } else return;
    event.preventDefault();
    this.draw();
  }
}
