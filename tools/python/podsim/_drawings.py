"""Drawings for notebooks, as SVG: how a run splits its time, and when everything happened."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from ._core import axis_colours, role_colours
from ._results import UNITS

# What has a role has its colour, as on pages and at terminals. Drawings stand on a card of their own, which is light on a dark page too.
PALE, PAPER, INK, QUIET = "#e4e4e4", "#ffffff", "#1a1a1a", "#595959"

_FONT = "DejaVu Sans, Verdana, sans-serif"
_TEXT = 12  # pixels
_WIDTH, _MARGIN = 900, 14
_MOST_PARTS = 9
_MOST_LEDGER_ROWS = 8
_MOST_BOXES = 4000
_MOST_DEVICES = 4
_MOST_ROWS = 6

# What stands in XML: no control characters, no halves of surrogate pairs.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Card:
    """A picture on a light card."""

    def __init__(self, width: float, height: float, title: str):
        size = {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}", "style": "max-width: 100%; height: auto"}
        self._root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", "font-family": _FONT, "font-size": str(_TEXT)})
        self._add("title", _text=title)
        self._add("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=6, fill=PAPER, stroke=PALE)

    def _add(self, kind: str, _text: str = "", _hint: str = "", **attributes: Any) -> None:
        named = {name.replace("_", "-"): f"{value:.6g}" if isinstance(value, float) else str(value) for name, value in attributes.items()}
        element = ElementTree.SubElement(self._root, kind, named)
        if _text:
            element.text = _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", _text)
        if _hint:
            ElementTree.SubElement(element, "title").text = _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", _hint)

    def box(self, x: float, y: float, width: float, height: float, fill: str, hint: str = "", **how: Any) -> None:
        self._add("rect", _hint=hint, x=float(x), y=float(y), width=float(width), height=float(height), fill=fill, **how)

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1, hint: str = "", dashes: str = "none") -> None:
        self._add("line", _hint=hint, x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=stroke, stroke_width=float(width), stroke_dasharray=dashes)

    def path(self, steps: str, stroke: str, width: float = 1, hint: str = "") -> None:
        self._add("path", _hint=hint, d=steps, stroke=stroke, stroke_width=float(width), fill="none")

    def circle(self, x: float, y: float, radius: float, fill: str, stroke: str, hint: str = "") -> None:
        self._add("circle", _hint=hint, cx=float(x), cy=float(y), r=float(radius), fill=fill, stroke=stroke)

    def text(self, x: float, y: float, text: str, anchor: str = "start", fill: str = INK, bold: bool = False) -> None:
        self._add("text", _text=text, x=float(x), y=float(y), text_anchor=anchor, fill=fill, **({"font_weight": "bold"} if bold else {}))

    def svg(self) -> str:
        return ElementTree.tostring(self._root, encoding="unicode")


def width_of(text: str) -> float:
    """About, in pixels."""
    return 0.6 * _TEXT * len(text)


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def colour_of(role: str) -> str:
    return role_colours.get(role, role_colours["other"])


def time_text(seconds: float) -> str:
    """With four digits: 922.5 us."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if abs(seconds) >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e12:.4g} ps" if seconds else "0 s"


def _ticks(most: float, about: int = 6) -> Iterator[float]:
    """Round values from 0 to most."""
    if most <= 0:
        yield 0.0
        return
    step = 10.0 ** np.floor(np.log10(most / about))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step * about >= most)
    yield from (count * step for count in range(int(most / step + 1e-9) + 1))


# ---- How a run splits its time -----------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A share of a run's time."""

    name: str
    seconds: float
    colour: str


def _by_role(amounts: Dict[str, float], suffix: str) -> List[Part]:
    return [Part(role + suffix, seconds, colour_of(role)) for role, seconds in sorted(amounts.items(), key=lambda entry: -entry[1]) if seconds > 0]


def split_parts(result: Dict[str, Any]) -> List[Part]:
    """What the makespan consists of, by ``podsim run --format json``. The parts sum to the makespan.

    A training step has its split there. Of any other run the core is busy with an operation, or waits only for one (exposed), or for another device.
    """
    split = result.get("split")
    if split:
        exposed = [Part(f"{axis}, exposed", seconds, axis_colours[n % len(axis_colours)]) for n, (axis, seconds) in enumerate(split["exposed_s"].items())]
        parts = [Part(role, split[f"{role}_s"], colour_of(role)) for role in ("compute", "recompute", "optimizer", "copies", "bubble", "launch", "waiting")]
        return [part for part in parts[:1] + exposed + parts[1:] if part.seconds > 0]
    busy: Dict[str, float] = {}
    exposed_by: Dict[str, float] = {}
    for operation in result["operations"]:
        for amounts, seconds in ((busy, operation["busy_s"]), (exposed_by, operation["exposed_s"])):
            amounts[operation["category"]] = amounts.get(operation["category"], 0.0) + seconds
    return _by_role(busy, "") + _by_role(exposed_by, ", exposed") + _by_role({"waiting": result["waiting_s"]}, "")


def _few(parts: List[Part]) -> List[Part]:
    """The small ones as one."""
    if len(parts) <= _MOST_PARTS:
        return parts
    large = sorted(parts, key=lambda part: -part.seconds)[: _MOST_PARTS - 1]
    rest = [part for part in parts if part not in large]
    return [part for part in parts if part in large] + [Part(f"{len(rest)} others", sum(part.seconds for part in rest), colour_of("other"))]


def _legend_rows(texts: Sequence[str], width: float) -> List[List[int]]:
    """Which entries of a legend stand in which line."""
    rows: List[List[int]] = [[]]
    used = 0.0
    for index, text in enumerate(texts):
        wide = width_of(text) + 34
        if rows[-1] and used + wide > width:
            rows.append([])
            used = 0.0
        rows[-1].append(index)
        used += wide
    return rows


def _legend(card: Card, x: float, y: float, rows: List[List[int]], texts: Sequence[str], colours: Sequence[str]) -> None:
    for row in rows:
        at = x
        for index in row:
            card.box(at, y - 9, 11, 11, colours[index], stroke=QUIET, stroke_width=0.5)
            card.text(at + 16, y, texts[index])
            at += width_of(texts[index]) + 34
        y += 19


def split_svg(run: Any) -> str:
    """A run's time as a bar, with a legend in times and shares. Below, for each axis of the mesh, how long it has transfers, and how much of that is exposed:
    the axes overlap, so that these do not sum to anything."""
    result = run.to_dict()
    makespan = result["makespan_s"]
    parts = _few(split_parts(result))
    if makespan <= 0 or not parts:
        return ""
    texts = [f"{part.name} {time_text(part.seconds)} ({part.seconds / makespan:.1%})" for part in parts]
    axes = [axis for axis in result["axes"] if axis["in_flight_s"] > 0]
    wide = _WIDTH - 2 * _MARGIN
    rows = _legend_rows(texts, wide)
    head, legend_y = 34, 34 + 26 + 20
    axes_y = legend_y + 19 * len(rows) + 6
    card = Card(_WIDTH, axes_y + (22 * len(axes) + 8 if axes else -6), f"{result['schedule']}: split of {time_text(makespan)}")
    card.text(_MARGIN, 22, shortened(f"{result['schedule']} on {result['machine']} {result['slice']}", 90), bold=True)
    card.text(_WIDTH - _MARGIN, 22, time_text(makespan), "end", bold=True)
    at = float(_MARGIN)
    for part, text in zip(parts, texts):
        width = wide * part.seconds / makespan
        card.box(at, head, width, 26, part.colour, text)
        at += width
    _legend(card, _MARGIN, legend_y, rows, texts, [part.colour for part in parts])
    left = _MARGIN + max((width_of(shortened(axis["axis"], 16)) for axis in axes), default=0) + 46
    room = wide - (left - _MARGIN) - 340
    for row, axis in enumerate(axes):
        y = axes_y + 22 * row
        scale = room / max(makespan, axis["in_flight_s"])
        text = f"in flight {time_text(axis['in_flight_s'])}, exposed {time_text(axis['exposed_s'])}"
        card.text(_MARGIN, y + 11, f"axis {shortened(axis['axis'], 16)}")
        card.box(left, y, room, 13, "none", stroke=PALE)
        card.box(left, y, scale * axis["in_flight_s"], 13, colour_of("hidden"), text)
        card.box(left, y, scale * axis["exposed_s"], 13, colour_of("exposed"), text)
        card.text(left + room + 10, y + 11, text)
    return card.svg()


# ---- What it waits for -------------------------------------------------------------------------------------------------------------------


def ledger_svg(run: Any) -> str:
    """The collectives that a run waits for longest: how long each is exposed, and how long hidden. Empty: there are none."""
    result = run.to_dict()
    ledger = result.get("collectives", [])
    shown = ledger[:_MOST_LEDGER_ROWS]
    if not shown:
        return ""
    names = [shortened(row["name"], 34) for row in shown]
    origins = [shortened(row["source"] or (row["path"] or "")[-34:], 34) for row in shown]
    left = _MARGIN + max(map(width_of, names)) + 10
    middle = left + max(map(width_of, origins)) + 10
    texts = [f"exposed {time_text(row['exposed_s'])} ({row['share']:.1%}), hidden {time_text(row['hidden_s'])}" for row in shown]
    right = _WIDTH - _MARGIN - max(map(width_of, texts))
    longest = max(max(row["exposed_s"] + row["hidden_s"] for row in shown), 1e-12)
    rest = f", {len(shown)} of {len(ledger)}" if len(shown) < len(ledger) else ""
    card = Card(_WIDTH, 40 + 22 * len(shown), f"{result['schedule']}: its collectives, most exposed first")
    card.text(_MARGIN, 22, f"Collectives of the busiest device, most exposed first{rest}", bold=True)
    for number, (row, name, origin, text) in enumerate(zip(shown, names, origins, texts)):
        y = 34 + 22 * number
        scale = max(right - middle - 10, 40) / longest
        hint = f"{row['name']}: {row['kind']} along {row['axis'] or 'several axes'}, {row['count']} x {row['bytes']} bytes{', ' + row['path'] if row['path'] else ''}; {text}"
        card.text(_MARGIN, y + 11, name)
        card.text(left, y + 11, origin, fill=QUIET)
        card.box(middle, y, scale * row["exposed_s"], 13, colour_of("exposed"), hint)
        card.box(middle + scale * row["exposed_s"], y, scale * row["hidden_s"], 13, colour_of("hidden"), hint)
        card.text(right, y + 11, text)
    return card.svg()


# ---- When everything happened ------------------------------------------------------------------------------------------------------------


class Box(NamedTuple):
    """Instances of one role, merged where they are short: from and to in picoseconds."""

    start: int
    end: int
    role: int
    first: int  # of its instances
    count: int


def merged(start: np.ndarray, end: np.ndarray, role: np.ndarray, gap: float) -> List[Box]:
    """Boxes that cover the instances. Those that are at least ``gap`` picoseconds long have one each; shorter ones of a role share one where they are nearer
    than that."""
    boxes: List[Box] = []
    for one in np.unique(role):
        at = np.flatnonzero(role == one)
        long = end[at] - start[at] >= gap
        boxes += [Box(int(start[i]), int(end[i]), int(one), int(i), 1) for i in at[long]]
        short = at[~long]
        if not len(short):
            continue
        short = short[np.argsort(start[short], kind="stable")]
        reach = np.maximum.accumulate(end[short])
        first = np.concatenate(([0], np.flatnonzero(start[short][1:] > reach[:-1] + gap) + 1))
        last = np.concatenate((first[1:], [len(short)]))
        boxes += [Box(int(start[short[a]]), int(reach[b - 1]), int(one), int(short[a]), int(b - a)) for a, b in zip(first, last)]
    return sorted(boxes)


def rows_of(boxes: Sequence[Box], most: int = _MOST_ROWS) -> List[int]:
    """The row of each box, so that boxes at one time stand under each other; if that takes more rows than ``most``, the last ones overlap."""
    ends: List[int] = []
    rows = []
    for box in boxes:
        row = next((row for row, end in enumerate(ends) if end <= box.start), len(ends))
        if row == len(ends) and row < most:
            ends.append(box.end)
        else:
            row = min(row, most - 1)
            ends[row] = max(ends[row], box.end)
        rows.append(row)
    return rows


def _devices(timeline: Any) -> List[int]:
    """A few: spread over those that have instances."""
    present = np.flatnonzero(np.bincount(timeline.device))
    chosen = np.unique(np.linspace(0, len(present) - 1, min(_MOST_DEVICES, len(present))).astype(int))
    return [int(device) for device in present[chosen]]


class Lane(NamedTuple):
    """What one unit of one device does."""

    device: int
    unit: int
    boxes: List[Box]


def lanes_of(timeline: Any, pixels: float) -> Tuple[List[Lane], List[str]]:
    """The lanes of a few devices, and the roles that their boxes have by number. What is shorter than a pixel is merged; if there are too many boxes, more is."""
    roles = list(dict.fromkeys(timeline.roles))
    number = {role: index for index, role in enumerate(roles)}
    role_of_task = np.array([number[role] for role in timeline.roles], dtype=np.int32)
    found = []
    for device in _devices(timeline):
        own = np.flatnonzero(timeline.device == device)
        for unit in range(len(UNITS)):
            at = own[timeline.unit[own] == unit]
            if len(at):
                found.append((device, unit, at, timeline.start_ps[at], timeline.end_ps[at], role_of_task[timeline.task[at]]))
    gap = timeline.makespan_ps / pixels
    while True:
        lanes = [Lane(device, unit, [box._replace(first=int(at[box.first])) for box in merged(start, end, role, gap)])
                 for device, unit, at, start, end, role in found]
        if sum(len(lane.boxes) for lane in lanes) <= _MOST_BOXES:
            return lanes, roles
        gap *= 2


def timeline_svg(timeline: Any) -> str:
    """A few devices, each with what its core, its DMA engine and its links do, over time."""
    makespan = timeline.makespan_ps
    if not len(timeline) or makespan <= 0:
        return ""
    left = 128
    wide = _WIDTH - left - _MARGIN
    lanes, roles = lanes_of(timeline, wide)
    placed = [rows_of(lane.boxes, 1 if UNITS[lane.unit] == "core" else _MOST_ROWS) for lane in lanes]  # only merged boxes of a core overlap
    shown = sorted({box.role for lane in lanes for box in lane.boxes})
    texts = [roles[role] for role in shown]
    legend = _legend_rows(texts, _WIDTH - 2 * _MARGIN)
    heights = [4 + (18 if max(rows) == 0 else 9 * (max(rows) + 1)) for rows in placed]
    units = Counter(lane.device for lane in lanes)
    heights = [height + (14 if units[lane.device] == 1 else 0) for lane, height in zip(lanes, heights)]  # room for two lines of text
    breaks = sum(1 for before, after in zip(lanes, lanes[1:]) if before.device != after.device)
    top = 34 + 19 * len(legend)
    bottom = top + sum(heights) + 10 * breaks
    card = Card(_WIDTH, bottom + 34, f"timeline of {time_text(makespan * 1e-12)}")
    counts = np.bincount(timeline.alike)
    devices = {lane.device for lane in lanes}
    some = f"{len(devices)} of {len(timeline.alike)} devices" if len(timeline.alike) > 1 else "one device"
    card.text(_MARGIN, 22, f"{some}, {len(timeline):,} task instances, {time_text(makespan * 1e-12)}", bold=True)
    _legend(card, _MARGIN, 44, legend, texts, [colour_of(role) for role in texts])
    for tick in _ticks(makespan * 1e-12):
        x = left + wide * tick * 1e12 / makespan
        card.line(x, top - 4, x, bottom + 4, PALE)
        card.text(min(x, _WIDTH - _MARGIN), bottom + 20, time_text(tick), "end" if x > _WIDTH - 60 else "middle", QUIET)
    y, before = float(top), None
    for lane, rows, height in zip(lanes, placed, heights):
        if lane.device != before:
            y += 10 if before is not None else 0
            alike = int(counts[lane.device]) if lane.device < len(counts) else 1
            card.text(_MARGIN, y + 13, f"device {lane.device}", bold=True)
            if alike > 1:
                card.text(_MARGIN, y + 28, f"{alike} alike", fill=QUIET)
            before = lane.device
        card.text(left - 8, y + height / 2 + 3, ("core", "DMA", "links")[lane.unit], "end", QUIET)
        each = 18 if max(rows) == 0 else 9
        for box, row in zip(lane.boxes, rows):
            label = timeline.labels[timeline.task[box.first]]
            what = label if box.count == 1 else f"{box.count} of {roles[box.role]}"
            hint = f"{what}: {time_text(box.start * 1e-12)} to {time_text(box.end * 1e-12)}"
            width = wide * (box.end - box.start) / makespan
            width = width - 0.6 if width > 3 else max(width, 0.5)  # neighbours stay apart, and nothing vanishes
            card.box(left + wide * box.start / makespan, y + each * row, width, each - (1 if each < 18 else 0), colour_of(roles[box.role]), hint)
        y += height
    return card.svg()
