"""A step of a module on one GPU as podsim computes it beside a profile of it, by kinds of work: what a machine as shipped leaves out.

    python3 profiled_step.py build/podsim MODULE.hlo PROFILE.trace.json.gz STEPS [MACHINE]

PROFILE is JAX's trace of STEPS steps. Kernels are told apart by their names, instructions by the module's text; gaps are the time of a step in which no kernel
runs, on either side.
"""
import gzip
import json
import re
import subprocess
import sys

PRODUCTS, ATTENTION, REST, GAPS = "products", "attention", "elementwise, reductions, copies", "gaps"
KERNELS = ((ATTENTION, r"sdpa|cudnn::fusion"), (PRODUCTS, r"nvjet|gemm|cutlass|cublas|xmma|conv2d|convolve"))


def measured(profile, steps):
    """Seconds of a step by kind."""
    trace = json.load(gzip.open(profile))
    kernels = sorted((e["ts"], e["dur"], e["name"]) for e in trace["traceEvents"] if e.get("ph") == "X" and "hlo_op" in e.get("args", {}))
    sums = dict.fromkeys((PRODUCTS, ATTENTION, REST), 0.0)
    busy, ended = 0.0, kernels[0][0]
    for begin, duration, name in kernels:
        sums[next((kind for kind, words in KERNELS if re.search(words, name)), REST)] += duration
        busy += max(0.0, begin + duration - max(begin, ended))
        ended = max(ended, begin + duration)
    sums[GAPS] = ended - kernels[0][0] - busy
    return {kind: microseconds * 1e-6 / steps for kind, microseconds in sums.items()}


def kinds_of(text):
    """Of the instructions of a module, by name."""
    products, computation, kinds, fusions = set(), "", {}, {}
    for line in text.splitlines():
        if line.rstrip().endswith("{") and not line.startswith(" "):
            computation = line.split()[1 if line.startswith("ENTRY") else 0].lstrip("%")
        found = re.match(r"\s+(?:ROOT )?%?(\S+) = ", line)
        if not found:
            continue
        name = found.group(1)
        if re.search(r"\b(dot|convolution)\(", line):
            products.add(computation)
            kinds[name] = PRODUCTS
        elif "__cublas" in line or "__cudnn$conv" in line:  # convolutions count as products
            kinds[name] = PRODUCTS
        elif "__cudnn$fmha" in line:
            kinds[name] = ATTENTION
        elif called := re.search(r"\bfusion\(.*calls=%?([^\s,]+)", line):
            fusions[name] = called.group(1)
    return kinds | {name: PRODUCTS for name, called in fusions.items() if called in products}


def predicted(podsim, module, machine):
    run = subprocess.run([podsim, "run", "--machine", machine, "--slice", "1", "--hlo", module, "--calls", "inline", "--format", "json", "--quiet"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    result = json.loads(run.stdout)
    kinds = kinds_of(open(module).read())
    sums = dict.fromkeys((PRODUCTS, ATTENTION, REST), 0.0)
    for operation in result["operations"]:
        sums[kinds.get(operation["name"].split()[-1], REST)] += operation["busy_s"]
    sums[GAPS] = result["makespan_s"] - sum(sums.values())
    return sums


def main():
    podsim, module, profile, steps = sys.argv[1:5]
    ours, theirs = predicted(podsim, module, sys.argv[5] if len(sys.argv) > 5 else "dgx_h200"), measured(profile, int(steps))
    print("| | podsim ms | measured ms | missing ms |\n|---|---|---|---|")
    for kind in (PRODUCTS, ATTENTION, REST, GAPS):
        print(f"| {kind} | {1e3 * ours[kind]:.2f} | {1e3 * theirs[kind]:.2f} | {1e3 * (theirs[kind] - ours[kind]):+.2f} |")
    print(f"| step | {1e3 * sum(ours.values()):.2f} | {1e3 * sum(theirs.values()):.2f} | {1e3 * (sum(theirs.values()) - sum(ours.values())):+.2f} |")


if __name__ == "__main__":
    main()
