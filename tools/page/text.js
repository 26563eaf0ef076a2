// Elements and numbers as text. Data becomes text nodes only, so that nothing in it is ever markup.
const svgNames = new Set(["svg", "g", "rect", "path", "line", "text", "title"]);

/** An element: attributes by name, children as elements or texts. */
function make(name, attributes = {}, ...children) {
  const element = svgNames.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && (typeof value !== "number" || Number.isFinite(value))) element.setAttribute(key, String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** Whether a value of a record is a number to be shown and drawn; podsim writes none as large as those left out, whose sums and products are no numbers. */
const isNumber = (value) => typeof value === "number" && Math.abs(value) < 1e100;
const amount = (value) => isNumber(value) ? Math.max(value, 0) : 0;  // as long as its bar
const share = (value, whole) => isNumber(value) && isNumber(whole) ? value / (whole || 1) : null;
/** A value within a sentence. */
const said = (value) => value === null || value === undefined ? "-" : String(value);

function scaled(value, steps) {
  if (!isNumber(value)) return "-";
  const size = Math.abs(value);
  const [factor, unit] = steps.find(([least]) => size >= least) ?? steps[steps.length - 1];
  return `${Number((value / factor).toPrecision(4))} ${unit}`;
}

/** Four digits, as podsim's own tables have them. */
const timeText = (seconds) => seconds === 0 ? "0 s" : scaled(seconds, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"], [1e-12, "ps"]]);
const bytesText = (bytes) => scaled(bytes, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
const rateText = (rate) => isNumber(rate) ? `${bytesText(rate)}/s` : "-";
const numberText = (number) => isNumber(number) ? String(Number(number.toPrecision(4))) : "-";
const percentText = (part) => isNumber(part) ? `${(100 * part).toFixed(1)} %` : "-";
const signedPercent = (part) => isNumber(part) ? `${part > 0 ? "+" : ""}${(100 * part).toFixed(2)} %` : "-";
const mfuText = ({mfu}) => mfu === null || mfu === undefined ? "" : percentText(mfu) + (mfu > 1 ? " (all scores of causal attention)" : "");

/** A chart and, folded away behind it, its numbers. */
const withTable = (chart, numbers) => [chart, make("details", {}, make("summary", {}, "as a table"), numbers)];

const section = (id, title, ...content) => make("section", {id}, make("h2", {}, title), ...content.flat());

/** What all pages begin with. */
const heading = (title, {command, version, file}, ...badges) => [make("h1", {}, `${title} `, ...badges), make("p", {class: "faint"}, `${file}${version ? `, podsim ${version}` : ""}`),
  command ? make("p", {class: "command"}, command) : null];

const figure = (name, value) => make("div", {class: "figure"}, make("b", {}, value), make("span", {class: "faint"}, name));
/** A figure with what it is of. */
const tile = (name, value, of) => make("div", {class: "tile"}, make("span", {class: "faint"}, name), make("b", {}, value), make("span", {}, of));
const hypothetical = (result) => result.hypothetical ? make("span", {class: "badge", title: "the vendor does not offer this slice"}, "hypothetical") : null;
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const meshText = (mesh) => isObject(mesh) ? Object.entries(mesh).map(([axis, size]) => `${axis}=${said(size)}`).join(",") : mesh === null || mesh === undefined ? "" : "-";

/** Sizes as podsim takes and prints them, 32 GB or 16MiB; null of what is none. */
function bytesOf(text) {
  const [, count, prefix, binary] = /^([0-9.]+(?:e[+-]?[0-9]+)?) ?([kKMGT]?)(i?)B$/.exec(text) ?? [];
  return count === undefined ? null : Number(count) * (binary ? 1024 : 1000) ** " KMGT".indexOf(prefix.toUpperCase() || " ");
}

/** What a device holds, null if the record does not say it. */
const hbmOf = ({hbm_bytes: hbm, memory_bytes: memory}) => [hbm, memory?.hbm].find(isNumber) ?? null;
const capacityOf = ({result, machine = []}) => hbmOf(result) ?? bytesOf(machine.find(({path}) => path === "chip.hbm")?.value ?? "");
const overMemory = ({over_hbm: over, memory_bytes: memory}) => over === true || (isNumber(memory?.hbm) && memory.total > memory.hbm);
const tooMuch = (result) => overMemory(result) ? make("span", {class: "badge", title: "it needs more memory than the device has"}, "does not fit") : null;
/** As in podsim's tables. */
const peakText = (result, bytes = result.peak_memory_bytes) => bytesText(bytes) + (overMemory(result) ? "*" : "");
const starNote = (results) => results.some(overMemory) ? make("p", {}, "* more than the device has") : null;

/** An object of a record where a text should be. */
class Unexpected { toString() { return "-"; } }

/** Data of a file of which the objects say nothing as texts. */
function guardTexts(value) {
  if (typeof value !== "object" || value === null) return;
  Object.values(value).forEach(guardTexts);
  if (!Array.isArray(value)) Object.setPrototypeOf(value, Unexpected.prototype);
}
const list = (items) => make("ul", {}, items.map((item) => make("li", {}, item)));
const leftOut = (entries) => entries.length === 0 ? null : section("left_out", "Left out", list(entries.map(({what, reason}) => `${what}: ${reason}`)));
