// Where the chips, switches and links of a network are drawn: `segments` has a line per link, null of those that are not drawn.

/** Whether a link is drawn on the grid. */
const onGrid = ({extents, dimension}, l) => extents.length > 0 && dimension[l] >= 0;

/** The list of a key of a map, which gets an empty one. */
function listed(map, key) {
  if (!map.has(key)) map.set(key, []);
  return map.get(key);
}

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
    this.thick = Math.max(this.pitch * 0.14, 1.5);
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

/** The nodes of links by their hops from a chip; those as far from one are apart if links of other dimensions lead to them. */
function layersOf({chips, from, to, dimension}, links) {
  const next = new Map(), layer = new Map();
  for (const l of links) listed(next, from[l]).push(l);
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

/** Chips at the bottom, switches above them by their hops from a chip and the machine's dimension, each above what it joins; without the links of grids. */
class LayeredPlaces {
  constructor(network, width) {
    const {from, to, nodes} = network, own = from.map((_, l) => l).filter((l) => !onGrid(network, l));
    this.layers = layersOf(network, own);
    this.width = Math.max(width, mostOf(this.layers.map((layer) => layer.length)) * 4), this.height = (this.layers.length - 1) * 120 + 44, this.names = nodes;
    this.at = new Map();
    const below = new Map();  // of a node, those it is joined to and that have their place
    for (const l of own) listed(below, to[l]).push(from[l]);
    this.layers.forEach((layer, depth) => {
      const middle = (node) => {
        const xs = (below.get(node) ?? []).filter((other) => this.at.has(other)).map((other) => this.at.get(other)[0]);
        return xs.reduce((sum, x) => sum + x, 0) / (xs.length || 1);
      };
      const sorted = depth === 0 ? layer : layer.map((node) => [middle(node), node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, node]) => node);
      sorted.forEach((node, i) => this.at.set(node, [((i + 0.5) * this.width) / sorted.length, this.height - 24 - depth * 120]));
    });
    const drawn = new Set(own);
    this.thick = 2;
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

/** What is too much for lines between nodes: a bar per link, in the order of its chips, the links between two layers together. */
class StripPlaces {
  constructor(network, width) {
    const {from, to, nodes} = network, own = from.map((_, l) => l).filter((l) => !onGrid(network, l));
    const layers = layersOf(network, own), layerOf = new Map(layers.flatMap((layer, depth) => layer.map((node) => [node, depth])));
    const groups = new Map();
    for (const l of own.filter((l) => layerOf.has(from[l]) && layerOf.has(to[l]))) listed(groups, `${layerOf.get(from[l])} ${layerOf.get(to[l])}`).push(l);
    const named = (depth) => depth === 0 ? "chips" : layers[depth].length === 1 ? nodes[layers[depth][0]] : `${nodes[layers[depth][0]]} ... ${nodes[layers[depth][layers[depth].length - 1]]}`;
    this.width = width, this.height = 0, this.thick = 6, this.texts = [], this.segments = from.map(() => null);
    const perLine = Math.max(Math.floor((width - 8) / 8), 1);
    for (const [key, links] of groups) {
      const [lower, upper] = key.split(" ").map(Number), up = lower < upper;
      links.sort((a, b) => (up ? from[a] - from[b] || to[a] - to[b] : to[a] - to[b] || from[a] - from[b]));
      this.texts.push([`${named(lower)} to ${named(upper)}: ${links.length} links`, this.height + 14]);
      links.forEach((l, i) => {
        const x = 6 + (i % perLine) * 8, y = this.height + 20 + Math.floor(i / perLine) * 14;
        this.segments[l] = [x, y, x, y + 11];
      });
      this.height += 30 + Math.ceil(links.length / perLine) * 14;
    }
  }
  labels() { return this.texts.map(([text, y]) => make("text", {x: 0, y}, text)); }
  chips() { return make("path", {}); }
}
