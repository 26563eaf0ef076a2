// The page of a sweep: all points, and any two of their numbers against each other.
const units = [[/_s$/, timeText], [/bytes$/, bytesText], [/^(mfu|hfu)$/, percentText]];
const cellText = (column, value) => value === null || value === undefined ? "" : isNumber(value) ? (units.find(([name]) => name.test(column))?.[1] ?? numberText)(value) : String(value);

/** Stores have 0 and 1. */
const pointOver = ({over_hbm: over}) => over === 1 || over === true;

function sweepHead(record) {
  const {rows} = record.result, done = rows.filter(({status}) => status === "done");
  const best = done.filter((row) => isNumber(row.makespan_s)).sort((a, b) => a.makespan_s - b.makespan_s)[0];
  const over = rows.filter(pointOver).length;
  return [heading(`Sweep of ${rows.length} points`, record, hypothetical({hypothetical: rows.some((row) => row.hypothetical)})),
    over === 0 ? null : make("p", {class: "warning"}, `${over === done.length ? "All" : over} of them need more memory than the device has.`),
    make("div", {class: "figures"}, figure("done", done.length), figure("do not apply", rows.length - done.length),
      best ? figure(`fastest: point ${said(best.point)}${best.over_hbm ? ", which does not fit in memory" : ""}`, timeText(best.makespan_s)) : null)];
}

function chooser(label, names, chosen, change) {
  const option = (name) => make("option", {value: name, selected: name === chosen ? "" : null}, name);
  const select = make("select", {"aria-label": label, onchange: () => change(select.value)}, names.map(option));
  return make("label", {}, `${label} `, select);
}

/** Rows whose sizes are numbers, as 16MiB is one. */
function withNumbers(columns, rows) {
  const sizes = columns.filter((column) => rows.some((row) => typeof row[column] === "string") && rows.every((row) => row[column] === null || bytesOf(row[column]) !== null));
  return rows.map((row) => ({...row, ...Object.fromEntries(sizes.map((column) => [column, row[column] === null ? null : bytesOf(row[column])]))}));
}

/** The columns first shown across, up and as marks: numbers that were swept and differ, the step's time, and what else was swept. */
function firstColumns(columns, rows, numbers, groups) {
  const done = rows.filter(({status}) => status === "done"), swept = columns.slice(0, Math.max(columns.findIndex((column) => column.startsWith("used_")), 0));
  const valuesOf = (column, among) => new Set(among.map((row) => row[column]).filter((value) => value !== null && value !== undefined));
  const differing = (of) => of.filter((column) => valuesOf(column, done).size > 1), filled = (column) => done.filter((row) => isNumber(row[column])).length;
  const wanted = (names, of) => [...names.filter((name) => of.includes(name)), ...of];
  const y = wanted(["makespan_s", "step_s"], differing(numbers))[0] ?? numbers[0];
  const others = differing(numbers).filter((column) => column !== y), asked = others.filter((column) => swept.includes(column)).sort((a, b) => filled(b) - filled(a));
  const x = [...asked, ...wanted(["slice_count", "devices", "peak_memory_bytes"], others)][0] ?? numbers.find((column) => column !== y);
  const shown = done.filter((row) => isNumber(row[x]) && isNumber(row[y])), marks = groups.filter((column) => column !== x && valuesOf(column, shown).size > 1);
  const colour = [...wanted(["algorithm", "machine", "slice"], marks.filter((column) => swept.includes(column))), ...wanted(["used_algorithm"], marks)][0] ?? groups[0];
  return {x, y, colour};
}

function points({result}) {
  const {columns} = result, rows = withNumbers(columns, result.rows);
  const varied = columns.filter((column) => column !== "point" && new Set(rows.map((row) => row[column])).size > 1);
  const numbers = varied.filter((column) => rows.some((row) => isNumber(row[column])) && rows.every((row) => row[column] === null || isNumber(row[column])));
  const groups = varied.filter((column) => new Set(rows.map((row) => row[column])).size <= 12);
  if (numbers.length < 2) return null;
  const chosen = firstColumns(columns, rows, numbers, groups);
  const place = make("div");
  const draw = () => {
    const shown = rows.filter((row) => isNumber(row[chosen.x]) && isNumber(row[chosen.y])), names = [...new Set(shown.map((row) => row[chosen.colour]))];
    if (shown.length === 0) return place.replaceChildren(make("p", {}, "No point has both numbers."));
    const axis = (column) => {
      const values = shown.map((row) => row[column]), least = leastOf(values);
      return {label: column, text: (value) => cellText(column, value), log: least > 0 && mostOf(values) > 20 * least};
    };
    const told = varied.filter((column) => !/_s$|events|tasks|flops/.test(column));
    const inputs = (row) => told.filter((column) => row[column] !== null).slice(0, 9).map((column) => `${column} ${cellText(column, row[column])}`).join(", ");
    const point = (row) => ({x: row[chosen.x], y: row[chosen.y], text: `point ${row.point}: ${cellText(chosen.y, row[chosen.y])}; ${inputs(row)}${pointOver(row) ? "; does not fit in memory" : ""}`});
    const part = (name, look, over) => ({name: `${chosen.colour ?? ""} ${cellText(chosen.colour, name) || "-"}${over ? " (does not fit in memory)" : ""}`, look, hollow: over,
      points: shown.filter((row) => row[chosen.colour] === name && pointOver(row) === over).map(point)});
    const series = names.flatMap((name, n) => [part(name, n, false), part(name, n, true)]).filter(({points: drawn}) => drawn.length > 0);
    place.replaceChildren(new Scatter({x: axis(chosen.x), y: axis(chosen.y), series, label: `${chosen.y} against ${chosen.x}`}).element);
  };
  const choose = (key) => (value) => { chosen[key] = value; draw(); };
  draw();
  const choosers = [chooser("across", numbers, chosen.x, choose("x")), chooser("up", numbers, chosen.y, choose("y"))];
  if (groups.length > 0) choosers.push(chooser("marks", groups, chosen.colour, choose("colour")));
  return section("points", "Points", make("div", {class: "tools"}, choosers), place);
}

function allPoints({result: {columns, rows}}) {
  const shown = columns.filter((column) => rows.some((row) => row[column] !== null));
  const text = (row, column) => `${cellText(column, row[column])}${column === "peak_memory_bytes" && pointOver(row) ? "*" : ""}`;
  return section("all", "All points", folded(shown, () => rows.map((row) => shown.map((column) => text(row, column))), 99, `${rows.length} points as a table`),
    rows.some(pointOver) ? make("p", {}, "* more than the device has") : null);
}

const sweepSections = [points, allPoints, missing];
