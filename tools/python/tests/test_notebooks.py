"""The notebooks of tools/python/examples run, and are stored without what a run gives."""

import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import unittest

import podsim

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
MISSING = [name for name in ("nbclient", "nbformat", "ipykernel", "pandas", "jinja2") if importlib.util.find_spec(name) is None]  # jinja2: of styled tables


class Stored(unittest.TestCase):
    def test_there_are_five(self):
        self.assertEqual([notebook.stem for notebook in NOTEBOOKS],
                         ["broken_cable", "calibrate_to_nccl_tests", "gemm_on_a_4x2_mesh", "mesh_for_llama3_70b", "my_own_algorithm"])

    def test_no_output_is_stored(self):
        for notebook in NOTEBOOKS:
            with self.subTest(notebook.name):
                for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
                    if cell["cell_type"] == "code":
                        self.assertEqual(cell["outputs"], [])
                        self.assertIsNone(cell["execution_count"])

    def test_each_makes_claims(self):
        for notebook in NOTEBOOKS:
            with self.subTest(notebook.name):
                cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
                self.assertTrue(any("assert " in "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))

    def test_the_readme_has_a_row_for_each_file(self):
        readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
        for example in [*NOTEBOOKS, *EXAMPLES.glob("*.py")]:
            self.assertIn(f"| `{example.name}` |", readme)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Executed(unittest.TestCase):
    """By a kernel of this Python and this podsim, whatever kernels the host has."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        kernel = pathlib.Path(cls.folder.name, "kernels", "python3")
        kernel.mkdir(parents=True)
        package = pathlib.Path(podsim.__file__).parent.parent
        (kernel / "kernel.json").write_text(json.dumps({
            "argv": [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "podsim's Python", "language": "python",
            "env": {"PYTHONPATH": str(package), "PYDEVD_DISABLE_FILE_VALIDATION": "1", "IPYTHONDIR": cls.folder.name}}), encoding="utf-8")
        cls.before = os.environ.get("JUPYTER_PATH")
        os.environ["JUPYTER_PATH"] = cls.folder.name

    @classmethod
    def tearDownClass(cls):
        if cls.before is None:
            del os.environ["JUPYTER_PATH"]
        else:
            os.environ["JUPYTER_PATH"] = cls.before
        cls.folder.cleanup()

    def execute(self, name):
        import nbclient
        import nbformat

        notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
        client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(EXAMPLES)}})
        client.execute()  # raises CellExecutionError, with the cell and its traceback
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                self.assertFalse(output.get("name") == "stderr", f"a warning: {output.get('text')}")
        return "".join(output["data"].get("text/html", "") for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output)

    def test_gemm_on_a_4x2_mesh(self):
        self.assertGreaterEqual(self.execute("gemm_on_a_4x2_mesh").count("<svg"), 5)

    def test_mesh_for_llama3_70b(self):
        self.assertGreaterEqual(self.execute("mesh_for_llama3_70b").count("<svg"), 3)

    def test_calibrate_to_nccl_tests(self):
        self.assertIn("link[y].bandwidth", self.execute("calibrate_to_nccl_tests"))

    def test_broken_cable(self):
        self.assertIn("no cable: (3,3) to (3,4)", self.execute("broken_cable"))

    def test_my_own_algorithm(self):
        self.assertGreaterEqual(self.execute("my_own_algorithm").count("<svg"), 4)


if __name__ == "__main__":
    unittest.main()
