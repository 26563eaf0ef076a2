#!/usr/bin/env python3
"""The pages of this folder: the fields of the text files that people write, from the comments of their .proto files.

usage: make.py [--check] [--protoc PROTOC]

protoc parses the .proto files; its descriptors (--include_source_info) are read in their text form, so that Python needs no package. --check writes
nothing: it prints what would change, and exits with 1 if anything would.
"""

import argparse
import ast
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Page, file, what it is, an option that reads it, an example in the tree.
PAGES = (
    ("machine", "sim/config/machine.proto", "a machine", "--machine FILE", "topologies/machines/tpu_v4.textproto"),
    ("network", "sim/config/network.proto", "a topology of your own", "--topology FILE", "tests/golden/input/network.textproto"),
    ("schedule", "sim/config/schedule.proto", "a schedule", "--schedule FILE", "algorithms/examples/ring_all_gather.textproto"),
    ("scenario", "workloads/scenario/scenario.proto", "what to run", "run --scenario FILE", "workloads/scenario/examples/meshslice.textproto"),
    ("sweep", "tools/sweep/sweep.proto", "a sweep", "sweep FILE", "tools/sweep/examples/gemm.textproto"),
    ("plan", "workloads/scenario/plan.proto", "a plan", "--plan FILE", "tests/golden/input/plan.textproto"),
    ("program", "workloads/scenario/program.proto", "a sharded program", "--program FILE", "algorithms/examples/two_layers.textproto"),
    ("transformer", "workloads/transformer.proto", "a transformer block", "--workload FILE", "workloads/blocks/gpt3-block.textproto"),
    ("model", "workloads/training/model.proto", "a model to train", "--training FILE", "workloads/training/examples/small.textproto"),
    ("study", "validation/validate/study.proto", "what a dataset of measurements is to prove", "validate FOLDER", "validation/datasets/tpu_v5p_ppermute/validation.textproto"),
    ("result", "sim/config/result.proto", "the figures of a run", "run -o FILE", ""),
)
KINDS = {"TYPE_STRING": "text", "TYPE_BOOL": "true or false", "TYPE_DOUBLE": "number", "TYPE_INT32": "integer", "TYPE_INT64": "integer", "TYPE_UINT32": "integer", "TYPE_UINT64": "integer"}
# Numbers of fields in google/protobuf/descriptor.proto, of which paths of locations are made.
SYNTAX, MESSAGE, ENUM = 12, 4, 5  # of a file
FIELD, NESTED, NESTED_ENUM, VALUE = 2, 3, 4, 2  # of a message, of an enum


def parsed(text):
    """Protobuf's text form as {name: [value, ...]}, where a value is such a dict, or a text."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[{}]|[^\s{}:"]+', text)
    top, at = {}, 0
    stack = [top]
    while at < len(tokens):
        if tokens[at] == "}":
            stack.pop()
            at += 1
        elif tokens[at + 1] == "{":
            inner = {}
            stack[-1].setdefault(tokens[at], []).append(inner)
            stack.append(inner)
            at += 2
        else:
            value = tokens[at + 1]
            stack[-1].setdefault(tokens[at], []).append(ast.literal_eval("b" + value).decode() if value[0] == '"' else value)
            at += 2
    return top


def descriptors(protoc):
    """By file name."""
    with tempfile.NamedTemporaryFile() as found:
        files = [page[1] for page in PAGES]
        subprocess.run([protoc, f"-I{ROOT}", "--include_imports", "--include_source_info", f"--descriptor_set_out={found.name}", *files], cwd=ROOT, check=True)
        with open(found.name, "rb") as data:
            text = subprocess.run(
                [protoc, "--decode=google.protobuf.FileDescriptorSet", "google/protobuf/descriptor.proto"], stdin=data, stdout=subprocess.PIPE, check=True
            ).stdout.decode()
    return {file["name"][0]: file for file in parsed(text)["file"]}


def one(message, name, otherwise=""):
    return message.get(name, [otherwise])[0]


def lines(text):
    """A comment as one line of Markdown."""
    return " ".join(text.split())


def cell(text):
    return lines(text).replace("|", "\\|")


def of_list(text):
    """A comment as Markdown: indented lines are a list, and two spaces in them a colon."""
    out = []
    for line in text.rstrip().split("\n"):
        is_item, was_item = line.startswith("   "), bool(out) and out[-1].startswith("* ")
        if is_item != was_item and out:
            out.append("")
        out.append("* " + re.sub(r"  +", ": ", line.strip()) if is_item else lines(line))
    return "\n".join(out)


def types_in(message, full, kind):
    """(full name, message or enum, its place) of all that a message has in it, itself first. A message of nothing but an enum is that enum."""
    if "field" in message or "enum_type" not in message:
        yield full, message, kind
    for number, inner in enumerate(message.get("nested_type", [])):
        yield from types_in(inner, f"{full}.{one(inner, 'name')}", (*kind, NESTED, number))
    for number, enum in enumerate(message.get("enum_type", [])):
        yield f"{full}.{one(enum, 'name')}", enum, (*kind, NESTED_ENUM, number)


def types_of(file):
    package = "." + one(file, "package")
    for number, message in enumerate(file.get("message_type", [])):
        yield from types_in(message, f"{package}.{one(message, 'name')}", (MESSAGE, number))
    for number, enum in enumerate(file.get("enum_type", [])):
        yield f"{package}.{one(enum, 'name')}", enum, (ENUM, number)


def headings_of(file):
    """By full name: the shortest end of it that is like no other's. An enum that stands alone in a message has the message's."""
    package = "." + one(file, "package") + "."
    names = {full: full.removeprefix(package).removesuffix(".Name").split(".") for full, *_ in types_of(file)}
    ends = [name[-1] for name in names.values()]
    return {full: name[-1] if ends.count(name[-1]) == 1 else ".".join(name) for full, name in names.items()}


class Page:
    def __init__(self, name, file, place_of_type):
        self.name, self.file, self.place_of_type = name, file, place_of_type
        self.comments = {tuple(map(int, at.get("path", []))): at for at in one(file, "source_code_info", {}).get("location", [])}

    def comment(self, path, kind):
        return one(self.comments.get(path, {}), f"{kind}_comments")

    def type_of(self, field):
        kind = one(field, "type")
        if kind not in ("TYPE_MESSAGE", "TYPE_ENUM"):
            return KINDS[kind]
        page, heading = self.place_of_type[one(field, "type_name")]
        return f"[{heading}]({'' if page == self.name else page + '.md'}#{heading.lower().replace('.', '')})"

    def field_row(self, field, path):
        name, label = one(field, "name"), one(field, "label")
        default = one(field, "default_value")
        words = [cell(self.comment(path, "trailing"))] if self.comment(path, "trailing").strip() else []
        if default:
            words.append(f"left out: {default}")
        number = {"LABEL_REQUIRED": "once", "LABEL_OPTIONAL": "at most once", "LABEL_REPEATED": "any number"}[label]
        before = self.comment(path, "leading").strip()
        rows = [f"| *{cell(before)}* | | | |"] if before else []
        return [*rows, f"| `{name}` | {self.type_of(field)} | {number} | {'; '.join(words)} |"]

    def type(self, full, message, path):
        before = "\n".join(part for part in (self.comment(path, "leading"), self.comment(path, "trailing")) if part.strip())
        text = [f"## {self.place_of_type[full][1]}", "", *([of_list(before), ""] if before.strip() else [])]
        if "field" in message:
            text += ["| field | value | how often | meaning |", "|---|---|---|---|"]
            for number, field in enumerate(message["field"]):
                text += self.field_row(field, (*path, FIELD, number))
            text.append("")
        if "value" in message:
            text += ["| word | meaning |", "|---|---|"]
            for number, value in enumerate(message["value"]):
                place = (*path, VALUE, number)
                text.append(f"| `{one(value, 'name')}` | {cell(self.comment(place, 'leading') + self.comment(place, 'trailing'))} |")
            text.append("")
        return text

    def text(self, what, option, example):
        source = one(self.file, "name")
        text = [f"<!-- made by make.py of {source} -->", f"# {what[0].upper()}{what[1:]}", "", of_list(self.comment((SYNTAX,), "leading")), ""]
        read_by = f"Option `{option}`" if option.startswith("-") else f"`podsim {option}`"
        text += [read_by + (f" · example: [{example}](../../{example})" if example else "") + f" · made from [{source}](../../{source})", ""]
        for full, message, path in types_of(self.file):
            text += self.type(full, message, path)
        return "\n".join(text).rstrip("\n") + "\n"


def pages(protoc):
    """By file name."""
    files = descriptors(protoc)
    place_of_type = {full: (name, heading) for name, source, *_ in PAGES for full, heading in headings_of(files[source]).items()}
    made = {f"{name}.md": Page(name, files[source], place_of_type).text(what, option, example) for name, source, what, option, example in PAGES}
    rows = "\n".join(f"| [{name}]({name}.md) | {what} | `{option}` | {f'[example](../../{example})' if example else ''} |" for name, _, what, option, example in PAGES)
    made["README.md"] = (HERE / "README.md.in").read_text(encoding="utf-8").replace("@PAGES@", rows)
    return made


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--protoc", default="protoc")
    arguments = parser.parse_args()
    status = 0
    for name, text in pages(arguments.protoc).items():
        file = HERE / name
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        if before != text:
            status = 1
            if arguments.check:
                print(*difflib.unified_diff(before.splitlines(), text.splitlines(), f"docs/schema/{name}", "docs/schema/make.py", lineterm=""), sep="\n")
            else:
                file.write_text(text, encoding="utf-8")
    return status if arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
