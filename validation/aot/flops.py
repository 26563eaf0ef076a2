"""FLOPs of modules as podsim counts them beside those of XLA's cost_analysis, as a table.

    python3 flops.py build/podsim FOLDER

FOLDER holds modules NAME.hlo.gz and beside each NAME.json, whose cost_analysis has XLA's "flops". Both count each instruction once, however often a loop runs
it, products, Fourier transforms and custom-calls, and one for each element of elementwise work. XLA counts as well the sums of all-reduces and
reduce-scatters, and nothing of a custom-call whose author does not state its cost: the first are added here, the second taken out, so what is left are differences of
counting. Status 1 where one is above 1.5 %.
"""
import gzip
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT = 0.015
STATED = "as its author states"


def flops_of_xla(facts):
    """Of the JSON beside a module; None: it has none."""
    found = facts.get("flops")
    for key in ("cost_analysis", "cost"):
        found = found if found is not None else (facts.get(key) or {}).get("flops")
    return found


def elements(shape):
    """Of "bf16[4,8]"; of a tuple of all its arrays."""
    return sum(math.prod(int(n) for n in dims.split(",") if n) for dims in re.findall(r"\[([\d,]*)\]", shape))


def shown(podsim, module):
    with tempfile.NamedTemporaryFile(suffix=".hlo") as text:
        text.write(gzip.open(module).read())
        text.flush()
        run = subprocess.run([podsim, "show", "hlo", text.name, "--tolerant", "--format", "json"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{module}: {run.stderr}")
    return json.loads(run.stdout)


def main():
    podsim, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    worst = 0
    print("| module | podsim | XLA | ratio | sums of collectives | calls without a stated cost |\n|---|---|---|---|---|---|")
    for module in sorted(folder.glob("*.hlo.gz")):
        beside = module.with_name(module.name.removesuffix(".hlo.gz") + ".json")
        theirs = flops_of_xla(json.loads(beside.read_text())) if beside.exists() else None
        if not theirs:
            continue
        counted = shown(podsim, module)
        once = counted["totals"]["each_once"]
        unstated = sum(call["flops"] + call["vector"] for call in counted["custom_calls"] if call["why"] != STATED)
        sums = sum(elements(row["shape"]) for row in counted["collectives"] if row["kind"] in ("all-reduce", "reduce-scatter"))
        ours = once["flops"] + once["vector"] + sums - unstated
        worst = max(worst, abs(ours / theirs - 1))
        print(f"| {module.name.removesuffix('.hlo.gz')} | {ours / 1e9:.3f} | {theirs / 1e9:.3f} | {ours / theirs:.4f} | {sums / 1e9:.3f} | {unstated / 1e9:.3f} |")
    print(f"\nGFLOP of one device. The largest difference is {100 * worst:.2f} %.")
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
