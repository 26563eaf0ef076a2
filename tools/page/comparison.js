// The page of a comparison: who wins, by what, and all variants.
function variantText(row) {
  const count = row.slice_count === null || row.slice_count === undefined ? "" : `S=${row.slice_count}`;
  const parts = [row.algorithm || row.schedule, row.dataflow, count, row.collective, row.bytes ? bytesText(row.bytes) : ""];
  return parts.filter((part) => part).join(" ");
}
const variedText = (row) => Object.entries(row.vary ?? {}).map(([path, value]) => `${path}=${value}`).join(" ");
const placeText = (row) => [row.machine, row.slice, row.topology, meshText(row.mesh), variedText(row)].filter((part) => part).join(" ");

function comparisonHead(record) {
  const {rows, verdicts = [], notes = []} = record.result;
  const badge = hypothetical({hypothetical: rows.some((row) => row.hypothetical)});
  return [heading(`${rows.length} variants`, record, badge), verdicts.map((verdict) => make("p", {}, make("b", {}, verdict))), notes.map((note) => make("p", {}, `note: ${note}`))];
}

function variants({result: {rows}}) {
  const places = new Set(rows.map(placeText)), mostBars = 60;
  const entries = rows.slice(0, mostBars).map((row) => ({name: `${variantText(row)}${places.size > 1 ? `, ${placeText(row)}` : ""} `, badge: hypothetical(row),
    parts: [row.compute_s, row.exposed_communication_s, row.waiting_s], note: timeText(row.makespan_s)}));
  const text = (key) => (row) => String(row[key] ?? "");
  const rate = (key) => (row) => row[key] ? `${bytesText(row[key])}/s` : "";
  const columns = [["algorithm", (row) => row.algorithm || row.schedule], ["dataflow", text("dataflow")], ["S", text("slice_count")],
    ["collective", text("collective")], ["size", (row) => row.bytes ? bytesText(row.bytes) : ""], ["machine", text("machine")], ["slice", text("slice")],
    ["topology", text("topology")], ["mesh", (row) => meshText(row.mesh)], ["varied", variedText], ["", hypothetical]].filter(([, of]) => rows.some((row) => of(row)));
  const figures = [["time", (row) => timeText(row.makespan_s)], ["MFU", mfuText], ["algbw", rate("algbw_bytes_per_s")], ["busbw", rate("busbw_bytes_per_s")],
    ["compute", (row) => timeText(row.compute_s)], ["exposed", (row) => timeText(row.exposed_communication_s)], ["waiting", (row) => timeText(row.waiting_s)],
    ["peak memory", (row) => bytesText(row.peak_memory_bytes)], ["link traffic", (row) => bytesText(row.link_bytes)]].filter(([, of]) => rows.some((row) => of(row) !== ""));
  const all = [...columns, ...figures];
  const note = rows.length > mostBars ? make("p", {}, `Bars of the first ${mostBars} of ${rows.length}:`) : null;
  return section("variants", "Variants", note, stackedRows(entries, ["compute", "exposed communication", "waiting"]),
    folded(all.map(([name]) => name), () => rows.map((row) => all.map(([, of]) => of(row) ?? "")), columns.length));
}

function timeAgainstMemory({result: {rows}}) {
  if (rows.length < 3) return null;
  const nameOf = (row) => row.algorithm || row.schedule, names = [...new Set(rows.map(nameOf))];
  const point = (row) => ({x: row.peak_memory_bytes, y: row.makespan_s, text: `${variantText(row)}, ${placeText(row)}: ${timeText(row.makespan_s)}, ${bytesText(row.peak_memory_bytes)}`});
  const series = names.map((name) => ({name, points: rows.filter((row) => nameOf(row) === name).map(point)}));
  return section("time_and_memory", "Time against memory", make("p", {}, "Peak memory of a device. The figures are in the table of the variants."),
    new Scatter({x: {label: "peak memory", text: bytesText}, y: {label: "time", text: timeText, fromZero: true}, series, label: "time against memory"}).element);
}

function crossovers({result}) {
  const row = (r, {pod, path, unit}) => [pod, `${path} ${r.from} to ${r.to} ${unit}`, [r.algorithm, r.dataflow].filter((part) => part).join(" "),
    timeText(r.makespan_from_s), timeText(r.makespan_to_s), r.runner_up ?? "", percentText(r.margin)];
  const found = (result.crossovers ?? []).flatMap((crossover) => crossover.reigns.map((r) => row(r, crossover)));
  return found.length === 0 ? null : section("crossovers", "Which wins where",
    table(["pod", "value", "fastest", "time at its begin", "at its end", "runner-up", "margin"], found, 3));
}

function topologies({result}) {
  const found = result.topologies ?? [], rate = (value) => value === null ? "unlimited" : `${bytesText(value)}/s`;
  const rows = found.map((t) => [t.topology, t.links, t.switch_ports, rate(t.total_bandwidth_bytes_per_s), rate(t.injection_bandwidth_bytes_per_s),
    rate(t.bisection_bandwidth_bytes_per_s), `x ${numberText(t.link_scale)}`]);
  return found.length === 0 ? null : section("topologies", "What the topologies have",
    table(["topology", "links", "switch ports", "all links", "out of a chip", "bisection", "link speed"], rows));
}

const comparisonSections = [variants, timeAgainstMemory, crossovers, topologies, ({result}) => leftOut(result.skipped ?? []), missing];
