#!/usr/bin/env python3
"""Simulates all-reduces on 1 to 256 nodes of 8 GPUs; writes nodes.csv, nodes.svg and doubling.svg into a folder and prints the table. Standard library only."""
import json
import math
import os
import subprocess
import sys

NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
GPUS = 8
SIZES = ("least", 64 << 10, 1 << 20, 64 << 20, 1 << 30)  # bytes on each device; least: one bf16 element for each device
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00")


NAMED = ("tree", "hierarchical-doubling", "hierarchical-direct", "hierarchical")  # of 64 KiB
SHORT = {"hierarchical-direct": "hd", "hierarchical-doubling": "dbl", "hierarchical-in-switch": "his"}


def name_of(size):
    if size == "least":
        return "2 B x devices"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >> shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def simulate(nodes, size, algorithm=None):
    """Seconds, and the algorithm: that which `auto` takes, unless one is given."""
    count = 2 * GPUS * nodes if size == "least" else size
    command = [os.environ.get("PODSIM", "build/podsim"), "run", "--machine", "dgx_h100", "--slice", f"{nodes}x{GPUS}", "--collective", "all-reduce",
               "--bytes", f"{count}B", "--format", "json"] + (["--algorithm", algorithm] if algorithm else [])
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["makespan_s"], result["algorithm"].removeprefix("auto: ")


def points_of(rows, size):
    return [(row["nodes"], row["seconds"]) for row in rows if row["size"] == size]


def growth(rows, size):
    """The straight line through the times over log2(nodes) from two nodes on: seconds per doubling, and the largest distance from it."""
    points = [(math.log2(n), s) for n, s in points_of(rows, size) if n > 1]
    mean_x, mean_y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, y in points)
    return slope, max(abs(y - mean_y - slope * (x - mean_x)) for x, y in points)


def plot(rows):
    """Time over nodes, both logarithmic, one line per size."""
    left, right, top, bottom, width, height = 70, 130, 20, 50, 700, 420
    low, high = (f(math.log10(row["seconds"]) for row in rows) for f in (min, max))
    low, high = math.floor(low), math.ceil(high)
    x = lambda nodes: left + (width - left - right) * math.log2(nodes) / math.log2(NODES[-1])
    y = lambda seconds: height - bottom - (height - top - bottom) * (math.log10(seconds) - low) / (high - low)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="#ffffff"/>']
    for power in range(low, high + 1):
        at = y(10.0 ** power)
        label = {-6: "1 us", -5: "10 us", -4: "100 us", -3: "1 ms", -2: "10 ms", -1: "100 ms"}.get(power, f"1e{power} s")
        svg.append(f'<line x1="{left}" y1="{at:.1f}" x2="{width - right}" y2="{at:.1f}" stroke="#dddddd"/>')
        svg.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    for nodes in NODES:
        svg.append(f'<text x="{x(nodes):.1f}" y="{height - bottom + 18}" text-anchor="middle">{nodes}</text>')
    svg.append(f'<text x="{(left + width - right) / 2:.1f}" y="{height - 10}" text-anchor="middle">nodes of {GPUS} GPUs</text>')
    names = {}  # where each line is named: at its end, with room between two
    for end, size in sorted(((y(points_of(rows, size)[-1][1]), size) for size in SIZES), key=lambda entry: -entry[0]):
        names[size] = min(end + 4, min(names.values(), default=height) - 15)
    for size, colour in zip(SIZES, COLOURS):
        points = points_of(rows, size)
        line = " ".join(f"{x(nodes):.1f},{y(seconds):.1f}" for nodes, seconds in points)
        svg.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        svg.extend(f'<circle cx="{x(nodes):.1f}" cy="{y(seconds):.1f}" r="3" fill="{colour}"/>' for nodes, seconds in points)
        svg.append(f'<text x="{width - right + 10}" y="{names[size]:.1f}" fill="{colour}">{name_of(size)}</text>')
    return "\n".join(svg + ["</svg>", ""])


def plot_named(named):
    """Times of small all-reduces by one algorithm each, on a linear axis: a line grows with log2(nodes)."""
    width, height, left, right, top, bottom = 700, 300, 70, 190, 20, 50
    most = 60e-6
    x = lambda nodes: left + (width - left - right) * math.log2(nodes) / math.log2(NODES[-1])
    y = lambda seconds: top + (height - top - bottom) * (1 - seconds / most)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for us in range(0, 61, 20):
        svg.append(f'<line x1="{left}" y1="{y(us * 1e-6):.1f}" x2="{width - right}" y2="{y(us * 1e-6):.1f}" stroke="#dddddd"/>')
        svg.append(f'<text x="{left - 8}" y="{y(us * 1e-6) + 4:.1f}" text-anchor="end">{us} us</text>')
    for nodes in NODES:
        svg.append(f'<text x="{x(nodes):.1f}" y="{height - bottom + 18}" text-anchor="middle">{nodes}</text>')
    svg.append(f'<text x="{(left + width - right) / 2:.1f}" y="{height - 10}" text-anchor="middle">nodes of {GPUS} GPUs; all-reduce of 64 KiB</text>')
    for number, (algorithm, colour) in enumerate(zip(["tree", "hierarchical-doubling", "hierarchical-direct"], COLOURS)):
        points = [(nodes, named[algorithm, nodes]) for nodes in NODES[1:]]
        line = " ".join(f"{x(nodes):.1f},{y(seconds):.1f}" for nodes, seconds in points)
        svg.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        svg.extend(f'<circle cx="{x(nodes):.1f}" cy="{y(seconds):.1f}" r="3" fill="{colour}"/>' for nodes, seconds in points)
        svg.append(f'<text x="{width - right + 10}" y="{y(points[-1][1]) + (-4, 10, 4)[number]:.1f}" fill="{colour}">{algorithm}</text>')
    return "\n".join(svg + ["</svg>", ""])


def main(folder):
    rows = []
    for size in SIZES:
        for nodes in NODES:
            seconds, algorithm = simulate(nodes, size)
            rows.append({"size": size, "nodes": nodes, "seconds": seconds, "algorithm": algorithm})
    with open(os.path.join(folder, "nodes.csv"), "w", encoding="utf-8") as out:
        out.write("bytes,nodes,time_us,algorithm\n")
        for row in rows:
            count = 2 * GPUS * row["nodes"] if row["size"] == "least" else row["size"]
            out.write(f'{count},{row["nodes"]},{row["seconds"] * 1e6:.6g},{row["algorithm"]}\n')
    with open(os.path.join(folder, "nodes.svg"), "w", encoding="utf-8") as out:
        out.write(plot(rows))
    print("| nodes | " + " | ".join(name_of(size) for size in SIZES) + " |")
    print("|" + "---|" * (len(SIZES) + 1))
    for nodes in NODES:
        cells = [next(row for row in rows if row["size"] == size and row["nodes"] == nodes) for size in SIZES]
        short = [SHORT.get(cell["algorithm"].split(" ")[0], cell["algorithm"].split(" ")[0]) for cell in cells]
        print(f"| {nodes} | " + " | ".join(f'{cell["seconds"] * 1e6:.4g} {name}' for cell, name in zip(cells, short)) + " |")
    for size in SIZES:
        slope, off = growth(rows, size)
        print(f"{name_of(size)}: {slope * 1e6:.4g} us per doubling of the nodes from 2 on, at most {off * 1e6:.3g} us off that line")
    named = {(algorithm, nodes): simulate(nodes, 64 << 10, algorithm)[0] for algorithm in NAMED for nodes in NODES[1:]}
    with open(os.path.join(folder, "doubling.svg"), "w", encoding="utf-8") as out:
        out.write(plot_named(named))
    print("\n| nodes | " + " | ".join(NAMED) + " |")
    print("|" + "---|" * (len(NAMED) + 1))
    for nodes in NODES[1:]:
        print(f"| {nodes} | " + " | ".join(f"{named[algorithm, nodes] * 1e6:.4g}" for algorithm in NAMED) + " |")


main(sys.argv[1])
