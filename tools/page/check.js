// The page of a check: whether the schedule is right, and what was proven of it.
function checkHead(record) {
  const {result} = record, yes = (value) => value === true ? "yes" : value === false ? "NO" : "-";
  const verdict = result.proven === false ? "Not proven" : result.ok ? `Right${result.not_checked ? `, but for ${result.not_checked.length} custom-call${result.not_checked.length === 1 ? "" : "s"} that were not checked` : ""}` : "Wrong";
  return [heading(verdict, record), make("p", {}, make("b", {}, `${result.bit_equal === null ? "Nothing was computed" : `Compared with ${said(result.compared)}`}, on ${result.devices} device${result.devices === 1 ? "" : "s"}, in program order${
    result.orders_tried > 1 ? ` and ${result.orders_tried - 1} random legal orders` : ""}.`)),
    make("div", {class: "figures"}, figure("every transfer has its partner", yes(result.matched)), figure("free of deadlocks", yes(result.deadlock_free)), figure("free of races", yes(result.race_free)),
      result.bit_equal === null ? null : figure("bit-equal", yes(result.bit_equal)),
      isNumber(result.max_rel_error) ? figure(`largest error, of the largest value; ${numberText(result.tolerance)} is allowed`, numberText(result.max_rel_error)) : null,
      isNumber(result.received_bytes) ? figure("received by a device", bytesText(result.received_bytes)) : null),
    result.inexact ? make("p", {}, `${said(result.inexact)}: compared on ${said(result.proof_data)} within ${numberText(result.proof_tolerance)}; the largest error is ${numberText(result.proof_rel_error)}.`) : null];
}

const problems = ({result: {problems: found}}) => found.length === 0 ? null : section("problems", "What is wrong", list(found.map(said)));

function losses({result}) {
  if (!Array.isArray(result.losses)) return null;
  const rows = result.losses.map((loss, s) => [s + 1, said(loss), said(result.losses_reference?.[s])]);
  return section("losses", "Training beside one device", make("p", {}, `Largest error of gradients ${numberText(result.max_gradient_error)}, of parameters ${numberText(result.max_parameter_error)}.`), table(["step", "loss", "loss of one device in float64"], rows));
}

function checkedEdges({result: {edges = []}}) {
  if (edges.length === 0) return null;
  const counts = [...new Set(edges.map(({purpose}) => purpose))].map((purpose) => ({name: purpose, value: edges.filter((e) => e.purpose === purpose).length}));
  return section("edges", "What each edge is for", barRows(counts.map((c) => ({...c, note: `${c.value}`}))), table(["from", "to", "purpose", "without it"], edges.map((e) => [e.from, e.to, e.purpose, e.race || "-"]), 9));
}

const notChecked = ({result: {not_checked: found = []}}) => found.length === 0 ? null : section("not_checked", "Not checked", list(found.map(said)));
const outputsOf = ({result: {outputs = []}}) => outputs.length === 0 ? null : section("outputs", "Outputs", table(["output", "extents", "values"], outputs.map((o) => [o.name, o.extents.join(" x "), o.values.map(said).join(" ")]), 9));

const checkSections = [problems, losses, notChecked, outputsOf, checkedEdges, missing];
