// Links on the drawn network, coloured by how much of their time they carry something: grids plane by plane, and what goes through switches in layers.
const heats = 8;  // colours; style.css has them from the least to the most

/** Where the links of a grid are drawn. The last dimension goes right, the one before it down; further ones number planes. Every link leaves its chip
 * towards its side, so that a wraparound is two stubs at the ends of its row; to other planes it is slanted. Two directions of a cable lie side by side. */
class GridPlaces {
  constructor({extents, from, to, dimension}, width) {
    this.extents = extents;
    this.across = extents[extents.length - 1], this.down = extents.length > 1 ? extents[extents.length - 2] : 1;
    this.planes = extents.slice(0, -2).reduce((product, extent) => product * extent, 1);
    this.pitch = [44, 34, 26, 20, 16, 13, 10].find((pitch) => this.fits(pitch, width)) ?? 10;
    this.columns = Math.max(Math.min(Math.floor(width / this.planeWidth(this.pitch)), this.planes), 1);
    this.width = this.columns * this.planeWidth(this.pitch);
    this.height = Math.ceil(this.planes / this.columns) * this.planeHeight(this.pitch);
    this.segments = this.segmentsOf(from, to, dimension);
  }
  planeWidth(pitch) { return (this.across + 0.6) * pitch + 40; }
  planeHeight(pitch) { return (this.down + 0.6) * pitch + this.top + 8; }
  get top() { return this.planes > 1 ? 34 : 18; }
  fits(pitch, width) {
    const columns = Math.floor(width / this.planeWidth(pitch));
    return columns >= 1 && Math.ceil(this.planes / columns) * this.planeHeight(pitch) <= 1200;
  }

  coordinates(chip) {
    const all = [];
    for (let d = this.extents.length - 1, rest = chip; d >= 0; --d) [all[d], rest] = [rest % this.extents[d], Math.floor(rest / this.extents[d])];
    return all;
  }
  plane(p) { return [(p % this.columns) * this.planeWidth(this.pitch), Math.floor(p / this.columns) * this.planeHeight(this.pitch)]; }
  place(chip) {
    const size = this.across * this.down, [x, y] = this.plane(Math.floor(chip / size)), within = chip % size;
    return [x + 24 + ((within % this.across) + 0.8) * this.pitch, y + this.top + (Math.floor(within / this.across) + 0.8) * this.pitch];
  }

  segmentsOf(from, to, dimension) {
    const seen = new Set(), dimensions = this.extents.length, lane = this.pitch * 0.09;
    return from.map((chip, l) => {
      const d = dimension[l];
      if (!onGrid({extents: this.extents, dimension}, l)) return null;
      const [at, there] = [this.coordinates(chip)[d], this.coordinates(to[l])[d]];
      let sign = there - at === 1 || (there === 0 && at === this.extents[d] - 1 && this.extents[d] > 2) ? 1 : -1;
      if (seen.has(`${chip} ${d} ${sign}`)) sign = -sign;  // an extent of 2 whose two cables lead to the same coordinate
      seen.add(`${chip} ${d} ${sign}`);
      const [x, y] = this.place(chip), near = this.pitch * 0.16, far = this.pitch * 0.78;
      const along = [[sign, 0, 0, lane * sign], [0, sign, -lane * sign, 0], [0.34 * sign, 0.34 * sign, 0, 0], [0.34 * sign, -0.34 * sign, 0, 0]][dimensions - 1 - d] ?? [0.2 * sign, 0.5 * sign, 0, 0];
      const [dx, dy, sx, sy] = along;
      return [x + dx * near + sx, y + dy * near + sy, x + dx * far + sx, y + dy * far + sy];
    });
  }

  labels() {
    const parts = [], every = this.pitch >= 20 ? 1 : 8, size = this.across * this.down;
    for (let p = 0; p < this.planes; ++p) {
      const [x, y] = this.plane(p);
      if (this.planes > 1) parts.push(make("text", {x: x + 24, y: y + 13}, `plane ${this.coordinates(p * size).slice(0, -2).join(",")}`));
      for (let c = 0; c < this.across; c += every) parts.push(make("text", {class: "faint", x: this.place(c)[0] + x - this.plane(0)[0], y: y + this.top - 4, "text-anchor": "middle"}, c));
      for (let r = 0; r < this.down && this.extents.length > 1; r += every)
        parts.push(make("text", {class: "faint", x: x + 20, y: this.place(r * this.across)[1] + y + 4, "text-anchor": "end"}, r));
    }
    return parts;
  }
  chips(count) {
    const r = Math.max(this.pitch * 0.1, 1);
    return make("path", {class: "chips", d: Array.from({length: count}, (_, chip) => this.place(chip)).map(([x, y]) => `M${(x - r).toFixed(1)} ${(y - r).toFixed(1)}h${2 * r}v${2 * r}h${-2 * r}z`).join("")});
  }
}

/** Whether a link is drawn on the grid. */
const onGrid = ({extents, dimension}, l) => extents.length > 0 && dimension[l] >= 0;

/** Chips at the bottom, switches above them by their hops from a chip and the machine's dimension, each above what it joins; without the links of grids. */
class LayeredPlaces {
  constructor(network, width) {
    const {from, to, nodes} = network, own = from.map((_, l) => l).filter((l) => !onGrid(network, l));
    this.layers = layersOf(network, own);
    this.width = Math.max(width, mostOf(this.layers.map((layer) => layer.length)) * 4), this.height = (this.layers.length - 1) * 120 + 44, this.names = nodes;
    this.at = new Map();
    const below = new Map();  // of a node, those it is joined to and that have their place
    for (const l of own) below.set(to[l], [...(below.get(to[l]) ?? []), from[l]]);
    this.layers.forEach((layer, depth) => {
      const middle = (node) => {
        const xs = (below.get(node) ?? []).filter((other) => this.at.has(other)).map((other) => this.at.get(other)[0]);
        return xs.reduce((sum, x) => sum + x, 0) / (xs.length || 1);
      };
      const sorted = depth === 0 ? layer : layer.map((node) => [middle(node), node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, node]) => node);
      sorted.forEach((node, i) => this.at.set(node, [((i + 0.5) * this.width) / sorted.length, this.height - 24 - depth * 120]));
    });
    const drawn = new Set(own);
    this.segments = from.map((node, l) => !drawn.has(l) || !this.at.has(node) || !this.at.has(to[l]) ? null : this.beside(this.at.get(node), this.at.get(to[l])));
  }
  beside([x1, y1], [x2, y2]) {
    const length = Math.hypot(x2 - x1, y2 - y1) || 1, sx = (1.6 * (y1 - y2)) / length, sy = (1.6 * (x2 - x1)) / length;
    return [x1 + sx, y1 + sy, x2 + sx, y2 + sy];
  }
  labels() {
    return this.layers.flatMap((nodes) => nodes.length * 60 > this.width ? [] : nodes.map((node) => {
      const [x, y] = this.at.get(node);
      return make("text", {class: "faint over", x, y: y < 60 && this.layers.length > 1 ? y - 8 : y + 18, "text-anchor": "middle"}, this.names[node]);
    }));
  }
  chips() {
    return make("path", {class: "chips", d: [...this.at.values()].map(([x, y]) => `M${x - 3} ${y - 3}h6v6h-6z`).join("")});
  }
}

/** The nodes of links by their hops from a chip; those as far from one are apart if links of other dimensions lead to them. */
function layersOf({chips, from, to, dimension}, links) {
  const next = new Map(), layer = new Map();
  for (const l of links) next.set(from[l], [...(next.get(from[l]) ?? []), l]);
  let edge = [...next.keys()].filter((node) => node < chips).sort((a, b) => a - b);
  edge.forEach((node) => layer.set(node, 0));
  const layers = [edge];
  while (edge.length > 0) {
    const found = new Map();  // node: its least dimension
    for (const l of edge.flatMap((node) => next.get(node) ?? []))
      if (!layer.has(to[l])) found.set(to[l], Math.min(found.get(to[l]) ?? Infinity, dimension[l]));
    edge = [...found.keys()];
    edge.forEach((node) => layer.set(node, layers.length));
    for (const d of [...new Set(found.values())].sort((a, b) => a - b)) layers.push(edge.filter((node) => found.get(node) === d));
  }
  return layers;
}

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
    const thick = this.places.pitch ? Math.max(this.places.pitch * 0.14, 1.5) : 2;
    const parts = paths.map((d, h) => make("path", {d: d.join(""), fill: "none", stroke: h === 0 ? "var(--rule)" : `var(--h${h - 1})`, "stroke-width": h === 0 ? 1 : thick}));
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
  const maps = [];
  if (from.some((_, l) => onGrid(network, l))) maps.push(new NetworkMap(network, GridPlaces).element);
  if (from.some((_, l) => !onGrid(network, l))) maps.push(new NetworkMap(network, LayeredPlaces).element);
  const rows = () => from.map((_, l) => l).sort((a, b) => utilisation[b] - utilisation[a]).map((l) => [nodes[from[l]], nodes[to[l]], bytesText(bytes[l]), percentText(utilisation[l])]);
  const switches = nodes.length - network.chips, counts = `${switches === 0 ? "" : `${switches} switches, `}${network.chips} chips, ${from.length} links`;
  const part = section("network", "Links on the network", make("p", {}, `${counts}, each one direction of a cable. Colour: what crossed over what could have crossed in the run.`),
    heatLegend(mostOf(utilisation) || 1), maps, folded(["from", "to", "bytes", "utilisation"], rows, 2));
  if (result.hypothetical) part.firstChild.append(" ", hypothetical(result));
  return part;
}
