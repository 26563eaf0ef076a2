// The page of a measured step beside the predicted one: how far apart they are, by category, and which collective is exposed.
const signedTime = (seconds) => isNumber(seconds) ? `${seconds > 0 ? "+" : seconds < 0 ? "-" : ""}${timeText(Math.abs(seconds))}` : "-";

function diffHead(record) {
  const {result} = record, {matching = {}, notes = [], warnings = []} = result, matched = ({matched_s: part, time_s: whole}) => percentText(share(part, whole));
  return [heading(`A measured step ${result.measured_s > result.predicted_s ? "is slower than" : "beside"} its prediction`, record),
    make("div", {class: "figures"}, figure("measured", timeText(result.measured_s)), figure("predicted", timeText(result.predicted_s)),
      figure("of the prediction", signedPercent(share(result.gap_s, result.predicted_s))),
      isObject(matching.measured) ? figure("of the measured time has a counterpart", matched(matching.measured)) : null),
    make("p", {}, make("b", {}, said(result.sentence))), [...warnings, ...notes].map((note) => make("p", {}, `note: ${said(note)}`))];
}

/** Not the first two series, which have the colours of compute and communication. */
const measuredColour = seriesColour(3), predictedColour = seriesColour(2);
/** Two bars a row, measured above predicted, on one scale. */
function pairedBars(entries) {
  const most = mostOf(entries.flatMap(({measured, predicted}) => [amount(measured), amount(predicted)])) || 1;
  const bar = (value, y, fill) => isNumber(value) ? make("rect", {x: 0, y, width: Math.max((1000 * amount(value)) / most, 1), height: 7, fill}) : null;
  const rows = entries.map(({name, measured, predicted, note}) => make("tr", {}, make("th", {scope: "row"}, name),
    make("td", {class: "bar"}, make("svg", {viewBox: "0 0 1000 18", height: 18, preserveAspectRatio: "none", "aria-hidden": "true"}, bar(measured, 1, measuredColour), bar(predicted, 9, predictedColour))),
    make("td", {class: "number"}, note)));
  return [legend([["measured", measuredColour], ["predicted", predictedColour]]), make("div", {class: "wide"}, make("table", {style: "width:100%;min-width:24em"}, make("tbody", {}, rows)))];
}

function stepByCategory({result: {categories}}) {
  const rows = [...categories].sort((a, b) => Math.max(amount(b.measured_s), amount(b.predicted_s)) - Math.max(amount(a.measured_s), amount(a.predicted_s)));
  const cells = categories.map((c) => [c.name, timeText(c.measured_s), timeText(c.predicted_s), signedTime(c.gap_s), percentText(c.share), timeText(c.measured_overlapped_s), timeText(c.predicted_overlapped_s)]);
  return section("categories", "The step by category", pairedBars(rows.map((c) => ({name: c.name, measured: c.measured_s, predicted: c.predicted_s, note: `${timeText(c.measured_s)}, ${signedTime(c.gap_s)}`}))),
    folded(["category", "measured", "predicted", "gap", "of the gap", "hidden, measured", "hidden, predicted"], () => cells));
}

function measuredLedger({result: {collectives = []}}) {
  if (collectives.length === 0) return null;
  const most = 10, known = (value, text) => value === null || value === undefined ? "-" : text(value);
  const bars = collectives.filter((c) => amount(c.measured_exposed_s ?? c.predicted_exposed_s) > 0).slice(0, most);
  const row = (c) => [c.name, c.kind, c.axis, c.source ?? c.path ?? "", known(c.measured_exposed_s, timeText), known(c.predicted_exposed_s, timeText), known(c.gap_s, signedTime), known(c.share, percentText),
    known(c.measured_hidden_s, timeText), known(c.predicted_hidden_s, timeText), known(c.measured_count ?? c.predicted_count, numberText), bytesText(c.bytes)];
  const headings = ["collective", "kind", "axis", "from", "exposed, measured", "predicted", "gap", "of the step", "hidden, measured", "predicted", "count", "bytes each"];
  return section("collectives", "What it waits for", make("p", {}, "Its collectives, most exposed first: exposed while the core waits for them, hidden while it works."),
    pairedBars(bars.map((c) => ({name: c.name, measured: c.measured_exposed_s, predicted: c.predicted_exposed_s, note: `${known(c.measured_exposed_s, timeText)}${isNumber(c.gap_s) ? `, ${signedTime(c.gap_s)}` : ", one side alone"}`}))),
    saidColumns(headings, collectives.map(row), 4));
}

function measuredOperations({result: {ops}}) {
  const names = (all) => `${said(all?.[0])}${all?.length > 1 ? ` and ${all.length - 1} more` : ""}`;
  const rows = ops.map((o) => [names(o.predicted), names(o.measured), o.category, timeText(o.measured_s), timeText(o.predicted_s), signedTime(o.gap_s), percentText(o.share)]);
  return ops.length === 0 ? null : section("operations", "Operations, largest gap first", table(["operation", "measured as", "category", "measured", "predicted", "gap", "of the gap"], rows, 3));
}

function withoutCounterpart({result: {unmatched}}) {
  const found = unmatched.filter((o) => amount(o.time_s) > 0);
  return found.length === 0 ? null : section("unmatched", "Without a counterpart", table(["operation", "side", "category", "time", "count"], found.map((o) => [o.name, o.side, o.category, timeText(o.time_s), numberText(o.count)]), 3));
}

const diffSections = [stepByCategory, measuredLedger, measuredOperations, withoutCounterpart, missing];
