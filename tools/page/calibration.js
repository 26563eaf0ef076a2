// The page of a calibration: how far the fitted machine is off, its values, and what the observations cannot tell.
function calibrationHead(record) {
  const {result} = record, {parameters, residuals, held_back: held} = result, beyond = parameters.filter((p) => p.beyond_specification).length;
  const fitted = parameters.filter(({origin}) => origin === "fitted").length || parameters.length;
  return [heading(`${fitted} values fitted to ${residuals.length} observations`, record),
    make("div", {class: "figures"}, figure("median error of what was fitted", percentText(result.median_abs_error)), figure("95 % of these errors below", percentText(result.p95_abs_error)),
      isObject(held) ? [figure("median error of what was held back", percentText(held.median_abs_error)), figure("95 % of these errors below", percentText(held.p95_abs_error))] : null,
      result.undetermined.length > 0 ? figure("values that the observations do not tell", result.undetermined.length) : null),
    isObject(held) ? null : make("p", {class: "warning"}, "Nothing could be held back: how far other sizes are off is not known."),
    beyond === 0 ? null : make("p", {class: "warning"}, `${beyond === 1 ? "One value is" : `${beyond} values are`} more than such a part can do: effective values, not to be carried to other operations or numbers of devices.`),
    (result.notes ?? []).map((note) => make("p", {}, `note: ${said(note)}`))];
}

const inUnit = (unit, value) => unit === "s" ? timeText(value) : unit === "B/s" ? rateText(value) : numberText(value);

function fittedValues({result: {parameters}}) {
  const rows = parameters.map((p) => [p.path, p.at ?? "", p.origin, p.beyond_specification ? make("span", {class: "badge"}, "beyond its specification") : "", inUnit(p.unit, p.value), inUnit(p.unit, p.low), inUnit(p.unit, p.high),
    isNumber(p.specified) ? inUnit(p.unit, p.specified) : ""]);
  return section("values", "The values", saidColumns(["value", "at", "", "", "fitted", "from", "to", "specified"], rows, 4));
}

function fittedPoints({result: {residuals}}) {
  const shown = residuals.filter((r) => amount(r.measured_s) > 0 && amount(r.predicted_s) > 0);
  if (shown.length === 0) return null;
  const text = (r) => `${rowText(r)}: measured ${timeText(r.measured_s)}, predicted ${timeText(r.predicted_s)}, ${signedPercent(r.error)}${r.weight < 0.5 ? "; lies apart" : ""}`;
  const part = (op, o, apart) => ({name: `${op}${apart ? " (apart)" : ""}`, look: o, hollow: apart, points: shown.filter((r) => r.op === op && r.weight < 0.5 === apart).map((r) => ({x: r.measured_s, y: r.predicted_s, text: text(r)}))});
  const series = [...new Set(shown.map(({op}) => op))].flatMap((op, o) => [part(op, o, false), part(op, o, true)]).filter(({points}) => points.length > 0);
  return section("residuals", "Predicted against measured", new Scatter({x: {label: "measured", text: timeText, log: true}, y: {label: "predicted", text: timeText, log: true}, series, label: "predicted against measured", lines: errorLines}).element,
    folded(["observation", "measured", "predicted", "error", "weight"], () => [...residuals].sort((a, b) => Math.abs(b.error) - Math.abs(a.error)).map((r) => [rowText(r), timeText(r.measured_s), timeText(r.predicted_s), signedPercent(r.error), numberText(r.weight)])));
}

function notTold({result: {undetermined}}) {
  return undetermined.length === 0 ? null : section("undetermined", "What the observations do not tell", saidColumns(["value", "at", "why", "what would tell it"], undetermined.map((u) => [u.path, u.at ?? "", u.why, u.probe]), 9));
}

const fitChoices = ({result: {choices}}) => choices.length === 0 ? null : section("choices", "How the fit was found", list(choices.map(said)));

const calibrationSections = [fittedPoints, fittedValues, notTold, fitChoices, missing];
