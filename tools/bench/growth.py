#!/usr/bin/env python3
"""How CPU time and memory grow with chips, slices and flows: growth.csv and growth.svg beside this, and the table of slopes, printed. Standard library only.

usage: growth.py [PODSIM]      a few minutes; PODSIM: build/podsim unless given
       growth.py --plot        the picture and the table anew, from growth.csv
"""
import csv
import json
import math
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TRIES = 3  # of which the fastest counts: others use the computer as well
GEMM = ["--machine", "tpu_v4", "--algorithm", "meshslice"]


def product(side, *more):
    """The same GEMM for each chip, of which all algorithms divide what they must."""
    return [*GEMM, "--slice", f"{side}x{side}", "--gemm", f"m={1024 * side * side},n={768 * side},k={1024 * side}", *more]


def exchange(side):
    chips = side * side
    return ["--machine", "tpu_v4", "--slice", f"{side}x{side}", "--mesh", f"x={chips}", "--collective", "all-to-all", "--axis", "x", "--bytes",
            f"{2 * chips * chips}B", "--algorithm", "pairwise", "--fold", "off"]


# name, what is counted, its values, the command of each
SERIES = (
    ("chips, folded", "chips", {s * s: product(s, "--slice-count", "8") for s in (16, 32, 64, 128, 256, 512, 1024)}),
    ("chips, every chip", "chips", {s * s: product(s, "--slice-count", "8", "--fold", "off", "--force") for s in (8, 16, 32, 64, 128)}),
    ("chips, a straggler", "chips", {s * s: product(s, "--slice-count", "8", "--straggler", "3.2=0.8", "--force") for s in (8, 16, 32, 64, 128)}),
    ("chips, a failed cable", "chips", {s * s: product(s, "--slice-count", "8", "--fail", "0.0-0.1", "--force") for s in (8, 16, 32, 64)}),
    ("slices, every chip of 32x32", "S", {n: product(32, "--slice-count", str(n), "--fold", "off") for n in (1, 2, 4, 8, 16, 32)}),
    ("flows of all-to-alls, every chip", "flows", {s * s * (s * s - 1): exchange(s) for s in (4, 8, 16, 32)}),
)
COLOURS = ("#0072b2", "#d55e00", "#e69f00", "#cc79a7", "#009e73", "#000000")


def measure(podsim, *words):
    """CPU seconds, the least of TRIES, peak bytes and task instances of one run."""
    seconds, peak, answer = math.inf, 0, ""
    for _ in range(TRIES):
        child = subprocess.Popen([podsim, *words], stdout=subprocess.PIPE, text=True)
        with child.stdout:
            answer = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"growth.py: {' '.join([podsim, *words])} ended with {child.returncode}")
        seconds, peak = min(seconds, used.ru_utime + used.ru_stime), used.ru_maxrss * 1024
    return seconds, peak, json.loads(answer)["tasks"] if answer.startswith("{") else 0


def slope(points):
    """The power of x that y grows by, over the last three points: 1 is linear."""
    (x0, y0), (x1, y1) = points[-3], points[-1]
    return math.log(y1 / y0) / math.log(x1 / x0)


def table(rows):
    """Start-up is subtracted from what slopes are of."""
    _, start, least, _ = rows["start"][0]
    lines = ["| | from | to | CPU s | MB | time grows by the power | of the task instances by | memory by |", "|---|---|---|---|---|---|---|---|"]
    for name, unit, _ in SERIES:
        points = rows[name]
        powers = [slope([(count, seconds - start) for count, seconds, _, _ in points]), slope([(tasks, seconds - start) for _, seconds, _, tasks in points]),
                  slope([(count, peak - least) for count, _, peak, _ in points])]
        lines.append(f"| {name} | {points[0][0]:,} | {points[-1][0]:,} {unit} | {points[0][1]:.3f} to {points[-1][1]:.3g} | {points[0][2] / 1e6:.0f} to "
                     f"{points[-1][2] / 1e6:.0f} | " + " | ".join(f"{power:.2f}" for power in powers) + " |")
    return lines


def plot(rows):
    """CPU seconds over what grows, both logarithmic, one line per series; a dotted one has slope 1."""
    width, height, left, right, top, bottom = 900, 480, 70, 220, 20, 50
    powers_x, powers_y = (0, 7), (-2, 2)
    x = lambda count: left + (width - left - right) * (math.log10(count) - powers_x[0]) / (powers_x[1] - powers_x[0])
    y = lambda seconds: height - bottom - (height - top - bottom) * (math.log10(seconds) - powers_y[0]) / (powers_y[1] - powers_y[0])
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="#ffffff"/>']
    for power in range(powers_y[0], powers_y[1] + 1):
        svg.append(f'<line x1="{left}" y1="{y(10.0 ** power):.1f}" x2="{width - right}" y2="{y(10.0 ** power):.1f}" stroke="#dddddd"/>')
        svg.append(f'<text x="{left - 8}" y="{y(10.0 ** power) + 4:.1f}" text-anchor="end">{10.0 ** power:g} s</text>')
    for power in range(powers_x[0], powers_x[1] + 1):
        svg.append(f'<line x1="{x(10 ** power):.1f}" y1="{top}" x2="{x(10 ** power):.1f}" y2="{height - bottom}" stroke="#eeeeee"/>')
        svg.append(f'<text x="{x(10 ** power):.1f}" y="{height - bottom + 18}" text-anchor="middle">{10 ** power:,}</text>')
    svg.append(f'<text x="{(left + width - right) / 2:.1f}" y="{height - 10}" text-anchor="middle">chips, slices S, flows</text>')
    svg.append(f'<line x1="{x(1e4):.1f}" y1="{y(0.01):.1f}" x2="{x(1e7):.1f}" y2="{y(10):.1f}" stroke="#999999" stroke-dasharray="3 4"/>')
    names = {}  # where each line is named: at its end, with room between two
    for end, name in sorted((y(rows[name][-1][1]), name) for name, _, _ in SERIES):
        names[name] = max(end + 4, max(names.values(), default=0) + 15)
    for (name, _, _), colour in zip(SERIES, COLOURS):
        points = rows[name]
        line = " ".join(f"{x(count):.1f},{y(seconds):.1f}" for count, seconds, _, _ in points)
        svg.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        svg.extend(f'<circle cx="{x(count):.1f}" cy="{y(seconds):.1f}" r="3" fill="{colour}"/>' for count, seconds, _, _ in points)
        svg.append(f'<text x="{width - right + 10}" y="{names[name]:.1f}" fill="{colour}">{name}</text>')
    return "\n".join(svg + ["</svg>", ""])


def main(arguments):
    if arguments != ["--plot"]:
        podsim = arguments[0] if arguments else "build/podsim"
        with open(HERE / "growth.csv", "w", encoding="utf-8") as out:
            out.write("series,count,cpu_s,peak_bytes,tasks\n")
            for name, words in [("start", {0: ["--version"]})] + [(s[0], {n: ["run", *w, "--format", "json"] for n, w in s[2].items()}) for s in SERIES]:
                for count, command in words.items():
                    seconds, peak, tasks = measure(podsim, *command)
                    out.write(f'"{name}",{count},{seconds:.6f},{peak},{tasks}\n')
                    out.flush()
    rows = {}
    with open(HERE / "growth.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["series"], []).append((int(row["count"]), float(row["cpu_s"]), int(row["peak_bytes"]), int(row["tasks"])))
    (HERE / "growth.svg").write_text(plot(rows), encoding="utf-8")
    print("\n".join(table(rows)))


if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-") and sys.argv[1] != "--plot"):
    sys.exit(__doc__)
main(sys.argv[1:])
