// The page of explained observations: what each should take, what bounds it, and which algorithm comes nearest.
function explainedHead(record) {
  const {rows, median_abs_error: median} = record.result;
  return [heading(`${rows.length} measured time${rows.length === 1 ? "" : "s"} explained`, record), make("div", {class: "figures"}, figure("median error", percentText(median)), figure("rows", rows.length))];
}

const boundOf = ({bound}) => said(bound).replace(/, [0-9.]+ %$/, "");

function measuredAndExpected({result: {rows}}) {
  const shown = rows.filter((row) => amount(row.measured_s) > 0 && amount(row.expected_s) > 0);
  if (shown.length === 0) return null;
  const text = (row) => `${rowText(row)}: measured ${timeText(row.measured_s)}, expected ${timeText(row.expected_s)}; ${said(row.explanation)}`;
  const series = [...new Set(shown.map(boundOf))].map((bound) => ({name: `bound by ${bound}`, points: shown.filter((row) => boundOf(row) === bound).map((row) => ({x: row.measured_s, y: row.expected_s, text: text(row)}))}));
  return section("measured", "Expected against measured", new Scatter({x: {label: "measured", text: timeText, log: true}, y: {label: "expected", text: timeText, log: true}, series, label: "expected against measured",
    lines: [{name: "measured", of: (x) => x}]}).element);
}

function explainedRows({result: {rows}}) {
  const algorithms = (row) => (row.algorithms ?? []).map(({name, predicted_s: time}) => `${said(name)} ${timeText(time)}`).join(", ");
  const cells = rows.map((row) => [rowText(row), said(row.explanation), row.bound, row.nearest, algorithms(row), timeText(row.measured_s), timeText(row.expected_s), signedPercent(share(row.expected_s - row.measured_s, row.measured_s))]);
  return section("rows", "Every row", table(["what", "explanation", "bound by", "nearest algorithm", "what algorithms would take", "measured", "expected", "error"], cells, 5));
}

const explainedSections = [measuredAndExpected, explainedRows, missing];
