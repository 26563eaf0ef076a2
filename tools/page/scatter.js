// Points of two numbers.
const shapes = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (x, y, r) => `M${x} ${y - 1.2 * r}L${x + 1.2 * r} ${y + r}H${x - 1.2 * r}z`,
  (x, y, r) => `M${x} ${y - 1.3 * r}L${x + 1.3 * r} ${y}L${x} ${y + 1.3 * r}L${x - 1.3 * r} ${y}z`,
  (x, y, r) => `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`,
];

const shapeOf = (look) => shapes[Math.floor(look / 7 + look) % shapes.length];

/** Of an axis: where a value is between 0 and 1, and the ticks, of which the labels are `text`. */
function scaleOf(values, {log, log2, names, text, fromZero}) {
  if (names) return {at: (value) => (value + 0.5) / names.length, ticks: names.map((name, n) => [n, name])};
  const least = leastOf(values), most = mostOf(values);
  if (log2 && least > 0) {
    const low = Math.log2(least) - 0.2, high = Math.log2(most) + 0.2, each = Math.max(Math.ceil((high - low) / 9), 1), ticks = [];
    for (let power = Math.ceil(low); power <= high; power += each) ticks.push(2 ** power);
    return {at: (value) => (Math.log2(value) - low) / (high - low), ticks: ticks.map((value) => [value, text(value)])};
  }
  if (log && least > 0) {
    const low = Math.log10(least) - 0.05, high = Math.max(Math.log10(most) + 0.05, low + 0.2), ticks = [];
    for (let decade = Math.floor(low); decade <= Math.ceil(high); ++decade)
      for (const factor of high - low < 1 ? [1, 2, 5] : [1]) if (decade + Math.log10(factor) >= low && decade + Math.log10(factor) <= high) ticks.push(factor * 10 ** decade);
    return {at: (value) => (Math.log10(value) - low) / (high - low), ticks: ticks.map((value) => [value, text(value)])};
  }
  const margin = (most - (fromZero ? Math.min(least, 0) : least)) * 0.05, low = fromZero ? Math.min(least, 0) : least - margin;
  const span = most + margin - low || Math.abs(most) || 1, step = niceStep(span, 6), ticks = [];
  for (let tick = Math.ceil(low / step); tick * step <= low + span; ++tick) ticks.push(tick * step);
  return {at: (value) => (value - low) / span, ticks: ticks.map((value) => [value, text(value)])};
}

/** `series`: {name, points: [{x, y, text}], joined, hollow, look}, which is its number unless it looks like another; points without two
 * numbers are left out. `lines`: {name, of, dash}, y as a function of x. `limits`: {x, name}, vertical lines. `x` and `y` are axes: {label, text, values, log, log2, names,
 * fromZero}; values of an axis of names are their numbers in it. `values` are what an axis reaches over, if these are not those of the points. */
class Scatter {
  constructor({x, y, series, lines = [], limits = [], label}) {
    Object.assign(this, {x, y, series, lines, limits});
    this.points = series.flatMap(({points}, s) => points.filter((point) => isNumber(point.x) && isNumber(point.y)).map((point) => ({...point, s})));
    this.count = this.points.length;
    this.drawing = pickable(this, label);
    this.element = make("div", {}, this.drawing, markLegend(series, lines, limits));
    redrawn(this.drawing, (width) => this.draw(width));
  }
  textOf(i) { return this.points[i].text; }
  placeOf(i) { return this.places[i] ?? [0, 0]; }
  nearest(x, y) {
    let best = -1, least = 14 ** 2;
    this.places.forEach(([px, py], i) => {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    });
    return best;
  }

  draw(width) {
    if (this.count === 0) return;
    const height = Math.min(Math.max(width * 0.5, 260), 420), left = 78, bottom = 40, top = 8, right = 12;
    const x = scaleOf([...(this.x.values ?? this.points.map((p) => p.x)), ...this.limits.map((p) => p.x)], this.x);
    const y = scaleOf([...(this.y.values ?? this.points.map((p) => p.y)), ...this.lines.flatMap(({of}) => this.ends().map(of))], this.y);
    const atX = (value) => left + x.at(value) * (width - left - right), atY = (value) => height - bottom - y.at(value) * (height - bottom - top);
    this.places = this.points.map((p) => [atX(p.x), atY(p.y)]);
    const parts = [];
    let last = -Infinity;
    for (const [value, text] of x.ticks) {
      parts.push(make("line", {class: "rule", x1: atX(value), x2: atX(value), y1: top, y2: height - bottom}));
      if (atX(value) - last < 64) continue;
      last = atX(value);
      parts.push(make("text", {class: "faint", x: Math.min(last, width - text.length * 3.6), y: height - bottom + 15, "text-anchor": "middle"}, text));
    }
    for (const [value, text] of y.ticks)
      parts.push(make("line", {class: "rule", x1: left, x2: width - right, y1: atY(value), y2: atY(value)}), make("text", {class: "faint", x: left - 6, y: atY(value) + 4, "text-anchor": "end"}, text));
    const middle = (height - bottom) / 2;
    parts.push(make("text", {x: (left + width) / 2, y: height - 5, "text-anchor": "middle"}, this.x.label),
      make("text", {x: 12, y: middle, transform: `rotate(-90 12 ${middle})`, "text-anchor": "middle"}, this.y.label));
    parts.push(...this.drawnLines(atX, atY), ...this.limits.map((limit) => make("line", {class: "capacity", x1: atX(limit.x), x2: atX(limit.x), y1: top, y2: height - bottom})));
    this.series.forEach((series, s) => parts.push(...this.drawnSeries(series, s)));
    put(this.drawing, width, height, parts);
  }

  ends() {
    const xs = this.points.map((p) => p.x);
    return [leastOf(xs), mostOf(xs)];
  }
  drawnLines(atX, atY) {
    return this.lines.map(({of, dash}) => {
      const [[x1, y1], [x2, y2]] = this.ends().map((x) => [atX(x), atY(of(x))]);
      return make("line", {x1, y1, x2, y2, stroke: "var(--faint)", "stroke-dasharray": dash});
    });
  }

  drawnSeries({joined, hollow, look: looked}, s) {
    const look = looked ?? s, places = this.places.filter((_, i) => this.points[i].s === s), shape = shapeOf(look), fill = seriesColour(look);
    const d = places.map(([x, y]) => shape(Number(x.toFixed(1)), Number(y.toFixed(1)), 4)).join("");
    const line = joined && places.length > 1 ? [make("path", {d: places.map(([x, y], i) => `${i === 0 ? "M" : "L"}${x} ${y}`).join(""), fill: "none", stroke: fill, "stroke-width": 2})] : [];
    return [...line, make("path", {d, fill: hollow ? "none" : fill, stroke: hollow ? fill : "var(--ink)", "stroke-width": hollow ? 1.5 : 0.7})];
  }
}

/** The marks of the series, and the lines and limits that have names. */
function markLegend(series, lines, limits) {
  const named = lines.filter(({name}) => name).map(({name, dash}) => make("span", {}, make("svg", {class: "mark", viewBox: "-6 -6 12 12", "aria-hidden": "true"},
    make("line", {x1: -6, x2: 6, y1: 0, y2: 0, stroke: "var(--faint)", "stroke-width": 1.5, "stroke-dasharray": dash})), name));
  named.push(...limits.map(({name}) => make("span", {}, make("svg", {class: "mark", viewBox: "-6 -6 12 12", "aria-hidden": "true"}, make("line", {class: "capacity", x1: -6, x2: 6, y1: 0, y2: 0})), name)));
  return make("div", {class: "legend"}, named, series.map(({name, hollow, look}, s) => make("span", {}, make("svg", {class: "mark", viewBox: "-6 -6 12 12", "aria-hidden": "true"},
    make("path", {d: shapeOf(look ?? s)(0, 0, 4), fill: hollow ? "none" : seriesColour(look ?? s), stroke: hollow ? seriesColour(look ?? s) : "var(--ink)", "stroke-width": hollow ? 1.5 : 0.7})), name)));
}
