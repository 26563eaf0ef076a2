// The timeline of a device: lines of bars, of which only what can be seen is drawn.
const rowHeight = 22, axisHeight = 24;

/** The bars of a line with their times in picoseconds from the start of the run. */
function unpacked({name, task_step: steps, gap, length, call}) {
  const task = Int32Array.from(steps), begin = new Float64Array(task.length), end = new Float64Array(task.length);
  for (let i = 0, at = 0; i < task.length; ++i) {
    if (i > 0) task[i] += task[i - 1];
    begin[i] = at + gap[i];
    at = end[i] = begin[i] + length[i];
  }
  return {name, task, begin, end, call};
}

/** The first bar that ends after a time. */
function firstAfter(ends, time) {
  let low = 0, high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

class Timeline {
  constructor(record) {
    this.record = record;
    const {trips, names, roles, trip, name, role} = record.tasks;
    this.tasks = name.map((n, t) => trips[trip[t]] + names[n]);
    this.roles = name.map((_, t) => roles[role[t]] ?? "other");
    this.end = Math.max(amount(record.result.makespan_s) * 1e12, 1);
    [this.from, this.to] = [0, this.end];
    this.drawing = make("svg", {tabindex: 0, role: "application", "aria-label": "timeline: plus and minus zoom, arrows move, 0 shows all",
      onwheel: (event) => this.wheel(event), onmousemove: (event) => this.hover(event), onmouseleave: () => tell(null), onmousedown: (event) => this.drag(event),
      onkeydown: (event) => this.key(event)});
    this.found = make("span", {class: "faint", role: "status"});
    this.search = make("input", {type: "search", placeholder: "task or operation", "aria-label": "search tasks", oninput: () => this.draw(),
      onkeydown: (event) => event.key === "Enter" && this.next()});
    this.devices = make("select", {"aria-label": "device", onchange: () => this.show(Number(this.devices.value))},
      record.timelines.map((t, i) => make("option", {value: i}, `device ${t.device} (${t.name})${t.alike > 1 ? `, and ${t.alike - 1} alike` : ""}`)));
    this.element = make("div", {}, make("div", {class: "tools"}, this.devices, this.button("zoom in", () => this.zoom(0.5)), this.button("zoom out", () => this.zoom(2)),
      this.button("all", () => this.move(0, this.end)), this.search, this.button("next", () => this.next()), this.found), this.drawing,
      this.keys = make("div"), this.listing = make("details", {}));
    this.listing.addEventListener("toggle", () => this.listing.open && this.list());
    new ResizeObserver(() => this.draw()).observe(this.drawing);
    this.show(0);
  }

  button(name, action) { return make("button", {type: "button", onclick: action}, name); }
  /** The call that a bar is or is in; undefined: none. */
  callOf(line, i) { return line.call?.[i] > 0 ? this.record.calls[line.call[i] - 1] : undefined; }
  /** What a bar is, for its colour: of a call what its line shows of it. */
  roleOf(line, i) {
    if (!(line.call?.[i] > 0) || line.name === "calls") return this.roles[line.task[i]];
    return line.name === "compute" ? "compute" : line.name.startsWith("dma") ? "copy" : "communication";
  }

  show(index) {
    this.lines = this.record.timelines[index].lines.map(unpacked);
    this.listing.replaceChildren(make("summary", {}, "as a table"));
    this.listing.open = false;
    const times = new Map();  // the longest on one line
    for (const line of this.lines) {
      const onLine = new Map();
      line.task.forEach((_, i) => onLine.set(this.roleOf(line, i), (onLine.get(this.roleOf(line, i)) ?? 0) + line.end[i] - line.begin[i]));
      for (const [role, time] of onLine) times.set(role, Math.max(times.get(role) ?? 0, time));
    }
    this.keys.replaceChildren(legend([...times.keys()].sort((a, b) => times.get(b) - times.get(a)).map((role) => [role, roleColour(role)])));
    this.draw();
  }

  list() {
    const rows = this.lines.flatMap((line) => Array.from(line.task, (t, i) => [line.name, this.tasks[t], this.callOf(line, i)?.name ?? "", line.begin[i], line.end[i]]));
    const shown = rows.sort((a, b) => a[3] - b[3]).slice(0, 2000), calls = rows.some(([, , call]) => call !== "");
    this.listing.replaceChildren(make("summary", {}, "as a table"), rows.length > shown.length ? make("p", {}, `the first ${shown.length} of ${rows.length} bars`) : null ?? "",
      table(["line", "task", ...(calls ? ["a call of"] : []), "begins", "ends"],
        shown.map(([line, task, call, begin, end]) => [line, task, ...(calls ? [call] : []), timeText(begin / 1e12), timeText(end / 1e12)]), calls ? 3 : 2));
  }

  width() { return Math.max(this.drawing.clientWidth, 320); }
  left() { return Math.min(130, this.width() / 4); }
  x(time) { return this.left() + ((time - this.from) / (this.to - this.from)) * (this.width() - this.left()); }
  timeAt(x) { return this.from + ((x - this.left()) / (this.width() - this.left())) * (this.to - this.from); }

  move(from, to) {
    const span = Math.min(Math.max(to - from, Math.min(1000, this.end)), this.end);
    this.from = Math.min(Math.max(from, 0), this.end - span);
    this.to = this.from + span;
    this.draw();
  }
  zoom(factor, around = (this.from + this.to) / 2) { this.move(around - (around - this.from) * factor, around + (this.to - around) * factor); }

  wheel(event) {
    if (!event.ctrlKey && !event.shiftKey && document.activeElement !== this.drawing) return;  // the page scrolls
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(event.offsetX));
  }
  drag(event) {
    const [x, from, to] = [event.clientX, this.from, this.to];
    const on = (moved) => this.move(from - (moved.clientX - x) * (to - from) / (this.width() - this.left()), to - (moved.clientX - x) * (to - from) / (this.width() - this.left()));
    addEventListener("mousemove", on);
    addEventListener("mouseup", () => removeEventListener("mousemove", on), {once: true});
  }
  key(event) {
    const step = (this.to - this.from) / 5;
    const actions = {"+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.move(0, this.end),
      ArrowLeft: () => this.move(this.from - step, this.to - step), ArrowRight: () => this.move(this.from + step, this.to + step)};
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  matches(line, i) { return `${this.tasks[line.task[i]]}\n${this.callOf(line, i)?.name ?? ""}`.toLowerCase().includes(this.search.value.toLowerCase()); }
  /** To the next bar that is searched for, in order of time. */
  next() {
    if (this.search.value === "") return;
    let best = null;
    for (const line of this.lines)
      for (let i = 0; i < line.task.length; ++i)
        if (this.matches(line, i) && line.begin[i] > this.from + (this.to - this.from) * 0.4001 && (best === null || line.begin[i] < best[0])) best = [line.begin[i], line.end[i]];
    if (best === null) return this.move(0, this.to - this.from);
    const span = Math.min(this.to - this.from, Math.max((best[1] - best[0]) * 5, this.end / 1e6));
    this.move(best[0] - span * 0.4, best[0] + span * 0.6);
  }

  draw() {
    tell(null);
    const width = this.width(), height = axisHeight + this.lines.length * rowHeight;
    const step = niceStep(this.to - this.from, Math.max(Math.floor((width - this.left()) / 110), 1));
    const parts = [];
    for (let tick = Math.ceil(this.from / step) * step; tick <= this.to; tick += step)
      parts.push(make("line", {class: "rule", x1: this.x(tick), x2: this.x(tick), y1: 14, y2: height}), timeLabel(this.x(tick) + 3, 11, tick, width));
    let matching = 0;
    this.lines.forEach((line, l) => {
      const y = axisHeight + l * rowHeight;
      parts.push(make("text", {x: 0, y: y + 15}, line.name), make("line", {class: "rule", x1: 0, x2: width, y1: y, y2: y}));
      const paths = new Map();
      const put = (fill, from, to) => paths.set(fill, `${paths.get(fill) ?? ""}M${from.toFixed(2)} ${y + 2}H${to.toFixed(2)}V${y + rowHeight - 3}H${from.toFixed(2)}z`);
      const searched = this.search.value !== "";
      const drawn = ({fill, from, to}) => put(fill, from, to - from > 3 ? to - 0.7 : to);  // apart from the next where there is room
      // Bars that are narrower than a pixel join the bar of their colour beside them.
      let run = null;
      for (let i = firstAfter(line.end, this.from); i < line.task.length && line.begin[i] < this.to; ++i) {
        const from = Math.max(this.x(line.begin[i]), this.left()), to = Math.min(Math.max(this.x(line.end[i]), from + 0.3), width);
        const fill = roleColour(this.roleOf(line, i));
        if (searched && this.matches(line, i)) ++matching, put("found", from, to);
        if (run !== null && run.fill === fill && from - run.to < 0.5 && (to - from < 1 || run.to - run.from < 1)) {
          run.to = to;
          continue;
        }
        if (run !== null) drawn(run);
        run = {fill, from, to};
      }
      if (run !== null) drawn(run);
      for (const [fill, d] of paths) parts.push(fill === "found" ? make("path", {class: "found", d}) : make("path", {d, fill}));
    });
    this.found.textContent = this.search.value === "" ? "" : `${matching} in view`;
    this.drawing.setAttribute("height", height);
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.drawing.replaceChildren(...parts);
  }

  /** The bar under a point of the drawing. */
  at(x, y) {
    const line = this.lines[Math.floor((y - axisHeight) / rowHeight)];
    if (y < axisHeight || line === undefined || x < this.left()) return null;
    const near = this.timeAt(x + 0.5), i = firstAfter(line.end, this.timeAt(x - 0.5));
    return i < line.task.length && line.begin[i] <= near ? {line, i} : null;
  }
  hover(event) {
    const area = this.drawing.getBoundingClientRect();
    const found = this.at(event.clientX - area.left, event.clientY - area.top);
    tell(found && this.textOf(found), event);
  }
  textOf({line, i}) {
    const call = this.callOf(line, i), held = call && line.name === "calls" ? `; a call of ${call.name}: ${call.parts.map(({name, time_s: time}) => `${name} ${timeText(time)}`).join(", ")}` : "";
    return `${this.tasks[line.task[i]]}: ${timeText(line.begin[i] / 1e12)} to ${timeText(line.end[i] / 1e12)}, ${timeText((line.end[i] - line.begin[i]) / 1e12)}${held}`;
  }
}
