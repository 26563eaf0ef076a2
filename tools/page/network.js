// Links on the drawn network, coloured by how much of their time they carry something.
const heats = 8;  // colours; style.css has them from the least to the most
const mostLines = 600;  // between chips and switches

class NetworkMap {
  constructor(network, Places) {
    Object.assign(this, {network, Places});
    this.most = mostOf(network.utilisation) || 1;
    this.drawing = pickable(this, "links by utilisation, the most used first");
    this.element = make("div", {class: "wide"}, this.drawing);
    redrawn(this.drawing, (width) => this.draw(width));
  }
  get count() { return this.order?.length ?? 0; }
  textOf(i) {
    const {nodes, from, to, bytes, utilisation} = this.network, l = this.order[i];
    return `${nodes[from[l]]} to ${nodes[to[l]]}: ${percentText(utilisation[l])}, ${bytesText(bytes[l])}`;
  }
  placeOf(i) {
    const [x1, y1, x2, y2] = this.places.segments[this.order[i]];
    return [(x1 + x2) / 2, (y1 + y2) / 2];
  }
  nearest(x, y) {
    let best = -1, least = 8 ** 2;
    this.order?.forEach((l, i) => {
      const [x1, y1, x2, y2] = this.places.segments[l], length = (x2 - x1) ** 2 + (y2 - y1) ** 2 || 1;
      const t = Math.min(Math.max(((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length, 0), 1);
      const distance = (x - x1 - t * (x2 - x1)) ** 2 + (y - y1 - t * (y2 - y1)) ** 2;
      if (distance < least) [best, least] = [i, distance];
    });
    return best;
  }
  heatOf(l) { return this.network.utilisation[l] > 0 ? Math.min(Math.floor((this.network.utilisation[l] / this.most) * heats), heats - 1) : -1; }

  draw(width) {
    const {utilisation, chips} = this.network;
    this.places = new this.Places(this.network, width);
    this.order = utilisation.map((_, l) => l).filter((l) => this.places.segments[l] !== null).sort((a, b) => utilisation[b] - utilisation[a]);
    const paths = Array.from({length: heats + 1}, () => []), number = (value) => Number(value.toFixed(1));
    for (const l of [...this.order].reverse()) {
      const [x1, y1, x2, y2] = this.places.segments[l].map(number);
      paths[this.heatOf(l) + 1].push(`M${x1} ${y1}L${x2} ${y2}`);
    }
    const parts = paths.map((d, h) => make("path", {d: d.join(""), fill: "none", stroke: h === 0 ? "var(--rule)" : `var(--h${h - 1})`, "stroke-width": h === 0 ? this.places.thick / 2 : this.places.thick}));
    this.drawing.style.minWidth = `${Math.min(this.places.width, 4096)}px`;
    put(this.drawing, Math.max(this.places.width, width), this.places.height, [...parts, this.places.chips(chips), ...this.places.labels()]);
  }
}

function heatLegend(most) {
  const entries = Array.from({length: heats}, (_, h) => [`${percentText((most * h) / heats)} to ${percentText((most * (h + 1)) / heats)}`, `var(--h${h})`]);
  return legend([["idle", "var(--rule)"], ...entries]);
}

function network(record) {
  const {network, result} = record;
  if (!network || network.from.length === 0) return null;
  const {nodes, from, to, bytes, utilisation} = network;
  const maps = [], broken = partsOffText(result);
  if (from.some((_, l) => onGrid(network, l))) maps.push(new NetworkMap(network, GridPlaces).element);
  if (from.some((_, l) => !onGrid(network, l))) maps.push(new NetworkMap(network, from.filter((_, l) => !onGrid(network, l)).length > mostLines ? StripPlaces : LayeredPlaces).element);
  const rows = () => from.map((_, l) => l).sort((a, b) => utilisation[b] - utilisation[a]).map((l) => [nodes[from[l]], nodes[to[l]], bytesText(bytes[l]), percentText(utilisation[l])]);
  const switches = nodes.length - network.chips, counts = `${switches === 0 ? "" : `${switches} switches, `}${network.chips} chips, ${from.length} links`;
  const part = section("network", "Links on the network", make("p", {}, `${counts}, each one direction of a cable. Colour: what crossed over what could have crossed in the run.`),
    broken === "" ? null : make("p", {}, `${broken}.`), heatLegend(mostOf(utilisation) || 1), maps, folded(["from", "to", "bytes", "utilisation"], rows, 2));
  if (result.hypothetical) part.firstChild.append(" ", hypothetical(result));
  return part;
}
