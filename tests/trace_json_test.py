#!/usr/bin/env python3
"""Traces that `run --trace FILE.json` writes, by the rules that viewers have. Shares no code with the writer.

usage: trace_json_test.py PODSIM
"""

import collections
import decimal
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

PODSIM = os.path.abspath(sys.argv.pop())
PS = decimal.Decimal(1_000_000)  # in a microsecond
BLOCK = ["--workload", "llama3-8b-block", "--batch", "4", "--algorithm", "meshslice", "--slice-count", "2"]
RUNS = {
    "a block": ["--machine", "tpu_v4", "--slice", "4x4", *BLOCK],
    "a block on open axes": ["--machine", "tpu_v5e", "--slice", "4x4", *BLOCK],
    "a block on GPUs": ["--machine", "dgx_h100", "--slice", "2x8", "--mesh", "row=4,col=4", *BLOCK],
    "a collective": ["--machine", "tpu_v4", "--slice", "4x4", "--collective", "all-to-all", "--axis", "row,col", "--bytes", "1MiB"],
    "a pipeline": ["--machine", "tpu_v4", "--slice", "4x4", "--mesh", "stage=4,fsdp=4", "--training", "llama3-8b", "--pad", "--pipeline", "1f1b",
                   "--microbatches", "8", "--batch", "32", "--force"],
}


def picoseconds(number):
    """Exactly; decimals keep all digits."""
    value = decimal.Decimal(number) * PS
    assert value == value.to_integral_value(), number
    return int(value)


class Traces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def trace_of(self, words, name="t.json"):
        path = f"{self.folder}/{name}"
        run = subprocess.run([PODSIM, "run", *words, "--trace", path, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        opened = gzip.open if name.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as file:
            return json.load(file, parse_float=decimal.Decimal), json.loads(run.stdout)

    def check(self, trace, run):
        lines, named, arrows = collections.defaultdict(list), {}, collections.defaultdict(dict)
        for event in trace["traceEvents"]:
            line = event["pid"], event.get("tid")
            if event["ph"] == "M":
                named.setdefault(line, {})[event["name"]] = event["args"]
            elif event["ph"] == "X":
                begin = picoseconds(event["ts"])
                lines[line].append((begin, begin + picoseconds(event["dur"]), event["name"]))
                for key, value in event["args"].items():
                    self.assertIsInstance(value, str, key)
                self.assertEqual(list(event["args"]), sorted(event["args"]))
            else:
                self.assertIn(event["ph"], "sf")
                self.assertNotIn(event["ph"], arrows[event["id"]], "one beginning and one end")
                arrows[event["id"]][event["ph"]] = line, picoseconds(event["ts"])
        last = 0
        for line, events in lines.items():
            self.assertIn("thread_name", named[line])
            self.assertIn("process_name", named[line[0], None])
            free = 0
            for begin, end, name in events:
                self.assertGreaterEqual(begin, free, f"{name}: sorted, and no overlap on a line")
                self.assertGreaterEqual(end, begin)
                free = end
            last = max(last, free)
        self.assertLessEqual(last, round(run["makespan_s"] * 1e12))
        tids = [tid for _, tid in lines]
        self.assertEqual(len(tids), len(set(tids)), "threads are unique in the file")
        for number, ends in arrows.items():
            self.assertEqual(set(ends), {"s", "f"}, f"arrow {number}")
            self.assertLessEqual(ends["s"][1], ends["f"][1], "arrows never point backwards")
            for line, at in ends.values():
                self.assertTrue(any(begin <= at <= end for begin, end, _ in lines[line]), "an arrow begins and ends at an event")
        return lines, arrows

    def test_every_run_follows_the_rules(self):
        for name, words in RUNS.items():
            with self.subTest(name):
                trace, run = self.trace_of([*words, "--trace-devices", "0-3"])
                lines, arrows = self.check(trace, run)
                self.assertTrue(lines)
                self.assertEqual(bool(arrows), name != "a pipeline", "played calls are one event; devices 0 to 3 are one stage")

    def test_compressed_it_is_the_same(self):
        self.assertEqual(self.trace_of(RUNS["a collective"])[0], self.trace_of(RUNS["a collective"], "t.json.gz")[0])

    def test_every_microbatch_of_a_pipeline_is_there(self):
        trace, _ = self.trace_of([*RUNS["a pipeline"], "--trace-devices", "0,5,15"])
        calls = collections.defaultdict(list)
        for event in trace["traceEvents"]:
            if event["ph"] == "X" and event["args"].get("op") == "call":
                calls[event["pid"]].append(event["name"])
        self.assertEqual(sorted(calls), [1, 6, 16])
        for names in calls.values():
            self.assertGreaterEqual(len(names), 16)
            self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
