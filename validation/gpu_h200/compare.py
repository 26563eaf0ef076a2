"""What podsim says of each row measured on one GPU: steps, products, attention, operations; signed errors, predicted over measured less one.

    python3 validation/gpu_h200/compare.py build/podsim [MACHINE] [--of FOLDER] [--readme]

FOLDER has what was measured, beside this one: gpu_h200 (left out: this), gpu_h100. MACHINE is left out: dgx_h200, dgx_h100, as shipped.

Steps run from the modules that XLA compiled there, operations and products from those that it compiles without a GPU (operations.json.gz), attention from calls of cuDNN
with the shapes of the row. --readme writes the tables into the README.md of the folder.
"""
import argparse
import collections
import concurrent.futures
import csv
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "aot"))


def run(podsim, machine, text):
    """JSON of a run of the module's text; None where podsim refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "module.hlo"
        path.write_text(text)
        done = subprocess.run([podsim, "run", "--machine", machine, "--slice", "1", "--hlo", str(path), "--calls", "inline", "--format", "json", "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr.strip().splitlines()[-1][:300], file=sys.stderr)
    return json.loads(done.stdout) if done.returncode == 0 else None


def attention_module(p, backward):
    """cuDNN's attention as XLA calls it, with the shapes of a row."""
    q, k = (f"bf16[{p['batch']},{p['length']},{heads},{p['head_dim']}]" for heads in (p["heads"], p["kv_heads"]))
    o, g = (f"bf16[{p['batch']},{heads},{p['length']},{p['head_dim']}]{{3,1,2,0}}" for heads in (p["heads"], p["kv_heads"]))
    stats = f"f32[{p['batch']},{p['heads']},{p['length']}]"
    product = lambda contracted: {"lhs_batch_dimensions": ["0", "2"], "lhs_contracting_dimensions": ["3"], "rhs_batch_dimensions": ["0", "2"], "rhs_contracting_dimensions": [contracted]}
    config = {"mask_type": "CAUSAL" if p["causal"] else "NO_MASK", "sliding_window_length": p["window"] or 0, "is_flash_attention": True, "fmha_scale": 0.1, "dropout_rate": 0,
              "bmm1_dot_dimension_numbers": product("3"), "bmm2_dot_dimension_numbers": product("1"), "intermediate_tensor_shape":
              {"dimensions": [str(n) for n in (p["batch"], p["heads"], p["length"], p["length"])], "element_type": "BF16"}}
    config = json.dumps({"cudnn_fmha_backend_config": config})
    forward = f'  %f = ({o}, {stats}, u8[256]) custom-call(%q, %k, %v), custom_call_target="__cudnn$fmhaSoftmax", backend_config={config}\n'
    parameters = f"  %q = {q} parameter(0)\n  %k = {k} parameter(1)\n  %v = {k} parameter(2)\n"
    if not backward:
        return f"HloModule attention, is_scheduled=true\n\nENTRY %main {{\n{parameters}{forward}  ROOT %r = {o} get-tuple-element(%f), index=0\n}}\n"
    return (f"HloModule attention, is_scheduled=true\n\nENTRY %main {{\n{parameters}  %d = {q} parameter(3)\n{forward}  %o = {o} get-tuple-element(%f), index=0\n"
            f"  %s = {stats} get-tuple-element(%f), index=1\n  %b = {q} bitcast(%o)\n"
            f'  ROOT %r = ({o}, {g}, {g}, u8[256]) custom-call(%q, %k, %v, %s, %d, /*index=5*/%b), custom_call_target="__cudnn$fmhaSoftmaxBackward", backend_config={config}\n}}\n')


def shown(seconds):
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def in_words(parameters):
    return ", ".join(f"{name} {'x'.join(map(str, value)) if isinstance(value, list) else value}" for name, value in parameters.items() if value not in (None, 0, False))


def operations(podsim, machine, folder):
    """Section -> [(what, dtype, parameters, measured, predicted or None, launches)]."""
    modules = json.load(gzip.open(HERE / "operations.json.gz"))
    rows = [row for row in csv.DictReader(open(folder / "measured.csv")) if row["section"] != "host"]

    def predict(row):
        parameters = json.loads(row["parameters"])
        attends = row["section"] == "attention"
        text = attention_module(parameters, row["what"] == "attention_both") if attends else modules.get(json.dumps([row["what"], row["dtype"], parameters]))
        result = run(podsim, machine, text) if text else None
        return row["section"], (row["what"], row["dtype"], parameters, float(row["seconds_median"]), result and result["makespan_s"])
    found = collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for section, row in pool.map(predict, rows):
            found[section].append(row)
    return found


def summary(rows):
    """Median of the signed errors and of their sizes, where there is a prediction."""
    errors = [predicted / measured - 1 for _, _, _, measured, predicted in rows if predicted]
    return f"{len(errors)} | {statistics.median(errors):+.0%} | {statistics.median(map(abs, errors)):.0%}" if errors else "0 | |"


def tables(podsim, machine, folder):
    import profiled_step
    lines = ["### Steps", "", "| step | measured | podsim | error | memory, GB | XLA's | ratio |", "|---|---|---|---|---|---|---|"]
    for step in csv.DictReader(open(folder / "steps.csv")):
        result = run(podsim, machine, gzip.open(folder / "modules" / f"{step['name']}.hlo.gz", "rt").read())
        measured, memory = float(step["seconds_min"]), sum(int(step[k]) for k in ("argument", "output", "temp")) - int(step["alias"])
        ours = result["module_memory_bytes"]["hbm_allocated"]
        lines.append(f"| {step['name']} | {shown(measured)} | {shown(result['makespan_s'])} | {result['makespan_s'] / measured - 1:+.1%} | {ours / 1e9:.2f} | {memory / 1e9:.2f} | {ours / memory:.3f} |")
    if (folder / "profiles").is_dir():
        lines += ["", "Where the time of the profiled ones is, podsim's and the profile's, ms (`profiled_step.py`):", "", "| step | products | attention | other work | gaps |", "|---|---|---|---|---|"]
    for profile in sorted((folder / "profiles").glob("*.trace.json.gz")):
        name = profile.name.split(".")[0]
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / f"{name}.hlo"
            path.write_bytes(gzip.open(folder / "modules" / f"{name}.hlo.gz").read())
            ours, theirs = profiled_step.predicted(podsim, str(path), machine), profiled_step.measured(profile, 3)
        kinds = (profiled_step.PRODUCTS, profiled_step.ATTENTION, profiled_step.REST, profiled_step.GAPS)
        lines.append(f"| {name} | " + " | ".join(f"{1e3 * ours[kind]:.1f}, {1e3 * theirs[kind]:.1f}" for kind in kinds) + " |")
    found = operations(podsim, machine, folder)
    lines += ["", "### By kind", "", "Error: median of the signed ones, and of their sizes.", "", "| what | rows | error | size |", "|---|---|---|---|"]
    kinds = collections.defaultdict(list)
    for section, rows in found.items():
        for row in rows:
            kinds[f"{row[0]}, {row[1]}" if section == "products" else row[0]].append(row)
    lines += [f"| {kind} | {summary(rows)} |" for kind, rows in kinds.items()]
    lines += ["", "### Rows", "", "| what | | measured | podsim | error |", "|---|---|---|---|---|"]
    for rows in found.values():
        for what, dtype, parameters, measured, predicted in rows:
            error = f"{shown(predicted)} | {predicted / measured - 1:+.0%}" if predicted else "- | -"
            lines.append(f"| {what} {dtype} | {in_words(parameters)} | {shown(measured)} | {error} |")
    return "\n".join(lines)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("podsim")
    options.add_argument("machine", nargs="?")
    options.add_argument("--of", default=HERE.name)
    options.add_argument("--readme", action="store_true")
    options = options.parse_args()
    folder = HERE.parent / options.of
    text = tables(options.podsim, options.machine or options.of.replace("gpu_", "dgx_"), folder)
    if not options.readme:
        return print(text)
    path = folder / "README.md"
    begin, end = "<!-- tables -->\n", "<!-- end -->\n"
    before, rest = path.read_text().split(begin)
    path.write_text(before + begin + text + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
