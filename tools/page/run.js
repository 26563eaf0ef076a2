// The page of a run: what it came to first, then why, then what it is made of.
function memoryWarning(record) {
  const {result} = record, capacity = capacityOf(record);
  if (!overMemory(result)) return null;
  const has = capacity === null ? "" : `${bytesText(capacity)} that the `;
  return make("p", {class: "warning"}, `${bytesText(result.peak_memory_bytes)} per device: more than the ${has}device has. The time is of devices that had the memory.`);
}

/** As nccl-tests defines the bandwidths; the bound is what the cuts of the network leave to any algorithm. */
function collectiveFigures({algbw_bytes_per_s: algbw, busbw_bytes_per_s: busbw, cut_bound_s: bound, share_of_cut_bound: part}) {
  return [isNumber(algbw) ? figure("algbw", rateText(algbw)) : null, isNumber(busbw) ? figure("busbw", rateText(busbw)) : null,
    isNumber(bound) ? figure(`cut bound, of which ${percentText(part)} is reached`, timeText(bound)) : null];
}

function failureFigures({healthy, makespan_s: time}) {
  const whole = healthy?.makespan_s;
  return isNumber(whole) ? figure(`healthy; ${signedPercent(isNumber(time) ? share(time - whole, whole) : null)} as it is`, timeText(whole)) : null;
}

function headline(record) {
  const {result} = record;
  const trust = result.trust ?? {};
  return [
    heading(`${said(result.schedule)} on ${said(result.machine)} ${said(result.slice)}`, record, hypothetical(result), " ", tooMuch(result)),
    make("p", {class: "faint"}, `mesh ${meshText(result.mesh)}, ${said(result.devices)} devices, engine ${said(result.engine)}${result.pass ? ` (${result.pass})` : ""}`),
    memoryWarning(record),
    make("div", {class: "figures"}, figure("time", timeText(result.makespan_s)), mfuText(result) === "" ? null : figure("MFU", mfuText(result)),
      figure("compute", timeText(result.compute_s)), figure("exposed communication", timeText(result.exposed_communication_s)), figure("waiting", timeText(result.waiting_s)),
      collectiveFigures(result), failureFigures(result),
      figure("peak memory", peakText(result)), figure("link traffic", bytesText(result.link_bytes))),
    sentenceOf(result) ? make("p", {}, make("b", {}, sentenceOf(result))) : null,
    make("p", {}, `trust: ${trust.level ?? "not known"}${trust.dataset ? `, ${trust.dataset}` : ""}${trust.error === null || trust.error === undefined ? "" : `, mean error ${percentText(trust.error)}`}`),
    (result.notes ?? []).map((note) => make("p", {}, `note: ${note}`))];
}

/** What the parts of a training step's time are called in a sentence. */
const stepParts = {compute_s: "compute", recompute_s: "recomputation", bubble_s: "the bubble", optimizer_s: "the optimizer", copies_s: "copies", launch_s: "launches", waiting_s: "waiting"};

/** The role of a part that results have by a key: "core share" of core_share_s. */
const roleOfKey = (key) => key.replace(/_s$/, "").replace(/_/g, " ");

/** The parts of a training step's time, the longest first: "bound by compute, 64.3 % of the step; then the bubble, 20.1 %". */
function boundBy({split, makespan_s: time}) {
  if (!isObject(split)) return null;
  const exposed = Object.entries(split.exposed_s ?? {}).map(([axis, value]) => [`exposed communication on ${axis}`, value]);
  const parts = [...Object.entries(stepParts).map(([key, name]) => [name, split[key]]), ...exposed].filter(([, value]) => isNumber(value) && value > 0).sort(([, a], [, b]) => b - a);
  const texts = parts.slice(0, 3).map(([name, value]) => `${name}, ${percentText(share(value, time))}`);
  return texts.length === 0 ? null : `The busiest device is bound by ${texts[0]} of the step${texts.length > 1 ? `; then ${texts.slice(1).join("; ")}` : ""}.`;
}

const sentenceOf = (result) => result.explanation?.sentence ?? boundBy(result);

/** The stages by time, as everybody draws them: from the simulated step, numbered microbatches. */
function pipeline({pipeline: found}) {
  if (!found) return null;
  return section("pipeline", "The pipeline", make("p", {}, `White is the bubble, in which a stage has no microbatch: ${percentText(found.bubble)} of all stages' time.`),
    make("div", {class: "wide"}, make("img", {class: "picture", src: found.picture, alt: `${found.title}; a row for each stage, from left to right its forwards and backwards by microbatch`})));
}

const splitNames = {compute_s: "arithmetic", host_s: "host", memory_s: "memory", core_share_s: "core time of communication", launch_s: "launches", own_block_s: "copies of own blocks",
  per_message_s: "per message", latency_s: "latency", bandwidth_s: "bandwidth", sharing_s: "shared links", reduction_s: "sums at receivers", waiting_s: "waiting"};

/** What is broken or slow, in words; empty if all is well. */
function partsOffText({fail, degrade, slow_devices: slow}) {
  const all = (found, what) => Array.isArray(found) && found.length > 0 ? [`${what}: ${found.join(", ")}`] : [];
  return [...all(fail, "Broken and missing"), ...all(degrade, "Slowed"), ...(isNumber(slow) && slow > 0 ? [`Slow devices: ${slow}`] : [])].join("; ");
}

function failures({result}) {
  const {fail_any: any, rings, makespan_s: time} = result, broken = partsOffText(result);
  const content = [], more = (loss) => isNumber(loss.makespan_s) && isNumber(time) ? share(loss.makespan_s - time, time) : null;
  if (broken !== "") content.push(make("p", {}, `${broken}.`));
  if (rings) content.push(make("p", {}, `The broken rings: ${rings}.`));
  if (any) content.push(table(["one broken cable", "such as", "broken rings", "time", "more"], Object.entries(any).map(([name, loss]) =>
    [name === "no_traffic" ? `no traffic: ${said(loss.cables)} cables` : name, loss.cable, loss.rings, timeText(loss.makespan_s), signedPercent(more(loss))]), 3));
  return content.length === 0 ? null : section("failures", "Broken and slow parts", content);
}

function timeSplit({result}) {
  const parts = ["compute_s", "exposed_communication_s", "waiting_s"].map((key) => [roleOfKey(key), result[key], roleColour(roleOfKey(key))]);
  const content = [make("p", {}, "The core of the busiest device:"), withTable(make("div", {}, stackedBar(parts, result.makespan_s || 1, timeText)),
    table(["part", "time", "of the run"], parts.map(([name, value]) => [name, timeText(value), percentText(share(value, result.makespan_s))])))];
  if (result.explanation) {
    const path = Object.entries(splitNames).map(([key, name]) => [name, result.explanation.split[key] ?? 0, roleColour(roleOfKey(key))]);
    content.push(make("p", {}, "The critical path, on whatever device it runs:"), withTable(make("div", {}, stackedBar(path, result.makespan_s || 1, timeText)),
      table(["part", "time", "of the run"], path.map(([name, value]) => [name, timeText(value), percentText(share(value, result.makespan_s))]))));
  }
  return section("split", "Where the time goes", content.flat());
}

function axes({result}) {
  const axes = (result.axes ?? []).filter(({transfers}) => transfers > 0);
  if (axes.length === 0) return null;
  return section("axes", "Communication per axis", make("p", {}, "Exposed: in flight while the core of the busiest device waits."),
    barRows(axes.map(({axis, exposed_s}) => ({name: axis, value: exposed_s, note: `${timeText(exposed_s)} exposed`})), roleColour("exposed")),
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
  const row = (s) => [s.task, s.receiver === null ? `${s.device}` : `${s.device} to ${s.receiver}`, s.axis ?? "", timeText(s.start_s), timeText(s.end_s), timeText(s.end_s - s.start_s)];
  const headings = ["task", "device", "axis", "begins", "ends", "takes"];
  return section("path", "Critical path", make("p", {}, `${steps.length} steps; each begins when the one before it ends.`), table(headings, steps.slice(0, 12).map(row), 3),
    steps.length > 12 ? folded(headings, () => steps.map(row), 3, "all steps") : null);
}

/** What the run waits for, as the command's own table has it. */
function ledger({result}) {
  const found = result.collectives ?? [], most = 10;
  if (found.length === 0) return null;
  const row = (c) => [c.name, c.kind, c.axis, c.source ?? c.path ?? "", timeText(c.exposed_s), percentText(c.share), timeText(c.hidden_s), `${c.count}`, bytesText(c.bytes)];
  const headings = ["collective", "kind", "axis", "from", "exposed", "of the run", "hidden", "count", "bytes each"];
  return section("collectives", "What it waits for", make("p", {}, "The collectives of the busiest device, most exposed first: exposed while its core waits for them, hidden while it works."),
    barRows(found.slice(0, most).filter((c) => c.exposed_s > 0).map((c) => ({name: c.name, value: c.exposed_s, note: `${timeText(c.exposed_s)}, ${percentText(c.share)}`})), roleColour("exposed")),
    table(headings, found.slice(0, most).map(row), 4), found.length > most ? folded(headings, () => found.map(row), 4, `all ${found.length}`) : null);
}

/** What would help, each simulated; as --advise prints it, with those that do not. */
function advice({result}) {
  const found = result.advice;
  if (!isObject(found)) return null;
  const before = result.makespan_s, row = (t) => [t.what, t.options ?? "", timeText(t.makespan_s), signedPercent(t.change), timeText(t.exposed_communication_s), bytesText(t.peak_memory_bytes) + (t.over_hbm ? "*" : "")];
  const headings = ["what", "with", "time", "change", "exposed", "peak memory"];
  const useful = found.tried.filter((t) => t.helps), last = [["these together", found.together], ["faster links", found.faster_links]].filter(([, t]) => isObject(t)).map(([what, t]) => ({...t, what: what === "faster links" ? t.what : what}));
  const bars = [{what: "as it is", makespan_s: before, change: 0}, ...useful.slice(0, 8), ...last];
  const others = [...found.tried.filter((t) => !t.helps).map(row), ...found.refused.map((r) => [r.what, r.options, "-", "-", "-", r.why]), ...found.not_tried.map((r) => [r.what, r.options, "-", "-", "-", "not tried: it takes long"])];
  return section("advice", "What would help", make("p", {}, useful.length === 0 ? "Nothing that was tried makes it faster." : "Each was simulated in place of the command's own option."),
    barRows(bars.map((t) => ({name: t.what, value: t.makespan_s, note: `${timeText(t.makespan_s)}, ${signedPercent(t.change)}`}))), table(headings, [...useful, ...last].map(row), 2),
    useful.some((t) => t.over_hbm) ? make("p", {}, "* more than the device has") : null, others.length === 0 ? null : folded(headings, () => others, 2, `${others.length} that do not help or are not possible`));
}

function operations({result}) {
  const found = result.operations ?? [];
  if (found.length === 0) return null;
  const together = new Map();  // all trips of a loop, and all layers, are one
  for (const o of found) {
    const name = o.name.replace(/^(?:\S+ \d+ )+/, ""), key = `${name}\n${o.category}`;
    const sum = together.get(key) ?? {name, category: o.category, count: 0, busy_s: 0, exposed_s: 0, overlapped_s: 0};
    for (const value of ["count", "busy_s", "exposed_s", "overlapped_s"]) sum[value] += amount(o[value]);
    together.set(key, sum);
  }
  const most = [...together.values()].sort((a, b) => b.busy_s + b.exposed_s - a.busy_s - a.exposed_s);
  const rows = most.map((o) => [o.name, o.category, o.count, timeText(o.busy_s), timeText(o.exposed_s), timeText(o.overlapped_s)]);
  return section("operations", "Operations", make("p", {}, "Of the busiest device: time in which its core works on the operation, waits only for it, or works on something else while it is in flight."),
    table(["operation", "category", "count", "busy", "exposed", "overlapped"], rows, 2));
}

function links({result}) {
  const found = result.per_link ?? [];
  if (found.length === 0) return null;
  const sorted = [...found].sort((a, b) => b.utilisation - a.utilisation);
  const name = (l) => `${l.link}${l.links > 1 ? `, and ${l.links - 1} alike` : ""}`;
  return section("links", "Links", make("p", {}, "Utilisation: what crossed over what could have crossed in the run."),
    barRows(sorted.slice(0, 40).map((l) => ({name: name(l), value: l.utilisation, note: percentText(l.utilisation)}))),
    folded(["link", "bytes", "utilisation"], () => sorted.map((l) => [name(l), bytesText(l.bytes), percentText(l.utilisation)])));
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
  return section("machine", `Values of ${said(result.machine)}`, table(["value", "", "source"], machine.map(({path, value, source}) => [path, value, source]), 9));
}

function missing({missing}) {
  return missing.length === 0 ? null : section("missing", "Not in this page", make("ul", {}, missing.map((what) => make("li", {}, what))));
}

function timeline(record) {
  if (record.timelines.length === 0) return null;
  const lines = new Set(record.timelines.flatMap((t) => t.lines.map(({name}) => name)));
  const within = [...lines].filter((name) => name.endsWith(" in calls"));
  const note = !lines.has("calls") ? null : make("p", {}, `The line calls has a bar per call of a function, of which each was simulated once. What the calls hold is on the lines below it: the core at work on compute${
    within.length > 0 ? `, what is in flight on ${within.join(", ")}` : ""}.`);
  return section("timeline", "Timeline", note, new Timeline(record).element);
}

/** What the time of a device in a call of each function is. */
function calls({calls: found}) {
  if (found.length === 0) return null;
  const names = [...new Set(found.flatMap(({parts}) => parts.map(({name}) => name)))];
  const timeOf = ({parts}, name) => parts.find((part) => part.name === name)?.time_s ?? 0, whole = ({parts}) => parts.reduce((sum, {time_s: time}) => sum + time, 0);
  const axes = names.filter((name) => name.startsWith("exposed communication, ")), lookOf = (name) => [name, axes.includes(name) ? axisColour(axes.indexOf(name)) : roleColour(name)];
  const rows = found.map((call) => [call.name, timeText(whole(call)), ...names.map((name) => timeOf(call, name) === 0 ? "" : timeText(timeOf(call, name)))]);
  return section("calls", "Calls", make("p", {}, "Functions of which each call was simulated as one task, and what the time of a device in one call is:"),
    withTable(make("div", {}, stackedRows(found.map((call) => ({name: call.name, parts: names.map((name) => timeOf(call, name)), note: timeText(whole(call))})), names.map(lookOf))),
      table(["function", "time", ...names], rows)));
}

const runSections = [pipeline, ledger, advice, timeSplit, failures, sensitivities, timeline, calls, memory, operations, axes, network, links, criticalPath, devices, machine, missing];
