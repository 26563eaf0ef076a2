#!/usr/bin/env python3
"""Pages in a browser: they say nothing on its console, ask for nothing, and show what their data holds. Without Chromium, its driver or Selenium (Debian
packages chromium, chromium-driver, python3-selenium) the test is skipped (77) and says so.

usage: test_browser.py PODSIM [FOLDER FOR SCREENSHOTS]
"""

import json
import pathlib
import shutil
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
SECTIONS = ["split", "sensitivities", "timeline", "operations", "axes", "links", "path", "devices", "machine"]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.root.name)
        for name, words in (("one", "meshslice --slice-count 4"), ("other", "collective")):
            subprocess.run([ARGUMENTS[0], "run", "--machine", "tpu_v4", "--slice", "4x4", "--gemm", "m=8192,n=8192,k=8192", "--algorithm", *words.split(),
                            "--record", f"{name}.record", "--format", "json", "-o", f"{name}.json"], cwd=cls.folder, check=True)
        subprocess.run([ARGUMENTS[0], "report", "one.record", "other.record", "-o", "page.html"], cwd=cls.folder, check=True)
        cls.result = json.loads((cls.folder / "one.json").read_text())
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.browser = webdriver.Chrome(service=webdriver.chrome.service.Service(shutil.which("chromedriver")), options=options)
        cls.browser.set_window_size(1280, 1000)
        cls.url = f"file://{cls.folder}/page.html"
        cls.browser.get(cls.url)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.root.cleanup()

    def timeline(self):
        return self.browser.find_element(By.CSS_SELECTOR, "#timeline svg")

    def screenshot(self, name):
        if len(ARGUMENTS) > 1:
            pathlib.Path(ARGUMENTS[1]).mkdir(parents=True, exist_ok=True)
            self.browser.save_screenshot(f"{ARGUMENTS[1]}/{name}.png")

    def test_has_every_section_and_the_figures_of_the_run(self):
        self.assertEqual([s.get_attribute("id") for s in self.browser.find_elements(By.CSS_SELECTOR, "#run section")], SECTIONS)
        text = self.browser.find_element(By.ID, "page").text
        self.assertIn(f"{self.result['makespan_s'] * 1e6:.4g} us", text)
        self.assertIn(f"{100 * self.result['mfu']:.1f} %", text)
        self.assertIn("hypothetical", text)
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
        tip = self.browser.find_element(By.ID, "tip").text
        self.assertTrue(tip.startswith("cut X s0: 0 s to "), tip)
        self.screenshot("pointer")

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
        self.assertIn("collective os", self.browser.find_element(By.CSS_SELECTOR, "#run h1").text)
        self.browser.find_element(By.LINK_TEXT, "one.record").click()


if __name__ == "__main__":
    if webdriver is None or shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        print("test_browser.py: skipped: there is no chromium, chromedriver or Selenium; the pages of `podsim report` were not opened")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
