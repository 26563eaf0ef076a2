"""FLOPs of modules as podsim counts them beside those of XLA's cost_analysis, as a table.

    python3 flops.py build/podsim [FOLDER]

FOLDER, modules/ of this folder if left out, holds modules NAME.hlo.gz and beside each NAME.json, whose cost_analysis has XLA's "flops". Both count each instruction once, however often a loop runs
it, products, Fourier transforms and custom-calls, and one for each element of elementwise work. XLA counts otherwise, and what follows from that is added or taken
out here, so what is left are differences of counting. Status 1 where one is above 1.5 %.
  * transcendentals stand apart from its FLOPs
  * the sums of all-reduces and reduce-scatters count
  * a custom-call whose author does not state its cost is nothing, but TopK: k for each element
  * a sort is n log2 n of all its elements, not of each row
  * a reduce-window is (taps of its window - 1) times the operations of its function for each element of its result, the taps that read padding too, but where one dimension of it covers whole rows
    (HandleReduceWindow of hlo_cost_analysis.cc); podsim counts the work that it takes: in each dimension the taps that read an element, at most 3 for each element
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
    """Of the JSON beside a module, transcendentals as well; None: it has none."""
    for costs in (facts, facts.get("cost_analysis") or {}, facts.get("cost") or {}):
        if costs.get("flops") is not None:
            return costs["flops"] + costs.get("transcendentals", 0)
    return None


def elements(shape):
    """Of "bf16[4,8]"; of a tuple of all its arrays."""
    return sum(math.prod(int(n) for n in dims.split(",") if n) for dims in re.findall(r"\[([\d,]*)\]", shape))


def comparisons(text):
    """What XLA counts of sorts and of TopK beyond podsim's n log2 n of each row and beyond nothing."""
    shapes = dict(re.findall(r"^\s*(?:ROOT )?(%[\w.-]+) = ([^()\s]+)", text, flags=re.MULTILINE))

    def dims_of(operand):
        return [int(n) for n in re.search(r"\[([\d,]*)\]", shapes[operand])[1].split(",") if n]

    more = 0
    for operand, dimension in re.findall(r" sort\((%[\w.-]+).*?dimensions=\{(\d+)\}", text):
        dims = dims_of(operand)
        n, row = math.prod(dims), dims[int(dimension)]
        more += n * (math.ceil(math.log2(max(n, 1))) - max(1, math.ceil(math.log2(row))))
    for first, operand in re.findall(r" = \((\S+), .*? custom-call\((%[\w.-]+)\), custom_call_target=\"TopK\"", text):
        more += math.prod(dims_of(operand)) * int(re.search(r"(\d+)\]", first)[1])
    return more


def pairs_of(text, separator, default):
    return [tuple(int(n) for n in part.split("_")) for part in text.split(separator)] if text else default


def operations_of(body):
    return sum(" = " in line and not re.search(r" (parameter|constant|tuple)\(", line) for line in body.splitlines())


def windows(text):
    """What XLA counts of reduce-windows beyond podsim's count (reduce_window_operations() of workloads/hlo/task_costs.hpp)."""
    bodies = dict(re.findall(r"^(%[\w.-]+) \([^\n]*\{\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL))
    shapes = dict(re.findall(r"^\s*(?:ROOT )?(%[\w.-]+) = ([^()\s]+)", text, flags=re.MULTILINE))

    def dims_of(shape):
        return [int(n) for n in re.search(r"\[([\d,]*)\]", shape)[1].split(",") if n]

    more = 0
    # Of several arrays the first: all have the same dimensions.
    for result, operand, window, body in re.findall(r" = \(?([^(\s]\S*)(?: [^=]*\))? reduce-window\((%[\w.-]+), .*?window=\{([^}]*)\}.*?to_apply=(%[\w.-]+)", text):
        fields = dict(field.split("=") for field in window.split())
        if fields.keys() - {"size", "stride", "pad"}:
            continue  # dilated: none is stored
        inputs, outputs, sizes = dims_of(shapes[operand]), dims_of(result), [int(n) for n in fields["size"].split("x")]
        strides = [int(n) for n in fields["stride"].split("x")] if "stride" in fields else [1] * len(sizes)
        pads = pairs_of(fields.get("pad"), "x", [(0, 0)] * len(sizes))
        made = math.prod(outputs)
        theirs = (math.prod(sizes) - 1) * made
        wide, padded = [d for d in range(len(sizes)) if sizes[d] != 1], [pad for pad in pads if pad != (0, 0)]
        if len(wide) == 1 and len(padded) == 1 and pads[wide[0]] == (outputs[wide[0]] - 1,) * 2 and sizes[wide[0]] == 2 * outputs[wide[0]] - 1:
            theirs = made // outputs[wide[0]] + outputs[wide[0]] - 1
        ours, lines = 0, math.prod(inputs)
        for n, m, size, stride, (low, _) in zip(inputs, outputs, sizes, strides, pads):
            lines //= max(n, 1)
            taps = sum(max(0, min(o * stride - low + size, n) - max(o * stride - low, 0)) for o in range(m))
            if size != 1:
                ours += lines * min(taps, n if taps == n * m else 3 * max(n, m))
            lines *= m
        more += operations_of(bodies[body]) * (theirs - ours)
    return more


def shown(podsim, text_of_module):
    with tempfile.NamedTemporaryFile(suffix=".hlo") as text:
        text.write(text_of_module)
        text.flush()
        run = subprocess.run([podsim, "show", "hlo", text.name, "--tolerant", "--format", "json"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def main():
    podsim, folder = sys.argv[1], pathlib.Path((sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parent / "modules"))
    worst = 0
    print("| module | podsim | XLA | ratio | sums of collectives, comparisons | taps of windows | calls without a stated cost |\n|---|---|---|---|---|---|---|")
    for module in sorted(folder.glob("*.hlo.gz")):
        beside = module.with_name(module.name.removesuffix(".hlo.gz") + ".json")
        theirs = flops_of_xla(json.loads(beside.read_text())) if beside.exists() else None
        if not theirs:
            continue
        text = gzip.decompress(module.read_bytes())
        counted = shown(podsim, text)
        once = counted["totals"]["each_once"]
        unstated = sum(call["flops"] + call["vector"] for call in counted["custom_calls"] if call["why"] != STATED)
        sums = comparisons(text.decode()) + sum(elements(row["shape"]) for row in counted["collectives"] if row["kind"] in ("all-reduce", "reduce-scatter"))
        taps = windows(text.decode())
        ours = once["flops"] + once["vector"] + sums + taps - unstated
        worst = max(worst, abs(ours / theirs - 1))
        print(f"| {module.name.removesuffix('.hlo.gz')} | {ours / 1e9:.3f} | {theirs / 1e9:.3f} | {ours / theirs:.4f} | {sums / 1e9:.3f} | {taps / 1e9:.3f} | {unstated / 1e9:.3f} |")
    print(f"\nGFLOP of one device. The largest difference is {100 * worst:.2f} %.")
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
