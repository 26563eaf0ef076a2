"""Drawings of topologies, from the graph that ``podsim show topology -o FILE.dot`` writes."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from ._core import series_colours
from ._drawings import INK, QUIET, Card, shortened, width_of

_NODE = re.compile(r'^  n(\d+) \[label="(.*)" shape=(circle|box)\];$')
_CABLE = re.compile(r'^  n(\d+) -- n(\d+) \[label="(.*)"\];$')


def _tint(colour: str, share: float) -> str:
    """On white, with that share of the colour."""
    return "#" + "".join(f"{round(255 - (255 - int(colour[at:at + 2], 16)) * share):02x}" for at in (1, 3, 5))


_CHIP, _BROKEN, *_ = series_colours
_SWITCH = series_colours[5]
_RATES = (QUIET, *series_colours[1:])  # most cables have the first
_FILLS = tuple(_tint(colour, share) for share in (0.2, 0.4) for colour in series_colours)

_MOST_CHIPS = 512
_MOST_SWITCHED = 64


class Graph(NamedTuple):
    """Chips and switches by their numbers, and cables."""

    labels: List[str]  # lines of text; the first names the node
    switches: List[bool]
    cables: List[Tuple[int, int, str]]  # from, to, rate of a direction


def graph_of(dot: str) -> Graph:
    graph = Graph([], [], [])
    for line in dot.splitlines():
        if node := _NODE.match(line):
            graph.labels.append(node[2].replace("\\n", "\n"))
            graph.switches.append(node[3] == "box")
        elif cable := _CABLE.match(line):
            graph.cables.append((int(cable[1]), int(cable[2]), cable[3]))
    return graph


def _coordinates(labels: List[str]) -> Optional[List[Tuple[int, ...]]]:
    """Those in the names of chips, (2,1) or 2.1; None where a name has none."""
    found = [tuple(int(number) for number in re.findall(r"\d+", label.split("\n", 1)[0])) for label in labels]
    return found if found and found[0] and len({len(place) for place in found}) == 1 and len(set(found)) == len(found) else None


class _Places(NamedTuple):
    at: List[Tuple[float, float]]
    width: float
    height: float


def _torus_places(places: List[Tuple[int, ...]], step: float) -> Optional[_Places]:
    """The last dimension to the right, the one before downwards, further ones as planes beside each other and under each other."""
    padded = [(0,) * (4 - len(place)) + place for place in places]
    if len(padded[0]) > 4:
        return None
    low = [min(place[axis] for place in padded) for axis in range(4)]
    sizes = [max(place[axis] for place in padded) - low[axis] + 1 for axis in range(4)]
    across, down = sizes[3] * step + step, sizes[2] * step + 0.4 * step
    columns = max(1, min(sizes[1], int(1120 // across)))
    lines = -(-sizes[1] // columns)
    at = []
    for place in padded:
        w, plane, y, x = (place[axis] - low[axis] for axis in range(4))
        at.append(((plane % columns) * across + (x + 1) * step, (w * lines + plane // columns) * down + (y + 0.7) * step))
    return _Places(at, columns * across, sizes[0] * lines * down)


def _switched_places(graph: Graph) -> _Places:
    """Chips in a line; above each the first switch that joins it, and above those the switches that join switches alone. Other switches stand below."""
    chips = [node for node, switch in enumerate(graph.switches) if not switch]
    step = 30.0
    x: Dict[int, float] = {}
    joined: Dict[int, List[int]] = {node: [] for node in range(len(graph.labels))}
    for a, b, _ in graph.cables:
        joined[a].append(b)
        joined[b].append(a)
    blocks = [node for node in range(len(graph.labels)) if graph.switches[node]]
    home = {chip: next((switch for switch in blocks if switch in joined[chip]), -1) for chip in chips}
    at_x, before = step, None
    for chip in chips:
        at_x += step * 0.6 if before is not None and home[chip] != before else 0
        before = home[chip]
        x[chip] = at_x
        at_x += step
    level = {chip: 0 for chip in chips}
    for switch in blocks:
        joins_chips = any(not graph.switches[other] for other in joined[switch])
        level[switch] = -2 if not joins_chips else -1 if switch in home.values() else 1
    width = at_x
    for one in sorted(set(level.values()) - {0}):
        row = [switch for switch in blocks if level[switch] == one]
        for position, switch in enumerate(row):
            below = [x[chip] for chip in joined[switch] if not graph.switches[chip]]
            x[switch] = sum(below) / len(below) if one == -1 else width * (position + 0.5) / len(row)
    top = min(level.values())
    return _Places([(x[node], 34 + (level[node] - top) * 92) for node in range(len(graph.labels))], width, 68 + (max(level.values()) - top) * 92)


def topology_svg(dot: str, title: str) -> str:
    """Chips as circles, switches as boxes, cables as lines, those of another rate in other colours; a cable around the end of a dimension is an arc.
    Nothing where the slice is too large to be seen."""
    graph = graph_of(dot)
    chips = graph.switches.count(False)
    switched = any(graph.switches)
    if not chips or chips > (_MOST_SWITCHED if switched else _MOST_CHIPS) or len(graph.labels) > 2 * _MOST_CHIPS:
        return ""
    coordinates = None if switched else _coordinates(graph.labels)
    detailed = any("\n" in label for label in graph.labels)
    step = 76.0 if detailed and chips <= 64 else 54.0 if chips <= 64 else 34.0
    places = _switched_places(graph) if switched else _torus_places(coordinates, step) if coordinates else None
    if places is None:
        return ""
    rates = sorted({cable[2] for cable in graph.cables}, key=lambda rate: -sum(cable[2] == rate for cable in graph.cables))
    legend = [f"{rate} each way: {_cables(sum(cable[2] == rate for cable in graph.cables))}" for rate in rates[: len(_RATES)]]
    width = max(places.width + 20, width_of(title) + 40, max((width_of(text) for text in legend), default=0) + 70)
    notes = _notes(graph, coordinates)
    card = Card(width, places.height + 34 + 18 * (len(legend) + len(notes)) + 14, title)
    card.text(14, 22, shortened(title, 120), bold=True)
    at = [(10 + x, 30 + y) for x, y in places.at]
    for a, b, rate in graph.cables:
        (x1, y1), (x2, y2) = at[a], at[b]
        colour = _RATES[min(rates.index(rate), len(_RATES) - 1)]
        hint = f"{_name(graph, a)} to {_name(graph, b)}: {rate} each way"
        if coordinates and coordinates[a][:-2] != coordinates[b][:-2]:
            continue
        if switched or abs(x1 - x2) + abs(y1 - y2) <= 1.01 * step:
            card.line(x1, y1, x2, y2, colour, 1 if switched else 1.6, hint)
        else:  # beside what lies between
            bend = 0.84 * step
            x, y = (x1 + x2) / 2 - bend * (y1 != y2), (y1 + y2) / 2 - bend * (x1 != x2)
            card.path(f"M{x1:.1f},{y1:.1f} Q{x:.1f},{y:.1f} {x2:.1f},{y2:.1f}", colour, 1.2, hint)
    for a, b in _missing(graph, coordinates) if coordinates else []:
        card.line(*at[a], *at[b], _BROKEN, 1.6, f"no cable between {_name(graph, a)} and {_name(graph, b)}", dashes="3 3")
    for node, (x, y) in enumerate(at):
        lines = graph.labels[node].split("\n")
        if graph.switches[node]:
            wide = max(width_of(lines[0]) + 8, 22)
            card.box(x - wide / 2, y - 11, wide, 22, _tint(_SWITCH, 0.3), "\n".join(lines), stroke=_SWITCH, rx=3)
            card.text(x, y + 4, lines[0], "middle")
            continue
        roomy = step >= 50 and not switched
        radius = 12 if switched else 7 if not roomy else 20 if detailed else 15
        card.circle(x, y, radius, _FILLS[_group(graph.labels[node]) % len(_FILLS)], _CHIP, "\n".join(lines))
        if detailed and roomy:
            card.text(x, y + 4, ",".join(line.split(":")[0] for line in lines[1:]) or "-", "middle", bold=True)
        elif roomy:
            card.text(x, y + 4, ",".join(str(part) for part in coordinates[node]) if len(coordinates[node]) < 3 else str(node), "middle")
        elif switched:
            card.text(x, y + 4, str(node), "middle", INK)
    for row, text in enumerate(legend):
        y = 30 + places.height + 14 + 18 * row
        card.line(16, y - 4, 44, y - 4, _RATES[row], 2)
        card.text(52, y, text, fill=QUIET)
    for row, text in enumerate(notes, len(legend)):
        card.text(16, 30 + places.height + 14 + 18 * row, text, fill=QUIET)
    return card.svg()


def _missing(graph: Graph, coordinates: List[Tuple[int, ...]]) -> List[Tuple[int, int]]:
    """Neighbours in a plane that no cable joins: a broken one."""
    joined = {frozenset(cable[:2]) for cable in graph.cables}
    chip_at = {place: chip for chip, place in enumerate(coordinates)}
    pairs = []
    for place, chip in chip_at.items():
        for axis in range(max(0, len(place) - 2), len(place)):
            other = chip_at.get(place[:axis] + (place[axis] + 1,) + place[axis + 1:])
            if other is not None and frozenset((chip, other)) not in joined:
                pairs.append((chip, other))
    return pairs


def _notes(graph: Graph, coordinates: Optional[List[Tuple[int, ...]]]) -> List[str]:
    if not coordinates:
        return []
    between = sum(coordinates[a][:-2] != coordinates[b][:-2] for a, b, _ in graph.cables)
    missing = [f"{_name(graph, a)} to {_name(graph, b)}" for a, b in _missing(graph, coordinates)]
    notes = [f"not drawn: {_cables(between)} between planes"] if between else []
    if missing:
        notes.append("no cable: " + ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else ""))
    return notes


def _cables(count: int) -> str:
    return f"{count} cable" + "s" * (count != 1)


def _group(label: str) -> int:
    """A chip's position along the mesh's first axis, where its label has one."""
    found = re.search(r"\n\d+: [^=\n]*=(\d+)", label)
    return int(found[1]) if found else 0


def _name(graph: Graph, node: int) -> str:
    return graph.labels[node].split("\n", 1)[0]
