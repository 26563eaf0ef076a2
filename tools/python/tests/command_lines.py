"""Command lines of `podsim`, as READMEs have them, and the calls of the module that they are: --slice-count 8 is slice_count=8."""

import pathlib
import re
import shlex

from podsim._errors import keyword_of
from podsim._help import command_of
from podsim._words import options

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
# What other words without a name are; a tuple: the first, the second.
POSITIONAL = {
    "run": "training",
    "check": "training",
    "tune": "training",
    "show_training": "training",
    "show_plan": "plan",
    "show_hlo": "hlo",
    "diff": "plan",
    "calibrate": "observations",
    "diagnose": "observations",
    "show_topology": "topology",
    "validate": "dataset",
    "report": "record",
    "compare": ("hlo", "with_"),
}


def commands_in(readme):
    """The commands of the blocks of a README: those of its lines that begin with four spaces and `podsim`, and the lines that these go on in."""
    commands, goes_on = [], False
    for line in pathlib.Path(readme).read_text(encoding="utf-8").splitlines():
        if not goes_on and not line.startswith("    podsim "):
            continue
        text = re.sub(r"\s+# .*", "", line).strip()
        commands.append(commands.pop() + " " + text if goes_on else text)
        goes_on = commands[-1].endswith("\\")
        if goes_on:
            commands[-1] = commands[-1].rstrip("\\").strip()
    return commands


def number(text):
    """A number where its text is the one that Python writes, else the text."""
    for kind in (int, float):
        try:
            if str(kind(text)) == text:
                return kind(text)
        except ValueError:
            pass
    return text


def by_comma(text):
    """A list of words or numbers; one of them alone."""
    values = [number(part) for part in text.split(",")]
    return values if len(values) > 1 else values[0]


def extents(text):
    return tuple(map(int, text.split("x"))) if re.fullmatch(r"\d+(x\d+)*", text) else text


def sharding(text):
    """A PartitionSpec, as JAX has it: x,-,(y+z) is ("x", None, ("y", "z"))."""
    entries = text.split(",")
    return tuple(None if entry == "-" else tuple(entry[1:-1].split("+")) if entry.startswith("(") else entry for entry in entries)


def pairs(texts, value, separator):
    """A dict of NAME=VALUE."""
    return {name.strip(): value(text) for entry in texts for part in entry.split(separator) for name, text in [part.split("=", 1)]}


def gemm(text):
    sizes = pairs([text], number, ",")
    return tuple(sizes.values()) if list(sizes) in (["m", "n", "k"], ["m", "n", "k", "dtype"]) else sizes


def python_value(option, texts):
    """What somebody who writes Python gives for the texts of an option."""
    name, text = option.name, texts[0]
    if option.on_off:
        return text == "on"
    if name == "set":
        return pairs(texts, str, "\n")
    if name == "vary":
        return pairs(texts, by_comma, "\n")
    if name == "mesh" and "=" in text:
        meshes = [pairs([each], number, ",") for each in texts]
        return meshes if len(meshes) > 1 else meshes[0]
    if name == "gemm":
        gemms = [gemm(each) for each in texts]
        return gemms if len(gemms) > 1 else gemms[0]
    if name in ("shard", "out", "shape"):
        return pairs(texts, sharding if name != "shape" else extents, ";")
    if name == "spec":
        return sharding(text)
    if name in ("slice", "array"):
        slices = [extents(part) for part in text.split(",")]
        return slices if len(slices) > 1 else slices[0]
    if name in ("program", "equals", "axis_names", "crossover", "query"):
        return text
    values = [by_comma(each) for each in texts]
    return values if len(values) > 1 else values[0]


def call_of(command):
    """The function of the module and its keywords. The option --format is none of them, and left out."""
    verb, *words = shlex.split(command)[1:]
    if verb == "show":
        verb = "schedule" if words[0] == "schedule" else f"show_{words[0]}"
        del words[0]
    known = options(*command_of(verb))
    texts = {}
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            name = "collective" if word in COLLECTIVES else POSITIONAL[verb]
            if isinstance(name, tuple):
                name = next(each for each in name if each not in texts)
            texts.setdefault(name, []).append(word)
            continue
        name, equals, text = word.partition("=")
        name = "output" if name == "-o" else keyword_of(name.removeprefix("--"))
        if name in known and known[name].kind == "flag":
            texts[name] = True
            continue
        if not equals:
            text = words.pop(0)
        if name != "format":
            texts.setdefault(name, []).append(text)
    return verb, {name: value if value is True else python_value(known[name], value) for name, value in texts.items()}
