// The page: of several records a table of all, then the one that is chosen.
const resultPages = {
  run: {head: headline, sections: runSections, title: ({result}) => said(result.schedule)},
  comparison: {head: comparisonHead, sections: comparisonSections, title: ({result}) => `comparison of ${result.rows.length} variants`},
  tuning: {head: tuningHead, sections: tuningSections, title: ({result}) => `plans for ${said(result.workload ?? result.training)}`},
  validation: {head: validationHead, sections: validationSections, title: ({result}) => `validation on ${result.datasets.length} datasets`},
  differences: {head: differencesHead, sections: differencesSections, title: ({result}) => `${said(result.module)} beside ${result.schedules.length} schedules`},
  explanation: {head: explainedHead, sections: explainedSections, title: ({result}) => `${result.rows.length} measured times explained`},
  diff: {head: diffHead, sections: diffSections, title: () => "a measured step beside its prediction"},
  calibration: {head: calibrationHead, sections: calibrationSections, title: ({result}) => `${result.parameters.length} values fitted`},
  check: {head: checkHead, sections: checkSections, title: ({result}) => result.proven === false ? "not proven" : result.ok ? "right" : "wrong"},
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
  const links = parts.filter((part) => part.id).map((part) => make("a", {href: `#${part.id}`}, part.firstChild.firstChild.textContent));
  return [guarded(head, record), make("nav", {"aria-label": "sections"}, links), ...parts].flat(2).filter((part) => part !== null);
}

const titleOf = (record) => String(guarded(resultPages[record.kind].title, record));

/** The words of a command line as a shell takes it apart; podsim quotes with ' alone. */
function shellWords(command) {
  return (command.match(/(?:'[^']*'|\\.|[^\s'\\])+/g) ?? []).map((word) => word.replace(/'([^']*)'|\\(.)/g, (_, quoted, escaped) => quoted ?? escaped));
}

/** The options of a command and their values; of an option that is given several times all, of one without a value "yes". */
function optionsOf(command) {
  const words = shellWords(command), options = new Map();
  for (let w = 0; w < words.length; ++w) {
    const [, name, given] = /^--?([a-zA-Z][^=]*)(?:=([^]*))?$/.exec(words[w]) ?? [];
    if (name === undefined) continue;
    const value = given ?? (w + 1 < words.length && !/^--?[a-zA-Z]/.test(words[w + 1]) ? words[++w] : "yes");
    options.set(name, options.has(name) ? `${options.get(name)}; ${value}` : value);
  }
  return options;
}

/** Columns [name, text of a run, whether its runs differ]: what every run has, and every input in which the runs differ, of their results and of their commands; these first. */
function inputColumns(runs) {
  const always = ["machine", "slice", "mesh", "schedule", "algorithm"], ofResult = (key) => ({result}) => inputText(key, result[key]) ?? "";
  const differs = (of, among) => new Set(among.map(of)).size > 1;
  const differing = differingInputs(runs.map(({result}) => result)), keys = [...always, ...differing.filter((key) => !always.includes(key))];
  const columns = keys.map((key) => [inputName(key), ofResult(key), differs(ofResult(key), runs)]);
  const recorded = runs.filter(({command}) => command), options = new Map(recorded.map((run) => [run, optionsOf(run.command)]));
  for (const name of new Set([...options.values()].flatMap((found) => [...found.keys()]))) {
    const of = (run) => options.get(run)?.get(name) ?? "", key = name.replace(/-/g, "_");
    const shown = keys.includes(key) && recorded.every((run) => of(run) === "" || of(run) === ofResult(key)(run));
    if (!shown && differs(of, recorded)) columns.push([`--${name}`, of, true]);
  }
  return columns.sort(([, , a], [, , b]) => b - a);
}

/** Runs side by side: their inputs, those that differ marked, and what they came to. */
function runsTable(records, show) {
  const runs = records.filter(({kind}) => kind === "run"), columns = inputColumns(runs);
  const inputs = (record) => columns.map(([, of, differs]) => make("td", {class: differs ? "differs" : undefined}, of(record)));
  const rows = runs.map((record) => make("tr", {}, make("td", {}, link(record, records, show)),
    make("td", {class: "number"}, timeText(record.result.makespan_s)), make("td", {class: "number"}, mfuText(record.result)),
    make("td", {}, hypothetical(record.result), " ", tooMuch(record.result)), inputs(record)));
  return make("div", {class: "wide"}, make("table", {},
    make("thead", {}, make("tr", {}, ["run", "time", "MFU", "", ...columns.map(([name]) => name)].map((heading) => make("th", {scope: "col"}, heading)))), make("tbody", {}, rows)));
}

const link = (record, records, show) => make("a", {href: "#record", onclick: () => show(records.indexOf(record))}, record.file);

function listing(records, show) {
  const others = records.filter(({kind}) => kind !== "run");
  return make("section", {id: "runs"}, make("h1", {}, others.length === 0 ? `${records.length} runs` : `${records.length} records`),
    others.length < records.length ? runsTable(records, show) : null,
    others.length === 0 ? null : table(["record", "", ""], others.map((record) => [link(record, records, show), record.kind, titleOf(record)]), 3));
}

/** The data of the page: JSON, or where it is large what zlib made of it, in base64. */
async function recordsOfPage() {
  const {type, textContent: text} = document.getElementById("records");
  if (type === "application/json") return JSON.parse(text);
  const bytes = Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

async function start() {
  const records = await recordsOfPage();
  records.forEach(({result}) => guardTexts(result));
  const page = document.getElementById("page"), one = make("div", {id: "record"});
  const show = (r) => one.replaceChildren(...pageOf(records[r]));
  document.title = records.length === 1 ? `${titleOf(records[0])}: podsim` : `${records.length} records: podsim`;
  page.append(...(records.length > 1 ? [listing(records, show)] : []), one);
  show(0);
}
if (typeof DecompressionStream === "undefined" && document.getElementById("records").type !== "application/json")
  document.getElementById("page").append("This browser cannot read compressed pages: Chrome 80, Firefox 113, Safari 16.4 and later can.");
else start();
