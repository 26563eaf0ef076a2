// Live memory of a device over time, by what it is for: kinds upon each other.
class MemoryChart {
  constructor(record) {
    this.record = record;
    this.end = Math.max(amount(record.result.makespan_s) * 1e12, 1);
    this.capacity = capacityOf(record);
    this.timelines = record.timelines.filter(({memory}) => memory);
    this.drawing = pickable(this, "live memory over time");
    this.devices = make("select", {"aria-label": "device of the memory", onchange: () => this.show(Number(this.devices.value))},
      this.timelines.map((t, i) => make("option", {value: i}, `device ${t.device} (${t.name})${t.alike > 1 ? `, and ${t.alike - 1} alike` : ""}`)));
    this.keys = make("div"), this.figures = make("details");
    this.element = make("div", {}, make("div", {class: "tools"}, this.devices), this.drawing, this.keys, this.figures);
    this.show(0);
    redrawn(this.drawing, (width) => this.draw(width));
  }

  show(index) {
    const {gap, kind, by} = this.timelines[index].memory, kinds = this.record.memory_kinds;
    const live = kinds.map(() => 0);
    this.moments = [];  // {at, live}: what is live from then on, once per time
    this.most = kinds.map(() => 0);
    this.peak = {at: 0, live: [...live], total: 0};
    for (let i = 0, at = 0; i < kind.length; ++i) {
      at += gap[i];
      live[kind[i]] += by[i];
      if (i + 1 < kind.length && gap[i + 1] === 0) continue;
      const total = live.reduce((sum, bytes) => sum + bytes, 0);
      this.moments.push({at, live: [...live], total});
      live.forEach((bytes, k) => this.most[k] = Math.max(this.most[k], bytes));
      if (total > this.peak.total) this.peak = this.moments[this.moments.length - 1];
    }
    this.kinds = kinds.map((name, k) => k).filter((k) => this.most[k] > 0);
    this.keys.replaceChildren(legend(this.kinds.map((k) => [kinds[k], roleColour(kinds[k])])));
    this.figures.replaceChildren(make("summary", {}, "as a table"), table(["kind", `at the peak, ${timeText(this.peak.at / 1e12)}`, "its own most"],
      [...this.kinds.map((k) => [kinds[k], bytesText(this.peak.live[k]), bytesText(this.most[k])]), ["all", bytesText(this.peak.total), bytesText(this.peak.total)]]));
    if (this.width) this.draw(this.width);
  }

  /** Per column of the drawing the moment in it at which most is live. */
  columnsOf(count) {
    const columns = [];
    let m = -1;
    for (let c = 0; c < count; ++c) {
      const end = (this.end * (c + 1)) / count;
      let best = m >= 0 ? this.moments[m] : null;
      while (m + 1 < this.moments.length && this.moments[m + 1].at < end) {
        ++m;
        if (best === null || this.moments[m].total > best.total) best = this.moments[m];
      }
      columns.push(best ?? {at: 0, live: this.most.map(() => 0), total: 0});
    }
    return columns;
  }

  get count() { return this.columns?.length ?? 0; }
  textOf(c) {
    const {at, live, total} = this.columns[c];
    return `from ${timeText(at / 1e12)}: ${bytesText(total)}; ${this.kinds.filter((k) => live[k] > 0).map((k) => `${this.record.memory_kinds[k]} ${bytesText(live[k])}`).join(", ")}`;
  }
  placeOf(c) { return [this.left + (c + 0.5) * this.step, this.y(this.columns[c].total)]; }
  nearest(x) { return x < this.left ? -1 : Math.min(Math.floor((x - this.left) / this.step), this.count - 1); }

  draw(width) {
    this.width = width;
    const height = 240, bottom = 20, top = 8;
    this.left = 78;
    const count = Math.max(Math.floor((width - this.left) / 2), 10);
    this.step = (width - this.left) / count;
    this.columns = this.columnsOf(count);
    const line = this.capacity !== null && this.capacity <= 2 * Math.max(this.peak.total, overMemory(this.record.result) ? this.capacity : 0) ? this.capacity : null;  // within reach
    const scale = scaleOf([this.peak.total || 1, ...(line === null ? [] : [line])], {text: bytesText, fromZero: true});
    this.y = (bytes) => height - bottom - scale.at(bytes) * (height - bottom - top);
    const parts = scale.ticks.flatMap(([value, text]) => [make("line", {class: "rule", x1: this.left, x2: width, y1: this.y(value), y2: this.y(value)}),
      make("text", {class: "faint", x: this.left - 6, y: this.y(value) + 4, "text-anchor": "end"}, text)]);
    const tick = niceStep(this.end, Math.max(Math.floor((width - this.left) / 110), 1));
    for (let time = 0; time < this.end; time += tick)
      parts.push(timeLabel(this.left + (time / this.end) * (width - this.left), height - 5, time, width));
    const below = this.columns.map(() => 0);
    for (const k of this.kinds) {
      const upper = this.columns.map(({live}, c) => below[c] + live[k]);
      const edge = (values) => values.map((bytes, c) => [this.left + c * this.step, this.left + (c + 1) * this.step, this.y(bytes).toFixed(2)]);
      const there = edge(upper).map(([from, to, y]) => `L${from.toFixed(2)} ${y}H${to.toFixed(2)}`).join("");
      const back = edge(below).reverse().map(([from, to, y]) => `L${to.toFixed(2)} ${y}H${from.toFixed(2)}`).join("");
      parts.push(make("path", {d: `M${there.slice(1)}${back}z`, fill: roleColour(this.record.memory_kinds[k]), stroke: "var(--paper)", "stroke-width": 0.5}));
      upper.forEach((bytes, c) => below[c] = bytes);
    }
    if (line !== null) parts.push(make("line", {class: "capacity", x1: this.left, x2: width, y1: this.y(line), y2: this.y(line)}),
      make("text", {class: "over", x: width - 4, y: this.y(line) > 24 ? this.y(line) - 5 : this.y(line) + 15, "text-anchor": "end"}, `a device has ${bytesText(line)}`));
    put(this.drawing, width, height, parts);
  }
}

function memory(record) {
  if (!record.timelines.some(({memory}) => memory)) return null;
  return section("memory", "Live memory", make("p", {}, "Inputs and outputs are live all the time, other buffers from their first write to their last use."), new MemoryChart(record).element);
}
