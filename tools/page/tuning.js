// The page of a search: the plans, time against memory, why the others lose. Of products and blocks, and of training steps.
const planTime = (plan) => plan.predicted_s ?? plan.step_s;
const planMemory = (plan) => plan.peak_memory_bytes ?? plan.memory_bytes?.total;
/** Axes of training steps of size 1 are left out. */
const planMesh = (plan) => meshText(plan.memory_bytes || plan.kind ? Object.fromEntries(Object.entries(plan.mesh).filter(([, size]) => size > 1)) : plan.mesh);
const planText = (plan) => [plan.baseline, plan.slice, planMesh(plan), plan.pipeline, plan.microbatches ? `${plan.microbatches} microbatch${plan.microbatches === 1 ? "" : "es"}` : "",
  plan.remat ? `remat ${plan.remat}` : ""].filter((part) => part).join(", ");

/** What the search looked at, in the words of podsim's own table. */
function searched(result) {
  const training = result.training !== undefined;
  const all = training ? [["candidates considered", result.candidates], ["never simulated", result.interrupted ? null : result.pruned], ["steps simulated", result.simulated],
    ["over memory", result.over_memory], ["layers simulated for bounds", result.layers_simulated]]
    : [["options of products considered", result.candidates], ["ruled out by their bounds", result.interrupted ? null : result.pruned], ["parts simulated", result.simulated]];
  return all.filter(([, count]) => isNumber(count)).map(([name, count]) => [name, String(count)]);
}

function tuningHead(record) {
  const {result} = record, best = result.plans[0];
  return [heading(`${said(result.workload ?? result.training)}: the best plan`, record, hypothetical(best), " ", tooMuch(best)),
    make("div", {class: "figures"}, figure("time", timeText(planTime(best))), mfuText(best) === "" ? null : figure("MFU", mfuText(best)), figure("memory of a device", peakText(best, planMemory(best))),
      figure("slice", said(best.slice)), figure("mesh", planMesh(best))),
    result.interrupted ? make("p", {class: "warning"}, "Interrupted: the best plans known so far.") : null,
    best.run ? make("p", {class: "command"}, best.run) : null,
    (result.notes ?? []).map((note) => make("p", {}, `note: ${note}`))];
}

/** The plan as Python: of blocks what podsim wrote, of training steps the mesh in JAX's words and MaxText's keys. */
function planForJax({result}) {
  const best = result.plans[0];
  if (result.jax) return section("jax", "The plan in JAX", make("p", {}, "The mesh, with the devices in the plan's order, and a PartitionSpec for each array of a layer; X.T is stored transposed. podsim show plan --jax says which collectives JAX inserts for them."),
    make("pre", {class: "command"}, result.jax));
  if (result.training === undefined) return null;
  const axes = Object.entries(best.mesh).filter(([, size]) => size > 1), tuple = (parts) => `(${parts.join(", ")}${parts.length === 1 ? "," : ""})`;
  const batch = axes.map(([axis]) => axis).filter((axis) => axis === "data" || axis === "fsdp"), names = axes.map(([axis]) => `"${axis}"`);
  const code = ["import jax", "from jax.sharding import NamedSharding, PartitionSpec as P", "", `mesh = jax.make_mesh(${tuple(axes.map(([, size]) => size))}, ${tuple(names)})`,
    batch.length > 0 ? `tokens = NamedSharding(mesh, P(${batch.length > 1 ? tuple(batch.map((axis) => `"${axis}"`)) : `"${batch[0]}"`}, None))  # [batch, sequence]` : ""];
  return section("jax", "The plan in JAX", make("pre", {class: "command"}, code.join("\n").trim()),
    best.maxtext ? [make("p", {}, "MaxText:"), make("pre", {class: "command"}, best.maxtext)] : make("p", {}, `MaxText: ${said(best.maxtext_reason)}`));
}

function plans({result}) {
  const training = result.training !== undefined;
  const choices = training ? [["pipeline", (p) => `${p.pipeline ?? ""}${p.virtual_stages > 1 ? ` x ${p.virtual_stages}` : ""}`], ["microbatches", (p) => p.microbatches], ["remat", (p) => p.remat]] : [];
  const passes = training ? [] : [["forward", (p) => timeText(p.forward_s)], ["backward", (p) => timeText(p.backward_s)]];
  const words = [["plan", (p) => p.rank], ["slice", (p) => p.slice], ["", hypothetical], ["", tooMuch], ["mesh", planMesh], ...choices, ["why it loses", (p) => p.why ?? ""]];
  const figures = [["time", (p) => timeText(planTime(p))], ["more than the best", (p) => percentText(p.margin)], ...passes, ["MFU", mfuText], ["memory", (p) => peakText(p, planMemory(p))]];
  const columns = [...words, ...figures].filter(([name, of]) => name !== "" || result.plans.some(of)), rows = result.plans.map((plan) => columns.map(([, of]) => of(plan) ?? ""));
  const bars = result.plans.slice(0, 40).map((p) => ({name: `${said(p.rank)}. ${planText(p)}`, badge: tooMuch(p), value: planTime(p), note: timeText(planTime(p))}));
  return section("plans", "Plans", barRows(bars), table(columns.map(([name]) => name), rows, columns.length - figures.length), starNote(result.plans));
}

/** Those of which no other needs less time and less memory. */
function undominated(all) {
  return all.filter((a) => !all.some((b) => planTime(b) <= planTime(a) && planMemory(b) <= planMemory(a) && (planTime(b) < planTime(a) || planMemory(b) < planMemory(a))));
}

function pareto({result}) {
  const asked = (result.pareto ?? []).length > 0, all = [...result.plans, ...(result.pareto ?? [])];
  if (all.length < 2) return null;
  const front = [...undominated(all.filter((plan) => !overMemory(plan)))].sort((a, b) => planMemory(a) - planMemory(b));
  const point = (plan) => ({x: planMemory(plan), y: planTime(plan), text: `${planText(plan)}: ${timeText(planTime(plan))}, ${peakText(plan, planMemory(plan))}${plan.why ? `; ${plan.why}` : ""}`});
  const others = all.filter((plan) => !front.includes(plan)), fitting = others.filter((plan) => !overMemory(plan)), over = others.filter(overMemory);
  const series = [{name: "no other has less of both", points: front.map(point), joined: true}];
  if (fitting.length > 0) series.push({name: "others", points: fitting.map(point)});
  if (over.length > 0) series.push({name: "do not fit in memory", hollow: true, points: over.map(point)});
  if (result.baseline) series.push({name: `baseline ${result.baseline.baseline}`, points: [point(result.baseline)]});
  const rows = [...front.map((plan) => ["no other has less of both", plan]), ...others.map((plan) => ["", plan])];
  return section("pareto", "Time against memory", make("p", {}, asked ? "The plans, and the search's front." : "Of the plans above; podsim tune --pareto N searches the whole front of a block."),
    new Scatter({x: {label: "memory of a device", text: bytesText}, y: {label: "time", text: timeText}, series, label: "time against memory"}).element,
    folded(["", "plan", "time", "memory"], () => rows.map(([what, plan]) => [what, planText(plan), timeText(planTime(plan)), peakText(plan, planMemory(plan))]), 2));
}

function layers({result}) {
  const best = result.plans[0], parts = [...(best.layers ?? []), ...(best.others ?? [])];
  if (parts.length === 0) return null;
  const bars = parts.map((l) => ({name: l.name, parts: [l.forward_s, l.backward_s], note: timeText(l.forward_s + l.backward_s)}));
  return section("layers", "The best plan", withTable(make("div", {}, stackedRows(bars, ["forward", "backward"].map((role) => [role, roleColour(role)]))), table(["part", "algorithm", "dataflow", "S", "layout", "forward", "backward"],
    parts.map((l) => [l.name, l.algorithm, `${l.transposed ? "transposed " : ""}${l.dataflow ?? ""}`, l.slice_count, l.layout, timeText(l.forward_s), timeText(l.backward_s)]), 5)));
}

function trainingSplit({result}) {
  const split = result.plans[0].split;
  if (!split) return null;
  const exposed = (byAxis) => Object.entries(byAxis).map(([axis, time], n) => [`exposed on ${axis}`, time, axisColour(n)]);
  const parts = Object.entries(split).flatMap(([key, value]) => isObject(value) ? exposed(value) : [[roleOfKey(key), value, roleColour(roleOfKey(key))]]);
  const time = result.plans[0].step_s || 1, rows = parts.map(([name, value]) => [name, timeText(value), percentText(share(value, time))]);
  return section("split", "Where the time of the best plan goes", withTable(make("div", {}, stackedBar(parts, time, timeText)), table(["part", "time", "of the step"], rows)));
}

function alternatives({result}) {
  const found = result.alternatives ?? [];
  return found.length === 0 ? null : section("alternatives", "The next best of each product", table(["product", "algorithm", "dataflow", "S", "time", "of the plan", "more"],
    found.map((o) => [o.name, o.algorithm, `${o.transposed ? "transposed " : ""}${o.dataflow}`, o.slice_count, `${o.exact ? "" : "at least "}${timeText(o.time_s)}`, timeText(o.of_plan_s), signedPercent(o.time_s / o.of_plan_s - 1)]), 4));
}

function flips({result}) {
  const found = result.flips ?? [];
  return found.length === 0 ? null : section("flips", "What would make plan 2 the best", list(found.map(({parameter, factor}) => `${parameter} x ${numberText(factor)}`)));
}

function excluded({result}) {
  const found = result.excluded ?? [];
  return found.length === 0 ? null : section("left_out", "Left out", list(found.map((e) => e.what ? `${e.what}: ${e.reason}` : `${e.kind}: ${planText(e)}: at least ${timeText(e.bound_s)}, but ${e.needs}`)));
}

const searchCounts = ({result}) => section("search", "The search", make("div", {class: "figures"}, searched(result).map(([name, count]) => figure(name, count))));

const tuningSections = [plans, planForJax, pareto, layers, trainingSplit, alternatives, flips, searchCounts, excluded, missing];
