// What charts share, and bars. Widths are shares of the page's, in a drawing of 1000 units that is as wide as its place.
// `colours` is the table that podsim puts before the scripts: tools/report/role_colours.hpp.
const roleColour = (role) => Object.hasOwn(colours.roles, role) ? colours.roles[role] : colours.roles.other;
/** Of exposed communication on the first axis, the second, ... */
const axisColour = (n) => colours.axes[n % colours.axes.length];
const seriesColour = (n) => colours.series[n % colours.series.length];
/** Of bars that have no role, such as the times of whole runs. */
const plain = "var(--faint)";

const leastOf = (values) => values.reduce((least, value) => Math.min(least, value), Infinity);
const mostOf = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity);

function legend(entries) {
  return make("div", {class: "legend"}, entries.map(([name, fill]) => make("span", {}, make("span", {class: "key", style: `background:${fill}`}), name)));
}

/** One bar of parts [name, value, colour]; parts of zero are left out. */
function stackedBar(parts, total, text) {
  const shown = parts.filter(([, value]) => amount(value) > 0);
  let at = 0;
  const bars = shown.map(([name, value, fill]) => {
    const bar = make("rect", {x: (1000 * at) / total, y: 0, width: (1000 * value) / total, height: 26, fill, stroke: "var(--paper)"},
                     make("title", {}, `${name}: ${text(value)}, ${percentText(value / total)}`));
    at += value;
    return bar;
  });
  const label = shown.map(([name, value]) => `${name} ${text(value)}`).join(", ");
  return [make("svg", {viewBox: "0 0 1000 26", height: 26, preserveAspectRatio: "none", role: "img", "aria-label": label}, bars),
          legend(shown.map(([name, value, fill]) => [`${name} ${text(value)} (${percentText(value / total)})`, fill]))];
}

/** A row per entry {name, value, note}: its bar, from a common zero; values of both signs go both ways. */
function barRows(entries, fill = plain) {
  const values = entries.map(({value}) => value).filter(isNumber), most = Math.max(mostOf(values), 0), least = Math.min(leastOf(values), 0);
  const span = most - least || 1;
  const rows = entries.map(({name, value, note, badge}) => make("tr", {},
    make("th", {scope: "row"}, name, badge ?? null),
    make("td", {class: "bar"}, make("svg", {viewBox: "0 0 1000 16", height: 16, preserveAspectRatio: "none", "aria-hidden": "true"},
      make("rect", {class: "back", x: 0, y: 0, width: 1000, height: 16}),
      isNumber(value) ? make("rect", {x: (1000 * (Math.min(value, 0) - least)) / span, y: 2, width: Math.max((1000 * Math.abs(value)) / span, 1), height: 12, fill}) : null)),
    make("td", {class: "number"}, note)));
  return make("div", {class: "wide"}, make("table", {style: "width:100%;min-width:24em"}, make("tbody", {}, rows)));
}

/** A table row per entry {name, parts, note}: a bar of its parts, all bars on one scale. `looks`: [name, colour] of each part. */
function stackedRows(entries, looks) {
  const most = mostOf(entries.map(({parts}) => parts.reduce((sum, part) => sum + amount(part), 0))) || 1;
  const rows = entries.map(({name, parts, note, badge}) => {
    let at = 0;
    const bars = parts.map(amount).map((part, p) => {
      const bar = make("rect", {x: (1000 * at) / most, y: 2, width: (1000 * part) / most, height: 12, fill: looks[p][1]});
      at += part;
      return bar;
    });
    return make("tr", {}, make("th", {scope: "row"}, name, badge),
      make("td", {class: "bar"}, make("svg", {viewBox: "0 0 1000 16", height: 16, preserveAspectRatio: "none", "aria-hidden": "true"}, make("rect", {class: "back", x: 0, y: 0, width: 1000, height: 16}), bars)),
      make("td", {class: "number"}, note));
  });
  return [legend(looks), make("div", {class: "wide"}, make("table", {style: "width:100%;min-width:24em"}, make("tbody", {}, rows)))];
}

/** The least of 1, 2 or 5 times a power of ten of which at most `ticks` fit a span. */
function niceStep(span, ticks) {
  const step = 10 ** Math.floor(Math.log10(span / ticks));
  return [1, 2, 5, 10].map((f) => f * step).find((s) => span / s <= ticks);
}

/** The text of a time in picoseconds on an axis, within a drawing's width. */
function timeLabel(x, y, time, width) {
  const text = timeText(time / 1e12);
  return make("text", {class: "faint", x: Math.min(x, width - text.length * 7.2), y}, text);
}

/** Says a text beside a point of the window, an event or {clientX, clientY}; without a text nothing is said. */
function tell(text, at) {
  const tip = document.getElementById("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.max(Math.min(at.clientX + 12, innerWidth - tip.offsetWidth - 4), 4)}px`;
  tip.style.top = `${Math.max(Math.min(at.clientY + 14, innerHeight - tip.offsetHeight - 4), 4)}px`;
}

/** A drawing whose marks the pointer finds, and the arrow keys go through one by one. `chart` has count, textOf(i), placeOf(i), which is [x, y] in the
 * drawing, and nearest(x, y): a mark or -1. */
function pickable(chart, label) {
  let at = -1;
  const ring = make("path", {class: "found"});
  const drawing = make("svg", {tabindex: 0, role: "application", "aria-label": `${label}: arrow keys go through the marks`});
  const point = (i, event) => {
    at = i;
    if (i < 0) return ring.removeAttribute("d"), tell(null);
    const [x, y] = chart.placeOf(i), area = drawing.getBoundingClientRect(), scale = area.width / drawing.viewBox.baseVal.width;
    ring.setAttribute("d", `M${x - 7} ${y - 7}h14v14h-14z`);
    drawing.append(ring);
    tell(chart.textOf(i), event ?? {clientX: area.left + x * scale, clientY: area.top + y * scale});
  };
  drawing.addEventListener("mousemove", (event) => {
    const area = drawing.getBoundingClientRect(), scale = drawing.viewBox.baseVal.width / area.width;
    point(chart.nearest((event.clientX - area.left) * scale, (event.clientY - area.top) * scale), event);
  });
  drawing.addEventListener("mouseleave", () => point(-1));
  drawing.addEventListener("blur", () => point(-1));
  drawing.addEventListener("keydown", (event) => {
    const next = {ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: chart.count - 1}[event.key];
    if (event.key === "Escape") return point(-1);
    if (next === undefined || chart.count === 0) return;
    event.preventDefault();
    point(Math.min(Math.max(next, 0), chart.count - 1));
  });
  return drawing;
}

/** Draws a chart again whenever its place has another width. */
function redrawn(drawing, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.max(Math.floor(drawing.parentNode?.clientWidth ?? 0), 280);
    if (now !== width) draw(width = now);
  }).observe(drawing);
  return drawing;
}

function put(drawing, width, height, parts) {
  drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  drawing.setAttribute("height", height);
  drawing.replaceChildren(...parts);
}
