"""podsim.jax and modules in memory, without JAX: stored modules of validation/aot, names of slices, what is said where something is missing."""

import contextlib
import gzip
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy as np

import podsim
import podsim.jax
from podsim.jax.__main__ import main as command
from podsim.jax import _compile, _errors, _mesh, _whatif

MODULES = pathlib.Path(__file__).resolve().parents[3] / "validation" / "aot" / "modules"


def stored(name):
    return MODULES / f"{name}.hlo.gz"


def text_of(name):
    return gzip.decompress(stored(name).read_bytes()).decode()


def mesh_like(name, platform="tpu"):
    """What podsim reads of a jax Mesh, as the JSON beside a stored module has it."""
    told = json.loads((MODULES / f"{name}.json").read_text(encoding="utf-8"))
    devices = [types.SimpleNamespace(id=number, device_kind=told["kind"], platform=platform, coords=tuple(coords), core_on_chip=core, slice_index=of)
               for number, coords, core, of in zip(told["devices"], told["coords"], told["cores"], told["slice_index"])]
    shape = tuple(told["axes"].values())
    array = np.empty(len(devices), dtype=object)
    array[:] = devices
    return types.SimpleNamespace(axis_names=tuple(told["axes"]), shape=told["axes"], devices=array.reshape(shape), size=len(devices))


class CompiledLike:
    """A jax.stages.Compiled as far as podsim looks."""

    def __init__(self, name):
        self._text = text_of(name)

    def as_text(self):
        return self._text

    def memory_analysis(self):
        return types.SimpleNamespace(argument_size_in_bytes=1, peak_memory_in_bytes=7)


class Imports(unittest.TestCase):
    def test_neither_podsim_nor_its_room_imports_jax(self):
        code = "import sys, podsim, podsim.jax; sys.exit('jax' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env=os.environ).returncode, 0)


class ModulesInMemory(unittest.TestCase):
    def test_text_bytes_and_files_with_a_mesh_are_the_stored_module(self):
        name = "permutes_v4"
        expected = podsim.run(hlo=stored(name))
        text = text_of(name)
        for hlo in (text, text.encode(), gzip.compress(text.encode()), CompiledLike(name), stored(name), str(stored(name))):
            with self.subTest(type(hlo)):
                found = podsim.run(hlo=hlo, mesh=mesh_like(name))
                self.assertEqual((found.makespan_s, found.slice, found.mesh, found.link_bytes), (expected.makespan_s, "2x2x4", {"x": 4, "y": 4}, expected.link_bytes))

    def test_the_order_of_the_devices_counts(self):
        mesh = mesh_like("permutes_v5e")
        expected = podsim.run(hlo=text_of("permutes_v5e"), mesh=mesh).link_bytes
        mesh.devices = np.random.default_rng(1).permutation(mesh.devices.ravel()).reshape(mesh.devices.shape)
        self.assertGreater(podsim.run(hlo=text_of("permutes_v5e"), mesh=mesh).link_bytes, expected)

    def test_text_takes_machine_slice_and_axes_as_files_do(self):
        found = podsim.run(hlo=text_of("permutes_v4"), machine="tpu_v4", slice="2x2x4", mesh={"x": 4, "y": 4})
        self.assertEqual(found.devices, 16)

    def test_other_verbs_take_them_and_may_ask_again(self):
        shown = podsim.show_hlo(text_of("permutes_v4"), mesh=mesh_like("permutes_v4"))
        self.assertIn("collective-permute", shown.table())
        self.assertTrue(podsim.check(hlo=text_of("permutes_v4"), mesh=mesh_like("permutes_v4"), structure_only=True).ok)

    def test_what_is_wrong_is_said_shortly(self):
        for hlo, mesh, kind, words in ((3, None, TypeError, "a jax Lowered or Compiled, found 3"), ("gone.hlo", mesh_like("permutes_v4"), podsim.InputError, "No such file"),
                                       (text_of("permutes_v4"), mesh_like("permutes_v4", platform="cpu"), podsim.InputError, "CPU devices: shard the arguments over podsim.jax.mesh"),
                                       (None, mesh_like("permutes_v4"), podsim.InputError, "belongs to hlo")):
            with self.subTest(words), self.assertRaisesRegex(kind, words) as raised:
                podsim.run(hlo=hlo, mesh=mesh)
            self.assertLess(len(str(raised.exception)), 250)


class Steps(unittest.TestCase):
    def test_collectives_sum_to_the_exposed_time(self):
        for name in ("decoder_fsdp_tp_v5p", "decoder_70b_v5p", "decoder_fsdp_tp_h100", "decoder_two_slices_v5e", "decoder_fsdp_tpu7x", "collectives_v5e"):
            with self.subTest(name):
                step = podsim.jax.simulate(stored(name))
                self.assertAlmostEqual(sum(each.exposed_s for each in step.collectives), step.exposed_s, delta=0.01 * step.exposed_s)

    def test_collectives_have_axis_count_bytes_and_line(self):
        longest = podsim.jax.simulate(stored("decoder_fsdp_tp_v5p")).collectives[0]
        self.assertEqual((longest.kind, longest.axes, longest.count, longest.source), ("all-reduce", ("tp",), 8, "programs/decoder.py:46"))
        self.assertEqual(longest.bytes, 8 * 67108864)
        self.assertIn("dot_general", longest.operation)

    def test_those_in_loops_that_are_played_once_count_as_often_as_they_run(self):
        step = podsim.jax.simulate(stored("decoder_70b_v5p"))
        self.assertGreater(step.run.calls["played"], 0)
        self.assertNotIn("call", [each.kind for each in step.collectives])
        self.assertTrue(any(each.count >= 80 and each.exposed_s > 0.1 * step.exposed_s for each in step.collectives), step)

    def test_memory_is_the_compilers_beside_podsims(self):
        memory = podsim.jax.simulate(stored("decoder_fsdp_tp_v5p")).memory
        self.assertAlmostEqual(memory.compiler["peak_memory_in_bytes"] / memory.needed_bytes, 1, delta=0.01)
        gpu = podsim.jax.simulate(stored("decoder_fsdp_tp_h100")).memory
        self.assertAlmostEqual(gpu.needed_bytes / gpu.podsim["hbm_allocated"], 1, delta=0.02)
        self.assertTrue(memory.fits and gpu.fits)
        self.assertEqual(podsim.jax.simulate(CompiledLike("permutes_v4"), mesh=mesh_like("permutes_v4")).memory.compiler["peak_memory_in_bytes"], 7)

    def test_a_kernel_without_a_cost_is_named_and_can_be_told(self):
        step = podsim.jax.simulate(stored("pallas_product_no_cost_v6e"))
        self.assertEqual(step.unknown, {"product": 1})
        self.assertIn("at least", repr(step))
        self.assertIn('custom_calls={"product"', repr(step))
        with self.assertRaisesRegex(AssertionError, "cost of product is not known"):
            step.expect()
        told = podsim.jax.simulate(stored("pallas_product_no_cost_v6e"), custom_calls={"product": "137.4GFLOP,8MiB"})
        self.assertEqual(told.unknown, {})
        self.assertGreater(told.step_s, step.step_s)

    def test_other_machines_and_values(self):
        step = podsim.jax.simulate(stored("product_gather_v5p"))
        faster = step.on({"link.bandwidth": "+100%", "chip.hbm_bandwidth": "+10 %"})
        self.assertLess(faster.step_s, step.step_s)
        self.assertLess(faster.on({"link.bandwidth": "+100%"}).step_s, faster.step_s)  # changes add up
        self.assertGreater(step.on({"chip.peak[bf16]": "100TFLOP/s"}).step_s, step.step_s)
        self.assertEqual(step.on("tpu_v4").run.machine, "tpu_v4")
        for other, kind in ((3, TypeError), (mesh_like("permutes_v4"), podsim.InputError), ({"chip.hbm_bandwith": "+1%"}, podsim.InputError)):
            with self.subTest(other), self.assertRaises(kind):
                step.on(other)

    def test_relative_values_are_of_the_machines_own(self):
        machine = _whatif.with_changes("tpu_v5e", {"link.bandwidth": "-10%", "chip.hbm_bandwidth": "+10%"})
        values = {row["path"]: row["value"] for row in podsim.show_machine(machine)["values"]}
        self.assertEqual((values["link[x].bandwidth"], values["link[y].bandwidth"], values["chip.hbm_bandwidth"]), ("40.5 GB/s", "40.5 GB/s", "891 GB/s"))

    def test_expectations_hold_or_say_what_does_not(self):
        step = podsim.jax.simulate(stored("permutes_v4"))
        self.assertIs(step.expect(step_s=step.step_s, exposed_s=1, memory_bytes=1e12, core_share=0), step)
        for bound in ({"step_s": step.step_s * 0.99}, {"exposed_s": 0}, {"memory_bytes": 1}, {"core_share": 1.1}):
            with self.subTest(bound), self.assertRaisesRegex(AssertionError, "expected at "):
                step.expect(**bound)

    def test_files_are_written_and_notebooks_draw(self):
        step = podsim.jax.simulate(stored("permutes_v4"))
        with tempfile.TemporaryDirectory() as folder:
            for path in (step.trace(f"{folder}/a.json"), step.report(f"{folder}/a.html")):
                self.assertGreater(os.path.getsize(path), 1000)
        self.assertIn("<table>", step._repr_html_())
        self.assertIn("link", step.why())

    def test_no_range_is_claimed_where_nothing_was_measured(self):
        self.assertIsNone(podsim.jax.simulate(stored("permutes_v4")).range_s)
        self.assertIn("no range known (the machine's values are those of data sheets)", repr(podsim.jax.simulate(stored("permutes_v4"), machine="tpu_v4:spec")))

    def test_compare_ranks(self):
        ranking = podsim.jax.compare({"slow": stored("product_gather_v5e"), "fast": podsim.jax.simulate(stored("product_no_window_v5e"))})
        times = [step.step_s for _, step in ranking.items()]
        self.assertEqual(times, sorted(times))
        self.assertEqual(ranking.best.step_s, times[0])
        self.assertIn("vs best", repr(ranking))
        with self.assertRaisesRegex(TypeError, "dict of steps by name"):
            podsim.jax.compare([1])


class Names(unittest.TestCase):
    def test_of_slices_as_people_write_them(self):
        for name, machine, extents in (("v5p-128", "tpu_v5p", (4, 4, 4)), ("v5e-256", "tpu_v5e", (16, 16)), ("v5e:16x16", "tpu_v5e", (16, 16)), ("v4-8", "tpu_v4", (2, 2, 1)),
                                       ("h100:16x8", "dgx_h100", (16, 8)), ("h100:128", "dgx_h100", (16, 8)), ("tpu7x:2x2x4", "tpu7x", (2, 2, 4)), ("v6e-8", "tpu_v6e", (2, 4))):
            with self.subTest(name):
                self.assertEqual(_mesh.slice_of(name), (machine, extents, 1))

    def test_what_is_no_slice_says_why(self):
        for name, words in (("v5p-999", "counts cores"), ("v5q:4x4", "unknown machine"), ("ideal:4x4", "not told of ideal"), ("h100", "slice")):
            with self.subTest(name), self.assertRaisesRegex(podsim.InputError, words):
                podsim.jax.mesh(name, {"x": 16})
        with self.assertRaisesRegex(TypeError, "a slice is a name"):
            podsim.jax.mesh(16, {"x": 16})


class Missing(unittest.TestCase):
    def test_jax(self):
        with mock.patch.dict(sys.modules, {"jax": None}), self.assertRaisesRegex(ImportError, r'pip install "jax\[tpu\]", or pass compiled.as_text\(\)'):
            podsim.jax.simulate(lambda x: x, 1)

    def test_jax_of_the_command(self):
        told = io.StringIO()
        with mock.patch.dict(sys.modules, {"jax": None}), contextlib.redirect_stderr(told):
            self.assertEqual(command(["step.py:train", "--slice", "v5e-256", "--mesh", "data=16,model=16"]), 2)
        self.assertIn('pip install "jax[tpu]"', told.getvalue())

    def test_compilers(self):
        with mock.patch("importlib.util.find_spec", return_value=None):
            for machine, gpu, words in (("tpu_v5e", False, "pip install libtpu"), ("dgx_h100", True, "pip install jax-cuda13-plugin")):
                with self.subTest(machine), self.assertRaisesRegex(ImportError, words + ".*or pass compiled.as_text"):
                    _errors.check_compiler(machine, gpu)

    def test_memory_is_told_plainly(self):
        said = """RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.12G of 15.75G hbm. Exceeded hbm capacity by 4.38G.

Largest program allocations in hbm:

  1. Size: 8.00G
     Operator: op_name="jit(f)/dot_general" source_file="/home/me/layer.py" source_line=12
     Shape: bf16[65536,65536]{1,0:T(8,128)(2,1)}
     Unpadded size: 8.00G
     XLA label: fusion
     ==========================

  2. Size: 4.00G
     Shape: f32[1024]
     ==========================
"""
        error = _errors.compile_error(RuntimeError(said))
        self.assertIsInstance(error, podsim.jax.OutOfMemory)
        self.assertEqual((error.needed, error.limit, [buffer.source for buffer in error.buffers]), ("20.12G", "15.75G", ["/home/me/layer.py:12", ""]))
        self.assertIn("it needs 20.12G of 15.75G", str(error))
        short = _errors.compile_error(RuntimeError("RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (160.00G) exceeds available HBM (15.75G)."))
        self.assertEqual((short.needed, short.limit), ("160.00G", "15.75G"))
        self.assertNotIsInstance(_errors.compile_error(RuntimeError("INVALID_ARGUMENT: No such compile option: 'x'")), podsim.jax.OutOfMemory)


class Keys(unittest.TestCase):
    """Of compiled modules: the lines of the program count, and not the lines that call podsim."""

    LOWERED = """#loc = loc(unknown)
#loc1 = loc("/me/layer.py":{line}:4 to :9)
#loc2 = loc("{own}/_compile.py":80:18 to :44)
#loc3 = loc("/me/script.py":{caller}:0 to :9)
module @jit_f {
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32> loc(#loc8)
} loc(#loc)
#loc4 = loc("layer"(#loc1))
#loc5 = loc("lower"(#loc2))
#loc6 = loc(callsite(#loc5 at #loc3))
#loc7 = loc(callsite(#loc4 at #loc6))
#loc8 = loc("jit(f)/add"(#loc7))
"""

    def lines(self, line, caller):
        text = self.LOWERED.replace("{line}", str(line)).replace("{caller}", str(caller)).replace("{own}", str(pathlib.Path(podsim.jax.__file__).parent))
        return _compile.program_lines(text)

    def test_have_the_programs_lines_alone(self):
        self.assertEqual(self.lines(7, 1), self.lines(7, 99))
        self.assertNotEqual(self.lines(7, 1), self.lines(8, 1))
        self.assertIn("/me/layer.py", self.lines(7, 1)[0])


if __name__ == "__main__":
    unittest.main()
