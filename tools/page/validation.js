// The page of a validation: measured against predicted times of every dataset.
function validationHead(record) {
  const {datasets, ok, all_but_sizes: all} = record.result;
  return [heading(`Predicted against measured: ${datasets.length} dataset${datasets.length === 1 ? "" : "s"}`, record), make("div", {class: "figures"}, figure("within all bounds", ok ? "yes" : "no"),
    figure("median error", percentText(all?.median_abs_error)), figure("95 % of errors below", percentText(all?.p95_abs_error)), figure("rows that count", numberText(all?.rows ?? 0)))];
}

function cases({result}) {
  const rows = result.datasets.flatMap((d) => d.cases.map((c) => [d.name, c.name, c.rung, c.hypothesis, c.counted ? "" : "does not count", c.rows, percentText(c.median_abs_error), percentText(c.p95_abs_error),
    c.bound ? percentText(c.bound.median_abs_error) : "", c.ok ? "" : make("span", {class: "badge"}, "above its bound")]));
  return section("cases", "Errors", table(["dataset", "case", "rung", "hypothesis", "", "rows", "median", "95 %", "bound", ""], rows, 5));
}

const rowText = (row) => [row.op, row.m ? `${row.m}x${row.n}x${row.k}` : bytesText(row.bytes), `${row.devices} devices`, row.axis ? `along ${row.axis}` : "", row.step].filter((part) => part).join(", ");

function datasetSection(dataset, d) {
  const rows = dataset.rows.filter((row) => row.measured_s > 0 && row.predicted_s > 0);
  if (rows.length === 0) return null;
  const names = [...new Set(rows.map((row) => row.case))];
  const series = names.map((name) => {
    const own = rows.filter((row) => row.case === name);
    return {name: `${name}${own[0].counted ? "" : " (does not count)"}`, hollow: !own[0].counted,
      points: own.map((row) => ({x: row.measured_s, y: row.predicted_s, text: `${name}: ${rowText(row)}: measured ${timeText(row.measured_s)}, predicted ${timeText(row.predicted_s)}, ${signedPercent(row.error)}`}))};
  });
  const lines = [["measured", 0], ["10 % off", 0.1, "5 4"], ["", -0.1, "5 4"], ["20 % off", 0.2, "1 3"], ["", -0.2, "1 3"]].map(([name, part, dash]) => ({name, of: (x) => x * (1 + part), dash}));
  return section(`dataset_${d}`, dataset.name, make("p", {}, dataset.median_abs_error === null ? "No row of it counts." : `Median error ${percentText(dataset.median_abs_error)} of the rows that count.`),
    new Scatter({x: {label: "measured", text: timeText, log: true}, y: {label: "predicted", text: timeText, log: true}, series, label: `predicted against measured of ${dataset.name}`, lines}).element,
    folded(["case", "what", "measured", "predicted", "error"], () => dataset.rows.map((row) => [row.case, rowText(row), timeText(row.measured_s), timeText(row.predicted_s), signedPercent(row.error)]), 2));
}

const datasetSections = ({result}) => result.datasets.map(datasetSection).filter((part) => part !== null);
const validationSections = [cases, datasetSections, missing];
