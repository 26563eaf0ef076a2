// Bars. Widths are shares of the page's, in a drawing of 1000 units that is as wide as its place.
const fills = [0, 1, 2, 3, 4, 5, 6, 7].map((c) => `var(--c${c})`);

function legend(entries) {
  return make("div", {class: "legend"}, entries.map(([name, fill]) => make("span", {}, make("span", {class: "key", style: `background:${fill}`}), name)));
}

/** One bar of parts [name, value]; parts of zero are left out. */
function stackedBar(parts, total, text) {
  const shown = parts.filter(([, value]) => value > 0);
  let at = 0;
  const bars = shown.map(([name, value], i) => {
    const bar = make("rect", {x: (1000 * at) / total, y: 0, width: (1000 * value) / total, height: 26, fill: fills[i % fills.length], stroke: "var(--paper)"},
                     make("title", {}, `${name}: ${text(value)}, ${percentText(value / total)}`));
    at += value;
    return bar;
  });
  const label = shown.map(([name, value]) => `${name} ${text(value)}`).join(", ");
  return [make("svg", {viewBox: "0 0 1000 26", height: 26, preserveAspectRatio: "none", role: "img", "aria-label": label}, bars),
          legend(shown.map(([name, value], i) => [`${name} ${text(value)} (${percentText(value / total)})`, fills[i % fills.length]]))];
}

/** A row per entry {name, value, note}: its bar, from a common zero; values of both signs go both ways. */
function barRows(entries, fill = fills[0]) {
  const most = Math.max(...entries.map(({value}) => value), 0), least = Math.min(...entries.map(({value}) => value), 0);
  const span = most - least || 1;
  const rows = entries.map(({name, value, note}) => make("tr", {},
    make("th", {scope: "row"}, name),
    make("td", {style: "width:60%"}, make("svg", {viewBox: "0 0 1000 16", height: 16, preserveAspectRatio: "none", "aria-hidden": "true"},
      make("rect", {class: "back", x: 0, y: 0, width: 1000, height: 16}),
      make("rect", {x: (1000 * (Math.min(value, 0) - least)) / span, y: 2, width: Math.max((1000 * Math.abs(value)) / span, 1), height: 12, fill}))),
    make("td", {class: "number"}, note)));
  return make("div", {class: "wide"}, make("table", {style: "width:100%;min-width:24em"}, make("tbody", {}, rows)));
}
