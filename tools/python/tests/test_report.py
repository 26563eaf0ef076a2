"""Pages of records: `podsim.report`."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import podsim

PODSIM = os.environ.get("PODSIM_COMMAND", str(pathlib.Path(podsim.__file__).parents[2] / "podsim"))
RUN = {"machine": "tpu_v4", "slice": (2, 2), "gemm": (1024, 1024, 1024), "algorithm": "collective"}


class Reports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_page_is_that_of_the_command(self):
        record, page, other = (self.folder / name for name in ("a.record", "a.html", "b.html"))
        podsim.run(**RUN, record=record)
        self.assertEqual(podsim.report(record, page), str(page))
        subprocess.run([PODSIM, "report", str(record), "-o", str(other)], check=True)
        self.assertEqual(page.read_bytes(), other.read_bytes())

    def test_a_record_is_that_of_the_command(self):
        ours, theirs = self.folder / "ours.record", self.folder / "theirs.record"
        podsim.run(**RUN, record=ours)
        subprocess.run([PODSIM, *"run --machine tpu_v4 --slice 2x2 --gemm m=1024,n=1024,k=1024 --algorithm collective --quiet --record".split(), str(theirs)],
                       stdout=subprocess.DEVNULL, check=True)
        self.assertEqual(ours.read_bytes(), theirs.read_bytes())

    def test_several_kinds_make_one_page(self):
        files = [self.folder / f"{name}.record" for name in ("run", "compare", "tune", "validate")]
        podsim.run(**RUN, record=files[0])
        podsim.compare(**{**RUN, "algorithm": ["collective", "wang"]}, record=files[1])
        podsim.tune(machine="tpu_v4", slice=(2, 2), gemm=(1024, 1024, 1024), record=files[2])
        podsim.validate("tpu_v5p_ppermute", record=files[3])
        page = self.folder / "all.html"
        podsim.report(files, page)
        self.assertEqual(re.findall(r'"kind":"(\w+)","file"', page.read_text(encoding="utf-8")), ["run", "comparison", "tuning", "validation"])

    def test_what_is_no_record_is_an_error_with_its_place(self):
        page = self.folder / "a.html"
        (self.folder / "a.json").write_text('{"a": 1}')
        with self.assertRaisesRegex(podsim.InputError, r"a\.json.*expected the JSON of"):
            podsim.report(self.folder / "a.json", page)
        self.assertFalse(page.exists())
        with self.assertRaisesRegex(podsim.InputError, "expected -o FILE.html|output"):
            podsim.report(self.folder / "a.json")
        with self.assertRaisesRegex(TypeError, "given twice"):
            podsim.report("a", "b", output="c")


if __name__ == "__main__":
    unittest.main()
