// The page: what a run came to first, then why, then what it is made of.
const meshText = (mesh) => Object.entries(mesh ?? {}).map(([axis, size]) => `${axis}=${size}`).join(",");
const figure = (name, value) => make("div", {class: "figure"}, make("b", {}, value), make("span", {class: "faint"}, name));
const hypothetical = (result) => result.hypothetical ? make("span", {class: "badge", title: "the vendor does not offer this slice"}, "hypothetical") : null;

function headline({result, command, version, file}) {
  const trust = result.trust ?? {};
  return [
    make("h1", {}, `${result.schedule} on ${result.machine} ${result.slice} `, hypothetical(result)),
    make("p", {class: "faint"}, `mesh ${meshText(result.mesh)}, ${result.devices} devices, engine ${result.engine}${result.pass ? ` (${result.pass})` : ""}, ${file}${version ? `, podsim ${version}` : ""}`),
    command ? make("p", {class: "command"}, command) : null,
    make("div", {class: "figures"}, figure("time", timeText(result.makespan_s)), result.mfu === null || result.mfu === undefined ? null : figure("MFU", percentText(result.mfu)),
      figure("compute", timeText(result.compute_s)), figure("exposed communication", timeText(result.exposed_communication_s)), figure("waiting", timeText(result.waiting_s)),
      figure("peak memory", bytesText(result.peak_memory_bytes)), figure("link traffic", bytesText(result.link_bytes))),
    result.explanation ? make("p", {}, make("b", {}, result.explanation.sentence)) : null,
    make("p", {}, `trust: ${trust.level ?? "not known"}${trust.dataset ? `, ${trust.dataset}` : ""}${trust.error === null || trust.error === undefined ? "" : `, mean error ${percentText(trust.error)}`}`),
    (result.notes ?? []).map((note) => make("p", {}, `note: ${note}`))];
}

const splitNames = {compute_s: "arithmetic", host_s: "host", memory_s: "memory", core_share_s: "core time of communication", launch_s: "launches", own_block_s: "copies of own blocks",
  per_message_s: "per message", latency_s: "latency", bandwidth_s: "bandwidth", sharing_s: "shared links", reduction_s: "sums at receivers", waiting_s: "waiting"};

function timeSplit({result}) {
  const parts = [["compute", result.compute_s], ["exposed communication", result.exposed_communication_s], ["waiting", result.waiting_s]];
  const content = [make("p", {}, "The core of the busiest device:"), withTable(make("div", {}, stackedBar(parts, result.makespan_s || 1, timeText)),
    table(["part", "time", "of the run"], parts.map(([name, value]) => [name, timeText(value), percentText(value / (result.makespan_s || 1))])))];
  if (result.explanation) {
    const path = Object.entries(splitNames).map(([key, name]) => [name, result.explanation.split[key] ?? 0]);
    content.push(make("p", {}, "The critical path, on whatever device it runs:"), withTable(make("div", {}, stackedBar(path, result.makespan_s || 1, timeText)),
      table(["part", "time", "of the run"], path.map(([name, value]) => [name, timeText(value), percentText(value / (result.makespan_s || 1))]))));
  }
  return section("split", "Where the time goes", content.flat());
}

function axes({result}) {
  const axes = (result.axes ?? []).filter(({transfers}) => transfers > 0);
  if (axes.length === 0) return null;
  return section("axes", "Communication per axis", make("p", {}, "Exposed: in flight while the core of the busiest device waits."),
    barRows(axes.map(({axis, exposed_s}) => ({name: axis, value: exposed_s, note: `${timeText(exposed_s)} exposed`})), fills[5]),
    table(["axis", "transfers", "link traffic", "in flight", "exposed"], axes.map((a) => [a.axis, a.transfers, bytesText(a.link_bytes), timeText(a.in_flight_s), timeText(a.exposed_s)])));
}

function sensitivities({result}) {
  const found = result.explanation?.sensitivities ?? [];
  if (found.length === 0) return null;
  return section("sensitivities", "What each machine value would change", make("p", {}, "The change of the run's time if the value grows by the given part."),
    barRows(found.map((s) => ({name: `${s.parameter} ${signedPercent(s.change)}`, value: s.makespan_change, note: signedPercent(s.makespan_change)}))));
}

function criticalPath({result}) {
  const steps = result.explanation?.critical_path ?? [];
  if (steps.length === 0) return null;
  const rows = steps.slice(0, 2000).map((s) => [s.task, s.receiver === null ? `${s.device}` : `${s.device} to ${s.receiver}`, s.axis ?? "", timeText(s.start_s), timeText(s.end_s), timeText(s.end_s - s.start_s)]);
  const headings = ["task", "device", "axis", "begins", "ends", "takes"];
  return section("path", "Critical path", make("p", {}, `${steps.length} steps; each begins when the one before it ends.`), table(headings, rows.slice(0, 12), 3),
    rows.length > 12 ? make("details", {}, make("summary", {}, `${rows.length === steps.length ? "all" : `the first ${rows.length}`} steps`), table(headings, rows, 3)) : null);
}

function operations({result}) {
  const found = result.operations ?? [];
  if (found.length === 0) return null;
  const rows = found.map((o) => [o.name, o.category, o.count, timeText(o.busy_s), timeText(o.exposed_s), timeText(o.overlapped_s)]);
  return section("operations", "Operations", make("p", {}, "Of the busiest device: time in which its core works on the operation, waits only for it, or works on something else while it is in flight."),
    table(["operation", "category", "count", "busy", "exposed", "overlapped"], rows, 2));
}

function links({result}) {
  const found = result.per_link ?? [];
  if (found.length === 0) return null;
  const sorted = [...found].sort((a, b) => b.utilisation - a.utilisation);
  const name = (l) => `${l.link}${l.links > 1 ? `, and ${l.links - 1} alike` : ""}`;
  return section("links", "Links", make("p", {}, "Utilisation: what crossed over what could have crossed in the run."),
    barRows(sorted.slice(0, 40).map((l) => ({name: name(l), value: l.utilisation, note: percentText(l.utilisation)})), fills[2]),
    make("details", {}, make("summary", {}, "as a table"), table(["link", "bytes", "utilisation"], sorted.map((l) => [name(l), bytesText(l.bytes), percentText(l.utilisation)]))));
}

function devices({result}) {
  const found = result.per_device ?? [];
  if (found.length === 0) return null;
  return section("devices", "Devices", table(["device", "compute", "exposed", "waiting", "sent", "received", "peak memory"], found.slice(0, 500).map((d) =>
    [`${d.device} (${d.name})${d.devices > 1 ? `, and ${d.devices - 1} alike` : ""}`, timeText(d.compute_s), timeText(d.exposed_communication_s), timeText(d.waiting_s), bytesText(d.sent_bytes),
     bytesText(d.received_bytes), bytesText(d.peak_memory_bytes)])));
}

function machine({machine, result}) {
  if (machine.length === 0) return null;
  return section("machine", `Values of ${result.machine}`, table(["value", "", "source"], machine.map(({path, value, source}) => [path, value, source]), 9));
}

function missing({missing}) {
  return missing.length === 0 ? null : section("missing", "Not in this page", make("ul", {}, missing.map((what) => make("li", {}, what))));
}

function pageOf(record) {
  const parts = [timeSplit(record), sensitivities(record), record.timelines.length === 0 ? null : section("timeline", "Timeline", new Timeline(record).element), operations(record), axes(record), links(record),
    criticalPath(record), devices(record), machine(record), missing(record)].filter((part) => part !== null);
  return [...headline(record).flat(), make("nav", {"aria-label": "sections"}, parts.map((part) => make("a", {href: `#${part.id}`}, part.firstChild.textContent))), ...parts];
}

/** Runs side by side: their inputs, those that differ marked, and what they came to. */
function comparison(records, show) {
  const inputs = ["machine", "slice", "schedule", "algorithm", "dataflow", "slice_count", "engine"];
  const text = (record, key) => String(record.result[key] ?? "");
  const differing = new Set(inputs.filter((key) => new Set(records.map((record) => text(record, key))).size > 1));
  const rows = records.map((record, r) => make("tr", {}, make("td", {}, make("a", {href: "#run", onclick: () => show(r)}, record.file)),
    make("td", {class: "number"}, timeText(record.result.makespan_s)), make("td", {class: "number"}, record.result.mfu === null || record.result.mfu === undefined ? "" : percentText(record.result.mfu)),
    make("td", {}, hypothetical(record.result)), make("td", {}, meshText(record.result.mesh)),
    inputs.map((key) => make("td", {class: differing.has(key) ? "differs" : undefined}, text(record, key)))));
  return make("section", {id: "runs"}, make("h1", {}, `${records.length} runs`), make("div", {class: "wide"}, make("table", {},
    make("thead", {}, make("tr", {}, ["run", "time", "MFU", "", "mesh", ...inputs].map((heading) => make("th", {scope: "col"}, heading)))), make("tbody", {}, rows))));
}

function start() {
  const records = JSON.parse(document.getElementById("records").textContent);
  const page = document.getElementById("page"), one = make("div", {id: "run"});
  const show = (r) => one.replaceChildren(...pageOf(records[r]).filter((part) => part !== null));
  document.title = records.length === 1 ? `${records[0].result.schedule}: podsim` : `${records.length} runs: podsim`;
  page.append(...(records.length > 1 ? [comparison(records, show)] : []), one);
  show(0);
}
start();
