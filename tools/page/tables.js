// Tables: sorted by a click on a heading, filtered, the first rows shown.
const fewRows = 50, moreRows = 1000, rowsToFilter = 12;
const unitOf = {s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9, ps: 1e-12, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12};

const textOfCell = (cell) => cell instanceof Node ? cell.textContent : String(cell ?? "");

/** What a column is sorted by: the number that a text begins with, in its unit; of other texts null. */
function cellNumber(cell) {
  const [, number, unit] = /^([+-]?[0-9.]+(?:e[+-]?[0-9]+)?) ?([a-zA-Z]*)/.exec(textOfCell(cell)) ?? [];
  return number === undefined ? null : Number(number) * (unitOf[unit] ?? 1);
}

/** Rows in the order of a column: `numbers` by size, the largest first; texts by letters. `reversed`: the other way. What is no number comes last. */
function sorted(rows, column, numbers, reversed) {
  const sign = reversed ? -1 : 1;
  if (!numbers) return [...rows].sort((a, b) => sign * textOfCell(a[column]).localeCompare(textOfCell(b[column])));
  const keys = new Map(rows.map((row) => [row, cellNumber(row[column])]));
  return [...rows].sort((a, b) => (keys.get(a) === null) - (keys.get(b) === null) || sign * (keys.get(b) - keys.get(a)));
}

/** Rows of texts under their headings; columns from `numbersFrom` on are numbers. */
function table(headings, rows, numbersFrom = 1) {
  const isNumbers = (column) => column >= numbersFrom, kind = (column) => ({class: isNumbers(column) ? "number" : undefined});
  const cells = (row) => make("tr", {}, row.map((cell, c) => make("td", kind(c), cell instanceof Node ? cell : String(cell ?? ""))));
  const body = make("tbody"), more = make("button", {type: "button", onclick: () => show(shown + moreRows)}), count = make("span", {class: "faint", role: "status"});
  const search = make("input", {type: "search", placeholder: "filter", "aria-label": "filter rows", oninput: () => show(fewRows)});
  let shown = fewRows, by = null, reversed = false;
  const show = (most) => {
    const wanted = search.value.toLowerCase(), left = wanted === "" ? rows : rows.filter((row) => row.some((cell) => textOfCell(cell).toLowerCase().includes(wanted)));
    const ordered = by === null ? left : sorted(left, by, isNumbers(by), reversed);
    shown = most;
    body.replaceChildren(...ordered.slice(0, shown).map(cells));
    more.hidden = left.length <= shown;
    more.textContent = `${Math.min(moreRows, left.length - shown)} more`;
    count.textContent = left.length < rows.length ? `${left.length} of ${rows.length} rows` : `${rows.length} rows`;
  };
  const heads = headings.map((heading, c) => make("th", {scope: "col", ...kind(c)}, rows.length < 2 || heading === "" ? heading : make("button", {type: "button", class: "sort", onclick: () => order(c)}, heading)));
  const order = (column) => {
    reversed = by === column && !reversed;
    by = column;
    heads.forEach((head, c) => c === by ? head.setAttribute("aria-sort", isNumbers(c) === reversed ? "ascending" : "descending") : head.removeAttribute("aria-sort"));
    show(shown);
  };
  show(fewRows);
  const tools = rows.length > rowsToFilter ? make("div", {class: "tools"}, search, count) : null;
  return make("div", {}, tools, make("div", {class: "wide"}, make("table", {class: headings.length > 14 ? "crowded" : headings.length > 8 ? "dense" : undefined}, make("thead", {}, make("tr", {}, heads)), body)),
    rows.length > fewRows ? more : null);
}

/** A table without the columns of texts in which no row says anything. */
function saidColumns(headings, rows, numbersFrom) {
  const kept = headings.map((_, c) => c).filter((c) => c >= numbersFrom || rows.some((row) => textOfCell(row[c]) !== ""));
  return table(kept.map((c) => headings[c]), rows.map((row) => kept.map((c) => row[c])), kept.filter((c) => c < numbersFrom).length);
}

/** A table that is made when it is opened: `rows` makes its rows. */
function folded(headings, rows, numbersFrom = 1, name = "as a table") {
  const element = make("details", {}, make("summary", {}, name));
  element.addEventListener("toggle", () => {
    if (element.open && element.children.length === 1) element.append(table(headings, rows(), numbersFrom));
  });
  return element;
}

