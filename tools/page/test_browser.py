#!/usr/bin/env python3
"""Pages in a browser: they say nothing on its console, ask for nothing, and show what their data holds. Without Chromium, its driver or Selenium (Debian
packages chromium, chromium-driver, python3-selenium) the test is skipped (77) and says so.

usage: test_browser.py PODSIM [FOLDER FOR SCREENSHOTS]
"""

import base64
import json
import math
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None

SKIPPED = 77  # CTest's SKIP_RETURN_CODE
ARGUMENTS = sys.argv[1:]
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ["collectives", "split", "sensitivities", "timeline", "memory", "operations", "axes", "network", "links", "path", "devices", "machine"]
SWEEP = """format_version: 1
sweep { machine: "tpu_v4" slice: ["2x2", "2x4"] gemm: "m=4096,n=4096,k=4096" algorithm: ["collective", "wang", "meshslice"] slice_count: [1, 2] }
"""
# Points of which the last needs more memory than a chip has.
LARGE_SWEEP = """format_version: 1
sweep { machine: "tpu_v4" slice: "2x2" gemm: ["m=4096,n=4096,k=4096", "m=8192,n=8192,k=8192", "m=131072,n=131072,k=131072"] algorithm: ["collective", "wang"] }
"""
# What validation/diff/example.trace.json measured.
LAYER = "run --machine tpu_v4:spec --slice 4x4x4 --mesh row=16,col=4 --gemm m=131072,n=49152,k=12288 --algorithm meshslice --slice-count 4"
# A page of each kind but the run: what is recorded, and its sections.
OTHERS = {
    "compare": ("compare --machine tpu_v4 --slice 4x4 --gemm m=8192,n=8192,k=8192 --algorithms collective,meshslice,wang --slice-count 2,4", ["variants", "verdicts", "time_and_memory"]),
    "tune": ("tune --machine tpu_v4 --slice 2x4 --gemm m=8192,n=4096,k=4096 --pareto 4 --top 3", ["plans", "jax", "pareto", "layers", "alternatives", "search"]),
    "training": ("tune --machine tpu_v5p --chips 4 --training llama3-8b --batch 4 --remat full --top 3 --pad", ["plans", "jax", "pareto", "split", "search"]),
    "validate": ("validate tpu_v5p_ppermute", ["cases", "dataset_0"]),
    "hlo": (f"compare --machine ideal --slice 4 --hlo {ROOT}/workloads/differences/testdata/ring.hlo --algorithms tp-ag-overlapped,jax-rs-overlapped --set chip.hbm_bandwidth=1TB/s",
            ["schedules", "differences_0", "differences_1"]),
    "explain": (f"validate --observations {ROOT}/validation/datasets/msccl_h100/observations.csv --machine dgx_h100 --slice 1x8 --explain", ["measured", "rows"]),
    "sweep": ("sweep small.textproto --store small.sqlite", ["importance", "best", "points", "all"]),
    "diff": (f"diff --measured {ROOT}/validation/diff/example.trace.json layer.json", ["categories", "collectives", "operations", "unmatched"]),
    "calibrate": (f"calibrate {ROOT}/validation/datasets/tpu_v5p_ppermute/observations.csv --base tpu_v5p --slice 2x2 --mesh row=4", ["residuals", "values", "undetermined"]),
    "check": ("check --slice 4 --collective all-reduce --bytes 16 --dtype f32 --edges", ["edges"]),
}
# Networks that are no grid of two dimensions: how many chips, switches and drawings.
NETWORKS = {
    "planes": ("run --machine tpu_v4 --slice 4x4x4 --mesh row=16,col=4 --gemm m=4096,n=4096,k=4096 --algorithm collective", 64, 0, 1),
    "twisted": ("run --machine tpu_v4 --slice 4x4x8 --topology twisted --mesh row=16,col=8 --gemm m=8192,n=4096,k=4096 --algorithm collective", 128, 0, 1),
    "switches": ("run --machine dgx_h100 --slice 2x8 --mesh row=2,col=8 --collective all-gather --axis row,col --bytes 1MiB", 16, None, 1),
    "pods": ("run --machine tpu_v5e --slice 4x4 --pods 2 --mesh slice=2,row=4,col=4 --collective all-reduce --axis slice,row,col --bytes 1MiB", 32, None, 2),
    "strips": ("run --machine dgx_h100 --slice 24x8 --mesh row=24,col=8 --collective all-gather --axis row,col --bytes 1MiB", 192, None, 1),
}
# Three runs of which two inputs are not in their results; a comparison whose variants differ in what is no algorithm, of which some do not fit in memory.
RUNS = {
    "slow": "run --machine tpu_v4 --slice 4x4 --collective all-reduce --bytes 1MiB --algorithm ring",
    "fast": "run --machine tpu_v4 --slice 4x4 --collective all-reduce --bytes 1MiB --algorithm ring --set link.bandwidth=90GB/s",
    "broken": "run --machine tpu_v4 --slice 4x4 --collective all-reduce --bytes 1MiB --algorithm ring --fail 0.0-0.1",
}
STEPS = ("--machine tpu_v4 --slice 4x4 --mesh stage=4,fsdp=4 --training llama3-8b --batch 32 --pad", " --microbatches 4,8 --pipeline gpipe,1f1b --remat none;full")
# The contrast of every text with what is behind it, by WCAG's formula; those below 4.5.
CONTRAST = """
const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number), luminance = ([r, g, b]) => [[r, 0.2126], [g, 0.7152], [b, 0.0722]].map(([value, weight]) =>
  weight * (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4)).reduce((a, b) => a + b);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = numbers(getComputedStyle(at).backgroundColor);
    if (colour.length < 4 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const bad = new Set(), seen = new Set(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || ["SCRIPT", "NOSCRIPT", "STYLE", "TITLE"].includes(element.tagName.toUpperCase())) continue;
  const style = getComputedStyle(element), colour = numbers(element.namespaceURI.endsWith("svg") ? style.fill : style.color), paper = behind(element);
  seen.add(String(colour));
  const [light, dark] = [luminance(colour), luminance(paper)].sort((a, b) => b - a);
  if ((light + 0.05) / (dark + 0.05) < 4.5) bad.add(`${element.tagName} "${texts.currentNode.data.slice(0, 30)}": ${colour} on ${paper}`);
}
return {bad: [...bad], colours: seen.size};
"""
# As printed: charts that are cut off at the side, or that a page end may go through.
CUT = """
const bad = [], right = document.documentElement.clientWidth;
for (const svg of document.querySelectorAll("svg")) {
  const area = svg.getBoundingClientRect();
  if (area.width === 0) continue;
  if (area.right > right + 1 || area.left < -1) bad.push(`${svg.getAttribute("aria-label")}: ${area.left} to ${area.right} of ${right}`);
  if (area.height > arguments[0]) bad.push(`${svg.getAttribute("aria-label")} is ${area.height} high`);
  const [, , width, height] = (svg.getAttribute("viewBox") ?? "0 0 0 0").split(" ").map(Number);
  for (const text of svg.getAttribute("role") === "application" ? svg.querySelectorAll("text") : []) {
    const box = text.getBBox(), turned = text.hasAttribute("transform");
    if (!turned && (box.x < -1 || box.x + box.width > width + 1 || box.y < -4 || box.y + box.height > height + 4)) bad.push(`${svg.getAttribute("aria-label")} cuts "${text.textContent}"`);
  }
  if (getComputedStyle(svg).breakInside !== "avoid") bad.push(`${svg.getAttribute("aria-label")} may be broken`);
}
for (const part of document.querySelectorAll(".wide")) if (getComputedStyle(part).overflowX !== "visible") bad.push("a table is cut");
for (const part of document.querySelectorAll("table")) if (part.getBoundingClientRect().right > right + 1) bad.push(`a table is ${part.getBoundingClientRect().right} wide of ${right}: ${part.textContent.slice(0, 60)}`);
for (const cell of document.querySelectorAll("table:not(.crowded) td.number")) if (cell.getClientRects().length > 0 && /^[0-9.]+ [a-zA-Z%]+$/.test(cell.textContent) &&
  cell.clientHeight > 0 && getComputedStyle(cell).whiteSpace !== "nowrap") bad.push(`a figure is broken: ${cell.textContent}`);
return bad;
"""


def start_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=webdriver.chrome.service.Service(shutil.which("chromedriver")), options=options)
    browser.set_window_size(1280, 1000)
    return browser


def time_text(seconds):
    """Four digits, as the page has them."""
    unit, factor = next((unit, factor) for unit, factor in (("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("ps", 0)) if seconds >= factor)
    return f"{float(f'{seconds / (factor or 1e-12):.4g}'):g} {unit}"


def podsim(folder, words):
    return subprocess.run([ARGUMENTS[0], *words.split()], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


class InBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        root = tempfile.TemporaryDirectory()
        cls.addClassCleanup(root.cleanup)
        cls.folder = pathlib.Path(root.name)
        cls.browser = start_browser()
        cls.addClassCleanup(cls.browser.quit)

    def open(self, name):
        self.browser.get(f"file://{self.folder}/{name}.html")
        self.assertEqual(self.browser.get_log("browser"), [], name)

    def legend(self, part):
        """The colours of a legend by what each is for."""
        keys = part.find_elements(By.CSS_SELECTOR, ".legend > span")
        colours = [key.find_element(By.CLASS_NAME, "key").value_of_css_property("background-color") for key in keys]
        return {key.text: "#" + "".join(f"{int(value):02x}" for value in re.findall(r"\d+", colour)[:3]) for key, colour in zip(keys, colours)}

    def check_roles(self, legend):
        """Each has its own colour, that of its role."""
        roles = self.browser.execute_script("return colours.roles")
        self.assertEqual(legend, {role: roles[role] for role in legend})
        self.assertEqual(len(set(legend.values())), len(legend))

    def sections(self):
        return [s.get_attribute("id") for s in self.browser.find_elements(By.CSS_SELECTOR, "#record section")]

    def screenshot(self, name, of=None):
        if len(ARGUMENTS) > 1:
            pathlib.Path(ARGUMENTS[1]).mkdir(parents=True, exist_ok=True)
            if of is not None:
                of.screenshot(f"{ARGUMENTS[1]}/{name}.png")
            else:
                self.browser.save_screenshot(f"{ARGUMENTS[1]}/{name}.png")

    def drawn(self):
        """Waits until what was changed is drawn."""
        self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0], 20)))")

    def tip(self):
        return self.browser.find_element(By.ID, "tip").text

    def check_contrast(self, name):
        self.browser.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
        for scheme in ("light", "dark"):
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            found = self.browser.execute_script(CONTRAST)
            self.assertEqual(found["bad"], [], f"{name}, {scheme}")
            self.assertGreater(found["colours"], 1)
            self.screenshot(f"{name}_{scheme}")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def check_print(self, name):
        """A page of A4 with margins of a centimetre at 96 pixels an inch is 718 by 1047."""
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 718, "height": 1047, "deviceScaleFactor": 1, "mobile": False})
        self.assertEqual(self.browser.execute_script(CUT, 1047), [], name)
        self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        pdf = base64.b64decode(self.browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True})["data"])
        self.assertTrue(pdf.startswith(b"%PDF-"))
        self.assertGreater(len(re.findall(rb"/Type\s*/Page\b", pdf)), 0)
        if len(ARGUMENTS) > 1:
            pathlib.Path(ARGUMENTS[1], f"{name}.pdf").write_bytes(pdf)


class RunPage(InBrowser):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, words in (("one", "meshslice --slice-count 4"), ("other", "collective")):
            podsim(cls.folder, f"run --machine tpu_v4 --slice 4x4 --gemm m=8192,n=8192,k=8192 --algorithm {words} --record {name}.record --explain --per device,link "
                   f"--format json -o {name}.json")
        podsim(cls.folder, "report one.record other.record -o page.html")
        cls.result = json.loads((cls.folder / "one.json").read_text())
        cls.url = f"file://{cls.folder}/page.html"
        cls.browser.get(cls.url)

    def timeline(self):
        return self.browser.find_element(By.CSS_SELECTOR, "#timeline svg")

    def test_has_every_section_and_the_figures_of_the_run(self):
        self.assertEqual(self.sections(), SECTIONS)
        text = self.browser.find_element(By.ID, "page").text
        self.assertIn(time_text(self.result["makespan_s"]), text)
        self.assertIn(f"{100 * self.result['mfu']:.1f} %", text)
        self.assertIn("hypothetical", text)
        self.assertEqual(self.browser.find_element(By.CSS_SELECTOR, "nav a[href='#network']").text, "Links on the network")
        for operation in self.result["operations"]:
            self.assertIn(operation["name"], text)

    def test_says_nothing_and_asks_for_nothing(self):
        self.browser.get(self.url)
        self.assertEqual(self.browser.get_log("browser"), [])
        messages = (json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance"))
        asked = {message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"}
        self.assertLessEqual({url for url in asked if not url.startswith("data:")}, {self.url})

    def test_points_at_the_task_under_the_pointer(self):
        drawing = self.timeline()
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", drawing)
        size = drawing.size
        # The first bar of the core: the line begins 130 pixels from the left, the core's row 24 from the top.
        ActionChains(self.browser).move_to_element_with_offset(drawing, 132 - size["width"] // 2, 34 - size["height"] // 2).perform()
        self.assertTrue(self.tip().startswith("cut X s0: 0 s to "), self.tip())
        self.screenshot("pointer")

    def test_a_role_has_its_colour_in_every_chart(self):
        split = self.legend(self.browser.find_element(By.ID, "split"))
        named = {re.sub(r" [0-9.]+ \S+ \(.*", "", text): colour for text, colour in split.items()}
        roles = {name: key.removesuffix("_s").replace("_", " ") for key, name in self.browser.execute_script("return splitNames").items()}
        table = self.browser.execute_script("return colours.roles")
        self.assertLessEqual({"compute", "exposed communication", "arithmetic", "bandwidth"}, set(named))
        self.assertEqual(named, {name: table[roles.get(name, name)] for name in named})
        bars = self.browser.find_elements(By.CSS_SELECTOR, "#split svg rect")
        self.assertEqual([bar.get_attribute("fill") for bar in bars], list(split.values()))
        for part in ("timeline", "memory"):
            legend = self.legend(self.browser.find_element(By.ID, part))
            self.check_roles(legend)
            drawn = {path.get_attribute("fill") for path in self.browser.find_elements(By.CSS_SELECTOR, f"#{part} svg path[fill]")}
            self.assertEqual(drawn, set(legend.values()), part)

    def test_zooms_and_finds_by_keys_alone(self):
        drawing = self.timeline()
        before = drawing.text
        for key in ("+", "+", Keys.ARROW_RIGHT):
            drawing.send_keys(key)
        self.assertNotEqual(drawing.text, before)
        self.screenshot("zoomed")
        drawing.send_keys("0")
        self.assertEqual(drawing.text, before)
        search = self.browser.find_element(By.CSS_SELECTOR, "#timeline input")
        search.send_keys("matmul")
        self.assertEqual(self.browser.find_element(By.CSS_SELECTOR, "#timeline [role=status]").text, "4 in view")
        search.send_keys(Keys.ENTER)
        search.clear()

    def test_is_as_wide_as_its_window(self):
        for width in (400, 1280, 2560):
            self.browser.set_window_size(width, 1000)
            self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth - innerWidth"), 0, width)
            self.screenshot(f"width_{width}")
        self.browser.set_window_size(1280, 1000)

    def test_shows_another_run_of_several(self):
        self.browser.find_element(By.LINK_TEXT, "other.record").click()
        self.assertIn("collective os", self.browser.find_element(By.CSS_SELECTOR, "#record h1").text)
        self.browser.find_element(By.LINK_TEXT, "one.record").click()

    def test_every_figure_is_the_records(self):
        """Every time, size and share of the tables is one of the record's, written in four digits."""
        self.browser.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
        numbers = set()

        def gather(value):
            if isinstance(value, dict):
                for inner in value.values():
                    gather(inner)
            elif isinstance(value, list):
                for inner in value:
                    gather(inner)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                numbers.add(abs(value))

        gather(self.result)
        makespan = self.result["makespan_s"]
        units = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1}
        known = {f"{number / factor:.4g} {unit}" for number in numbers for unit, factor in units.items()}
        known |= {f"{100 * number / whole:.1f} %" for number in numbers for whole in (1, makespan)}
        for part in ("axes", "links", "operations", "devices", "split"):
            cells = [cell.text for cell in self.browser.find_elements(By.CSS_SELECTOR, f"#{part} td.number")]
            figures = [cell for cell in cells if re.fullmatch(r"[0-9.e+]+ ([munp]?s|[TGMk]?B|%)", cell)]
            self.assertGreater(len(figures), 0, part)
            self.assertEqual([figure for figure in figures if figure not in known], [], part)

    def test_links_on_the_network_by_keys_and_pointer(self):
        drawing = self.browser.find_element(By.CSS_SELECTOR, "#network svg[role=application]")
        most = max(link["utilisation"] for link in self.result["per_link"] if not link["link"].startswith("HBM"))
        drawing.send_keys(Keys.HOME)
        self.assertIn(f": {100 * most:.1f} %, ", self.tip())
        self.screenshot("network", self.browser.find_element(By.ID, "network"))
        first = self.tip()
        drawing.send_keys(Keys.ARROW_RIGHT)
        self.assertNotEqual(self.tip(), first)
        drawing.send_keys(Keys.ESCAPE)
        self.assertEqual(self.tip(), "")
        ActionChains(self.browser).move_to_element_with_offset(drawing, 24 + 57 - drawing.size["width"] // 2, 18 + 35 + 4 - drawing.size["height"] // 2).perform()
        self.assertRegex(self.tip(), r"^\(0,0\) to \(0,1\): |^\(0,1\) to \(0,0\): ")

    def test_live_memory_reaches_the_peak(self):
        peak = self.browser.find_element(By.CSS_SELECTOR, "#memory details")
        self.browser.execute_script("arguments[0].open = true", peak)
        self.assertIn(f"{self.result['peak_memory_bytes'] / 1e6:.4g} MB", peak.text.splitlines()[-1])
        self.screenshot("memory", self.browser.find_element(By.ID, "memory"))

    def test_the_keyboard_reaches_everything(self):
        self.browser.get(self.url)
        self.browser.execute_script("""window.reached = []; document.addEventListener("focusin", (event) => window.reached.push(event.target))""")
        there = "a[href], button, select, input, summary, svg[tabindex]"
        count = len([e for e in self.browser.find_elements(By.CSS_SELECTOR, there) if e.is_displayed()])
        ActionChains(self.browser).send_keys(Keys.TAB * (count + 2)).perform()
        missed = self.browser.execute_script("return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility() && !window.reached.includes(e)).map((e) => e.outerHTML.slice(0, 80))", there)
        self.assertEqual(missed, [])

    def test_text_stands_out_in_both_schemes(self):
        self.check_contrast("run")

    def test_prints_whole_charts(self):
        self.check_print("run")


class OtherPages(InBrowser):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "small.textproto").write_text(SWEEP)
        podsim(cls.folder, f"{LAYER} --format json -o layer.json --quiet")
        for name, (words, _) in OTHERS.items():
            podsim(cls.folder, f"{words} --record {name}.record --quiet")
            podsim(cls.folder, f"report {name}.record -o {name}.html")
        for name, (words, *_) in NETWORKS.items():
            podsim(cls.folder, f"{words} --record {name}.record --quiet")
            podsim(cls.folder, f"report {name}.record -o {name}.html")
        podsim(cls.folder, "report " + " ".join(f"{name}.record" for name in OTHERS) + " planes.record -o all.html")

    def test_each_has_its_sections_at_every_width(self):
        for name, (_, sections) in OTHERS.items():
            with self.subTest(name):
                self.open(name)
                self.assertEqual([s for s in self.sections() if s != "left_out"], sections)
                self.assertNotIn("cannot be shown", self.browser.find_element(By.ID, "page").text)
                for width in (400, 500, 1400, 2560, 1280):
                    self.browser.set_window_size(width, 1000)
                    self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth - innerWidth"), 0, width)
                self.check_contrast(name)
                self.check_print(name)

    def result_of(self, name):
        return json.loads(podsim(self.folder, OTHERS[name][0] + " --format json --quiet"))

    def table(self, selector):
        details = self.browser.find_element(By.CSS_SELECTOR, selector)
        self.browser.execute_script("arguments[0].open = true", details)
        self.drawn()
        # In the browser: a question of WebDriver for each cell takes minutes for thousands of rows.
        return self.browser.execute_script("return [...arguments[0].querySelectorAll('tbody tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim()))", details)

    def test_figures_of_a_comparison(self):
        self.open("compare")
        result = self.result_of("compare")
        rows = self.table("#variants details")
        self.assertEqual([row[0] for row in rows], [row["algorithm"] for row in result["rows"]])
        for shown, row in zip(rows, result["rows"]):
            self.assertIn(time_text(row["makespan_s"]), shown)
        for verdict in result["verdicts"]:
            self.assertIn(verdict, self.browser.find_element(By.ID, "record").text)

    def test_figures_of_a_compiled_module_and_of_explained_rows(self):
        self.open("hlo")
        result = self.result_of("hlo")
        text = self.browser.find_element(By.ID, "record").text
        for one in result["schedules"] + result["differences"]:
            self.assertIn(one["sentence"], text)
        for one in result["differences"]:
            self.assertIn(time_text(one["gain_s"]), text)
        self.open("explain")
        result = self.result_of("explain")
        rows = self.browser.find_elements(By.CSS_SELECTOR, "#rows tbody tr")
        self.assertEqual(len(rows), len(result["rows"]))
        for shown, row in zip(rows, result["rows"]):
            for value in (row["explanation"], row["bound"], time_text(row["measured_s"]), time_text(row["expected_s"])):
                self.assertIn(value, shown.text)

    def test_figures_of_a_search_and_why_others_lose(self):
        self.open("tune")
        result = self.result_of("tune")
        text = self.browser.find_element(By.ID, "plans").text
        for plan in result["plans"]:
            self.assertIn(time_text(plan["predicted_s"]), text)
            self.assertIn(plan.get("why", ""), text)
        self.assertEqual(len(self.table("#pareto details")), len(result["plans"]) + len(result["pareto"]))

    def test_counts_of_a_search_are_the_commands(self):
        said = {
            "tune": (r"(?P<candidates>\d+) options of products on \d+ meshes; (?P<simulated>\d+) parts simulated in .*; (?P<pruned>\d+) options ruled out by their bounds",
                     {"options of products considered": "candidates", "ruled out by their bounds": "pruned", "parts simulated": "simulated"}),
            "training": (r"(?P<candidates>\d+) candidates on \d+ meshes; (?P<simulated>\d+) steps simulated, (?P<over_memory>\d+) over memory; (?P<layers_simulated>\d+) layers",
                         {"candidates considered": "candidates", "never simulated": "pruned", "steps simulated": "simulated", "over memory": "over_memory",
                          "layers simulated for bounds": "layers_simulated"}),
        }
        for name, (words, keys) in said.items():
            self.open(name)
            shown = dict(reversed(figure.text.split("\n")) for figure in self.browser.find_elements(By.CSS_SELECTOR, "#record .figure"))
            result, printed = self.result_of(name), re.search(words, podsim(self.folder, OTHERS[name][0] + " --quiet"))
            for label, key in keys.items():
                self.assertEqual(int(shown[label]), result[key], label)
                if key in printed.groupdict():
                    self.assertEqual(int(shown[label]), int(printed[key]), label)

    def test_first_screens_answer_the_question(self):
        """What a reader sees without scrolling at 1400 x 1000."""
        self.browser.set_window_size(1400, 1000)
        results = {name: self.result_of(name) for name in ("compare", "tune", "diff", "calibrate", "check")}
        sweep = json.loads(podsim(self.folder, "sweep --store small.sqlite --export json"))
        times = [row["makespan_s"] for row in sweep["rows"] if row["makespan_s"] is not None]
        exposed = results["diff"]["collectives"][0]
        wanted = {
            "compare": [results["compare"]["rows"][0]["algorithm"], time_text(min(row["makespan_s"] for row in results["compare"]["rows"]))],
            "tune": [time_text(results["tune"]["plans"][0]["predicted_s"]), results["tune"]["plans"][0]["slice"]],
            "diff": [results["diff"]["sentence"], time_text(results["diff"]["measured_s"]), exposed["name"], time_text(exposed["measured_exposed_s"])],
            "calibrate": [f"{100 * results['calibrate']['median_abs_error']:.1f} %", "Nothing could be held back"],
            "check": ["Right", "free of races"],
            "sweep": [time_text(min(times)), "matters most", "The fastest: "],
        }
        for name, texts in wanted.items():
            self.open(name)
            seen = self.browser.execute_script("""
              return [...document.querySelectorAll("h1, h2, p, .figure, .tile, th, td")].filter((e) => { const area = e.getBoundingClientRect(); return area.height > 0 && area.bottom <= innerHeight; })
                .map((e) => e.textContent).join("\\n")""")
            for text in texts:
                self.assertIn(text, seen, name)
            self.screenshot(f"first_{name}")
        self.browser.set_window_size(1280, 1000)

    def test_plans_in_jax_are_python_that_compiles(self):
        for name in ("tune", "training"):
            self.open(name)
            code = self.browser.find_element(By.CSS_SELECTOR, "#jax pre").text
            compile(code, name, "exec")
            self.assertIn("mesh = jax.", code)
            self.assertIn("P(", code)

    def test_importance_is_the_share_of_the_variance_between_the_values_of_an_input(self):
        rows = [row for row in json.loads(podsim(self.folder, "sweep --store small.sqlite --export json"))["rows"] if row["status"] == "done"]
        logs = [math.log(row["makespan_s"]) for row in rows]
        total = statistics.pvariance(logs)
        self.open("sweep")
        shown = {row.find_element(By.TAG_NAME, "th").text: row.find_element(By.CSS_SELECTOR, "td.number").text for row in self.browser.find_elements(By.CSS_SELECTOR, "#importance tbody tr")}
        self.assertEqual(set(shown), {"slice", "algorithm", "slice count"})
        for column, text in shown.items():
            groups = {}
            for row, log in zip(rows, logs):
                groups.setdefault(row[column.replace(" ", "_")], []).append(log)
            between = sum(len(group) * (statistics.mean(group) - statistics.mean(logs)) ** 2 for group in groups.values()) / len(logs)
            self.assertTrue(text.startswith(f"{100 * between / total:.1f} %"), f"{column}: {text}")

    def test_a_pipeline_is_drawn_from_the_simulated_step(self):
        podsim(self.folder, "run " + STEPS[0] + " --microbatches 8 --remat full --record pipeline.record --quiet")
        podsim(self.folder, "report pipeline.record -o pipeline.html")
        self.open("pipeline")
        self.assertEqual(self.sections()[0], "pipeline")
        picture = self.browser.find_element(By.CSS_SELECTOR, "#pipeline img")
        self.assertGreater(self.browser.execute_script("return arguments[0].naturalWidth", picture), 600, "the browser draws it")
        drawn = base64.b64decode(picture.get_attribute("src").partition(",")[2]).decode()
        for text in ("stage 0", "stage 3", "forward", "backward", "optimizer", *map(str, range(8))):
            self.assertIn(f">{text}</text>", drawn)
        self.assertRegex(self.browser.find_element(By.ID, "pipeline").text, r"White is the bubble, .*: [0-9.]+ % of all stages")
        self.assertIn("The busiest device is bound by ", self.browser.find_element(By.ID, "record").text)
        for width in (500, 1400, 1280):
            self.browser.set_window_size(width, 1000)
            self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth - innerWidth"), 0, width)

    def test_points_of_a_validation(self):
        self.open("validate")
        dataset = self.result_of("validate")["datasets"][0]
        self.assertEqual(len(self.table("#dataset_0 details")), len(dataset["rows"]))
        drawing = self.browser.find_element(By.CSS_SELECTOR, "#dataset_0 svg[role=application]")
        drawing.send_keys(Keys.HOME)
        self.assertIn(f"{100 * dataset['rows'][0]['error']:+.2f} %", self.tip())
        self.assertEqual(len(drawing.find_elements(By.CSS_SELECTOR, "line[stroke]")), 5)  # measured, 10 and 20 % off to both sides
        self.assertIn("20 % off", self.browser.find_element(By.ID, "dataset_0").text)

    def test_points_of_a_sweep_by_any_two_numbers(self):
        self.open("sweep")
        across = self.browser.find_element(By.CSS_SELECTOR, "#points select")
        across.send_keys("peak_memory_bytes")
        self.drawn()
        self.assertIn("peak memory bytes", self.browser.find_element(By.CSS_SELECTOR, "#points svg[role=application]").text)
        self.assertEqual(len(self.table("#all details")), 8)

    def test_facets_of_a_sweep_have_one_chart_per_value_with_the_same_axes(self):
        self.open("sweep")
        rows = [row for row in json.loads(podsim(self.folder, "sweep --store small.sqlite --export json"))["rows"] if row["status"] == "done"]
        by_algorithm = [sum(row["algorithm"] == name for row in rows) for name in dict.fromkeys(row["algorithm"] for row in rows)]
        choosers = self.browser.find_elements(By.CSS_SELECTOR, "#points select")
        choosers[0].send_keys("peak_memory_bytes")
        choosers[3].send_keys("algorithm")
        self.drawn()
        charts = self.browser.find_elements(By.CSS_SELECTOR, "#points .facets > div")
        self.assertEqual([chart.find_element(By.TAG_NAME, "h3").text for chart in charts], [f"algorithm {name}" for name in dict.fromkeys(row["algorithm"] for row in rows)])
        ticks = [[text.text for text in chart.find_elements(By.CSS_SELECTOR, "svg[role=application] text.faint")] for chart in charts]
        self.assertEqual(ticks, [ticks[0]] * len(charts))
        drawn = [sum(path.get_attribute("d").count("M") for path in chart.find_elements(By.CSS_SELECTOR, "svg[role=application] path")) for chart in charts]
        self.assertEqual(drawn, by_algorithm, "each point is in its own chart; circles and squares have one M each")
        for width in (1400, 500):
            self.browser.set_window_size(width, 1000)
            self.drawn()
            self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
            self.screenshot(f"facets_{width}", self.browser.find_element(By.ID, "points"))
        self.browser.set_window_size(1280, 1000)
        self.check_contrast("facets")

    def test_marks_points_of_a_sweep_that_do_not_fit(self):
        (self.folder / "large.textproto").write_text(LARGE_SWEEP)
        podsim(self.folder, "sweep large.textproto --store large.sqlite --record large.record --quiet")
        podsim(self.folder, "report large.record -o large.html")
        self.open("large")
        rows = json.loads(podsim(self.folder, "sweep --store large.sqlite --export json"))["rows"]
        over = [bool(row["over_hbm"]) for row in rows]
        self.assertEqual(set(over), {False, True})
        self.assertEqual([any(cell.endswith("B*") for cell in row) for row in self.table("#all details")], over)
        self.assertIn("(does not fit in memory)", self.browser.find_element(By.ID, "points").text)
        self.assertRegex(self.browser.find_element(By.CSS_SELECTOR, "#record .warning").text, f"^{sum(over)} of them need more memory than the device has")
        self.check_contrast("large")

    def test_networks_of_every_form(self):
        for name, (_, chips, switches, drawings) in NETWORKS.items():
            with self.subTest(name):
                self.open(name)
                part = self.browser.find_element(By.ID, "network")
                self.assertRegex(part.text, rf"{chips} chips, [0-9]+ links")
                if switches == 0:
                    self.assertNotIn("switches, ", part.text)
                maps = part.find_elements(By.CSS_SELECTOR, "svg[role=application]")
                self.assertEqual(len(maps), drawings)
                maps[0].send_keys(Keys.HOME)
                self.assertRegex(self.tip(), r" to .*: [0-9.]+ %, [0-9.]+ .?B$")
                self.screenshot(name, part)
                self.check_print(name)

    def test_several_kinds_on_one_page(self):
        self.open("all")
        self.browser.find_element(By.LINK_TEXT, "tune.record").click()
        self.assertIn("pareto", self.sections())
        self.browser.find_element(By.LINK_TEXT, "planes.record").click()
        self.assertIn("network", self.sections())


    def test_tells_variants_apart_and_marks_what_does_not_fit(self):
        podsim(self.folder, "compare " + "".join(STEPS) + " --record steps.record --format json -o steps.json --quiet")
        podsim(self.folder, "report steps.record -o steps.html")
        self.open("steps")
        result = json.loads((self.folder / "steps.json").read_text())["rows"]
        names = [cell.text for cell in self.browser.find_elements(By.CSS_SELECTOR, "#variants > .wide tbody th")]
        self.assertEqual(len(set(names)), len(result))
        over = [row["over_hbm"] for row in result]
        self.assertEqual([name.endswith("does not fit") for name in names], over)
        self.assertEqual(set(over), {False, True})
        for name, row in zip(names, result):
            self.assertTrue(name.startswith(f"{row['algorithm']}, {row['microbatches']} microbatches, remat {row['remat']}"), name)
        self.assertEqual([any(cell.endswith("B*") for cell in row) for row in self.table("#variants details")], over)
        self.assertEqual(len(set(map(tuple, self.table("#variants details")))), len(result))
        part = self.browser.find_element(By.ID, "time_and_memory")
        self.assertIn("(does not fit)", part.text)
        self.assertEqual({row["hbm_bytes"] for row in result}, {33_017_561_088})
        self.assertIn("a device has 33.02 GB", part.text)
        line = float(part.find_element(By.CSS_SELECTOR, "svg[role=application] line.capacity").get_attribute("x1"))
        drawing = part.find_element(By.CSS_SELECTOR, "svg[role=application]")
        drawing.send_keys(Keys.HOME)
        for _ in range(len(result)):  # every mark is on its side of the line
            ring = float(re.match(r"M([0-9.]+) ", drawing.find_element(By.CSS_SELECTOR, ".found").get_attribute("d"))[1]) + 7
            self.assertEqual(ring > line, "B*" in self.tip(), self.tip())
            drawing.send_keys(Keys.ARROW_RIGHT)
        self.check_contrast("steps")

    def test_says_when_a_run_does_not_fit(self):
        podsim(self.folder, "run " + STEPS[0] + " --microbatches 8 --remat none --force --record over.record --quiet")
        podsim(self.folder, "report over.record -o over.html")
        self.open("over")
        self.assertRegex(self.browser.find_element(By.CSS_SELECTOR, "#record .warning").text, r"^[0-9.]+ GB per device: more than the 33.02 GB that the device has")
        self.assertIn("a device has 33.02 GB", self.browser.find_element(By.CSS_SELECTOR, "#memory svg").text)
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#memory line.capacity")), 1)

    def test_shows_in_what_several_runs_differ(self):
        for name, words in RUNS.items():
            podsim(self.folder, f"{words} --record {name}.record --quiet")
        podsim(self.folder, "report slow.record fast.record broken.record -o runs.html")
        self.open("runs")
        headings = [heading.text for heading in self.browser.find_elements(By.CSS_SELECTOR, "#runs th")]
        cells = [{heading: cell for heading, cell in zip(headings, row.find_elements(By.TAG_NAME, "td"))} for row in self.browser.find_elements(By.CSS_SELECTOR, "#runs tbody tr")]
        self.assertEqual([row["--set"].text for row in cells], ["", "link.bandwidth=90GB/s", ""])
        self.assertEqual([row["fail"].text for row in cells], ["", "", "0.0-0.1"])
        self.assertEqual({heading for heading, cell in cells[0].items() if cell.get_attribute("class") == "differs"}, {"--set", "fail"})
        self.browser.find_element(By.LINK_TEXT, "broken.record").click()
        self.assertIn("0.0-0.1", self.browser.find_element(By.ID, "network").text)

    def test_shows_calls_as_what_they_hold(self):
        podsim(self.folder, "run " + STEPS[0] + " --microbatches 8 --remat full --record calls.record --format json -o calls.json --quiet")
        podsim(self.folder, "report calls.record -o calls.html")
        self.open("calls")
        result = json.loads((self.folder / "calls.json").read_text())
        self.assertLess({"timeline", "calls", "network"}, set(self.sections()))
        part = self.browser.find_element(By.ID, "timeline")
        self.assertIn("a bar per call of a function, of which each was simulated once", part.text)
        lines = [text.text for text in part.find_elements(By.CSS_SELECTOR, "svg text:not(.faint)")]
        self.assertEqual(lines, ["calls", "compute", "dma", "fsdp + send", "fsdp + receive", "fsdp - send", "fsdp - receive", "channel send", "channel receive", "fsdp in calls"])
        part.find_element(By.TAG_NAME, "summary").click()
        self.assertEqual(len(self.table("#timeline details")), 50, "the first rows")
        for more in iter(lambda: [button for button in part.find_elements(By.CSS_SELECTOR, "details button:not(.sort)") if button.is_displayed()], []):
            more[0].click()
        rows = self.table("#timeline details")
        called = [row for row in rows if row[0] == "calls"]
        self.assertIn("fwd_0__3 layer 2 (forward, stage 0, microbatch 3)", [row[1] for row in called])
        legend = self.legend(part)
        self.assertLessEqual({"forward", "backward", "compute", "communication"}, set(legend))
        self.check_roles(legend)
        drawn = {path.get_attribute("fill") for path in part.find_elements(By.CSS_SELECTOR, "svg[role=application] path")}
        self.assertEqual(drawn, set(legend.values()))
        self.assertTrue(all(row[2] for row in called))
        # The first call gathers weights: no core is at work.
        drawing = part.find_element(By.CSS_SELECTOR, "svg[role=application]")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", drawing)
        for _ in range(8):  # to the begin
            drawing.send_keys("+", *[Keys.ARROW_LEFT] * 3)
        size = drawing.size
        ActionChains(self.browser).move_to_element_with_offset(drawing, 134 - size["width"] // 2, 34 - size["height"] // 2).perform()
        self.assertRegex(self.tip(), r"^gather weights of fwd_0__0 \(forward, stage 0, microbatch 0\): 0 s to .*; a call of .*: exposed communication, fsdp [0-9.]+ .s$")
        functions = {row[0]: row for row in self.table("#calls details")}
        self.assertLessEqual({row[2] for row in called}, set(functions))
        crossed = [link for link in self.table("#network details") if link[2] != "0 B"]
        self.assertGreater(len(crossed), 0)
        self.assertIn(time_text(result["makespan_s"]), self.browser.find_element(By.ID, "page").text)
        self.check_contrast("calls")
        self.check_print("calls")

    def test_text_in_data_is_never_a_script(self):
        """Names that would end the element that holds them, quotes, a label of a megabyte, and values of other kinds than podsim writes."""
        hostile = "</script><script>window.ran = true</script><img src=x onerror='window.ran = true'>\"'`${window.ran = true}"
        run = json.loads(podsim(self.folder, "run --machine tpu_v4 --slice 2x2 --gemm m=1024,n=1024,k=1024 --algorithm collective --explain --per device,link --format json --quiet"))
        for entries, key in ((run["operations"], "name"), (run["axes"], "axis"), (run["per_link"], "link"), (run["explanation"]["critical_path"], "task")):
            entries[0][key] = hostile
        run["schedule"], run["operations"][-1]["name"] = hostile, "x" * 1_000_000
        run["per_device"], run["explanation"]["sensitivities"] = 5, [{"parameter": None, "change": "a", "makespan_change": {}}]
        compare = {"rows": [{"algorithm": hostile, "makespan_s": hostile, "mesh": 3}], "verdicts": [hostile]}
        for name, data in (("hostile", run), ("other", compare)):
            (self.folder / f"{name}.json").write_text(json.dumps(data))
        podsim(self.folder, "report hostile.json other.json -o hostile.html")
        self.open("hostile")
        self.assertIn(hostile, self.browser.find_element(By.ID, "page").text)
        self.assertIn("cannot be shown", self.browser.find_element(By.ID, "page").text)
        self.browser.find_element(By.LINK_TEXT, "other.json").click()
        self.drawn()
        self.assertIn(hostile, self.browser.find_element(By.ID, "record").text)
        self.assertIsNone(self.browser.execute_script("return window.ran"))
        self.assertEqual(self.browser.get_log("browser"), [])


if __name__ == "__main__":
    if webdriver is None or shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        print("test_browser.py: skipped: there is no chromium, chromedriver or Selenium; the pages of `podsim report` were not opened")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
