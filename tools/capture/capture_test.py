#!/usr/bin/env python3
"""Tests of capture_jax.py. usage: capture_test.py PODSIM [unittest options]

What JAX would run is interpreted by testing_jax.py: its shapes and its values. What is measured comes from a machine whose costs are written down
here as formulas. No device and no JAX is involved.
"""

import contextlib
import csv
import gzip
import io
import itertools
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import capture_jax as kit  # noqa: E402  pylint: disable=wrong-import-position
import testing_jax  # noqa: E402  pylint: disable=wrong-import-position

PODSIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.isfile(sys.argv[1]) else None
MESHES = [kit.Mesh((("row", 2), ("col", 4))), kit.Mesh((("row", 4), ("col", 2))), kit.Mesh((("row", 3),)), kit.Mesh((("row", 1), ("col", 8))),
          kit.Mesh((("row", 2), ("col", 2), ("depth", 3))), kit.Mesh((("row", 1),))]


# ------------------------------------------------------------------------------------------------------------- a machine of known costs

TRUTH = {"software.launch[permute]": 7e-6, "software.launch[all-gather]": 9e-6, "software.launch[reduce-scatter]": 11e-6,
         "software.launch[all-reduce]": 16e-6, "software.launch[all-to-all]": 8e-6, "software.launch[matmul]": 3e-6,
         "software.launch[local]": 2e-6, "link[x].bandwidth": 38e9, "link[y].bandwidth": 52e9, "chip.matmul_efficiency": 0.84,
         "chip.hbm_bandwidth": 0.9e12, "link.latency": 0.7e-6, "software.per_message": 1.5e-6}
PEAK = 275e12  # bf16 FLOP/s: the base machine's


class FakeBackend:
    """Sixteen TPU v4 chips in rings of four, whose steps take what the formulas below say, beside a loop and a dispatch that cost something too."""
    first = True

    def __init__(self, _distributed=False, at_once=max, trace=False, broken=()):
        self.now, self.at_once, self.trace, self.broken, self.compiled = 0.0, at_once, trace, broken, []
        self.mesh, self.profiled = None, {}

    def pod(self):
        return {"platform": "tpu", "kind": "TPU v4", "hosts": 4, "devices": 16, "coords": [[x, y, 0] for x in range(4) for y in range(4)], "cores": 1}

    def open(self, mesh):
        self.mesh = mesh

    def environment(self):
        return {"jax": "none", **self.pod()}

    def agree(self, value):
        return value

    def clock(self):
        return self.now

    def transfer(self, axis, size, hops=1):
        bandwidth = TRUTH["link[x].bandwidth" if axis == "row" else "link[y].bandwidth"]
        return TRUTH["software.per_message"] + hops * TRUTH["link.latency"] + size / bandwidth

    def collective(self, op, axes, size):
        """Rings of both directions, the last axis first to gather and the first one first to scatter. `size` bytes on each device."""
        whole, seconds = size, 0.0
        if op in ("reduce-scatter", "all-reduce"):
            for axis in axes:
                n = self.mesh.size((axis,))
                size /= n
                seconds += (n - 1) * self.transfer(axis, size / 2)
        if op in ("all-gather", "all-reduce"):
            for axis in reversed(axes):
                n = self.mesh.size((axis,))
                seconds += (n - 1) * self.transfer(axis, size / 2)
                size *= n
        if op == "all-to-all":
            for axis in axes:  # of four: blocks for the neighbour, and half of those for the opposite device, pass first
                block = whole / self.mesh.size((axis,))
                seconds += self.transfer(axis, 1.5 * block) + self.transfer(axis, 0.5 * block)
        if op == "permute":  # along both axes the last one of a row goes on to the next row: two hops
            seconds = self.transfer("row" if axes == ("row",) else "col", whole, len(axes))
            if len(axes) > 1:
                seconds = max(seconds, self.transfer("row", whole, len(axes)))
        return TRUTH[f"software.launch[{op}]"] + seconds

    def product(self, m, n, k, dtype):
        item = {"bf16": 2, "f32": 4}[dtype]
        padded = math.prod(-(-extent // 128) * 128 for extent in (m, n, k))
        peak = PEAK * TRUTH["chip.matmul_efficiency"] / (6 if dtype == "f32" else 1)
        return TRUTH["software.launch[matmul]"] + max(2 * padded / peak, item * (m * k + k * n + m * n) / TRUTH["chip.hbm_bandwidth"])

    def seconds(self, step):
        if step.op == "nothing":
            return 0.0
        rows, columns = step.shapes[0]
        if step.op == "matmul":
            return self.product(rows, step.shapes[1][1], columns, step.dtype)
        size = rows * columns * 2
        if step.op == "hbm_copy":
            return TRUTH["software.launch[local]"] + 2 * size / TRUTH["chip.hbm_bandwidth"]
        if step.op in kit.COLLECTIVES:
            return self.collective(step.op, step.axes, size)
        return 1e-3  # kernels of several operations are not calibrated

    def compile(self, name, steps, loop):
        if name in self.broken:
            raise RuntimeError("RESOURCE_EXHAUSTED: out of memory\nand more")
        self.now += 1.0
        self.compiled.append(name)
        turn = 4e-6 + self.at_once(self.seconds(step) for step in steps)

        def run(repetitions):
            program = loop * turn * (1.25 if self.trace else 1) + 180e-6
            self.now += repetitions * program
            if self.trace:
                self.profiled.setdefault(name, []).extend([loop * turn] * repetitions)
            return [program] * repetitions

        return run, f"HloModule jit_{name}\n"

    def profile(self, folder, work):
        self.profiled.clear()
        work()
        if self.trace:
            write_trace(folder, self.profiled)
        return kit.module_seconds(folder)


def write_trace(folder, modules):
    """As jax.profiler.trace writes it: device lines, host lines, an empty object at the end."""
    events = [{"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "/device:TPU:0"}},
              {"ph": "M", "name": "process_name", "pid": 701, "args": {"name": "/host:CPU"}},
              {"ph": "M", "name": "thread_name", "pid": 3, "tid": 1, "args": {"name": "XLA Modules"}},
              {"ph": "M", "name": "thread_name", "pid": 3, "tid": 2, "args": {"name": "XLA Ops"}},
              {"ph": "M", "name": "thread_name", "pid": 701, "tid": 1, "args": {"name": "XLA Modules"}}]
    for name, durations in modules.items():
        for seconds in durations:
            module = f"jit_{name}(1234567)"
            events.append({"ph": "X", "pid": 3, "tid": 1, "ts": 1.0, "dur": seconds * 1e6, "name": module, "args": {"run_id": "1"}})
            events.append({"ph": "X", "pid": 3, "tid": 2, "ts": 1.0, "dur": 99.0, "name": module, "args": {}})
            events.append({"ph": "X", "pid": 701, "tid": 1, "ts": 1.0, "dur": 99.0, "name": module, "args": {}})
    place = os.path.join(folder, "plugins", "profile", "2026_01_01")
    os.makedirs(place)
    with gzip.open(os.path.join(place, "host.trace.json.gz"), "wt", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ns", "traceEvents": events + [{}]}, file)


def run_kit(arguments, backend):
    """Exit status, and what was said on standard error."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            status = kit.main(arguments, lambda _distributed: backend, backend.clock)
        except SystemExit as stop:
            status = stop.code
    return status, said.getvalue()


def rows_of(text):
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def archive(self, arguments=(), backend=None):
        """The files of a capture by name."""
        target = self.path("capture.tar.gz")
        status, said = run_kit(["-o", target, *arguments], backend or FakeBackend())
        self.assertEqual(status, 0, said)
        with tarfile.open(target) as archive:
            return {m.name: archive.extractfile(m).read().decode("utf-8", "replace") if m.isfile() else None for m in archive.getmembers()}


# -------------------------------------------------------------------------------------------------------------------------- calibration

class Calibrates(Folder):
    """What the kit writes, `podsim calibrate` reads, and finds the values that it was made from."""

    def podsim(self, command):
        ran = subprocess.run([PODSIM, *command.split(), "--format", "json"], cwd=self.folder.name, check=False, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def calibrated(self, backend):
        files = self.archive(backend=backend)
        with open(self.path("observations.csv"), "w", encoding="utf-8") as file:
            file.write(files["observations.csv"])
        command = next(line for line in files["observations.csv"].splitlines() if line.startswith("# Read by: podsim "))[len("# Read by: podsim "):]
        self.assertEqual(command, "calibrate observations.csv --base tpu_v4 --slice 4x4x1 --mesh row=4,col=4,depth=1")
        return self.podsim(command)

    def check(self, backend):
        found = self.calibrated(backend)
        values = {parameter["path"]: parameter["value"] for parameter in found["parameters"] if not parameter.get("at")}
        for path, truth in TRUTH.items():
            self.assertIn(path, values, sorted(values))
            self.assertAlmostEqual(values[path] / truth, 1, delta=1e-3, msg=path)
        self.assertLess(found["p95_abs_error"], 1e-3)
        self.assertFalse(set(TRUTH) & {value["path"] for value in found["undetermined"]})

    def test_validate_reads_the_collective_matmuls_of_every_axis(self):
        text = self.archive()["collective_matmuls.csv"]
        with open(self.path("collective_matmuls.csv"), "w", encoding="utf-8") as file:
            file.write(text)
        command = next(line for line in text.splitlines() if "Read by: podsim " in line).split("podsim ")[1]
        (dataset,) = self.podsim(command.replace("mine.textproto", "tpu_v4"))["datasets"]
        self.assertEqual(len(dataset["rows"]), len(rows_of(text)))
        self.assertEqual({row["axis"] for row in dataset["rows"]}, {"row", "col"})
        self.assertEqual(len(dataset["rows"]), 12)

    def test_host_times(self):
        self.check(FakeBackend())

    def test_device_times_where_the_profile_tells(self):
        self.check(FakeBackend(trace=True))


# ------------------------------------------------------------------------------------------------------------------------------ kernels

class Kernels(unittest.TestCase):
    """The steps as the interpreter carries them out."""

    def setUp(self):
        self.kernels = kit.Kernels(testing_jax.numpy, testing_jax.lax)

    @staticmethod
    def value(operand, device, row, column):
        return (7 * operand + 5 * device + 3 * row + column) % 9 - 4

    def operands(self, step, mesh):
        def filled(number, shape):
            def values():
                return [[self.value(number, device, r, c) for r in range(shape[0]) for c in range(shape[1])] for device in range(mesh.devices)]
            return testing_jax.Array(shape, "bfloat16" if step.dtype == "bf16" else "float32", values)
        return [filled(number, shape) for number, shape in enumerate(step.shapes)]

    def run_step(self, step, mesh):
        """Per device the rows of the result."""
        with testing_jax.Mesh(types.SimpleNamespace(shape=tuple(size for _, size in mesh.axes)), mesh.names):
            out = self.kernels.run(step, self.operands(step, mesh))
            self.assertEqual(out.shape, step.out_shape)
            columns = out.shape[1]
            return [[block[i:i + columns] for i in range(0, len(block), columns)] for block in out.blocks]

    @staticmethod
    def times(a, b):
        return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]

    def local(self, step, mesh):
        """Per device and operand the rows."""
        return [[[[self.value(number, device, r, c) for c in range(shape[1])] for r in range(shape[0])]
                 for number, shape in enumerate(step.shapes)] for device in range(mesh.devices)]

    def test_collectives_do_what_their_name_says(self):
        mesh = kit.Mesh((("row", 2), ("col", 3)))
        for dim in (0, 1):
            shape = (6, 5) if dim == 0 else (5, 6)
            for axes, groups in ((("col",), [[0, 1, 2], [3, 4, 5]]), (("row",), [[0, 3], [1, 4], [2, 5]]), (("row", "col"), [[0, 1, 2, 3, 4, 5]])):
                size = mesh.size(axes)
                steps = {op: kit.Step(op, (shape,), axes=axes, group=size, dim=dim) for op in kit.COLLECTIVES}
                inputs = [device[0] for device in self.local(steps["permute"], mesh)]
                turned = (lambda m: m) if dim == 0 else (lambda m: [list(row) for row in zip(*m)])
                for group in groups:
                    blocks = [turned(inputs[device]) for device in group]
                    total = [[sum(values) for values in zip(*rows)] for rows in zip(*blocks)]
                    part = len(total) // size
                    for i, device in enumerate(group):
                        expected = {"all-gather": sum(blocks, []), "all-reduce": total, "reduce-scatter": total[i * part:(i + 1) * part],
                                    "all-to-all": [row for block in blocks for row in block[i * part:(i + 1) * part]],
                                    "permute": blocks[(i - 1) % size]}
                        for op, rows in expected.items():
                            self.assertEqual(turned(self.run_step(steps[op], mesh)[device]), rows, (op, axes, dim, device))

    def test_overlapped_collective_matmuls_compute_what_the_plain_ones_do(self):
        for axes, mesh in itertools.product((("row",), ("col",)), (kit.Mesh((("row", 4), ("col", 3))), kit.Mesh((("row", 2), ("col", 5))))):
            size = mesh.size(axes)
            for op, shapes in (("all-gather matmul", ((4, 3), (3, 2))), ("matmul reduce-scatter", ((4 * size, 3), (3, 2)))):
                results = [self.run_step(kit.Step(op, shapes, axes=axes, group=size, dim=0, schedule=schedule), mesh)
                           for schedule in ("plain", "overlapped", "bidirectional")]
                self.assertEqual(results[0], results[1], (op, axes))
                self.assertEqual(results[0], results[2], (op, axes))

    def test_meshslice_computes_the_product_whatever_the_slice_count(self):
        for rows, columns, slices in ((2, 4, 1), (2, 4, 2), (3, 2, 2), (2, 2, 4)):
            mesh = kit.Mesh((("row", rows), ("col", columns)))
            sliced = math.lcm(rows, columns) * slices * kit.BLOCK
            common = dict(axes=("row", "col"), group=rows * columns, slices=slices, sides=(rows, columns))
            os_step = kit.Step("meshslice-os", ((2, sliced // columns), (sliced // rows, 3)), **common)
            ls_step = kit.Step("meshslice-ls", ((2, 3), (sliced // rows, 3)), **common)
            for step in (os_step, ls_step):
                local = self.local(step, mesh)

                def whole(operand):
                    return [sum((local[r * columns + c][operand][i] for c in range(columns)), [])
                            for r in range(rows) for i in range(len(local[0][operand]))]

                right = whole(1) if step is os_step else [list(row) for row in zip(*whole(1))]
                expected = self.times(whole(0), right)
                found = self.run_step(step, mesh)
                height, width = step.out_shape
                for device in range(mesh.devices):
                    r, c = divmod(device, columns)
                    block = [row[c * width:(c + 1) * width] for row in expected[r * height:(r + 1) * height]]
                    self.assertEqual(found[device], block, (step.op, slices, device))
                self.assertEqual(step.product, (len(expected), len(expected[0]), len(right)))

    def test_every_case_is_a_loop_that_carries_what_it_began_with(self):
        for mesh in MESHES:
            for case in kit.all_cases(mesh):
                program = self.kernels.timed(case.steps, 2)
                operands = [operand for step in case.steps for operand in self.operands(step, mesh)]
                with testing_jax.Mesh(types.SimpleNamespace(shape=tuple(size for _, size in mesh.axes)), mesh.names):
                    first, kept = program(*operands)
                self.assertEqual([array.shape for array in first], [step.shapes[0] for step in case.steps], case.name)
                self.assertEqual([array.shape for array in kept], [step.out_shape for step in case.steps if step.op != "hbm_copy"], case.name)

    def test_a_turn_waits_for_the_results_of_the_one_before(self):
        mesh = kit.Mesh((("row", 2),))
        step = kit.Step("matmul", ((2, 2), (2, 2)), "f32")
        with testing_jax.Mesh(types.SimpleNamespace(shape=(2,)), mesh.names):
            operands = self.operands(step, mesh)
            once = self.kernels.timed((step, step), 1)(*operands, *operands)[0][0]
            untouched = operands[0].blocks
            corner = [min(max(a[0] * b[0] + a[1] * b[2], -1), 1) + min(max(a[2] * b[1] + a[3] * b[3], -1), 1)
                      for a, b in zip(untouched, operands[1].blocks)]
            self.assertEqual([block[0] for block in once.blocks], [2 * c for c in corner])  # both steps' corners
            self.assertEqual([block[1:] for block in once.blocks], [block[1:] for block in untouched])


# -------------------------------------------------------------------------------------------------------------------------------- cases

class Cases(unittest.TestCase):
    def test_bytes_are_the_input_on_each_device_and_divide(self):
        for mesh in MESHES:
            for case in kit.all_cases(mesh):
                for step in case.steps:
                    if step.op in kit.COLLECTIVES:
                        self.assertEqual(step.input_bytes, math.prod(step.shapes[0]) * 2)
                        self.assertEqual(step.group, math.prod(dict(mesh.axes)[axis] for axis in step.axes))
                    if step.op in ("reduce-scatter", "all-to-all"):
                        self.assertEqual(step.shapes[0][step.dim] % step.group, 0, case.name)

    def test_sizes_are_what_the_names_say(self):
        for case in kit.all_cases(MESHES[0]):
            for step in case.steps:
                if step.op in kit.COLLECTIVES:
                    text = next(word for word in case.name.split("_") if word[0].isdigit())
                    self.assertEqual(step.input_bytes, int(text[:-1]) << {"K": 10, "M": 20}[text[-1]], case.name)

    def test_products_are_named_by_rows_columns_and_contraction(self):
        ring = {"axes": ("col",), "group": 4, "dim": 0}
        for step, product, size in ((kit.Step("matmul", ((2, 3), (3, 5))), (2, 5, 3), 12),
                                    (kit.Step("matmul", ((2, 3), (3, 5)), "f32"), (2, 5, 3), 24),
                                    (kit.Step("all-gather matmul", ((2, 3), (3, 5)), **ring), (8, 5, 3), 12),
                                    (kit.Step("matmul reduce-scatter", ((8, 3), (3, 5)), **ring), (8, 5, 3), 80)):
            row = kit.observation_row(kit.Timing(kit.Case("one", 0, "observation", (step,)), [2.0], 1.0))
            self.assertEqual((row["m"], row["n"], row["k"]), product)
            self.assertEqual(row["bytes"], None if step.op == "matmul" else size)
            self.assertEqual(step.input_bytes, size)

    def test_names_differ_and_are_identifiers(self):
        for mesh in MESHES:
            names = [case.name for case in kit.all_cases(mesh)]
            self.assertEqual(len(names), len(set(names)))
            self.assertTrue(all(name.isidentifier() for name in names))

    def test_probes_name_cases_that_are_measured_before_or_at_all(self):
        for mesh in MESHES:
            cases = kit.all_cases(mesh)
            names = {case.name for case in cases}
            for case in cases:
                self.assertLessEqual(set(case.parts), names, case.name)

    def test_the_most_telling_come_first(self):
        first = {step.op for case in kit.all_cases(MESHES[0])[:16] for step in case.steps}
        self.assertEqual(first & {"permute", "all-gather", "matmul", "hbm_copy"}, {"permute", "all-gather", "matmul", "hbm_copy"})
        self.assertTrue(any(case.kind == "probe" for case in kit.all_cases(MESHES[0])[:16]))

    def test_one_device_has_nothing_to_exchange(self):
        self.assertEqual({step.op for case in kit.all_cases(MESHES[-1]) for step in case.steps}, {"matmul", "hbm_copy"})

    def test_two_devices_have_no_opposite_directions(self):
        names = [case.name for case in kit.all_cases(kit.Mesh((("row", 2),)))]
        self.assertFalse([name for name in names if "opposite" in name or "bidirectional" in name])

    def test_nothing_holds_more_than_it_may(self):
        for case in kit.all_cases(MESHES[0], 64 << 20, 64 << 20):
            self.assertLessEqual(sum(step.held_bytes for step in case.steps), 64 << 20, case.name)


# ------------------------------------------------------------------------------------------------------------------------------ the files

class Files(Folder):
    def test_the_archive_holds_what_the_readme_says(self):
        files = self.archive()
        for name in ("observations.csv", "collective_matmuls.csv", "probes.csv",
                     "timings.csv", "environment.json", "profile"):
            self.assertIn(name, files)
        environment = json.loads(files["environment.json"])
        self.assertEqual(environment["mesh"], "row=4,col=4,depth=1")
        self.assertEqual(environment["failed"], {})
        timed = {row["case"] for row in rows_of(files["timings.csv"])}
        self.assertEqual(timed, {case.name for case in kit.all_cases(kit.parse_mesh(environment["mesh"]))})
        for name in timed:
            self.assertIn(f"hlo/{name}.txt", files)

    def test_observations_only_writes_the_same_csv_alone(self):
        target = self.path("alone.csv")
        status, said = run_kit(["--observations-only", target], FakeBackend())
        self.assertEqual(status, 0, said)
        with open(target, encoding="utf-8") as file:
            alone = file.read()
        self.assertEqual(rows_of(alone), rows_of(self.archive()["observations.csv"]))
        self.assertEqual(alone.splitlines()[4], "op,devices,bytes,seconds,axis,array_dim,dtype,m,n,k,schedule,source")

    def test_collective_matmuls_are_of_the_whole_product(self):
        rows = rows_of(self.archive()["collective_matmuls.csv"])
        self.assertEqual({row["schedule"] for row in rows}, {"plain", "overlapped", "bidirectional"})
        gathered = next(row for row in rows if row["op"] == "all-gather")
        scattered = next(row for row in rows if row["op"] == "reduce-scatter")
        self.assertEqual(int(gathered["bytes"]) * int(gathered["devices"]), int(gathered["m"]) * int(gathered["k"]) * 2)
        self.assertEqual(int(scattered["bytes"]), int(scattered["m"]) * int(scattered["n"]) * 2)

    def test_hidden_tells_at_once_from_one_after_the_other(self):
        for at_once, hidden in ((max, 1.0), (sum, 0.0)):
            rows = [row for row in rows_of(self.archive(backend=FakeBackend(at_once=at_once))["probes.csv"]) if row["hidden"]]
            self.assertTrue(any("opposite" in row["probe"] for row in rows) and any("two_axes" in row["probe"] for row in rows))
            self.assertTrue(any("beside" in row["probe"] for row in rows))
            for row in rows:
                self.assertAlmostEqual(float(row["hidden"]), hidden, delta=1e-4, msg=row["probe"])

    def test_source_says_how_it_was_timed(self):
        for trace, words in ((False, "host time"), (True, "device time from the profile")):
            rows = rows_of(self.archive(backend=FakeBackend(trace=trace))["observations.csv"])
            self.assertTrue(all(words in row["source"] for row in rows))

    def test_what_fails_is_named_and_the_rest_is_measured(self):
        files = self.archive(backend=FakeBackend(broken=("all_gather_col_64M_dim0",)))
        failed = json.loads(files["environment.json"])["failed"]
        self.assertEqual(failed, {"all_gather_col_64M_dim0": "RuntimeError: RESOURCE_EXHAUSTED: out of memory"})
        self.assertGreater(len(rows_of(files["observations.csv"])), 100)

    def test_the_budget_stops_it_with_what_it_has(self):
        backend = FakeBackend()
        files = self.archive(["--seconds", "60"], backend)
        self.assertLess(backend.now, 60)
        self.assertGreater(backend.now, 45)
        environment = json.loads(files["environment.json"])
        self.assertGreater(environment["cases_not_measured"], 100)
        self.assertEqual(len(rows_of(files["timings.csv"])), environment["cases_measured"])
        measured = [row["case"] for row in rows_of(files["timings.csv"])]
        self.assertEqual(measured, [case.name for case in kit.all_cases(backend.mesh)][:len(measured)])

    def test_an_interrupt_writes_what_there_is(self):
        backend = FakeBackend()
        compiling = backend.compile

        def interrupted(name, steps, loop):
            if len(backend.compiled) == 20:
                raise KeyboardInterrupt
            return compiling(name, steps, loop)

        backend.compile = interrupted
        files = self.archive(backend=backend)
        self.assertGreater(len(rows_of(files["observations.csv"])), 10)

    def test_list_needs_no_backend(self):
        out = subprocess.run([sys.executable, os.path.join(HERE, "capture_jax.py"), "--list", "--mesh", "x=4,y=2"], check=True, capture_output=True,
                             text=True).stdout
        self.assertIn("permute_x_64M", out)
        self.assertIn("opposite_shifts_x_64M", out)
        self.assertEqual(len(out.splitlines()) - 1, len(kit.all_cases(kit.parse_mesh("x=4,y=2"))))

    def test_bad_arguments_are_named(self):
        for arguments, message in ((["--mesh", "row=3"], "has 3 devices, this machine 16"), (["--mesh", "row4"], "found 'row4'"),
                                   (["--mesh", "x=2,x=8"], "distinct"), (["-o", "/nowhere/at/all.tar.gz"], "there is no such folder"),
                                   (["--max-bytes", "64MB"], "found '64MB'"), (["--second", "5"], "unrecognized"),
                                   (["--seconds", "0"], "above zero")):
            status, said = run_kit(arguments, FakeBackend())
            self.assertEqual(status, 2, arguments)
            self.assertIn(message, said)


class Meshes(unittest.TestCase):
    def test_the_default_is_the_slice(self):
        def pod(kind, coords=None, hosts=1, devices=None, cores=1, name="tpu"):
            return {"platform": name, "kind": kind, "hosts": hosts, "devices": devices or len(coords), "coords": coords, "cores": cores}

        def box(*extents):
            return [list(place) for place in itertools.product(*map(range, extents))]

        for given, mesh, slice_text in ((pod("TPU v5 lite", box(2, 4, 1)), "row=2,col=4", "2x4"),
                                        (pod("TPU v4", box(2, 2, 1)), "row=2,col=2,depth=1", "2x2x1"),
                                        (pod("TPU7x", box(2, 2, 1) * 2, cores=2), "row=2,col=2,depth=1,core=2", "2x2x1"),
                                        (pod("NVIDIA H100 80GB HBM3", devices=16, hosts=2, name="gpu"), "row=2,col=8", "2x8"),
                                        (pod("cpu", devices=6, name="cpu"), "row=2,col=3", "2x3"),
                                        (pod("TPU v5 lite", [[0, 0, 0], [3, 3, 0]]), "row=1,col=2", "1x2")):
            found, text = kit.default_mesh(given)
            self.assertEqual((found.text(), text), (mesh, slice_text))

    def test_machines_are_named_as_podsim_names_them(self):
        for kind, name in (("TPU v5 lite", "tpu_v5e"), ("TPU v5e", "tpu_v5e"), ("TPU v5", "tpu_v5p"), ("TPU v5p", "tpu_v5p"),
                           ("TPU v6 lite", "tpu_v6e"), ("TPU7x", "tpu7x"), ("TPU v4", "tpu_v4"), ("NVIDIA A100-SXM4-40GB", "dgx_a100"),
                           ("NVIDIA H100 80GB HBM3", "dgx_h100"),
                           ("cpu", "MACHINE")):
            self.assertEqual(kit.machine(kind)[0], name)


# ------------------------------------------------------------------------------------------------------------------------- the JAX backend

class Backend(unittest.TestCase):
    """JaxBackend on the interpreter: its calls have the names, arguments and shapes that JAX documents. No more than that."""

    def backend(self, new):
        devices = [types.SimpleNamespace(id=i, platform="tpu", device_kind="TPU v4", coords=(i % 2, i // 2 % 2, 0), core_on_chip=0, process_index=0,
                                         client=types.SimpleNamespace(platform_version="none")) for i in range(4)]
        numpy = types.ModuleType("numpy")
        numpy.array = lambda values, dtype: types.SimpleNamespace(reshape=lambda shape: types.SimpleNamespace(shape=tuple(shape), values=values))
        old = types.ModuleType("jax.experimental.shard_map")
        if not new:
            old.shard_map = testing_jax.old_shard_map
        jaxlib = types.ModuleType("jaxlib")
        jaxlib.__version__ = "0.0"
        modules = {"jax": testing_jax.module(devices, new), "jaxlib": jaxlib, "numpy": numpy,
                   "jax.experimental": types.ModuleType("jax.experimental"), "jax.experimental.shard_map": old}
        patch = mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)
        return kit.JaxBackend()

    def test_compiles_and_runs_with_either_shard_map(self):
        for new in (True, False):
            backend = self.backend(new)
            self.assertEqual(kit.default_mesh(backend.pod())[1], "2x2x1")
            backend.open(kit.Mesh((("row", 2), ("col", 2))))
            self.assertEqual([list(d.coords) for d in backend.devices], [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])
            for case in kit.all_cases(kit.Mesh((("row", 2), ("col", 2)))):
                run, text = backend.compile(case.name, case.steps, 2)
                self.assertEqual(len(run(3)), 3)
                self.assertEqual(text, f"HloModule jit_{case.name}\n")
            self.assertEqual(backend.environment()["device_ids"], [0, 2, 1, 3])

    def test_operands_differ_between_devices_and_lie_within_a_half(self):
        backend = self.backend(True)
        backend.open(kit.Mesh((("row", 4),)))
        blocks = backend.operand((3, 5), "f32").blocks
        self.assertEqual(len({tuple(block) for block in blocks}), 4)
        self.assertTrue(all(-0.5 <= value < 0.5 for block in blocks for value in block))


if __name__ == "__main__":
    if PODSIM is None:
        sys.exit("usage: capture_test.py PODSIM [unittest options]: the built podsim, found none")
    unittest.main()
