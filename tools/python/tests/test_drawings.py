"""Drawings are XML that says what the run says."""

import base64
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
import zlib

import numpy as np

import podsim
from podsim._core import axis_colours, role_colours, series_colours
from podsim._drawings import lanes_of, ledger_svg, rows_of, split_parts, split_svg, time_text, timeline_svg
from podsim._topology_drawing import graph_of, topology_svg

ROOT = pathlib.Path(__file__).resolve().parents[3]
PODSIM = os.environ.get("PODSIM_COMMAND", str(pathlib.Path(podsim.__file__).parents[2] / "podsim"))
SVG = "{http://www.w3.org/2000/svg}"
GEMM = dict(gemm=(4096, 4096, 4096))
RUNS = {
    "meshslice": lambda: podsim.run("tpu_v4", slice="4x2", mesh={"row": 4, "col": 2}, algorithm="meshslice", slice_count=4, **GEMM),
    "cannon, which waits": lambda: podsim.run("tpu_v4", slice="4x4", algorithm="cannon", fold="off", **GEMM),
    "all-reduce": lambda: podsim.run("dgx_h100", slice="2x8", collective="all-reduce", bytes="1MiB"),
    "block": lambda: podsim.run("tpu_v5p", slice="4x8x8", mesh={"row": 4, "col": 64}, workload="llama3-70b-block", algorithm="meshslice", slice_count=4),
    "training": lambda: podsim.run("tpu_v5p", slice="4x4x4", mesh={"fsdp": 64}, training="llama3-8b", batch=64),
    "pipeline": lambda: podsim.run("tpu_v4", slice="4x4x4", mesh={"stage": 4, "fsdp": 16}, training="llama3-8b", batch=64, microbatches=4, remat="full"),
}


def parsed(svg):
    return ElementTree.fromstring(svg)


def texts(svg):
    return [element.text or "" for element in parsed(svg).iter(SVG + "text")]


class Instances:
    """A timeline as podsim.Timeline has it, of any size."""

    def __init__(self, start, end, device, task, unit, labels, roles=None):
        self.start_ps, self.end_ps = np.asarray(start, np.int64), np.asarray(end, np.int64)
        self.device, self.task, self.unit = np.asarray(device, np.int32), np.asarray(task, np.int32), np.asarray(unit, np.uint8)
        self.labels, self.alike = labels, np.arange(int(self.device.max()) + 1)
        self.roles = roles or ["matmul", "all-gather", "send"] * (len(labels) // 3) + ["other"] * (len(labels) % 3)
        self.makespan_ps = int(self.end_ps.max())

    def __len__(self):
        return len(self.start_ps)


def random_instances(seed, count, devices, labels, longest):
    random = np.random.default_rng(seed)
    start = random.integers(0, 10**9, count)
    return Instances(start, start + random.integers(0, longest, count), random.integers(0, devices, count), random.integers(0, len(labels), count),
                     random.integers(0, 3, count), labels)


class Split(unittest.TestCase):
    def test_the_parts_sum_to_the_makespan(self):
        for name, run in RUNS.items():
            with self.subTest(name):
                result = run()
                parts = split_parts(result.to_dict())
                self.assertAlmostEqual(sum(part.seconds for part in parts), result.makespan_s, delta=1e-12 * max(1.0, result.makespan_s) + 1e-12)
                self.assertTrue(all(part.seconds > 0 for part in parts))

    def test_the_bar_is_as_wide_as_its_parts_are_long(self):
        run = RUNS["cannon, which waits"]()
        bars = [box for box in parsed(split_svg(run)).iter(SVG + "rect") if box.get("height") == "26"]
        parts = split_parts(run.to_dict())
        self.assertEqual(len(bars), len(parts))
        whole = sum(float(bar.get("width")) for bar in bars)
        for bar, part in zip(bars, parts):
            self.assertAlmostEqual(float(bar.get("width")) / whole, part.seconds / run.makespan_s, places=4)

    def test_the_legend_has_every_part_and_every_axis(self):
        run = RUNS["meshslice"]()
        drawn = "\n".join(texts(split_svg(run)))
        for part in split_parts(run.to_dict()):
            self.assertIn(f"{part.name} {time_text(part.seconds)}", drawn)
        for axis in run.axes:
            self.assertIn(f"exposed {time_text(axis['exposed_s'])}", drawn)


class Ledger(unittest.TestCase):
    def test_the_most_exposed_collectives_stand_first_in_a_notebook(self):
        for name in ("meshslice", "all-reduce", "training"):
            with self.subTest(name):
                run = RUNS[name]()
                drawn, ledger = texts(ledger_svg(run)), run.to_dict()["collectives"]
                rows = [text for text in drawn if text.startswith("exposed ")]
                self.assertEqual(rows, [f"exposed {time_text(row['exposed_s'])} ({row['share']:.1%}), hidden {time_text(row['hidden_s'])}" for row in ledger[: len(rows)]])
                self.assertGreater(len(rows), 0)
                self.assertIn(ledger_svg(run), run._repr_html_())

    def test_a_run_that_sends_nothing_has_none(self):
        self.assertEqual(ledger_svg(podsim.run("tpu_v4", slice="1x1", algorithm="collective", **GEMM)), "")


class TimelineChart(unittest.TestCase):
    def test_every_instance_of_a_drawn_device_is_inside_a_box_of_its_role_and_unit(self):
        timelines = {name: run().timeline() for name, run in RUNS.items()}
        timelines["random"] = random_instances(1, 20000, 3, ["matmul s1", "gather X s1 +0", "odd"], 10**7)
        for name, timeline in timelines.items():
            with self.subTest(name):
                lanes, names = lanes_of(timeline, 758)
                self.assertTrue(lanes)
                roles = np.array(timeline.roles)
                for lane in lanes:
                    own = np.flatnonzero((timeline.device == lane.device) & (timeline.unit == lane.unit))
                    self.assertEqual(sum(box.count for box in lane.boxes), len(own))
                    for role in {box.role for box in lane.boxes}:
                        boxes = [box for box in lane.boxes if box.role == role]
                        starts, ends = np.array([box.start for box in boxes]), np.array([box.end for box in boxes])
                        for i in own[roles[timeline.task[own]] == names[role]]:
                            self.assertTrue(((starts <= timeline.start_ps[i]) & (ends >= timeline.end_ps[i])).any())

    def test_boxes_lie_within_the_axis_and_beside_each_other(self):
        for name, run in RUNS.items():
            with self.subTest(name):
                timeline = run().timeline()
                for lane in lanes_of(timeline, 758)[0]:
                    rows = rows_of(lane.boxes)
                    for row in range(5):  # the sixth takes what finds no place
                        of_row = [box for box, at in zip(lane.boxes, rows) if at == row]
                        self.assertTrue(all(before.end <= after.start for before, after in zip(of_row, of_row[1:])))
                    self.assertTrue(all(0 <= box.start <= box.end <= timeline.makespan_ps for box in lane.boxes))

    def test_hostile_labels_are_text(self):
        labels = ['<script>alert("x")</script> s1', "]]>&amp;'\"", "\x00\x08\ud800 bad", "a" * 10000, ""]
        timeline = Instances([0, 10, 20, 30, 40], [9, 19, 29, 39, 49], [0] * 5, range(5), [0, 1, 2, 0, 1], labels)
        svg = timeline_svg(timeline)
        self.assertFalse([element for element in parsed(svg).iter() if "script" in element.tag])
        self.assertTrue(any("<script>" in (title.text or "") for title in parsed(svg).iter(SVG + "title")))
        self.assertNotIn("<script>", svg)
        self.assertTrue(all(len(text) < 200 for text in texts(svg)))

    def test_ten_million_instances_are_drawn_small(self):
        dense = random_instances(2, 10_000_000, 64, [f"task{n} s{n}" for n in range(50)], 10**5)
        self.assertLess(len(timeline_svg(dense)), 1_500_000)

    def test_long_instances_without_number_are_drawn_small(self):
        overlapping = random_instances(3, 200_000, 2, ["one", "two"], 10**8)
        svg = timeline_svg(overlapping)
        self.assertLess(len(list(parsed(svg).iter(SVG + "rect"))), 5000)

    def test_an_instance_without_duration_is_seen(self):
        svg = timeline_svg(Instances([5, 0], [5, 9], [0, 0], [0, 1], [0, 2], ["sync", "send"]))
        widths = [float(box.get("width")) for box in parsed(svg).iter(SVG + "rect") if (box.findtext(SVG + "title") or "").startswith("sync")]
        self.assertTrue(widths and min(widths) >= 0.5)


class Colours(unittest.TestCase):
    """One table says what colour a role has: in notebooks, on pages, in pictures."""

    def page_of(self, keywords):
        with tempfile.TemporaryDirectory() as folder:
            record, page = pathlib.Path(folder, "run.record"), pathlib.Path(folder, "run.html")
            podsim.run(**keywords, record=str(record))
            subprocess.run([PODSIM, "report", record, "-o", page], check=True, stdout=subprocess.DEVNULL)
            return page.read_text(encoding="utf-8")

    def test_a_page_has_the_table_of_notebooks(self):
        page = self.page_of(dict(machine="tpu_v4", slice="4x2", mesh={"row": 4, "col": 2}, algorithm="meshslice", slice_count=4, **GEMM))
        table = json.loads(re.search(r"^const colours = (.*);$", page, re.MULTILINE)[1])
        self.assertEqual(table, {"roles": role_colours, "axes": axis_colours, "series": series_colours})

    def test_no_page_and_no_drawing_has_colours_of_its_own(self):
        sources = [*ROOT.glob("tools/page/*.js"), *ROOT.glob("tools/page/*.cpp"), *ROOT.glob("tools/python/podsim/*.py"), *(ROOT / "tools/report").glob("*_chart.cpp"),
                   *(ROOT / "tools/report").glob("*_plot.cpp"), ROOT / "tools/report/run_report.cpp", ROOT / "tools/page/style.css"]
        taken = {colour for table in (role_colours.values(), axis_colours, series_colours) for colour in table}
        for source in sources:
            found = set(re.findall(r"#[0-9a-f]{6}\b", source.read_text(encoding="utf-8")))
            self.assertFalse(found & taken, source)

    def test_the_split_and_the_timeline_have_the_colours_of_their_roles(self):
        for name, run in RUNS.items():
            with self.subTest(name):
                result = run()
                axes = {f"{axis}, exposed": axis_colours[n] for n, axis in enumerate((result.to_dict().get("split") or {}).get("exposed_s", {}))}
                for part in split_parts(result.to_dict()):
                    role = part.name.replace(", exposed", "")
                    self.assertEqual(part.colour, axes.get(part.name) or role_colours[role], part.name)
                drawn = parsed(timeline_svg(result.timeline()))
                keys = [element.get("fill") for element in drawn.iter(SVG + "rect") if element.get("width") == "11"]
                named = [text for text in texts(timeline_svg(result.timeline())) if text in role_colours]
                self.assertEqual(keys, [role_colours[role] for role in named])
                boxes = {element.get("fill") for element in drawn.iter(SVG + "rect") if element.find(SVG + "title") is not None}
                self.assertEqual(boxes, set(keys))

    def test_a_pipeline_on_a_page_has_the_colours_of_its_passes(self):
        page = self.page_of(dict(machine="tpu_v4", slice="4x4x4", mesh={"stage": 4, "fsdp": 16}, training="llama3-8b", batch=64, microbatches=4, remat="full"))
        records = re.search(r'<script id="records" type="([^"]*)">(.*?)</script>', page, re.DOTALL)
        text = records[2] if records[1] == "application/json" else zlib.decompress(base64.b64decode(records[2]))
        [record] = json.loads(text)
        picture = parsed(base64.b64decode(record["pipeline"]["picture"].split(",", 1)[1]))
        fills = {element.get("fill") for element in picture.iter(SVG + "rect")}
        self.assertEqual(fills, {role_colours[role] for role in ("forward", "backward", "optimizer")} | {"white"})
        self.assertLessEqual({"forward", "backward"}, set(record["tasks"]["roles"]))


class Topology(unittest.TestCase):
    def test_every_cable_is_drawn_or_counted(self):
        for arguments in (dict(machine="tpu_v4", slice="4x2"), dict(machine="dgx_h100", slice="2x8"),
                          dict(machine="tpu_v5e", slice="8x8", fail="3.3-3.4"), dict(machine="tpu_v4", slice="4x4x4"),
                          dict(machine="tpu_v4", slice="4x4", topology="fat-tree:4:2"), dict(machine="tpu_v4", slice="4x4x8", topology="twisted")):
            with self.subTest(str(arguments)):
                result = podsim.show_topology(**arguments)
                root = parsed(result.svg())
                lines = [*root.iter(SVG + "line"), *root.iter(SVG + "path")]
                drawn = [line for line in lines if (line.findtext(SVG + "title") or "").endswith("each way")]
                hidden = sum(int(count) for text in texts(result.svg()) for count in re.findall(r"not drawn: (\d+) cable", text))
                self.assertEqual(2 * (len(drawn) + hidden), result.links)
                self.assertEqual(len(list(root.iter(SVG + "circle"))), result.chips)

    def test_a_broken_cable_is_named(self):
        self.assertIn("no cable: (3,3) to (3,4)", texts(podsim.show_topology("tpu_v5e", slice="8x8", fail="3.3-3.4").svg()))
        self.assertFalse([text for text in texts(podsim.show_topology("tpu_v5e", slice="8x8").svg()) if "no cable" in text])

    def test_a_slow_cable_has_its_rate(self):
        self.assertIn("22.5 GB/s each way: 1 cable", texts(podsim.show_topology("tpu_v5e", slice="8x8", degrade="3.3-3.4=0.5").svg()))

    def test_a_mesh_names_its_devices(self):
        svg = podsim.show_mesh("tpu_v4", slice="4x4", mesh={"row": 2, "col": 8}).svg()
        self.assertEqual([text for text in texts(svg) if text.isdigit()], [str(device) for device in range(16)])

    def test_what_is_too_large_shows_its_table_alone(self):
        result = podsim.show_topology("tpu_v4", slice="16x16x16")
        self.assertIsNone(result._repr_svg_())
        self.assertIn("<pre ", result._repr_html_())
        self.assertIsNone(podsim.show_topology("tpu_v4", slice="4x4x1", devices=True)._repr_svg_())

    def test_names_are_escaped(self):
        svg = topology_svg('graph topology {\n  n0 [label="<b>" shape=box];\n  n1 [label="&" shape=circle];\n  n0 -- n1 [label="<1 GB/s"];\n}\n', "<title>")
        self.assertIn("<b>", texts(svg))
        self.assertEqual(graph_of("nothing").labels, [])


class Notebook(unittest.TestCase):
    def test_letters_are_large_enough_on_a_card_of_their_own(self):
        run = RUNS["meshslice"]()
        for svg in (split_svg(run), timeline_svg(run.timeline()), podsim.show_topology("tpu_v4", slice="4x2").svg()):
            root = parsed(svg)
            self.assertGreaterEqual(float(root.get("font-size")), 11)
            self.assertFalse([text for text in root.iter(SVG + "text") if text.get("font-size")])
            self.assertEqual(next(root.iter(SVG + "rect")).get("fill"), "#ffffff")

    def test_a_run_shows_its_drawings_and_its_table(self):
        html = RUNS["meshslice"]()._repr_html_()
        self.assertEqual(html.count("<svg"), 3)
        self.assertIn("<pre ", html)

    def test_a_pickled_run_shows_its_table(self):
        import pickle

        self.assertNotIn("<svg", pickle.loads(pickle.dumps(RUNS["meshslice"]()))._repr_html_())

    def test_a_pickled_topology_is_drawn_again(self):
        import pickle

        for result in (podsim.show_topology("tpu_v4", slice="4x2"), podsim.show_sharding(array=(16, 16), mesh={"x": 4, "y": 2}, spec="x,y")):
            self.assertEqual(pickle.loads(pickle.dumps(result)).svg(), result.svg())

    def test_a_timeline_is_html_too_as_nbconvert_strips_svg(self):
        html = RUNS["meshslice"]().timeline()._repr_html_()
        self.assertIn("<rect", html)

    def test_equal_runs_have_equal_drawings(self):
        first, second = RUNS["cannon, which waits"](), RUNS["cannon, which waits"]()
        self.assertEqual(timeline_svg(first.timeline()), timeline_svg(second.timeline()))
        self.assertEqual(split_svg(first), split_svg(second))


if __name__ == "__main__":
    unittest.main()
