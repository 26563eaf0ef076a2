// The page of a validation: measured against predicted times of every dataset.
function validationHead(record) {
  const {datasets, ok, all_but_sizes: all, rungs} = record.result;
  const counts = ({rows}) => isNumber(rows) && rows > 0;
  const groups = [["all but sizes", all], ...Object.entries(rungs ?? {})].filter(([, found]) => isObject(found) && counts(found));
  const of = ([name, {rows, median_abs_error: median, p95_abs_error: p95}]) => [name, rows, percentText(median), percentText(p95)];
  const first = groups[0];
  return [heading(`Predicted against measured: ${datasets.length} dataset${datasets.length === 1 ? "" : "s"}`, record), make("div", {class: "figures"}, figure("within all bounds", ok === true ? "yes" : "no"),
    first ? [figure(`median error, ${first[0]}`, percentText(first[1].median_abs_error)), figure("95 % of these errors below", percentText(first[1].p95_abs_error)),
      figure(`rows that count, ${first[0]}`, numberText(first[1].rows))] : null),
    first ? null : make("p", {}, "No row counts."),
    groups.length > 1 ? table(["rows that count", "rows", "median error", "95 %"], groups.map(of)) : null];
}

function cases({result}) {
  const rows = result.datasets.flatMap((d) => d.cases.map((c) => [d.name, c.name, c.rung, c.hypothesis, c.counted ? "" : "does not count", c.rows, percentText(c.median_abs_error), percentText(c.p95_abs_error),
    c.bound ? percentText(c.bound.median_abs_error) : "", c.ok ? "" : make("span", {class: "badge"}, "above its bound")]));
  return section("cases", "Errors", table(["dataset", "case", "rung", "hypothesis", "", "rows", "median", "95 %", "bound", ""], rows, 5));
}

const rowText = (row) => [row.op, row.m ? `${row.m}x${row.n}x${row.k}` : bytesText(row.bytes), isNumber(row.devices) ? `${row.devices} devices` : "", row.axis ? `along ${row.axis}` : "", row.step].filter((part) => part).join(", ");

/** What lies on the diagonal, and 10 and 20 % off it. */
const errorLines = [["measured", 0], ["10 % off", 0.1, "5 4"], ["", -0.1, "5 4"], ["20 % off", 0.2, "1 3"], ["", -0.2, "1 3"]].map(([name, part, dash]) => ({name, of: (x) => x * (1 + part), dash}));

function datasetSection(dataset, d) {
  const rows = dataset.rows.filter((row) => amount(row.measured_s) > 0 && amount(row.predicted_s) > 0);
  if (rows.length === 0) return null;
  const names = [...new Set(rows.map((row) => row.case))];
  const series = names.map((name) => {
    const own = rows.filter((row) => row.case === name);
    return {name: `${name}${own[0].counted ? "" : " (does not count)"}`, hollow: !own[0].counted,
      points: own.map((row) => ({x: row.measured_s, y: row.predicted_s, text: `${name}: ${rowText(row)}: measured ${timeText(row.measured_s)}, predicted ${timeText(row.predicted_s)}, ${signedPercent(row.error)}`}))};
  });
  const counted = dataset.rows.filter((row) => row.counted).length;
  return section(`dataset_${d}`, dataset.name, make("p", {}, dataset.median_abs_error === null ? "No row of it counts." : `Median error ${percentText(dataset.median_abs_error)} of the ${counted} rows of it that count.`),
    new Scatter({x: {label: "measured", text: timeText, log: true}, y: {label: "predicted", text: timeText, log: true}, series, label: `predicted against measured of ${dataset.name}`, lines: errorLines}).element,
    folded(["case", "what", "measured", "predicted", "error"], () => dataset.rows.map((row) => [row.case, rowText(row), timeText(row.measured_s), timeText(row.predicted_s), signedPercent(row.error)]), 2));
}

const datasetSections = ({result}) => result.datasets.map(datasetSection).filter((part) => part !== null);
const validationSections = [cases, datasetSections, missing];
