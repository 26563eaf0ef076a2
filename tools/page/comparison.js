// The page of a comparison: who wins, by what, and all variants.
// What a row says of its outcome or derives from its inputs; every other key is an input.
const outcomes = new Set(["schedule", "hypothetical", "devices", "idle_devices", "device_classes", "collective_devices", "flops", "mfu", "hfu", "over_hbm", "tasks", "events", "pass", "padding", "tokens",
  "tflops_per_chip", "split", "stages", "calls", "trust", "share_of_cut_bound", "contains_all_gather", "replicated", "rings",
  "healthy", "fail_any", "notes", "assumed", "axes", "collectives", "operations", "explanation", "orders", "instructions", "is_scheduled"]);
const isOutcome = (key) => outcomes.has(key) || /_s$|_bytes$|_per_s$/.test(key);

/** The value of an input as a text, null if it is none of a row: scalars, lists of them, and maps of them, as meshes are. */
function inputText(key, value) {
  const plain = (part) => typeof part !== "object" && part !== undefined;
  if (Array.isArray(value)) return value.length > 0 && value.every(plain) ? value.join(", ") : null;
  if (isObject(value)) return Object.values(value).every(plain) && Object.keys(value).length > 0 ? (key === "vary" ? variedText({vary: value}) : meshText(value)) : null;
  if (value === null || value === undefined || value === "" || !plain(value)) return null;
  return key === "bytes" && isNumber(value) ? exactBytes(value) : String(value);
}

/** As podsim takes sizes, to the byte. */
function exactBytes(bytes) {
  const [factor, unit] = [[1024 ** 4, "TiB"], [1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"]].find(([size]) => bytes >= size && bytes % size === 0) ?? [];
  return factor === undefined ? `${bytes}B` : `${bytes / factor}${unit}`;
}

/** The keys of the inputs in which rows differ, in the order of the rows' keys. */
function differingInputs(rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => !isOutcome(key));
  return keys.filter((key) => new Set(rows.map((row) => inputText(key, row[key]))).size > 1);
}

const inputNames = {slice_count: "S", bytes: "size", vary: "varied", virtual_stages: "virtual stages", layers_by: "layers by", slow_devices: "slow devices"};
const inputName = (key) => inputNames[key] ?? key.replace(/_/g, " ");
/** An input within the name of a variant: where the value does not tell what it is, its key is there too. */
function namedInput(key, text) {
  if (key === "slice_count") return `S=${text}`;
  if (key === "microbatches") return `${text} microbatch${text === "1" ? "" : "es"}`;
  if (key === "axis") return `along ${text}`;
  return ["dataflow", "collective", "bytes", "vary", "mesh", "slice", "machine", "topology", "pipeline", "engine"].includes(key) ? text : `${inputName(key)} ${text}`;
}

const variedText = (row) => Object.entries(row.vary ?? {}).map(([path, value]) => `${path}=${said(value)}`).join(" ");

/** A name per row: its algorithm and all inputs in which the rows differ; the schedule where that does not tell them apart. */
function variantNames(rows) {
  const keys = differingInputs(rows).filter((key) => key !== "algorithm");
  const name = (row) => {
    const algorithm = said(row.algorithm || row.schedule);
    const parts = keys.map((key) => [key, inputText(key, row[key])]).filter(([key, text]) => text !== null && !(key === "pipeline" && text === algorithm));
    return [algorithm, ...parts.map(([key, text]) => namedInput(key, text))].join(", ");
  };
  const names = rows.map(name);
  return new Set(names).size === rows.length ? names : names.map((text, r) => rows[r].schedule && rows[r].schedule !== rows[r].algorithm ? `${text}, ${said(rows[r].schedule)}` : text);
}

/** What stands first: of each problem on each machine the fastest, and by how much the next one is slower. */
function comparisonHead(record) {
  const {rows, notes = []} = record.result, names = variantNames(rows);
  const badge = hypothetical({hypothetical: rows.some((row) => row.hypothetical)}), over = rows.filter(overMemory).length;
  const timed = rows.map((row, r) => ({row, name: names[r]})).filter(({row}) => isNumber(row.makespan_s)), inOrder = [...timed].sort((a, b) => a.row.makespan_s - b.row.makespan_s);
  const [best, next] = inOrder, last = inOrder[inOrder.length - 1], more = ({row}) => `+${percentText(share(row.makespan_s - best.row.makespan_s, best.row.makespan_s))}`;
  const tiles = best === undefined ? [] : [tile("fastest", timeText(best.row.makespan_s), best.name), ...(next ? [tile("next", more(next), next.name)] : []), ...(inOrder.length > 2 ? [tile("slowest", more(last), last.name)] : []),
    tile("waits for communication", percentText(share(best.row.exposed_communication_s, best.row.makespan_s)), "of the fastest"),
    tile("peak memory", peakText(best.row), "of a device, the fastest")];
  return [heading(`${rows.length} variants`, record, badge), over === 0 ? null : make("p", {class: "warning"}, `${over === rows.length ? "All" : over} of them need more memory than the device has.`),
    make("div", {class: "tiles"}, tiles), notes.map((note) => make("p", {}, `note: ${said(note)}`))];
}

/** The verdicts in words, a line for each of their sentences and parts. */
function verdictsInWords({result: {verdicts = []}}) {
  return verdicts.length === 0 ? null : section("verdicts", "The verdict in words", verdicts.map((verdict) => make("p", {class: "verdict"}, said(verdict))));
}

/** How far a row is behind the fastest of those with the same problem on the same machine. */
function behindBest(rows) {
  const place = (row) => ["machine", "slice", "topology", "mesh", "mesh_order", "vary", "pods", "fail", "degrade", "collective", "axis", "bytes", "batch", "sequence"]
    .map((key) => inputText(key, row[key]) ?? "").join("\n");
  const best = new Map();
  for (const row of rows) if (isNumber(row.makespan_s)) best.set(place(row), Math.min(best.get(place(row)) ?? Infinity, row.makespan_s));
  return (row) => isNumber(row.makespan_s) ? `+${percentText(share(row.makespan_s - best.get(place(row)), best.get(place(row))))}` : "";
}

function variants({result: {rows}}) {
  const names = variantNames(rows), mostBars = 60;
  const entries = rows.slice(0, mostBars).map((row, r) => ({name: `${names[r]} `, badge: [hypothetical(row), " ", tooMuch(row)],
    parts: [row.compute_s, row.exposed_communication_s, row.waiting_s], note: timeText(row.makespan_s)}));
  const input = (key) => [inputName(key), (row) => inputText(key, row[key]) ?? ""];
  const always = ["dataflow", "slice_count", "collective", "axis", "bytes", "microbatches", "remat", "pipeline", "machine", "slice", "topology", "mesh", "vary"];
  const keys = [...always, ...differingInputs(rows).filter((key) => key !== "algorithm" && !always.includes(key))];
  const replicated = (row) => Array.isArray(row.replicated) ? row.replicated.map((r) => `${said(r.tensor)} ${r.gathered ? "gathered first" : r.when === "before" ? "given" : "left"}`).join(", ") : "";
  const columns = [["algorithm", (row) => row.algorithm || row.schedule], ...keys.map(input), ["replicated", replicated], ["", hypothetical], ["", tooMuch]].filter(([, of]) => rows.some((row) => of(row)));
  const rate = (key) => (row) => isNumber(row[key]) ? rateText(row[key]) : "", time = (value) => isNumber(value) ? timeText(value) : "";
  const part = (key) => (row) => isNumber(row[key]) ? percentText(row[key]) : "";
  const figures = [["time", (row) => timeText(row.makespan_s)], ["vs best", behindBest(rows)], ["tokens/s", (row) => isNumber(row.tokens_per_s) ? numberText(row.tokens_per_s) : ""],
    ["MFU", mfuText], ["HFU", part("hfu")],
    ["algbw", rate("algbw_bytes_per_s")], ["busbw", rate("busbw_bytes_per_s")], ["of cuts", part("share_of_cut_bound")],
    ["compute", (row) => timeText(row.compute_s)], ["recompute", (row) => time(row.split?.recompute_s)], ["exposed", (row) => timeText(row.exposed_communication_s)],
    ["waiting", (row) => timeText(row.waiting_s)], ["bubble", (row) => time(row.split?.bubble_s)], ["received", (row) => isNumber(row.received_bytes) ? bytesText(row.received_bytes) : ""],
    ["idle devices", (row) => row.idle_devices > 0 ? row.idle_devices : ""], ["peak memory", (row) => peakText(row)], ["link traffic", (row) => bytesText(row.link_bytes)]]
    .filter(([, of]) => rows.some((row) => of(row) !== ""));
  const all = [...columns, ...figures];
  const note = rows.length > mostBars ? make("p", {}, `Bars of the first ${mostBars} of ${rows.length}:`) : null;
  return section("variants", "Variants", note, stackedRows(entries, ["compute", "exposed communication", "waiting"].map((role) => [role, roleColour(role)])),
    folded(all.map(([name]) => name), () => rows.map((row) => all.map(([, of]) => of(row) ?? "")), columns.length), starNote(rows));
}

/** Lines of what the devices of rows have: of every size one that rows need more or hardly less than. */
function capacities(rows, needed) {
  const sizes = [...new Set(rows.map(hbmOf).filter((size) => size !== null))].sort((a, b) => a - b);
  return sizes.filter((size) => rows.some((row) => hbmOf(row) === size && row[needed] > size / 2)).map((size) => {
    const machines = [...new Set(rows.filter((row) => hbmOf(row) === size).map(({machine}) => said(machine)))];
    return {x: size, name: `a device${sizes.length > 1 ? ` of ${machines.join(", ")}` : ""} has ${bytesText(size)}`};
  });
}

function timeAgainstMemory({result: {rows}}) {
  if (rows.length < 3) return null;
  const variant = variantNames(rows), nameOf = (row) => said(row.algorithm || row.schedule), names = [...new Set(rows.map(nameOf))];
  const point = (row) => ({x: row.peak_memory_bytes, y: row.makespan_s, text: `${variant[rows.indexOf(row)]}: ${timeText(row.makespan_s)}, ${peakText(row)}`});
  const part = (name, look, over) => ({name: over ? `${name} (does not fit)` : name, look, hollow: over, points: rows.filter((row) => nameOf(row) === name && overMemory(row) === over).map(point)});
  const series = names.flatMap((name, n) => [part(name, n, false), part(name, n, true)]).filter(({points}) => points.length > 0);
  return section("time_and_memory", "Time against memory", make("p", {}, "Peak memory of a device. The figures are in the table of the variants."),
    new Scatter({x: {label: "peak memory", text: bytesText}, y: {label: "time", text: timeText, fromZero: true}, series, limits: capacities(rows, "peak_memory_bytes"), label: "time against memory"}).element);
}

function crossovers({result}) {
  const row = (r, {pod, path, unit}) => [pod, `${said(path)} ${numberText(r.from)} to ${numberText(r.to)} ${unit ?? ""}`, [r.algorithm, r.dataflow].filter((part) => part).join(" "),
    timeText(r.makespan_from_s), timeText(r.makespan_to_s), r.runner_up ?? "", percentText(r.margin)];
  const found = (result.crossovers ?? []).flatMap((crossover) => crossover.reigns.map((r) => row(r, crossover)));
  return found.length === 0 ? null : section("crossovers", "Which wins where",
    table(["pod", "value", "fastest", "time at its begin", "at its end", "runner-up", "margin"], found, 3));
}

function topologies({result}) {
  const found = result.topologies ?? [], rate = (value) => value === null ? "unlimited" : rateText(value);
  const rows = found.map((t) => [t.topology, t.links, t.links_of_a_chip ?? "", t.switch_ports, rate(t.total_bandwidth_bytes_per_s), rate(t.injection_bandwidth_bytes_per_s),
    rate(t.bisection_bandwidth_bytes_per_s), `x ${numberText(t.link_scale)}`]);
  return found.length === 0 ? null : section("topologies", "What the topologies have",
    table(["topology", "links", "of a chip", "switch ports", "all links", "out of a chip", "bisection", "link speed"], rows));
}

const comparisonSections = [variants, verdictsInWords, timeAgainstMemory, crossovers, topologies, ({result}) => leftOut(result.skipped ?? []), missing];
