#!/usr/bin/env python3
"""What damage costs: tables and box plots of results.csv. Standard library only.

usage: imperfect.py --take EXPORT.csv     writes results.csv and imperfect.svg from a sweep's export, and prints the tables
       imperfect.py --check PODSIM        whether README.md has the tables of results.csv, imperfect.svg its plot, and PODSIM its first rows
"""
import csv
import io
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = ("slice", "algorithm", "fail", "straggler", "seed", "makespan_s", "rings")
ALGORITHMS = {"collective": "#0072b2", "meshslice": "#d55e00", "wang": "#009e73"}
CABLES = {"0.0-1.0": "one cable along row", "0.0-0.1": "one cable along col", "0.0-1.0; 0.0-0.1": "one along each"}
SLOW = {"random:0.1%=0.8": "0.1 % slow chips", "random:1%=0.8": "1 % slow chips"}


class Results:
    def __init__(self, rows):
        self.slices = list(dict.fromkeys(row["slice"] for row in rows))
        self.times, self.rings = {}, {}
        for row in rows:
            damage = row["fail"] or row["straggler"]
            self.times.setdefault((row["slice"], row["algorithm"], damage), []).append(float(row["makespan_s"]))
            self.rings[row["slice"], row["algorithm"], damage] = row["rings"]

    def healthy(self, pod, algorithm):
        return self.times[pod, algorithm, ""][0]

    def lost(self, pod, algorithm, damage):
        """Per run, in percent of the healthy pod's time, in order."""
        return sorted(100 * (seconds / self.healthy(pod, algorithm) - 1) for seconds in self.times[pod, algorithm, damage])


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * values


def tables(results):
    """The lines of README.md's tables."""
    lines = []
    for pod in results.slices:
        lines += [f"| {pod} | " + " | ".join(ALGORITHMS) + " |", "|---" * (len(ALGORITHMS) + 1) + "|"]
        lines.append("| healthy | " + " | ".join(f"{1e3 * results.healthy(pod, a):.3f} ms" for a in ALGORITHMS) + " |")
        for damage, name in CABLES.items():
            cells = [f"+{results.lost(pod, a, damage)[0]:.2f} % {'detour' if results.rings[pod, a, damage] == 'detour' else 'line'}" for a in ALGORITHMS]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        for damage, name in SLOW.items():
            cells = []
            for algorithm in ALGORITHMS:
                lost = results.lost(pod, algorithm, damage)
                cells.append(f"+{statistics.median(lost):.2f} % ({lost[0]:.2f} to {lost[-1]:.2f})")
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def plot(results):
    """Per pod one picture: boxes over the seeds (quartiles, whiskers to the ends), diamonds where there is one run. Percent, linear."""
    width, height, left, top, bottom, gap = 1000, 430, 60, 40, 60, 40
    across = (width - left - gap * len(results.slices)) / len(results.slices)
    damages = {**CABLES, **SLOW}
    most = max(results.lost(p, a, d)[-1] for p in results.slices for a in ALGORITHMS for d in damages)
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if most / s <= 8)
    most = step * (int(most / step) + 1)
    y = lambda percent: top + (height - top - bottom) * (1 - percent / most)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="#ffffff"/>']
    for number, pod in enumerate(results.slices):
        begin = left + number * (across + gap)
        svg.append(f'<text x="{begin + across / 2:.1f}" y="20" text-anchor="middle" font-weight="bold">{pod}: time lost, % of the healthy pod</text>')
        for percent in range(0, most + 1, step):
            svg.append(f'<line x1="{begin:.1f}" y1="{y(percent):.1f}" x2="{begin + across:.1f}" y2="{y(percent):.1f}" stroke="#dddddd"/>')
            svg.append(f'<text x="{begin - 6:.1f}" y="{y(percent) + 4:.1f}" text-anchor="end">{percent}</text>')
        for group, (damage, name) in enumerate(damages.items()):
            room = across / len(damages)
            middle = begin + room * (group + 0.5)
            svg.append(f'<text x="{middle:.1f}" y="{height - bottom + 18}" text-anchor="middle" font-size="10">{name.replace("one cable", "cable")}</text>')
            for place, (algorithm, colour) in enumerate(ALGORITHMS.items()):
                lost = results.lost(pod, algorithm, damage)
                x = middle + (place - 1) * room * 0.28
                if len(lost) == 1:
                    at = y(lost[0])
                    svg.append(f'<path d="M{x:.1f} {at - 5:.1f} l5 5 l-5 5 l-5 -5 z" fill="{colour}"/>')
                    continue
                low, mid, high = (y(value) for value in quartiles(lost))
                svg.append(f'<line x1="{x:.1f}" y1="{y(lost[0]):.1f}" x2="{x:.1f}" y2="{y(lost[-1]):.1f}" stroke="{colour}"/>')
                svg.append(f'<rect x="{x - 7:.1f}" y="{high:.1f}" width="14" height="{low - high:.1f}" fill="#ffffff" stroke="{colour}"/>')
                svg.append(f'<line x1="{x - 7:.1f}" y1="{mid:.1f}" x2="{x + 7:.1f}" y2="{mid:.1f}" stroke="{colour}" stroke-width="2.5"/>')
    for place, (algorithm, colour) in enumerate(ALGORITHMS.items()):
        svg.append(f'<rect x="{left + 110 * place}" y="{height - 24}" width="12" height="12" fill="{colour}"/>')
        svg.append(f'<text x="{left + 18 + 110 * place}" y="{height - 14}">{algorithm}</text>')
    return "\n".join(svg + ["</svg>", ""])


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def take(export):
    rows = rows_of(export)
    if wrong := [row["point"] for row in rows if row["status"] != "done"]:
        sys.exit(f"imperfect.py: points {', '.join(wrong)} of the sweep have no result")
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    (HERE / "results.csv").write_text(text.getvalue(), encoding="utf-8")
    results = Results(rows)
    (HERE / "imperfect.svg").write_text(plot(results), encoding="utf-8")
    print("\n".join(tables(results)))


def check(podsim):
    rows = rows_of(HERE / "results.csv")
    results = Results(rows)
    readme = (HERE / "README.md").read_text(encoding="utf-8").splitlines()
    wrong = [f"README.md lacks the line\n  {line}" for line in tables(results) if line not in readme]
    if (HERE / "imperfect.svg").read_text(encoding="utf-8") != plot(results):
        wrong.append("imperfect.svg is not the plot of results.csv: validation/studies/imperfect/run.sh writes it")
    # The healthy pods are simulated again: a model that has changed makes the study old.
    with open(HERE / "imperfect.textproto", encoding="utf-8") as study:
        gemms = [line.split('"')[1] for line in study if "gemm:" in line]
    for pod, gemm in zip(results.slices, gemms):
        for algorithm in ALGORITHMS:
            command = [podsim, "run", "--machine", "tpu_v4:spec", "--slice", pod, "--gemm", gemm, "--algorithm", algorithm, "--force", "--format", "json"]
            command += ["--slice-count", "4"] if algorithm == "meshslice" else []
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found = json.loads(answer)["makespan_s"]
            if found != results.healthy(pod, algorithm):
                wrong.append(f"{' '.join(command)} takes {found} s, results.csv has {results.healthy(pod, algorithm)} s")
    if wrong:
        sys.exit("imperfect.py: " + "\n".join(wrong))


if len(sys.argv) != 3 or sys.argv[1] not in ("--take", "--check"):
    sys.exit(__doc__)
(take if sys.argv[1] == "--take" else check)(sys.argv[2])
