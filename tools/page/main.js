// The page: of several records a table of all, then the one that is chosen.
const resultPages = {
  run: {head: headline, sections: runSections, title: ({result}) => said(result.schedule)},
  comparison: {head: comparisonHead, sections: comparisonSections, title: ({result}) => `comparison of ${result.rows.length} variants`},
  tuning: {head: tuningHead, sections: tuningSections, title: ({result}) => `plans for ${said(result.workload ?? result.training)}`},
  validation: {head: validationHead, sections: validationSections, title: ({result}) => `validation on ${result.datasets.length} datasets`},
  sweep: {head: sweepHead, sections: sweepSections, title: ({result}) => `sweep of ${result.rows.length} points`},
};

/** What a function makes of a record; a record whose values are of other kinds than podsim writes gets a note in its place. */
function guarded(part, record) {
  try {
    return part(record);
  } catch {
    return make("p", {class: "badge"}, "A part of this record cannot be shown: its values are not what podsim writes.");
  }
}

function pageOf(record) {
  const {head, sections} = resultPages[record.kind];
  const parts = sections.flatMap((part) => guarded(part, record)).filter((part) => part !== null);
  const links = parts.filter((part) => part.id).map((part) => make("a", {href: `#${part.id}`}, part.firstChild.textContent));
  return [guarded(head, record), make("nav", {"aria-label": "sections"}, links), ...parts].flat(2).filter((part) => part !== null);
}

const titleOf = (record) => String(guarded(resultPages[record.kind].title, record));

/** Runs side by side: their inputs, those that differ marked, and what they came to. */
function runsTable(records, show) {
  const inputs = ["machine", "slice", "schedule", "algorithm", "dataflow", "slice_count", "engine"];
  const runs = records.filter(({kind}) => kind === "run"), text = (record, key) => String(record.result[key] ?? "");
  const differing = new Set(inputs.filter((key) => new Set(runs.map((record) => text(record, key))).size > 1));
  const rows = runs.map((record) => make("tr", {}, make("td", {}, link(record, records, show)),
    make("td", {class: "number"}, timeText(record.result.makespan_s)), make("td", {class: "number"}, mfuText(record.result)),
    make("td", {}, hypothetical(record.result)), make("td", {}, meshText(record.result.mesh)),
    inputs.map((key) => make("td", {class: differing.has(key) ? "differs" : undefined}, text(record, key)))));
  return make("div", {class: "wide"}, make("table", {},
    make("thead", {}, make("tr", {}, ["run", "time", "MFU", "", "mesh", ...inputs].map((heading) => make("th", {scope: "col"}, heading)))), make("tbody", {}, rows)));
}

const link = (record, records, show) => make("a", {href: "#record", onclick: () => show(records.indexOf(record))}, record.file);

function listing(records, show) {
  const others = records.filter(({kind}) => kind !== "run");
  return make("section", {id: "runs"}, make("h1", {}, others.length === 0 ? `${records.length} runs` : `${records.length} records`),
    others.length < records.length ? runsTable(records, show) : null,
    others.length === 0 ? null : table(["record", "", ""], others.map((record) => [link(record, records, show), record.kind, titleOf(record)]), 3));
}

function start() {
  const records = JSON.parse(document.getElementById("records").textContent);
  records.forEach(({result}) => guardTexts(result));
  const page = document.getElementById("page"), one = make("div", {id: "record"});
  const show = (r) => one.replaceChildren(...pageOf(records[r]));
  document.title = records.length === 1 ? `${titleOf(records[0])}: podsim` : `${records.length} records: podsim`;
  page.append(...(records.length > 1 ? [listing(records, show)] : []), one);
  show(0);
}
start();
