"""What READMEs and docstrings show is what Python prints."""

import doctest
import pathlib
import unittest

import podsim

MODULE = pathlib.Path(__file__).resolve().parents[1]
READMES = {MODULE / "README.md": 15, MODULE.parents[1] / "docs" / "python.md": 10}  # with the least number of examples

try:
    import pandas  # noqa: F401
except ImportError:
    pandas = None


class Examples(unittest.TestCase):
    @unittest.skipIf(pandas is None, "python3-pandas is not installed: the READMEs' examples were not tested")
    def test_of_the_readmes(self):
        for readme, least in READMES.items():
            with self.subTest(readme.parent.name):
                found = doctest.testfile(str(readme), module_relative=False)
                self.assertGreater(found.attempted, least)
                self.assertEqual(found.failed, 0)

    def test_of_docstrings(self):
        """Those of the package and of what it exports run; few of them show what they print."""
        for name in ["", *podsim.__all__]:
            documented = getattr(podsim, name) if name else podsim
            for test in doctest.DocTestFinder(recurse=False).find(documented, name or "podsim", globs={"podsim": podsim}):
                for example in test.examples:
                    with self.subTest(name, example=example.source):
                        exec(compile(example.source, name, "exec"), test.globs)


if __name__ == "__main__":
    unittest.main()
