#!/usr/bin/env python3
"""The examples of every `podsim help VERB` run as they are printed.

usage: usage_examples_test.py ROOT PODSIM

The examples of a verb are run by a shell, in order, in a folder of their own, in which the repository's folders can be seen, and the files that a reader would have: those in
FILES, and what MADE makes. An example must end with status 0.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = PODSIM = pathlib.Path()

VERBS = ["run", "check", "compare", "tune", "sweep", "calibrate", "validate", "diagnose", "diff", "report",
         *("show " + what for what in ("machine", "topology", "mesh", "sharding", "schedule", "pipeline", "plan", "program", "training", "hlo", "timeline"))]

# Files of the reader's own, by the verb that names them: from where in the tree.
FILES = {
    "calibrate": {"all_reduce.txt": "tests/golden/input/nccl.txt"},
    "diagnose": {"all_reduce.txt": "validation/diagnose/testdata/all_reduce_64.txt", "all_gather.json": "tests/golden/input/all_gather_64.json", "nccl_topo.xml": "topologies/nccl/testdata/azure_ndv5.xml"},
    "show topology": {"nccl_topo.xml": "topologies/nccl/testdata/ibm_h100.xml"},
    "compare": {"ndv5/a.xml": "workloads/msccl/examples/halving_doubling_8.xml", "before.hlo": "workloads/differences/testdata/ring.hlo", "after.hlo": "workloads/differences/testdata/ring_gathered.hlo"},
    "validate": {"mine.csv": "validation/datasets/tpu_v5p_ppermute/observations.csv"},
}
# And what makes such files, where the tree has none.
PROFILED = "podsim run --plan plan.textproto --trace-devices 0 --trace "
MADE = {
    "diff": ["gzip -dc validation/calibration/importers/testdata/jax_h200.xplane.pb.gz > host.xplane.pb", "gzip -dc validation/diff/testdata/h200_llama.hlo.gz > step.hlo",
             "cp validation/calibration/importers/testdata/torch_h200.pt.trace.json.gz rank0.pt.trace.json.gz", "podsim tune --machine tpu_v4 --chips 16 --workload llama3-8b-block -o plan.textproto", "gzip -c validation/diff/example.trace.json > host.trace.json.gz",
             PROFILED + "one_block.xplane.pb", PROFILED + "logs"],
    "report": ["podsim run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm collective --record collective.record",
               "podsim sweep tools/sweep/examples/gemm.textproto --store gemm.sqlite --record sweep.record"],
    "validate": ["podsim show machine --machine tpu_v5p -o my_v5e.textproto"],
    "tune": ["cp workloads/training/examples/v5e_128b.yml v5e_16b.yml"],
}
# Examples that take longer than a test may, or whose files cannot be made here. Their options are looked at all the same, by --help behind them.
LONG = [re.compile(pattern) for pattern in (
    r"podsim validate( --plot .*)?", r"podsim tune training gpt3-175b .*", r"podsim tune .*--maxtext .*", r"podsim tune .*--pareto 5", r"podsim diff --measured .* --steps 10 .*",
    r"podsim compare block gpt3-block .*,summa")]


def examples_of(text):
    """The lines behind `examples:`, continued ones joined, without comments."""
    lines = text.split("\nexamples:\n", 1)[1].split("\n\n", 1)[0].replace("\\\n", " ").split("\n")
    return [line.split("  # ")[0].strip() for line in lines if line.strip()]


def told(verb):
    return subprocess.run([PODSIM, "help", *verb.split()], capture_output=True, text=True, check=True).stdout


def wrong_in(verb):
    wrong = []
    with tempfile.TemporaryDirectory() as root:
        for entry in ROOT.iterdir():
            if entry.is_dir():
                (pathlib.Path(root) / entry.name).symlink_to(entry)
        for name, source in FILES.get(verb, {}).items():
            (pathlib.Path(root) / name).parent.mkdir(exist_ok=True)
            (pathlib.Path(root) / name).symlink_to(ROOT / source)
        examples = examples_of(told(verb))
        if not examples:
            wrong.append(f"podsim help {verb} has no example")
        environment = {**os.environ, "PATH": f"{PODSIM.parent}:{os.environ['PATH']}"}
        for line in [*MADE.get(verb, []), *examples]:
            command = line + " --help" if any(long.fullmatch(line) for long in LONG) else line
            done = subprocess.run(["bash", "-c", command], cwd=root, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                wrong.append(f"podsim help {verb}: {line}\nends with status {done.returncode}: {done.stderr}")
    return wrong


class Examples(unittest.TestCase):
    def test_they_run_as_printed(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            wrong = [text for texts in threads.map(wrong_in, VERBS) for text in texts]
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_what_takes_long_is_an_example(self):
        examples = [line for verb in VERBS for line in examples_of(told(verb))]
        self.assertEqual([long.pattern for long in LONG if not any(long.fullmatch(line) for line in examples)], [])

    def test_every_verb_is_here(self):
        listed = subprocess.run([PODSIM, "complete", "podsim "], capture_output=True, text=True, check=True).stdout.split("\n")
        of_show = subprocess.run([PODSIM, "complete", "podsim show "], capture_output=True, text=True, check=True).stdout.split("\n")
        names = {line.split("\t")[0] for line in listed if line} - {"help", "version", "show"} | {"show " + line.split("\t")[0] for line in of_show if line}
        self.assertEqual(names, set(VERBS))


class TheTestItself(unittest.TestCase):
    def test_lines_that_go_on_are_one(self):
        self.assertEqual(examples_of("usage\n\nexamples:\n  podsim a \\\n         --b\n  podsim c   # why\n\noptions:\n  --b"), ["podsim a           --b", "podsim c"])


if __name__ == "__main__":
    PODSIM = pathlib.Path(sys.argv.pop()).resolve()
    ROOT = pathlib.Path(sys.argv.pop()).resolve()
    unittest.main()
