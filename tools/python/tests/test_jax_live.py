"""podsim.jax with JAX and its compilers of TPUs and GPUs, of which neither is here: PODSIM_JAX names a Python that has them (tests/jax_env.sh makes one)."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77


def begin():
    """Goes on in the Python that has JAX; ends with 77 where there is none, or where podsim is built for another version."""
    python = os.environ.get("PODSIM_JAX")
    if not python:
        sys.stderr.write("skipped: PODSIM_JAX names no Python with JAX\n")
        sys.exit(SKIPPED)
    if os.path.realpath(sys.prefix) != os.path.realpath(pathlib.Path(python).parents[1]):
        able = subprocess.run([python, "-c", "import jax, libtpu, podsim"], capture_output=True, text=True)
        if able.returncode != 0:
            sys.stderr.write(f"skipped: {able.stderr.strip().splitlines()[-1]}\n")
            sys.exit(SKIPPED)
        os.execv(python, [python, *sys.argv])


if __name__ == "__main__":
    begin()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import podsim  # noqa: E402
import podsim.jax  # noqa: E402


def argument(mesh, shape, *spec, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def layer(w, x):
    hidden = jax.lax.with_sharding_constraint(x @ w["up"], P("data", "model"))
    return jax.nn.gelu(hidden) @ w["down"]  # the line of the all-reduce


LINE = next(number for number, line in enumerate(pathlib.Path(__file__).read_text(encoding="utf-8").splitlines(), 1) if "the line of the all-reduce" in line)


def arguments(mesh):
    return {"up": argument(mesh, (1024, 4096), None, "model"), "down": argument(mesh, (4096, 1024), "model", None)}, argument(mesh, (4096, 1024), "data", None)


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cache = tempfile.TemporaryDirectory()
        cls.enterClassContext(cls.cache)
        os.environ["PODSIM_CACHE"] = cls.cache.name


class Meshes(Live):
    def test_are_in_the_order_of_jax(self):
        for name, axes in (("v5e:4x4", {"a": 8, "b": 2}), ("v5p-32", {"a": 2, "b": 8}), ("v4:2x2x4", {"a": 4, "b": 2, "c": 2}), ("v6e-16", {"a": 16}), ("tpu7x:2x2x1", {"a": 8})):
            with self.subTest(name):
                mesh = podsim.jax.mesh(name, axes)
                told = podsim.show_mesh(name, mesh=axes, mesh_order="jax", allow_split_axes=True)
                self.assertEqual([device.id for device in mesh.devices.flat], told.device_ids_row_major)
                self.assertEqual(dict(mesh.shape), axes)

    def test_of_gpus_and_several_slices(self):
        mesh = podsim.jax.mesh("h100:2x8", {"data": 2, "model": 8})
        self.assertEqual({device.device_kind for device in mesh.devices.flat}, {"NVIDIA H100 80GB HBM3"})
        self.assertEqual(podsim.jax.mesh("b200:8", {"x": 8}).size, 8)
        pods = podsim.jax.mesh("v5e:2x2", {"pod": 2, "x": 4}, pods=2)
        self.assertEqual([len({device.slice_index for device in row}) for row in pods.devices], [1, 1])

    def test_all_of_a_slice(self):
        shapes = [tuple(mesh.shape.values()) for mesh in podsim.jax.meshes("v5e:2x4", ("data", "model"))]
        self.assertEqual(shapes, [(1, 8), (2, 4), (4, 2), (8, 1)])

    def test_what_does_not_fit_says_why(self):
        for name, axes, words in (("v5e:2x4", {"x": 9}, "has 8 devices, the axes ask for 9"), ("v5e:3x3", {"x": 9}, "no slice tpu_v5e:3x3.*expected one such as 2x4"),):
            with self.subTest(name), self.assertRaisesRegex(podsim.InputError, words):
                podsim.jax.mesh(name, axes)
        with self.assertRaisesRegex(TypeError, "sizes of its axes"):
            podsim.jax.mesh("v5e:2x2", {"x": "4"})


class Steps(Live):
    def setUp(self):
        self.mesh = podsim.jax.mesh("v5e:2x4", {"data": 2, "model": 4})

    def test_a_function_is_compiled_and_simulated_with_its_lines(self):
        step = podsim.jax.simulate(layer, *arguments(self.mesh))
        self.assertEqual((step.run.machine, step.run.slice, step.run.mesh), ("tpu_v5e", "2x4", {"data": 2, "model": 4}))
        longest = step.collectives[0]
        self.assertEqual((longest.kind, longest.axes, longest.count, longest.bytes), ("all-reduce", ("model",), 1, 2048 * 1024 * 2))
        self.assertTrue(longest.source.endswith(f"test_jax_live.py:{LINE}"), longest)
        self.assertGreater(step.memory.compiler["argument_size_in_bytes"], 0)
        self.assertFalse(step.module.cached)
        again = podsim.jax.simulate(jax.jit(layer), *arguments(self.mesh))
        self.assertTrue(again.module.cached)
        self.assertEqual(again.step_s, step.step_s)
        other = podsim.jax.simulate(layer, *arguments(self.mesh), compiler_options={"xla_tpu_scoped_vmem_limit_kib": "20000"}, cache=False)
        self.assertFalse(other.module.cached)

    def test_lowered_compiled_and_text_are_the_same(self):
        lowered = jax.jit(lambda x: (x @ x.T).sum()).lower(argument(self.mesh, (1024, 1024), "data", "model"))
        compiled = lowered.compile()
        times = {podsim.run(hlo=lowered).makespan_s, podsim.run(hlo=compiled).makespan_s, podsim.run(hlo=compiled.as_text(), mesh=self.mesh).makespan_s,
                 podsim.jax.simulate(lowered).step_s, podsim.jax.simulate(compiled).step_s}
        self.assertEqual(len(times), 1)
        self.assertIn("all-reduce", podsim.show_hlo(compiled).table())

    def test_search_ranks_and_says_what_is_not_compiled(self):
        lines = []
        meshes = {"a": self.mesh, "b": podsim.jax.mesh("v5e:2x4", {"data": 8, "model": 1}), "no axis": podsim.jax.mesh("v5e:2x4", {"x": 8})}
        ranking = podsim.jax.search(layer, arguments(self.mesh), meshes, progress=lines.append)
        self.assertEqual(list(ranking), ["b", "a"])
        self.assertIn("does not have; it has 'x'", str(ranking.failed["no axis"]))
        self.assertEqual(len(lines), 3)
        self.assertIn("no axis: arguments: argument 0", repr(ranking))
        made = podsim.jax.search(lambda mesh: (layer, arguments(mesh)), None, [meshes["b"]], progress=None)
        self.assertEqual(made.best.step_s, ranking.best.step_s)
        self.assertEqual(ranking["a"].on(meshes["b"]).step_s, ranking.best.step_s)

    def test_the_same_layer_on_gpus(self):
        step = podsim.jax.simulate(layer, *arguments(self.mesh), mesh=podsim.jax.mesh("h100:2x8", {"data": 2, "model": 8}))
        self.assertEqual((step.run.machine, step.run.slice), ("dgx_h100", "2x8"))
        self.assertEqual(step.collectives[0].kind, "all-reduce")

    def test_the_order_of_gpus_counts(self):
        mesh = podsim.jax.mesh("h100:2x8", {"data": 8, "model": 2})
        near = podsim.jax.simulate(layer, *arguments(self.mesh), mesh=mesh)
        apart = jax.sharding.Mesh(np.array(mesh.devices).reshape(2, 8).T, ("data", "model"))
        self.assertGreater(podsim.jax.simulate(layer, *arguments(self.mesh), mesh=apart).exposed_s, 2 * near.exposed_s)

    def test_what_is_missing_is_said(self):
        whole = jnp.zeros((16, 16))
        for call, kind, words in (
            (lambda: podsim.jax.simulate(lambda x: x @ x, whole, mesh=self.mesh), podsim.InputError, "none of the arrays says where it lies on the mesh of 8 devices"),
            (lambda: podsim.jax.simulate(lambda x: x @ x, whole), podsim.InputError, "compiled for CPUs"),
            (lambda: podsim.run(hlo=jax.jit(lambda x: x @ x).lower(whole).compile()), podsim.InputError, "compiled for CPUs"),
            (lambda: podsim.jax.simulate(lambda x: x @ x.T, argument(self.mesh, (2 << 17, 1 << 17), "data", "model")), podsim.jax.OutOfMemory, "needs .*G of 15.75G"),
            (lambda: podsim.jax.simulate(layer, *arguments(self.mesh), compiler_options={"xla_nonsense": "1"}), podsim.jax.CompileError, "No such compile option"),
            (lambda: podsim.jax.simulate(layer, *arguments(self.mesh), mesh={"data": 2}), TypeError, "mesh takes a jax Mesh"),
            (lambda: podsim.jax.simulate(jax.jit(layer), *arguments(self.mesh), donate_argnums=1), TypeError, "jitted already"),
        ):
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                call()


class Page(Live):
    def test_its_script_runs_on_a_smaller_slice(self):
        page = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "jax.md").read_text(encoding="utf-8")
        script = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
        self.assertLess(len(script.splitlines()), 25)
        names = {}
        smaller = script.replace("16x16", "2x4").replace('"data": 16, "model": 16', '"data": 2, "model": 4').replace("(64, 2048", "(2, 128")
        exec(compile(smaller, "layer.py", "exec"), names)
        self.assertEqual({each.axes for each in names["found"].collectives if each.kind == "all-reduce"}, {("data",), ("model",)})


class Command(Live):
    def test_a_file_and_a_mesh(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "step.py").write_text("from test_jax_live import layer, arguments\ntrain = lambda mesh: (layer, arguments(mesh))\n", encoding="utf-8")
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
            def told(*words):
                return subprocess.run([sys.executable, "-m", "podsim.jax", *words], env=environment, capture_output=True, text=True)
            step = told(f"{folder}/step.py:train", "--slice", "v5e:2x4", "--mesh", "data=2,model=4", "--mesh", "data=8,model=1", "--report", f"{folder}/a.html")
            self.assertEqual(step.returncode, 0, step.stderr)
            self.assertRegex(step.stdout, r"data=8,model=1 .*\+0\.0%")
            self.assertTrue(pathlib.Path(folder, "a.html").exists())
            for words, said in ((["x.py:f", "--slice", "v5e-8", "--mesh", "x=8"], "expected FILE.py:FUNCTION"), ([f"{folder}/step.py:no", "--slice", "v5e-8", "--mesh", "x=8"], "no function no"),
                                ([f"{folder}/step.py:train", "--slice", "v5e-8", "--mesh", "x=9"], "8 devices")):
                with self.subTest(said):
                    wrong = told(*words)
                    self.assertEqual((wrong.returncode, said in wrong.stderr), (2, True), wrong.stderr)


if __name__ == "__main__":
    unittest.main()
