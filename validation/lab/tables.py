"""The tables of README.md: the runs of a study as predicted and as measured."""

import collections
import itertools
import json
import statistics
import tempfile

import study
from launch import FAULTS, podsim, words_of
from network import LabError

DIFFERENT = 0.05  # of two variants, as measured
NAMED = 0.10  # a row is a miss
# What variants of one problem differ in.
OF_VARIANTS = {"algorithm", "chunks", "slice_count", "pipeline", "virtual_stages"}


def percent(share, sign=""):
    return f"{100 * share:{sign}.1f} %"


def table(heading, rows):
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines) + "\n"


def rank(values, share):
    """As podsim's percentiles: the value that so many are no larger than."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


class Results:
    """What is predicted and measured, by the name of a run."""

    def __init__(self, folder):
        self.folder = folder
        self.fields = dict(study.read_runs(folder))
        self.measurements = study.read_measured(folder)
        self.validation = json.loads(podsim("validate", f"{folder}/", "--rows", "--format", "json", statuses=(0, 1)))  # 1: above a bound, which the table shows
        datasets = self.validation["datasets"]
        self.cases = datasets[0]["cases"]
        self.rows = {row["run"]: row for row in datasets[0]["rows"]}

    def predicted(self, name):
        return self.rows[name]["predicted_s"]

    def measured(self, name):
        return self.rows[name]["measured_s"]

    def error(self, name):
        return self.rows[name]["error"]


def by_case(found):
    lines = []
    for case in found.cases:
        names = [name for name, row in found.rows.items() if row["case"] == case["name"]]
        errors = [found.error(name) for name in names]
        worst = max(errors, key=abs)
        lines.append([case["name"], len(names), percent(case["median_spread"]), percent(case["median_abs_error"]), percent(case["p95_abs_error"]), percent(worst, "+"), percent(statistics.median(errors), "+")])
    return table(["runs", "rows", "noise", "median", "95th", "worst", "signed median"], lines)


def misses(found):
    lines = []
    for name, row in sorted(found.rows.items(), key=lambda item: -abs(item[1]["error"])):
        if abs(row["error"]) > NAMED:
            lines.append([name, f"{1e3 * row['predicted_s']:.1f}", f"{1e3 * row['measured_s']:.1f}", percent(row["error"], "+"), percent(row["spread"])])
    return table(["run", "predicted ms", "measured ms", "error", "spread"], lines)


def variants(found):
    """Names of the runs of one problem, by the problem."""
    groups = collections.defaultdict(list)
    for name in found.rows:
        fields = found.fields[name]
        if "program" in fields:
            continue
        # A product is one problem on all meshes.
        left_out = OF_VARIANTS | ({"mesh", "slice"} if "gemm" in fields else set())
        groups[tuple(sorted((field, text) for field, text in fields.items() if field not in left_out))].append(name)
    return [names for names in groups.values() if len(names) > 1]


def order(found):
    counts = collections.Counter()
    wrong = []
    for names in variants(found):
        for one, other in itertools.combinations(names, 2):
            fast, slow = sorted((one, other), key=found.measured)
            if found.measured(slow) < (1 + DIFFERENT) * found.measured(fast):
                continue
            kind = "products" if "gemm" in found.fields[one] else "pipelines" if "training" in found.fields[one] else "collectives"
            right = found.predicted(fast) < found.predicted(slow)
            counts[kind, right] += 1
            if not right:
                wrong.append([fast, slow, f"{1e3 * found.measured(fast):.1f} < {1e3 * found.measured(slow):.1f}", f"{1e3 * found.predicted(fast):.1f} and {1e3 * found.predicted(slow):.1f}"])
    lines = []
    for kind in ("collectives", "products", "pipelines"):
        right, all_of = counts[kind, True], counts[kind, True] + counts[kind, False]
        if all_of:
            lines.append([kind, all_of, right, percent(right / all_of)])
    text = table(["variants of one problem", "pairs that differ by more than 5 % as measured", "ordered right", ""], lines)
    return text + (table(["faster", "slower", "measured ms", "predicted ms"], wrong) if wrong else "")


def best_counts(found):
    """MeshSlice's slice count on each mesh; `collective` is S = 1."""
    groups = collections.defaultdict(dict)
    for name, fields in found.fields.items():
        if name in found.rows and name.startswith("gemm:") and fields["algorithm"] in ("collective", "meshslice"):
            groups[fields["mesh"], fields["gemm"], fields["pass"]][int(fields.get("slice_count", 1))] = name
    lines = []
    for (mesh, gemm, direction), counts in groups.items():
        predicted = min(counts, key=lambda count: found.predicted(counts[count]))
        measured = min(counts, key=lambda count: found.measured(counts[count]))
        loss = found.measured(counts[predicted]) / found.measured(counts[measured]) - 1
        lines.append([mesh, gemm.removesuffix(",dtype=f32"), direction, ", ".join(str(count) for count in sorted(counts)), predicted, measured, percent(loss)])
    return table(["mesh", "product", "pass", "S", "best as predicted", "best as measured", "lost by the predicted one"], lines)


def computing(found, names):
    """The predicted core time of each, on the machine that the survey gives."""
    folder = found.folder
    with tempfile.TemporaryDirectory() as store:
        machine = study.calibrated(folder, store)
        return {name: json.loads(podsim("run", "--machine", machine, *words_of(folder, found.fields[name]), "--format", "json"))["compute_s"] for name in names}


def overlap(found):
    """What a step takes beside the core tasks of the rank that has most: exposed communication and waiting."""
    kinds = collections.defaultdict(list)
    names = [name for name in found.rows if not name.startswith(("collective:", "contended:")) and "collective" not in found.fields[name] and "fail" not in found.fields[name]]
    core = computing(found, names)
    for name in names:
        row = found.measurements[name]
        least = min(row["seconds"])
        measured, predicted = (least - float(row["core_s"])) / least, (found.predicted(name) - core[name]) / found.predicted(name)
        kinds[name.partition(":")[0]].append((predicted - measured, measured, name))
    lines = []
    for kind, rows in kinds.items():
        differences = [abs(row[0]) for row in rows]
        worst = max(rows, key=lambda row: abs(row[0]))
        lines.append([kind, len(rows), percent(statistics.median(row[1] for row in rows)), percent(statistics.median(differences)), percent(rank(differences, 0.95)), f"{percent(worst[0], '+')} ({worst[2].partition(': ')[2]})"])
    return table(["runs", "rows", "not computing, of the step", "predicted is off by, median", "95th", "worst"], lines)


def slow_downs(found):
    """A damage against the same run on the whole lab."""
    healthy = {tuple(sorted(fields.items())): name for name, fields in found.fields.items() if not name.startswith("damaged:")}
    lines = []
    for name, fields in found.fields.items():
        if name not in found.rows or not name.startswith("damaged:"):
            continue
        whole = healthy[tuple(sorted((field, text) for field, text in fields.items() if field not in FAULTS))]
        if whole not in found.rows:
            continue
        predicted, measured = found.predicted(name) / found.predicted(whole) - 1, found.measured(name) / found.measured(whole) - 1
        lines.append([name.partition(": ")[2], percent(predicted, "+"), percent(measured, "+"), percent((predicted - measured) / (1 + measured), "+")])
    return table(["damage and run", "slower, predicted", "slower, measured", "difference, of the step"], lines)


def tables(folder):
    found = Results(folder.resolve())
    missing = len(found.fields) - len(found.measurements)
    if not found.rows:
        raise LabError(f"{folder} has no measured run: lab study")
    loads = [float(row["load"]) for row in found.measurements.values()]
    print(f"{len(found.rows)} runs{f' of {len(found.fields)}' if missing else ''}, {sum(len(row['seconds']) for row in found.measurements.values())} times; load {min(loads):.1f} to {max(loads):.1f}, median {statistics.median(loads):.1f}\n")
    for title, text in (
        ("Errors", by_case(found)),
        (f"Rows that are off by more than {percent(NAMED)}", misses(found)),
        ("Order", order(found)),
        ("Best slice count", best_counts(found)),
        ("Overlap", overlap(found)),
        ("Damage", slow_downs(found)),
    ):
        print(f"### {title}\n\n{text}", end="")
    return 0
