#!/usr/bin/env python3
"""docs/json.md defines every key of `--format json`, docs/observations.md every column of observations, and no others.

usage: pages_test.py ROOT

Of JSON: every key that a recorded command (tests/golden) prints is on the page, in the section of its verb; every key of the page is printed by one of them, but for
those marked *Rare*; and every key that the code of reports can write is on the page.
"""

import json
import pathlib
import re
import sys
import unittest

MASKED = re.compile(r"<(?:time|error|bound|size|build)>")
# What writes keys, but for the lines of traces and records.
REPORTS = ("tools/report/*_report.cpp", "tools/report/run_operations.cpp", "tools/sweep/store_report.cpp")


class Row:
    """A key of the page: its names, of which {x} is any."""

    def __init__(self, line, key, definition):
        self.line, self.key, self.definition = line, key, definition
        self.names = tuple(name for name in re.split(r"\.(?![^{]*\})", key.replace("[]", "")) if name)
        self.is_printed = False

    def is_rare(self):
        return "*Rare:*" in self.definition

    def same(self, names):
        return len(names) == len(self.names) and self.begins_with(names)

    def begins_with(self, names):
        return len(names) <= len(self.names) and all(own.startswith("{") or own == name for own, name in zip(self.names, names))


class Section:
    def __init__(self):
        self.rows, self.like = [], []  # like: (names, section) whose keys stand there too

    def rows_of(self, names, sections):
        """The rows that are about a key."""
        found = [row for row in self.rows if row.begins_with(names)]
        for prefix, section in self.like:
            if names[: len(prefix)] == prefix and len(names) > len(prefix):
                found += sections[section].rows_of(names[len(prefix) :], sections)
        return found


def sections_of(page):
    sections, section = {}, None
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("## "):
            section = sections.setdefault(line[3:], Section())
        row = re.match(r"\| `([^`]+)` \| (.+) \|$", line)
        if row:
            section.rows.append(Row(number, row[1], row[2]))
        like = re.search(r"[Tt]he keys of \[([^\]]+)\]", line)
        if like and section:
            section.like.append((section.rows[-1].names if row else (), like[1]))
    return sections


def keys(value, names=()):
    if isinstance(value, dict):
        for name, member in value.items():
            yield (*names, name)
            yield from keys(member, (*names, name))
    elif isinstance(value, list):
        for element in value:
            yield from keys(element, names)


def printed(expected):
    """(command, section of the page, names of a key) of what recorded commands printed as JSON."""
    for file in sorted(expected.glob("*.txt")):
        for block in re.split(r"(?m)^(?=\$ podsim )", file.read_text(encoding="utf-8")):
            command, _, text = block.partition("\n")
            if not re.search(r" --(format|export|routes) json\b", command) or " -o " in command:
                continue
            text = "\n".join(line for line in text.split("\n") if not re.match(r"! |status \d+$|\$ ", line)).strip()
            if text.startswith("{"):
                words = command.split()[2:4]
                section = " ".join(words) if words[0] == "show" else words[0]
                try:
                    value = json.JSONDecoder().raw_decode(MASKED.sub("0", text))[0]
                except ValueError as error:
                    raise ValueError(f"{command}: {error}") from error
                for names in keys(value):
                    yield command, section, names


def braces(text, begin):
    """What stands between the brace at `begin` and its counterpart."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[begin:at]
    return text[begin:]


def written(source):
    """Keys that code gives to Json objects."""
    found = set(re.findall(r"\.set\(\"([^\"]+)\"", source))
    for begin in re.finditer(r"\bJson(?: \w+)?\{|\.update\(\{", source):
        found.update(re.findall(r"\{\"(\w+)\",", braces(source, begin.end() - 1)))
    return found


class Json(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.sections = sections_of((ROOT / "docs" / "json.md").read_text(encoding="utf-8"))
        cls.unknown = {}
        for command, section, names in printed(ROOT / "tests" / "golden" / "expected"):
            rows = cls.sections[section].rows_of(names, cls.sections) if section in cls.sections else []
            if not rows:
                cls.unknown.setdefault(f"{section}: {'.'.join(names)}", command)
            for row in rows:
                prefix = len(row.names)
                row.is_printed |= row.same(names[-prefix:])

    def test_has_every_key_that_is_printed(self):
        self.assertEqual(self.unknown, {})

    def test_has_no_key_that_is_not_printed(self):
        rows = [(name, row) for name, section in self.sections.items() for row in section.rows]
        self.assertGreater(len(rows), 500)
        self.assertEqual([f"line {row.line}: {name}: {row.key}" for name, row in rows if not row.is_printed and not row.is_rare()], [])
        self.assertEqual([f"line {row.line}: {name}: {row.key} is not rare" for name, row in rows if row.is_printed and row.is_rare()], [])

    def test_has_every_key_that_reports_can_write(self):
        known = {name for section in self.sections.values() for row in section.rows for name in row.names}
        for pattern in REPORTS:
            for file in sorted(ROOT.glob(pattern)):
                with self.subTest(file.name):
                    self.assertEqual(sorted(written(file.read_text(encoding="utf-8")) - known), [])


class Observations(unittest.TestCase):
    def test_has_every_column_that_is_read(self):
        code = (ROOT / "validation" / "calibration" / "observations.cpp").read_text(encoding="utf-8")
        columns = re.findall(r'"(\w+)"', re.search(r" column_names = \{([^}]*)\}", code)[1])
        page = (ROOT / "docs" / "observations.md").read_text(encoding="utf-8")
        rows = [name for row in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
        self.assertEqual(sorted([*rows, "latency_ms"]), sorted(columns))  # latency_ms: below the tables
        self.assertIn("m,n,k,latency_ms", page)


class TheTestItself(unittest.TestCase):
    def test_finds_keys(self):
        sections = sections_of("## a\n| `x.{y}` | one |\n| `l[]` | the keys of [b](#b) |\n## b\n| `k_s` | two *Rare:* why |\n")
        self.assertTrue(sections["a"].rows_of(("x",), sections))
        self.assertTrue(sections["a"].rows_of(("x", "any"), sections))
        self.assertFalse(sections["a"].rows_of(("x", "any", "z"), sections))
        self.assertTrue(sections["a"].rows_of(("l", "k_s"), sections))
        self.assertFalse(sections["a"].rows_of(("l", "k"), sections))
        self.assertEqual(list(keys({"a": [{"b": 1}, {"b.c": [2]}]})), [("a",), ("a", "b"), ("a", "b.c")])
        self.assertEqual(written('Json one{{"a", 1}, {"b", Json{{"c", 2}}}};\nrows{{"no", x}}; one.set("d", 3); one.update({{"e", 4}});'), set("abcde"))


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1))
    unittest.main()
