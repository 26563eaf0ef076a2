#!/usr/bin/env python3
"""Profiles that `run --trace` writes: read by protoc with the complete .proto, and back by podsim's own importers.

usage: xplane_test.py PODSIM PROTOC PROTO
"""

import collections
import csv
import decimal
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

PROTO, PROTOC, PODSIM = (os.path.abspath(sys.argv.pop()) for _ in range(3))
# Sixteen devices of every machine that is shipped. Two devices are on a chip of tpu_v3 and tpu7x.
SLICES = {"tpu_v3": "2x4", "tpu_v4": "4x4", "tpu_v5e": "4x4", "tpu_v5p": "4x4", "tpu_v6e": "4x4", "tpu7x": "2x2x2", "dgx_a100": "2x8",
          "dgx_h100": "2x8", "dgx_h200": "2x8", "dgx_b200": "2x8", "gb200_nvl72": "1x16", "ideal": "4x4"}
BLOCK = ["--workload", "llama3-8b-block", "--batch", "4", "--algorithm", "meshslice", "--slice-count", "2", "--dataflow", "os"]
PIPELINE = ["run", "--machine", "tpu_v4", "--slice", "4x4", "--mesh", "stage=4,fsdp=4", "--training", "llama3-8b", "--pad", "--pipeline", "1f1b",
            "--microbatches", "8", "--batch", "32", "--force"]


def podsim(*words, **options):
    return subprocess.run([PODSIM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False, **options)


def decoded(path):
    """The text of a profile as protoc tells it; what is in no .proto begins with a number."""
    with open(path, "rb") as file:
        return subprocess.run([PROTOC, "--decode=podsim.proto.XSpace", "-I", os.path.dirname(PROTO), PROTO], stdin=file, stdout=subprocess.PIPE, text=True,
                              check=True).stdout


def message_of(text):
    """Protobuf's text form as lists by field."""
    root, stack = collections.defaultdict(list), []
    stack.append(root)
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            inner = collections.defaultdict(list)
            stack[-1][line[:-2]].append(inner)
            stack.append(inner)
        elif line == "}":
            stack.pop()
        else:
            key, value = line.split(": ", 1)
            stack[-1][key].append(value[1:-1].encode().decode("unicode_escape") if value.startswith('"') else float(value) if "." in value else int(value))
    return root


def first(message, field, default=0):
    """Of a field that stands once; without presence where it has its default."""
    return message[field][0] if message[field] else default


class Plane:
    """A plane with its maps resolved."""

    def __init__(self, message):
        self.name = message["name"][0]
        self.kinds = {entry["key"][0]: entry["value"][0] for entry in message["event_metadata"]}
        self.names = {entry["key"][0]: entry["value"][0]["name"][0] for entry in message["stat_metadata"]}
        self.stats = self.stats_of(message)
        self.lines = collections.defaultdict(list)
        for line in message["lines"]:
            self.lines[line["name"][0]] += line["events"]

    def stats_of(self, message):
        return {self.names[stat["metadata_id"][0]]: next(stat[key][0] for key in stat if key.endswith("_value")) for stat in message["stats"]}

    def events(self, line):
        """(begin, end, display name, statistics) of each event."""
        for event in self.lines[line]:
            kind = self.kinds[event["metadata_id"][0]]
            begin = first(event, "offset_ps")
            name = first(kind, "display_name", "") or first(kind, "name", "")
            yield begin, begin + first(event, "duration_ps"), name, self.stats_of(kind) | self.stats_of(event)


class ProfileCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_of(self, words, name="p.xplane.pb"):
        """The JSON of a run, and its profile."""
        run = podsim(*words, "--trace", f"{self.folder}/{name}", "--format", "json", "-o", self.folder + "/run.json")
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.folder + "/run.json", encoding="utf-8") as file:
            return json.load(file)

    def planes(self, path):
        text = decoded(path)
        for line in text.splitlines():
            self.assertFalse(line.lstrip()[:1].isdigit(), "a field that the .proto does not have: " + line)
        space = message_of(text)
        self.assertEqual(len(space["hostnames"]), 1)
        return {plane.name: plane for plane in map(Plane, space["planes"])}, space

    def check_core_line(self, plane):
        """In order, none overlapping, but that instants may be within others, and a call contains what is waited for meanwhile."""
        last_begin, last_end, call_end = 0, 0, 0
        for begin, end, name, _ in plane.events("XLA Ops"):
            self.assertGreaterEqual(begin, last_begin, name)
            self.assertGreaterEqual(end, begin, name)
            last_begin = begin
            if end == begin:
                continue
            if name.startswith("call."):
                self.assertGreaterEqual(begin, last_end, name)
                call_end = end
                last_end = begin
                continue
            self.assertGreaterEqual(begin, last_end, name)
            if begin < call_end:
                self.assertLessEqual(end, call_end, name)
            last_end = end


class Machines(ProfileCase):
    """What a profile says of a block is what the run's JSON says."""

    def check(self, machine, shape):
        words = ["run", "--machine", machine, "--slice", shape, "--mesh", "row=4,col=4", *BLOCK]
        run = self.run_of(words)
        planes, _ = self.planes(self.folder + "/p.xplane.pb")
        kind = "GPU" if machine[:3] in ("dgx", "gb2") else "TPU"
        for device in range(16):
            plane = planes[f"/device:{kind}:{device}"]
            self.check_core_line(plane)
            (begin, end, name, _), = plane.events("Steps")
            self.assertEqual((begin, end, name), (0, round(run["makespan_s"] * 1e12), "1"))
            self.assertEqual(len(plane.lines["XLA Modules"]), 1)
            for _, _, name, stats in plane.events("XLA Ops"):
                self.assertEqual(stats["group_id"], 1)
                for key in ("program_id", "symbol_id", "hlo_category", "tf_op", "shape_with_layout"):
                    self.assertTrue(stats[key], f"{name}: {key}")
        self.assertEqual(f"/device:CUSTOM:ici:{15}" in planes, True)
        self.assertEqual(any(name.startswith("Stream #1(") for name in planes[f"/device:{kind}:0"].lines), kind == "GPU")

        diff = podsim("diff", "--measured", self.folder + "/p.xplane.pb", self.folder + "/run.json", "--format", "json")
        self.assertEqual(diff.returncode, 0, diff.stderr)
        found = json.loads(diff.stdout)
        self.assertEqual(round(found["measured_s"] * 1e12), round(found["predicted_s"] * 1e12))
        self.assertIn("as long as predicted", found["sentence"])
        for row in found["categories"]:
            self.assertLess(abs(row["gap_s"]), 1e-12, row)
        for row in found["ops"]:
            self.assertLess(abs(row["gap_s"]), 1e-12, row)
            self.assertEqual(round(row["measured_overlapped_s"] * 1e12), round(row["predicted_overlapped_s"] * 1e12), row)
            self.assertEqual(row["measured_count"], row["predicted_count"], row)

        observations = podsim("calibrate", "--from", "xplane", self.folder + "/p.xplane.pb", "--observations-only")
        self.assertEqual(observations.returncode, 0, observations.stderr)
        measured = collections.Counter()
        for row in csv.DictReader(line for line in observations.stdout.splitlines() if not line.startswith("#")):
            measured[(row["op"], row["devices"], row["bytes"]) if row["op"] != "matmul" else ("matmul", row["m"], row["n"], row["k"])] += 1
        for operation in run["operations"]:
            if operation["category"] == "matmul":
                self.assertIn(("matmul", str(operation["m"]), str(operation["n"]), str(operation["k"])), measured)

    def test_a_block_on_every_machine(self):
        for machine, shape in SLICES.items():
            with self.subTest(machine):
                self.check(machine, shape)


class Observations(ProfileCase):
    """Every collective of a profile is observed as the run's JSON and timeline have it, to the picosecond; or it says that the core hardly waited for it."""

    ALGORITHMS = {"collective": ["--algorithm", "collective"], "meshslice": ["--algorithm", "meshslice", "--slice-count", "4"], "summa": ["--algorithm", "summa"],
                  "wang": ["--algorithm", "wang"]}

    def collectives_in_time(self, words, device):
        """How long each collective and each shift of a device takes, by name without slice, from Chrome's form, which has other names and another writer."""
        trace = podsim(*words, "--trace", self.folder + "/t.json", "--trace-devices", str(device))
        self.assertEqual(trace.returncode, 0, trace.stderr)
        with open(self.folder + "/t.json", encoding="utf-8") as file:
            bars = [event for event in json.load(file, parse_float=decimal.Decimal)["traceEvents"] if event["ph"] == "X"]
        extents = {}
        for bar in bars:
            args = bar["args"]
            if args.get("level") != "operation" and (args.get("op") != "shift" or "collective_number" in args):
                continue
            begin, end = round(bar["ts"] * 10**6), round((bar["ts"] + bar["dur"]) * 10**6)
            known = extents.setdefault((bar["name"], args.get("collective_number"), args.get("direction")), [begin, end])
            known[0], known[1] = min(known[0], begin), max(known[1], end)
        spans = collections.defaultdict(list)
        for (name, *_), (begin, end) in extents.items():
            spans[" ".join(word for word in name.split(" ") if not re.fullmatch("s[0-9]+", word))].append(end - begin)
        return spans

    def check(self, words):
        run = self.run_of(words)
        planes, _ = self.planes(self.folder + "/p.xplane.pb")
        (device,) = [int(name.rsplit(":", 1)[1]) for name, plane in planes.items() if plane.stats.get("busiest")]
        run = self.run_of([*words, "--trace-devices", str(device)])
        diff = json.loads(podsim("diff", "--measured", self.folder + "/p.xplane.pb", self.folder + "/run.json", "--format", "json").stdout)
        name_of = {row["predicted"][0]: row["measured"][0] for row in diff["ops"]}
        self.assertEqual(len(name_of), len(run["operations"]), "every operation is there, and by its own name")
        table = podsim("calibrate", "--from", "xplane", self.folder + "/p.xplane.pb", "--observations-only").stdout
        observed = {row["source"].split(",")[0].replace("-start", ""): row for row in csv.DictReader(line for line in table.splitlines() if not line.startswith("#"))}
        in_time = self.collectives_in_time(words, device)
        seen = set()
        for operation in run["operations"]:
            name, kind = operation["name"], operation["category"]
            row, spans = observed.get(name_of[name]), in_time[name]
            if not operation.get("devices") or kind == "broadcast":  # of which calibrate knows no observations
                continue
            self.assertEqual(operation["count"], len(spans), name)
            waited = round((operation["busy_s"] + operation["exposed_s"]) * 1e12)
            if row is None:  # asynchronous, and the core waited for less than a tenth of each
                self.assertLess(waited, sum(spans) / 10, name)
                continue
            seen.add(name)
            self.assertEqual((row["op"], int(row["devices"]), int(row["bytes"])), (kind, operation["devices"], operation["bytes"]), name)
            seconds = round(float(row["seconds"]) * 1e12)
            if row.get("schedule") == "overlapped":
                self.assertTrue(min(spans) <= seconds <= max(spans), name)  # a median of those that the core waited for
            else:
                self.assertEqual((waited, seconds), (sum(spans), round(statistics.median(spans))), name)
        return seen

    def test_of_every_algorithm_on_several_machines(self):
        # Without core shares: what a transfer takes of the core is part of its event, but may stand before and behind its flight, which is what Chrome's form has.
        whole_core = ["--set", "software.core_share=0"]
        for machine, shape in (("tpu_v4", "4x4"), ("tpu_v5p", "4x4"), ("dgx_h100", "2x8"), ("tpu7x", "2x2x2")):
            seen = set()
            for name, algorithm in self.ALGORITHMS.items():
                with self.subTest(f"{name} on {machine}"):
                    seen |= self.check(["run", "--machine", machine, "--slice", shape, "--mesh", "row=4,col=4", "--gemm", "m=8192,n=8192,k=4096", *algorithm, *whole_core])
            self.assertGreaterEqual(len(seen), 2, machine)


class Forms(ProfileCase):
    def test_a_single_collective_is_observed_as_it_took(self):
        run = self.run_of(["run", "--machine", "tpu_v4", "--slice", "4x4", "--mesh", "row=4,col=4", "--collective", "all-gather", "--axis", "col", "--bytes", "4MiB"])
        observations = podsim("calibrate", "--from", "xplane", self.folder + "/p.xplane.pb", "--observations-only")
        rows = list(csv.DictReader(line for line in observations.stdout.splitlines() if not line.startswith("#")))
        self.assertEqual(len(rows), 1, observations.stdout)
        self.assertEqual((rows[0]["op"], rows[0]["devices"], rows[0]["bytes"]), ("all-gather", "4", str(4 << 20)))
        self.assertEqual(round(float(rows[0]["seconds"]) * 1e12), round(run["makespan_s"] * 1e12))

    def test_folding_and_threads_change_no_byte(self):
        for words in (["--slice", "4x4", "--wrap", "all", *BLOCK], ["--slice", "4x8", "--wrap", "x", *BLOCK]):
            bytes_of = []
            for more in ([], ["--fold", "off"], ["--threads", "1"], ["--threads", "3"]):
                self.run_of(["run", "--machine", "tpu_v4", *words, "--trace-devices", "0,5,9", *more])
                with open(self.folder + "/p.xplane.pb", "rb") as file:
                    bytes_of.append(file.read())
            self.assertEqual(len(set(bytes_of)), 1)

    def test_a_folder_has_a_file_for_each_host_and_is_rewritten(self):
        log = self.folder + "/log"
        words = ["run", "--machine", "tpu_v4", "--slice", "4x4", *BLOCK]
        self.run_of([*words, "--trace-devices", "all"], "log")
        run = log + "/plugins/profile/podsim"
        self.assertEqual(os.listdir(log), ["plugins"])
        files = sorted(os.listdir(run))
        self.assertEqual(files, [f"host-{host}.xplane.pb" for host in range(4)])
        devices = []
        for file in files:
            planes, space = self.planes(f"{run}/{file}")
            self.assertEqual(space["hostnames"], [file.removesuffix(".xplane.pb")])
            self.assertIn("/host:CPU", planes)
            devices += [int(name.rsplit(":", 1)[1]) for name in planes if name.startswith("/device:TPU:")]
        self.assertEqual(sorted(devices), list(range(16)))
        self.run_of([*words, "--trace-devices", "0"], "log")
        self.assertEqual(os.listdir(run), ["host-0.xplane.pb"])

    def test_a_folder_is_read_back_as_one_profile(self):
        words = ["run", "--machine", "tpu_v4", "--slice", "4x4", *BLOCK]
        run = self.run_of([*words, "--trace-devices", "all"], "log")
        for folder in ("log", "log/plugins/profile", "log/plugins/profile/podsim"):
            diff = podsim("diff", "--measured", f"{self.folder}/{folder}", self.folder + "/run.json", "--format", "json")
            self.assertEqual((diff.returncode, diff.stderr), (0, ""), folder)
            found = json.loads(diff.stdout)
            self.assertEqual(round(found["measured_s"] * 1e12), round(run["makespan_s"] * 1e12))
            for side in ("predicted", "measured"):
                self.assertEqual(found["matching"][side]["matched"], found["matching"][side]["of"])
            self.assertEqual(found["warnings"], [])
        both = podsim(*words, "--trace", self.folder + "/t.json", "--with", self.folder + "/log")
        self.assertEqual(both.returncode, 0, both.stderr)
        self.assertIn("is beside devices 0-15", both.stderr)  # of all four hosts
        self.assertNotIn("warning", both.stderr)
        with open(self.folder + "/t.json", encoding="utf-8") as file:
            late = [int(event["args"]["late_ps"]) for event in json.load(file)["traceEvents"] if "late_ps" in event.get("args", {})]
        self.assertTrue(late)
        self.assertEqual(set(late), {0})
        of_one, of_all = (podsim("calibrate", "--from", "xplane", self.folder + name, "--observations-only").stdout
                          for name in ("/log/plugins/profile/podsim/host-0.xplane.pb", "/log"))
        self.assertEqual(of_one.count("\n"), of_all.count("\n"))
        refused = podsim("diff", "--measured", f"{self.folder}/log", self.folder + "/run.json", "-o", f"{self.folder}/log/plugins/profile/podsim/host-2.xplane.pb")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("expected a file of its own", refused.stderr)

    def test_representatives_say_how_many_are_alike(self):
        words = ["run", "--machine", "tpu_v4", "--slice", "4x6", "--wrap", "none", "--collective", "all-gather", "--axis", "row", "--bytes", "64KiB"]
        run = self.run_of([*words, "--trace-devices", "representatives"], "log")
        alike = []
        for folder, _, files in os.walk(self.folder + "/log"):
            for file in files:
                planes, _ = self.planes(f"{folder}/{file}")
                alike += [plane.stats["devices_alike"] for name, plane in planes.items() if name.startswith("/device:TPU:")]
        self.assertEqual((len(alike), sum(alike)), (run["device_classes"], 24))

    def test_what_cannot_be_written_leaves_nothing(self):
        def little(process_limit=4096):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (process_limit, process_limit))

        words = ["run", "--machine", "tpu_v4", "--slice", "4x4", *BLOCK]
        for name in ("t.xplane.pb", "log"):
            run = podsim(*words, "--trace", f"{self.folder}/{name}", preexec_fn=little)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn("cannot write the file: File too large", run.stderr)
            self.assertEqual(os.listdir(self.folder), [])
        with open(self.folder + "/file", "w", encoding="ascii"):
            pass
        for name in ("file/t.xplane.pb", "file/log", "none/t.xplane.pb"):
            run = podsim(*words, "--trace", f"{self.folder}/{name}")
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(name.split("/", maxsplit=1)[0], run.stderr)
            self.assertEqual(os.listdir(self.folder), ["file"])

    def files(self):
        return [name for _, _, names in os.walk(self.folder) for name in names]

    def test_ctrl_c_leaves_no_file(self):
        for name in ("t.xplane.pb", "log"):
            process = subprocess.Popen([PODSIM, "run", "--machine", "tpu_v4", "--slice", "64x64", "--collective", "all-to-all", "--axis", "row,col", "--bytes",
                                        "64MiB", "--algorithm", "direct", "--engine", "simgrid", "--trace", f"{self.folder}/{name}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
            self.addCleanup(process.__exit__, None, None, None)
            self.addCleanup(process.kill)
            for _ in range(3000):
                if self.files():
                    break
                time.sleep(0.01)
            self.assertTrue(self.files())
            time.sleep(0.3)  # past its first moments
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=30)
            self.assertEqual((process.returncode, err), (130, "podsim: interrupted\n"))
            self.assertEqual(self.files(), [])

    def test_every_microbatch_of_a_pipeline_is_there(self):
        self.run_of([*PIPELINE, "--trace-devices", "0,5,15"])
        planes, _ = self.planes(self.folder + "/p.xplane.pb")
        for device in (0, 5, 15):
            plane = planes[f"/device:TPU:{device}"]
            self.check_core_line(plane)
            calls = [stats["tf_op"] for _, _, name, stats in plane.events("XLA Ops") if name.startswith("call.")]
            self.assertGreaterEqual(len(calls), 16)
            self.assertEqual(len(calls), len(set(calls)), "each forward and backward pass of a microbatch has a name of its own")


if __name__ == "__main__":
    unittest.main()
