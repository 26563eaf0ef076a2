// The page of a sweep: which input matters, the best of each of its values, and all points by any two of their columns.
const units = [[/_s$/, timeText], [/bytes$/, bytesText], [/^(mfu|hfu)$/, percentText]];
const cellText = (column, value) => value === null || value === undefined ? "" : isNumber(value) ? (units.find(([name]) => name.test(column))?.[1] ?? numberText)(value) : String(value);

/** Stores have 0 and 1. */
const pointOver = ({over_hbm: over}) => over === 1 || over === true;

const donePoints = ({rows}) => rows.filter(({status}) => status === "done");

/** The columns of what was swept, which come first, with more than one value. */
function sweptColumns({columns, rows}) {
  const first = columns.findIndex((column) => column.startsWith("used_")), done = donePoints({rows});
  return columns.slice(0, first < 0 ? columns.length : first).filter((column) => column !== "point" && new Set(done.map((row) => row[column] ?? null)).size > 1);
}

const columnText = (column) => column.replace(/_/g, " ");
const inputsText = (columns, row) => columns.filter((column) => row[column] !== null && row[column] !== undefined).map((column) => `${columnText(column)} ${cellText(column, row[column])}`).join(", ");
const fastest = (rows) => rows.filter((row) => isNumber(row.makespan_s)).reduce((best, row) => best === null || row.makespan_s < best.makespan_s ? row : best, null);

function sweepHead(record) {
  const {rows} = record.result, done = donePoints(record.result), fitting = done.filter((row) => !pointOver(row)), over = done.length - fitting.length;
  const best = fastest(fitting.length > 0 ? fitting : done), times = done.map(({makespan_s: time}) => time).filter(isNumber), first = importances(record.result)[0];
  return [heading(`Sweep of ${rows.length} points`, record, hypothetical({hypothetical: rows.some((row) => row.hypothetical)})),
    over === 0 ? null : make("p", {class: "warning"}, `${over === done.length ? "All" : over} of them need more memory than the device has.`),
    make("div", {class: "figures"}, best ? [figure(`fastest: point ${said(best.point)}${pointOver(best) ? ", which does not fit in memory" : ""}`, timeText(best.makespan_s)),
      figure("slowest", timeText(mostOf(times)))] : null, first ? figure("matters most", columnText(first.column)) : null, figure("done", done.length), figure("do not apply", rows.length - done.length)),
    best ? make("p", {}, make("b", {}, `The fastest: ${inputsText(sweptColumns(record.result), best)}.`)) : null];
}

/** How much of the variance of the logarithm of the time lies between the values of each input: 1 if the input alone decides. Largest first. */
function importances({columns, rows}) {
  const done = donePoints({rows}).filter(({makespan_s: time}) => amount(time) > 0), log = (row) => Math.log(row.makespan_s);
  const mean = (all) => all.reduce((sum, row) => sum + log(row), 0) / all.length, whole = mean(done), total = done.reduce((sum, row) => sum + (log(row) - whole) ** 2, 0);
  if (done.length < 3 || total < 1e-12) return [];
  return sweptColumns({columns, rows}).map((column) => {
    const groups = [...new Set(done.map((row) => row[column] ?? null))].map((value) => done.filter((row) => (row[column] ?? null) === value));
    return {column, values: groups.length, part: groups.reduce((sum, group) => sum + group.length * (mean(group) - whole) ** 2, 0) / total};
  }).sort((a, b) => b.part - a.part);
}

function parameters({result}) {
  const found = importances(result);
  return found.length === 0 ? null : section("importance", "What matters", make("p", {}, "The share of the variance of the time's logarithm that each input explains alone; what inputs do together is in none of them."),
    barRows(found.map(({column, values, part}) => ({name: columnText(column), value: part, note: `${percentText(part)}, ${values} values`}))));
}

/** The fastest point of each value of an input. */
function bestOfGroups({result}) {
  const done = donePoints(result), swept = sweptColumns(result), few = importances(result).filter(({values}) => values <= 60).map(({column}) => column);
  if (few.length === 0) return null;
  const place = make("div");
  const draw = (column) => {
    const groups = [...new Set(done.map((row) => row[column] ?? null))].map((value) => ({value, rows: done.filter((row) => (row[column] ?? null) === value)}));
    const best = groups.map(({value, rows}) => ({value, count: rows.length, row: fastest(rows)})).filter(({row}) => row !== null).sort((a, b) => a.row.makespan_s - b.row.makespan_s);
    place.replaceChildren(table([columnText(column), "with", "fastest", "than the best of all", "points"], best.map(({value, count, row}) =>
      [value === null ? "-" : cellText(column, value), inputsText(swept.filter((other) => other !== column), row), `${timeText(row.makespan_s)}${pointOver(row) ? "*" : ""}`, signedPercent(row.makespan_s / best[0].row.makespan_s - 1), count]), 2));
  };
  draw(few[0]);
  return section("best", "The best of each", make("div", {class: "tools"}, chooser("by", few, few[0], draw)), place);
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

const noFacets = "none";

/** All points in one chart, or in one for each value of a column, whose axes are alike. */
function points({result}) {
  const {columns} = result, rows = withNumbers(columns, result.rows);
  const varied = columns.filter((column) => column !== "point" && new Set(rows.map((row) => row[column])).size > 1);
  const numbers = varied.filter((column) => rows.some((row) => isNumber(row[column])) && rows.every((row) => row[column] === null || isNumber(row[column])));
  const sweptNames = sweptColumns({columns, rows}).filter((column) => !numbers.includes(column));
  const groups = varied.filter((column) => new Set(rows.map((row) => row[column])).size <= 12);
  if (numbers.length < 2) return null;
  const chosen = {...firstColumns(columns, rows, numbers, groups), facet: noFacets}, swept = sweptColumns({columns, rows}), sizes = columns.filter((column) => result.rows.some((row) => typeof row[column] === "string" && bytesOf(row[column]) !== null));
  if (!swept.includes(chosen.x) && sweptNames.length > 0) chosen.x = importances(result).map(({column}) => column).find((column) => sweptNames.includes(column)) ?? chosen.x;
  const place = make("div");
  const draw = () => {
    const isNames = sweptNames.includes(chosen.x), across = isNames ? [...new Set(rows.map((row) => row[chosen.x]).filter((value) => value !== null && value !== undefined))].map(String).sort() : [];
    const xOf = (row) => isNames ? (row[chosen.x] === null || row[chosen.x] === undefined ? null : across.indexOf(String(row[chosen.x]))) : row[chosen.x];
    const shown = rows.filter((row) => isNumber(xOf(row)) && isNumber(row[chosen.y])), names = [...new Set(shown.map((row) => row[chosen.colour]))];
    const facets = chosen.facet === noFacets ? [] : [...new Set(shown.map((row) => row[chosen.facet]))];
    if (shown.length === 0) return place.replaceChildren(make("p", {}, "No point has both numbers."));
    const axis = (column) => {
      if (isNames && column === chosen.x) return {label: columnText(column), names: across};
      const values = shown.map((row) => row[column]), least = leastOf(values);
      const counts = swept.includes(column) && values.every((value) => Number.isInteger(value)), text = (value) => /bytes/.test(column) || sizes.includes(column) ? exactBytes(value) : cellText(column, value);
      return {label: columnText(column), values, text: counts ? text : (value) => cellText(column, value), log2: counts && least > 0 && mostOf(values) > 4 * least, log: !counts && least > 0 && mostOf(values) > 20 * least};
    };
    const told = varied.filter((column) => !/_s$|events|tasks|flops/.test(column));
    const inputs = (row) => told.filter((column) => row[column] !== null).slice(0, 9).map((column) => `${column} ${cellText(column, row[column])}`).join(", ");
    const point = (row) => ({x: xOf(row), y: row[chosen.y], text: `point ${row.point}: ${cellText(chosen.y, row[chosen.y])}; ${inputs(row)}${pointOver(row) ? "; does not fit in memory" : ""}`});
    const part = (among, name, look, over) => ({name: `${chosen.colour ?? ""} ${cellText(chosen.colour, name) || "-"}${over ? " (does not fit in memory)" : ""}`, look, hollow: over,
      points: among.filter((row) => row[chosen.colour] === name && pointOver(row) === over).map(point)});
    const plot = (among, of) => new Scatter({x: axis(chosen.x), y: axis(chosen.y), label: `${chosen.y} against ${chosen.x}${of}`,
      series: names.flatMap((name, n) => [part(among, name, n, false), part(among, name, n, true)]).filter(({points: drawn}) => drawn.length > 0)}).element;
    if (facets.length === 0) return place.replaceChildren(plot(shown, ""));
    const title = (value) => `${columnText(chosen.facet)} ${cellText(chosen.facet, value) || "-"}`;
    place.replaceChildren(make("div", {class: "facets"}, facets.map((value) => make("div", {}, make("h3", {}, title(value)), plot(shown.filter((row) => row[chosen.facet] === value), `, ${title(value)}`)))));
  };
  const choose = (key) => (value) => { chosen[key] = value; draw(); };
  draw();
  const choosers = [chooser("across", [...numbers, ...sweptNames], chosen.x, choose("x")), chooser("up", numbers, chosen.y, choose("y"))];
  if (groups.length > 0) choosers.push(chooser("marks", groups, chosen.colour, choose("colour")), chooser("facets", [noFacets, ...groups], noFacets, choose("facet")));
  return section("points", "Points", make("div", {class: "tools"}, choosers), place);
}

function allPoints({result: {columns, rows}}) {
  const shown = columns.filter((column) => rows.some((row) => row[column] !== null));
  const text = (row, column) => `${cellText(column, row[column])}${column === "peak_memory_bytes" && pointOver(row) ? "*" : ""}`;
  return section("all", "All points", folded(shown, () => rows.map((row) => shown.map((column) => text(row, column))), 99, `${rows.length} points as a table`),
    rows.some(pointOver) ? make("p", {}, "* more than the device has") : null);
}

const sweepSections = [parameters, bestOfGroups, points, allPoints, missing];
