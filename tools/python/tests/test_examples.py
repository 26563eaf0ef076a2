"""The algorithms written in Python compute what they claim, and are those of C++.

Equal task for task, edges too: collective, summa, meshslice.
Equal but for edges: cannon, wang. C++ waits for whole tasks where a half decides: for all placements of a skew, not only for that of the slot that is moved, and for
both halves of the pass before. What the edges of Python leave out, no conflict needs; the times are the same.
Fewer tasks: 1d-fsdp. C++ runs `collective` on P x 1 devices, where it gathers X from one device, which takes no time.
"""

import os
import re
import sys
import unittest

import podsim

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples"))

from cannon import cannon  # noqa: E402
from collective import collective  # noqa: E402
from fsdp import fsdp  # noqa: E402
from meshslice import meshslice  # noqa: E402
from ring_all_gather import ring_all_gather  # noqa: E402
from summa import summa  # noqa: E402
from wang import wang  # noqa: E402

MACHINE = "tpu_v4"
SLICES = {(2, 2): "2x2x1", (4, 4): "4x4x1", (4, 2): "2x4x1", (2, 4): "2x4x1", (8, 4): "4x8x1", (8, 8): "8x8x1", (4, 8): "4x8x1", (1, 4): "2x2x1", (4, 1): "2x2x1"}


def of_cpp(algorithm, shape, gemm, **options):
    R, C = shape
    return podsim.schedule(MACHINE, slice=SLICES[shape], mesh={"row": R, "col": C}, gemm=gemm, algorithm=algorithm, **options)


def without_edges(schedule):
    return re.sub(r" after .*?(?= where |$)", "", str(schedule), flags=re.MULTILINE)


class Examples(unittest.TestCase):
    def assert_as_fast(self, mine, theirs, shape):
        """To the picosecond."""
        times = [podsim.run(schedule, machine=MACHINE, slice=SLICES[shape]).makespan_s for schedule in (mine, theirs)]
        self.assertEqual(*times)
        self.assertGreater(times[0], 0)

    def assert_right(self, schedule):
        report = podsim.check(schedule)
        self.assertTrue(report, str(report))

    def compared(self, example, algorithm, shape, gemm, equal, arguments=(), prove=True, **options):
        with self.subTest(algorithm=algorithm, shape=shape, gemm=gemm, **options):
            theirs = of_cpp(algorithm, shape, gemm, **options)
            mine = example(theirs, *gemm, *arguments)
            if equal:
                self.assertEqual(str(mine), str(theirs))
                self.assertEqual(mine, theirs)
            else:
                self.assertEqual(without_edges(mine), without_edges(theirs))
                self.assertNotEqual(mine, theirs)
            self.assert_as_fast(mine, theirs, shape)
            if prove:
                self.assert_right(mine)

    def test_collective_is_that_of_cpp(self):
        for shape in SLICES:
            self.compared(collective, "collective", shape, (64, 128, 256), equal=True)

    def test_summa_is_that_of_cpp(self):
        for shape in SLICES:
            self.compared(summa, "summa", shape, (64, 128, 256), equal=True)
        for panels in (4, 8, 16):
            self.compared(summa, "summa", (4, 2), (64, 128, 256), True, (panels,), slice_count=panels)

    def test_meshslice_is_that_of_cpp(self):
        for shape in ((2, 2), (4, 2), (4, 4), (2, 4)):
            for slices in (2, 4, 8):
                self.compared(meshslice, "meshslice", shape, (64, 128, 256), True, (slices,), slice_count=slices)

    def test_cannon_has_the_tasks_of_cpp_and_takes_as_long(self):
        for shape in ((2, 2), (4, 4), (8, 8)):
            self.compared(cannon, "cannon", shape, (64, 128, 256), equal=False)
            self.compared(cannon, "cannon", shape, (8192, 8192, 8192), equal=False, prove=False)

    def test_wang_has_the_tasks_of_cpp_and_takes_as_long(self):
        for shape in ((2, 2), (4, 4), (4, 8), (8, 8)):
            self.compared(wang, "wang", shape, (256, 64, 128), equal=False)
            self.compared(wang, "wang", shape, (8192, 1024, 8192), equal=False, prove=False)

    def test_fsdp_takes_as_long_as_that_of_cpp(self):
        for gemm in ((64, 128, 256), (8192, 1024, 8192)):
            theirs = podsim.schedule(MACHINE, slice="4x4x1", mesh={"row": 16}, gemm=gemm, algorithm="1d-fsdp")
            mine = fsdp(theirs, *gemm)
            self.assert_as_fast(mine, theirs, (4, 4))
            self.assert_right(fsdp({"row": 4}, 64, 64, 64))

    def test_ring_all_gather_has_the_tasks_of_the_file_written_by_hand(self):
        file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "algorithms", "examples", "ring_all_gather.textproto")
        by_hand, mine = podsim.Schedule(file), ring_all_gather(4, 16)
        self.assertEqual(without_edges(mine), without_edges(by_hand))
        self.assertEqual(*(podsim.run(schedule, machine="ideal").makespan_s for schedule in (mine, by_hand)))
        self.assert_right(mine)

    def test_examples_are_short(self):
        folder = os.path.dirname(sys.modules["cannon"].__file__)
        lines = {}
        for name in ("ring_all_gather", "collective"):
            with open(os.path.join(folder, name + ".py"), encoding="utf-8") as file:
                body = file.read().split('"""\n')[2].split("\n\n\nif ")[0]
            lines[name] = len([line for line in body.splitlines() if line.strip()])
        self.assertEqual(lines, {"ring_all_gather": 9, "collective": 10})


if __name__ == "__main__":
    unittest.main()
