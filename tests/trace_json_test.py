#!/usr/bin/env python3
"""Traces that `run --trace FILE.json` writes, by the rules that viewers have. Shares no code with the writer.

usage: trace_json_test.py PODSIM
"""

import collections
import decimal
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

PODSIM = os.path.abspath(sys.argv.pop())
PS = decimal.Decimal(1_000_000)  # in a microsecond
BLOCK = ["--workload", "llama3-8b-block", "--batch", "4", "--algorithm", "meshslice", "--slice-count", "2"]
TRAINING = ["--training", "llama3-8b", "--pad", "--batch", "32", "--force"]
RUNS = {
    "a block": ["--machine", "tpu_v4", "--slice", "4x4", *BLOCK],
    "a block on open axes": ["--machine", "tpu_v5e", "--slice", "4x4", *BLOCK],
    "a block on GPUs": ["--machine", "dgx_h100", "--slice", "2x8", "--mesh", "row=4,col=4", *BLOCK],
    "directions of two links": ["--machine", "tpu_v4", "--slice", "4x4x4", "--mesh", "row=16,col=4", "--collective", "all-gather", "--axis", "row,col", "--bytes", "16MiB"],
    "flows that share": ["--machine", "dgx_h100", "--slice", "2x8", "--mesh", "row=2,col=8", "--collective", "all-to-all", "--axis", "row,col", "--bytes", "64MiB"],
    "a collective": ["--machine", "tpu_v4", "--slice", "4x4", "--collective", "all-to-all", "--axis", "row,col", "--bytes", "1MiB"],
    "a pipeline": ["--machine", "tpu_v4", "--slice", "4x4", "--mesh", "stage=4,fsdp=4", *TRAINING, "--pipeline", "1f1b", "--microbatches", "8", "--set", "chip.memory_sharing=separate"],
    "two steps": ["--machine", "tpu_v4", "--slice", "4x4", "--mesh", "fsdp=16", *TRAINING, "--steps", "2"],
}


LEVELS = ["step", "pass", "microbatch", "recompute", "layer"]
BESIDE = ["simulated operations", "measured operations"]
Bar = collections.namedtuple("Bar", "begin end name args")


def picoseconds(number):
    """Exactly; decimals keep all digits."""
    value = decimal.Decimal(number) * PS
    assert value == value.to_integral_value(), number
    return int(value)


def integral(samples, key):
    """Of a counter over time, in its unit times seconds."""
    return float(sum(value[key] * (end - begin) for (begin, value), (end, _) in zip(samples, samples[1:]))) * 1e-12


class TraceCase(unittest.TestCase):
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

    def read(self, trace):
        """Events by line, arrows, samples by counter, names of lines; every record has the form that viewers expect."""
        lines, named, arrows, counters = collections.defaultdict(list), {}, collections.defaultdict(dict), collections.defaultdict(list)
        for event in trace["traceEvents"]:
            line = event["pid"], event.get("tid")
            if event["ph"] == "M":
                named.setdefault(line, {})[event["name"]] = event["args"]
            elif event["ph"] == "X":
                begin = picoseconds(event["ts"])
                lines[line].append(Bar(begin, begin + picoseconds(event["dur"]), event["name"], event["args"]))
                for key, value in event["args"].items():
                    self.assertIsInstance(value, str, key)
                self.assertEqual(list(event["args"]), sorted(event["args"]))
            elif event["ph"] == "C":
                for key, value in event["args"].items():
                    self.assertIsInstance(value, (int, decimal.Decimal), key)
                counters[event["pid"], event["name"]].append((picoseconds(event["ts"]), event["args"]))
            else:
                self.assertIn(event["ph"], "sf")
                self.assertNotIn(event["ph"], arrows[event["id"]], "one beginning and one end")
                arrows[event["id"]][event["ph"]] = line, picoseconds(event["ts"])
        names = {}
        for line in lines:
            self.assertIn("process_name", named[line[0], None])
            names[line] = named[line]["thread_name"]["name"]
        tids = [tid for _, tid in lines]
        self.assertEqual(len(tids), len(set(tids)), "threads are unique in the file")
        return lines, arrows, counters, names

    def check(self, trace, run):
        lines, arrows, counters, names = self.read(trace)
        makespan = round(run["makespan_s"] * 1e12)
        for line, bars in lines.items():
            if names[line] == "step":
                self.check_steps(bars, makespan)
            elif names[line] in BESIDE:
                self.check_nested(bars)
            else:
                self.check_apart(bars)
            if names[line] != BESIDE[1]:
                self.assertLessEqual(max(bar.end for bar in bars), makespan)
        for number, ends in arrows.items():
            self.assertEqual(set(ends), {"s", "f"}, f"arrow {number}")
            self.assertLessEqual(ends["s"][1], ends["f"][1], "arrows never point backwards")
            for line, at in ends.values():
                self.assertTrue(any(bar.begin <= at <= bar.end for bar in lines[line]), "an arrow begins and ends at an event")
        for pid in {pid for pid, _ in lines}:
            own = {name: bars for (of, tid), bars in lines.items() for name in [names[of, tid]] if of == pid}
            self.check_levels(own)
            self.check_operations(own)
            self.check_traffic(own, {name: samples for (of, name), samples in counters.items() if of == pid})
        for samples in counters.values():
            times, values = [at for at, _ in samples], [value for _, value in samples]
            self.assertEqual(times, sorted(set(times)))
            self.assertLessEqual(times[-1], makespan)
            for before, after in zip(values, values[1:]):
                self.assertNotEqual(before, after, "changes only")
        return lines, arrows, counters, names

    def check_apart(self, bars):
        free = 0
        for bar in bars:
            self.assertGreaterEqual(bar.begin, free, f"{bar.name}: sorted, and no overlap on a line")
            self.assertGreaterEqual(bar.end, bar.begin)
            free = bar.end

    def check_nested(self, bars):
        inside, last = [], 0
        for bar in bars:
            self.assertGreaterEqual(bar.begin, last, "sorted")
            last = bar.begin
            while inside and inside[-1].end <= bar.begin:
                inside.pop()
            if inside:
                self.assertLessEqual(bar.end, inside[-1].end, f"{bar.name} ends within {inside[-1].name}")
            inside.append(bar)

    def check_steps(self, bars, makespan):
        """Levels nest, outer ones first; the steps are the run."""
        steps = [bar for bar in bars if bar.args["level"] == "step"]
        self.assertEqual([bar.name for bar in steps], ["step"] if len(steps) == 1 else [f"step {number}" for number in range(1, len(steps) + 1)])
        self.assertEqual([bar.begin for bar in steps] + [makespan], [0] + [bar.end for bar in steps])
        inside, last = [], 0
        for bar in bars:
            self.assertGreaterEqual(bar.begin, last, "sorted")
            self.assertGreater(bar.end, bar.begin)
            last = bar.begin
            while inside and inside[-1].end <= bar.begin:
                inside.pop()
            if inside:
                self.assertLessEqual(bar.end, inside[-1].end, f"{bar.name} ends within {inside[-1].name}")
                self.assertLess(LEVELS.index(inside[-1].args["level"]), LEVELS.index(bar.args["level"]) + (bar.args["level"] == "layer"))
            inside.append(bar)

    def check_levels(self, own):
        """A level lasts from a task of the core to one; what a task's name says of its pass and microbatch stands above it."""
        core = [bar for bar in own.get("compute", []) if bar.end > bar.begin and bar.args["op"] != "core-share"]
        begins, ends = {bar.begin for bar in core}, {bar.end for bar in core}
        spans = {level: [bar for bar in own["step"] if bar.args["level"] == level] for level in LEVELS}
        for bar in own["step"]:
            self.assertTrue(bar.args["level"] == "step" or bar.begin in begins and bar.end in ends, bar)
        both_passes = any(" backward: " in bar.name for bar in core)
        above = lambda level, bar: [span for span in spans[level] if span.begin <= bar.begin and bar.end <= span.end]
        for bar in core:
            of = re.search(r"\b(fwd|bwd)_([0-9]+)__([0-9]+)", bar.name)
            expected = {"fwd": "forward", "bwd": "backward"}[of[1]] if of else "backward" if " backward: " in bar.name else "optimiser" if bar.name.startswith("update ") else None
            if both_passes and not expected and ": " in bar.name:
                expected = "forward"
            if expected:
                self.assertEqual([span.name for span in above("pass", bar)], [expected], bar.name)
            if of:
                self.assertEqual([(span.args["stage"], span.args["microbatch"], span.name) for span in above("microbatch", bar)], [(of[2], of[3], f"microbatch {of[3]}")], bar.name)
            layer = re.search(r"layer [0-9]+", bar.name) or re.match(r"[^:]+(?=: )", bar.name)
            if layer:
                self.assertIn(layer[0], [span.name for span in above("layer", bar)], bar.name)

    def check_operations(self, own):
        """A collective lasts from its first task to its last."""
        extents, operations = {}, {}
        for name, bars in own.items():
            for bar in bars:
                number = bar.args.get("collective_number")
                if number is None or bar.end == bar.begin:
                    continue
                if name.startswith("operation"):
                    self.assertNotIn(number, operations)
                    operations[number] = bar.begin, bar.end
                elif bar.args["op"] != "core-share":
                    begin, end = extents.get(number, (bar.begin, bar.end))
                    extents[number] = min(begin, bar.begin), max(end, bar.end)
        self.assertEqual(operations, extents)

    def check_traffic(self, own, counters):
        """Bytes in flight are those of the sends that are under way; what a direction or an axis counts adds up to what was sent along it, never above its links' bandwidth."""
        has_calls = any(bar.args.get("op") == "call" for bar in own.get("compute", []))
        sent, per_axis, time = collections.defaultdict(lambda: collections.defaultdict(int)), collections.defaultdict(int), collections.defaultdict(int)
        crossed, spent = collections.defaultdict(int), collections.defaultdict(int)
        for name, bars in own.items():
            for bar in bars:
                if bar.args.get("half") != "send" or bar.end == bar.begin:
                    continue
                of = re.sub(r" [0-9]+$", "", name)
                size = int(bar.args["bytes"])
                crossed[of] += size
                spent[of] += bar.end - bar.begin
                sent[of][bar.begin] += size
                sent[of][bar.end] -= size
                axis = bar.args["axis"].split("/")[0] if "axis" in bar.args else "channel"
                per_axis[axis] += size * int(bar.args["hops"])
                time[axis] += bar.end - bar.begin
        self.assertEqual({name for name in counters if name.endswith(" send")}, set(sent))
        for name, changes in sent.items():
            now, expected = 0, []
            for at in sorted(changes):
                now += changes[at]
                expected.append((at, now))
            samples = counters[name]
            in_flight = {at: value["bytes_in_flight"] for at, value in samples}
            last = 0
            for at, value in expected:
                last = in_flight.get(at, last)
                self.assertEqual(last, value, f"{name} at {at} ps")
            self.assertLessEqual(set(in_flight), set(changes))
            self.assertAlmostEqual(integral(samples, "bytes_per_second"), crossed[name], delta=float(spent[name]) * 1e-12 + 1e-3)
            bandwidth = statistics.median(value["bytes_per_second"] / value["utilisation"] for _, value in samples if value["utilisation"] > 0)
            for _, value in samples:
                self.assertTrue(0 <= value["utilisation"] <= 1, name)
                self.assertAlmostEqual(value["bytes_per_second"] / bandwidth, value["utilisation"], delta=decimal.Decimal("0.00001"))
                self.assertEqual(value["utilisation"] == 0, value["bytes_in_flight"] == 0)
        axes = {name: samples for name, samples in counters.items() if name != "memory" and not name.endswith(" send")}
        if not has_calls:
            self.assertEqual(set(axes), set(per_axis))
            for name, samples in axes.items():
                self.assertAlmostEqual(integral(samples, "bytes_per_second"), per_axis[name], delta=float(time[name]) * 1e-12 + 1e-3)
        for name, samples in counters.items():
            if name != "memory":
                self.assertEqual(set(samples[-1][1].values()), {0}, "nothing is under way in the end")


class Traces(TraceCase):
    def test_every_run_follows_the_rules(self):
        for name, words in RUNS.items():
            with self.subTest(name):
                trace, run = self.trace_of([*words, "--trace-devices", "0-3"])
                lines, arrows, _, _ = self.check(trace, run)
                self.assertTrue(lines)
                self.assertEqual(bool(arrows), name not in ("a pipeline", "two steps"), "played calls are one event; devices 0 to 3 are one stage")

    def test_a_trace_that_breaks_a_rule_is_found(self):
        trace, run = self.trace_of([*RUNS["a block"], "--trace-devices", "0-3"])
        events = trace["traceEvents"]
        first = lambda phase, wanted: next(i for i, event in enumerate(events) if event["ph"] == phase and wanted(event))
        level = lambda name: first("X", lambda event: event["args"].get("level") == name)
        change = lambda at, **fields: [*events[:at], {**events[at], **fields}, *events[at + 1 :]]
        sample = first("C", lambda event: event["name"] == "row + send")
        rate = first("C", lambda event: event["name"] == "row")
        arrow = first("f", lambda event: True)
        task = first("X", lambda event: event["args"].get("half") == "send")
        broken = {
            "a level that begins before its task": change(level("layer"), ts=events[level("layer")]["ts"] + decimal.Decimal("0.000001")),
            "a level that ends behind its parent": change(level("pass"), dur=events[level("pass")]["dur"] * 2),
            "a pass of another name": change(level("pass"), name="backward"),
            "an operation that is too short": change(level("operation"), dur=decimal.Decimal("0.000001")),
            "a step that is not the run": change(level("step"), dur=decimal.Decimal("1.000000")),
            "bars that overlap": change(task, dur=events[task]["dur"] * 3),
            "an arrow that points backwards": change(arrow, ts=decimal.Decimal("0.000000")),
            "a direction's rate that does not add up": change(sample, args={**events[sample]["args"], "bytes_per_second": events[sample]["args"]["bytes_per_second"] * 2}),
            "a utilisation that is not the rate's": change(sample, args={**events[sample]["args"], "utilisation": events[sample]["args"]["utilisation"] / 2}),
            "bytes in flight that nobody sends": change(sample, args={**events[sample]["args"], "bytes_in_flight": 1}),
            "a rate that does not add up": change(rate, args={"bytes_per_second": events[rate]["args"]["bytes_per_second"] + 10**6}),
            "a sample too few": [*events[:sample], *events[sample + 1 :]],
        }
        self.check(trace, run)
        for name, events_of in broken.items():
            with self.subTest(name), self.assertRaises(AssertionError):
                self.check({**trace, "traceEvents": events_of}, run)

    def test_counters_of_all_devices_add_up_to_the_figures_of_the_run(self):
        for name, words in RUNS.items():
            with self.subTest(name):
                trace, run = self.trace_of([*words, "--trace-devices", "all", "--per", "device"])
                _, _, counters, _ = self.check(trace, run)
                for axis in run["axes"]:
                    key = "channel" if axis["axis"] == "sends" else axis["axis"]
                    sum_of = sum(integral(samples, "bytes_per_second") for (_, of), samples in counters.items() if of == key)
                    self.assertAlmostEqual(sum_of / axis["link_bytes"], 1, delta=1e-6)
                peaks = {pid - 1: max(value["bytes"] for _, value in samples) for (pid, of), samples in counters.items() if of == "memory"}
                self.assertEqual(max(peaks.values()), run["peak_memory_bytes"])
                for row in run["per_device"]:
                    self.assertEqual(peaks[row["device"]], row["peak_memory_bytes"])

    def test_folded_and_unfolded_any_threads_the_same_bytes(self):
        for name, words in RUNS.items():
            with self.subTest(name):
                traces = [self.trace_of([*words, "--trace-devices", "0,5,15", *more])[0] for more in ([], ["--fold", "off"], ["--threads", "3"])]
                self.assertEqual(traces[0], traces[1])
                self.assertEqual(traces[0], traces[2])

    def test_compressed_it_is_the_same(self):
        self.assertEqual(self.trace_of(RUNS["a collective"])[0], self.trace_of(RUNS["a collective"], "t.json.gz")[0])

    def test_steps_are_told_apart(self):
        lines, _, _, names = self.check(*self.trace_of([*RUNS["two steps"], "--trace-devices", "3"]))
        (steps,) = (bars for line, bars in lines.items() if names[line] == "step")
        passes = [bar.name for bar in steps if bar.args["level"] in ("step", "pass")]
        self.assertEqual(passes, ["step 1", "forward", "backward", "optimiser", "step 2", "forward", "backward", "optimiser"])

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


class SideBySide(TraceCase):
    """`--with PROFILE`."""

    def setUp(self):
        super().setUp()
        self.block = [*RUNS["a block"], "--trace-devices", "0,5"]

    def own_profile(self, words):
        path = f"{self.folder}/own.xplane.pb"
        subprocess.run([PODSIM, "run", *words, "--trace-devices", "all", "--trace", path], stdout=subprocess.DEVNULL, timeout=60, check=True)
        return path

    def beside(self, words, profile, *more):
        trace, run = self.trace_of([*words, "--with", profile, *more])
        lines, arrows, _, names = self.check(trace, run)
        sides = collections.defaultdict(dict)
        for line, bars in lines.items():
            if names[line] in BESIDE:
                sides[line[0]][names[line]] = bars
        for pid, both in sides.items():
            self.assertEqual(list(both), BESIDE, "next to each other")
        matches = [ends for ends in arrows.values() if {names[line] for line, _ in ends.values()} == set(BESIDE)]
        return trace, run, sides, matches

    def refused(self, profile, message, *more, trace="t.json"):
        if os.path.exists(f"{self.folder}/{trace}"):
            os.remove(f"{self.folder}/{trace}")
        command = [PODSIM, "run", *self.block, "--trace", f"{self.folder}/{trace}", *(["--with", profile] if profile else []), *more]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn(message, run.stderr)
        self.assertFalse(os.path.exists(f"{self.folder}/{trace}"))

    def test_our_own_profile_matches_in_full_and_is_late_nowhere(self):
        for name in ("a block", "a block on GPUs", "a pipeline"):
            with self.subTest(name):
                profile = self.own_profile(RUNS[name])
                _, _, sides, matches = self.beside([*RUNS[name], "--trace-devices", "0,5,9,15"], profile)
                self.assertEqual(sorted(sides), [1, 6, 10, 16])
                for both in sides.values():
                    simulated, measured = both.values()
                    self.assertEqual(sorted(bar[:2] for bar in simulated), sorted(bar[:2] for bar in measured))
                    for bar in measured:
                        self.assertEqual((bar.args["pace"], bar.args.get("late_ps", "0")), ("as predicted", "0"), bar)
                self.assertGreater(len(matches), 100)

    @staticmethod
    def words_of(both):
        """What the simulation calls each operation of our own profile, by its number: all-gather-start.13 is "ff1: gather W"."""
        simulated, measured = (sorted(bar for bar in bars if bar.end > bar.begin) for bars in both.values())
        return {theirs.name.split(".")[-1]: re.sub(" (start|update|done)$", "", ours.name) for ours, theirs in zip(simulated, measured, strict=True)}

    def profile_of(self, both, steps, path="p.trace.json"):
        """A trace of these operations as a TPU would leave it, in each step with some of them slower."""
        words, events, now = self.words_of(both), [], decimal.Decimal("1000.5")
        for slower in steps:
            begin, before = now, 0
            for bar in both[BESIDE[1]]:
                word = words.get(bar.name.split(".")[-1])
                if not word:  # takes no time anywhere
                    continue
                now += decimal.Decimal(max(bar.begin - before, 0)) / PS
                before = max(bar.end, before)
                length = max(decimal.Decimal(bar.end - bar.begin) / PS * slower.get(word, 1), decimal.Decimal("0.000001"))  # as jax's exporter
                category = {"matmul": "convolution fusion", "elementwise": "loop fusion", "copy": "data formatting", "attention": "custom-call"}.get(bar.args["category"], bar.args["category"])
                args = {"hlo_category": category, "tf_op": f"jit(step)/{word.replace(': ', '/')}:"}
                events.append({"ph": "X", "pid": 7, "tid": 3, "ts": now, "dur": length, "name": bar.name, "args": args})
                now += length
            events.append({"ph": "X", "pid": 7, "tid": 2, "ts": begin, "dur": now - begin, "name": "jit_step(1)", "args": {}})
        names = [("process_name", {"pid": 7}, "/device:TPU:0"), ("thread_name", {"pid": 7, "tid": 3}, "XLA Ops"), ("thread_name", {"pid": 7, "tid": 2}, "XLA Modules")]
        named = [{"ph": "M", **where, "name": name, "args": {"name": value}} for name, where, value in names]
        with open(f"{self.folder}/{path}", "w", encoding="utf-8") as file:
            json.dump({"traceEvents": [*named, *events, {}]}, file, default=float)
        return f"{self.folder}/{path}"

    def diff(self, profile, run, *more):
        with open(f"{self.folder}/run.json", "w", encoding="utf-8") as file:
            json.dump(run, file)
        done = subprocess.run([PODSIM, "diff", "--measured", profile, f"{self.folder}/run.json", "--format", "json", *more], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        return json.loads(done.stdout)

    def test_three_slow_gathers_are_late_by_what_diff_says(self):
        _, run, sides, _ = self.beside(self.block, self.own_profile(RUNS["a block"]))
        both = sides[1]
        words = self.words_of(both)
        of = lambda bar: words.get(bar.name.split(".")[-1])
        waits = sorted((bar for bar in both[BESIDE[1]] if bar.args["category"] == "all-gather"), key=lambda bar: bar.begin - bar.end)
        slow = list(dict.fromkeys(of(bar) for bar in waits))[:3]
        thrice, tenfold = {word: 3 for word in slow}, {word: 10 for word in words.values()}
        _, _, sides, _ = self.beside(self.block, self.profile_of(both, [{}, tenfold, thrice]))
        self.assertEqual(list(sides), [1])
        measured = sides[1][BESIDE[1]]
        self.assertEqual(measured[0].begin, 0, "aligned at the step's start")
        late, paces = collections.Counter(), collections.defaultdict(set)
        for bar in measured:
            late[of(bar)] += int(bar.args.get("late_ps", 0))
            paces[of(bar)].add(bar.args["pace"])
        self.assertEqual({word for word, found in paces.items() if "late" in found}, set(slow), "the median step is the third")
        self.assertEqual(set().union(*paces.values()), {"late", "as predicted"})
        gap = self.diff(self.profile_of(both, [thrice], "one.trace.json"), run, "--steps", "1")
        rows = {row["name"]: row["gap_s"] for row in gap["ops"]}
        self.assertGreater(sum(rows[word] for word in slow), 1e-4)
        self.assertAlmostEqual(sum(late[word] for word in slow) * 1e-12, sum(rows[word] for word in slow), delta=1e-9)
        self.assertAlmostEqual(sum(late.values()) * 1e-12, gap["gap_s"], delta=1e-8)

    def test_the_example_of_diff_is_late_by_what_diff_says(self):
        layer = ["--machine", "tpu_v4", "--slice", "4x4x4", "--mesh", "row=16,col=4", "--gemm", "m=131072,n=49152,k=12288", "--algorithm", "meshslice", "--slice-count", "4"]
        _, run = self.trace_of([*layer, "--per", "device"])
        busiest = max(run["per_device"], key=lambda device: (device["compute_s"], -device["device"]))["device"]  # diff compares it with any device
        with open(f"{os.path.dirname(os.path.abspath(__file__))}/../validation/diff/example.trace.json", encoding="utf-8") as file:
            example = file.read().replace("/device:TPU:0", f"/device:TPU:{busiest}")
        profile = f"{self.folder}/example.trace.json"
        with open(profile, "w", encoding="utf-8") as file:
            file.write(example)
        trace, run, sides, matches = self.beside([*layer, "--trace-devices", f"{busiest}"], profile)
        self.assertEqual(list(sides), [busiest + 1])
        late = collections.Counter()
        for bar in sides[busiest + 1][BESIDE[1]]:
            if "late_ps" in bar.args:
                late[bar.name] += int(bar.args["late_ps"])
        rows = self.diff(profile, run)["ops"]
        self.assertEqual(set(late), {name for row in rows for name in row["measured"]})
        for row in rows:
            self.assertAlmostEqual(sum(late[name] for name in row["measured"]) * 1e-12, row["gap_s"], delta=1e-11, msg=row["name"])
        colours = collections.defaultdict(set)
        for event in trace["traceEvents"]:
            if "late_ps" in event.get("args", {}):
                colours[event["name"]].add(event.get("cname"))
        self.assertEqual(colours["all-gather.4"], {"terrible"})
        self.assertTrue(matches)

    def test_a_step_can_be_chosen(self):
        _, _, sides, _ = self.beside(self.block, self.own_profile(RUNS["a block"]))
        profile = self.profile_of(sides[1], [{}, {}, dict.fromkeys(self.words_of(sides[1]).values(), 2)])
        lengths = [self.beside(self.block, profile, "--with-step", str(step))[2][1][BESIDE[1]][-1].end for step in (1, 2, 3)]
        self.assertGreater(lengths[2], 1.9 * lengths[1])
        self.assertAlmostEqual(lengths[0], lengths[1], delta=1000)
        self.refused(profile, "expected a step from 1 to 3, found 4", "--with-step", "4")

    def test_folded_and_unfolded_the_same_bytes(self):
        profile = self.own_profile(RUNS["a block"])
        traces = [self.beside(self.block, profile, *more)[0] for more in ([], ["--fold", "off"], ["--threads", "3"])]
        self.assertEqual(traces[0], traces[1])
        self.assertEqual(traces[0], traces[2])

    def test_what_has_no_timeline_is_refused(self):
        table = f"{self.folder}/hlo_stats.csv"
        with open(table, "w", encoding="utf-8") as file:
            file.write("Rank,Program id,HLO op category,HLO op name\n1,1,fusion,fusion.1\n")
        self.refused(table, "a table of HLO statistics has no timeline; *.xplane.pb, *.trace.json and *.trace.json.gz have one")
        self.refused(f"{self.folder}/nccl.txt", "expected a profile with a timeline, *.xplane.pb, *.trace.json, *.trace.json.gz or a folder, found")
        self.refused(f"{self.folder}/none.xplane.pb", "none.xplane.pb: ")
        self.refused(None, "--with-step: expected --with PROFILE beside it, found none", "--with-step", "1")
        profile = self.own_profile(RUNS["a block"])
        self.refused(profile, "--with: expected --trace FILE.json or FILE.json.gz beside it", trace="t.xplane.pb")
        elsewhere = self.profile_of(self.beside(self.block, profile)[2][1], [{}])
        with open(elsewhere, encoding="utf-8") as file:
            text = file.read().replace("/device:TPU:0", "/device:TPU:9")
        with open(elsewhere, "w", encoding="utf-8") as file:
            file.write(text)
        self.refused(elsewhere, "p.trace.json: expected one of the devices that are asked for, found /device:TPU:9")

    def test_hostile_profiles_are_escaped_or_refused(self):
        long, script = "n" * 1_000_000, '</script>"\\<b>\x00\ud83d\ude00'
        event = {"ph": "X", "pid": 1, "tid": 3, "ts": 0, "dur": 5.0, "args": {"hlo_category": script}}
        head = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:TPU:0"}}, {"ph": "M", "pid": 1, "tid": 3, "name": "thread_name", "args": {"name": "XLA Ops"}}]

        def profile(events, cut=None):
            path = f"{self.folder}/hostile.trace.json"
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps({"traceEvents": [*head, *events]})[:cut])
            return path

        overlapping = [{**event, "name": f"op.{i}", "ts": i * 1e-3, "dur": 7.0 - (i % 3)} for i in range(1000)]
        huge = [{**event, "name": "a.1", "ts": -1e12}, {**event, "name": "b.1", "ts": 1e12, "dur": 1e12}, {**event, "name": "c.1", "ts": 0, "dur": 1e300}]
        for events in ([{**event, "name": script}], [{**event, "name": long, "ts": 10.0 * i} for i in range(100)], overlapping, huge):
            trace, _, sides, _ = self.beside(self.block, profile(events))
            self.assertIn(1, sides)
            self.assertLess(len(json.dumps(trace, default=float)), 3_000_000)
        self.refused(profile([{**event, "name": "x"}], cut=-20), "hostile.trace.json:1:")
        self.refused(profile([{**event, "name": "x", "ts": "now"}]), "hostile.trace.json:1:")
        self.refused(profile([]), "no operation on a line")
        own = self.own_profile(RUNS["a block"])
        with open(own, "rb") as file:
            whole = file.read()
        with open(own, "wb") as file:
            file.write(whole[: len(whole) // 2])
        self.refused(own, "own.xplane.pb: ")


if __name__ == "__main__":
    unittest.main()
