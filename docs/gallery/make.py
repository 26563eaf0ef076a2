#!/usr/bin/env python3
"""The pictures of this folder and README.md, which shows them with the commands that make them.

usage: make.py PODSIM [--check] [--report]

Commands run in order, in a folder of their own in which the repository's folders can be seen. --check writes nothing: it prints which files would change, and
exits with 1 if any would. --report also makes report.png, a screenshot by Chromium, which --check only weighs.
"""

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MOST_BYTES = 200_000  # of a file

REPORTED = (
    "podsim run --machine tpu_v4 --slice 4x4x4 --mesh row=16,col=4 --gemm m=65536,n=16384,k=16384 --algorithm meshslice --slice-count 8 --record meshslice.record",
    "podsim report meshslice.record -o meshslice.html",
)
# Picture, what it shows, and the commands: the last one writes it.
PICTURES = (
    ("sharding.svg", "A sharded array: rows over `x`, columns over `y`", ("podsim show sharding --array 16x16 --mesh x=4,y=2 --spec x,y -o sharding.svg",)),
    (
        "replicated.svg",
        "Rows over two axes, `z` first; each block is on two devices",
        ("podsim show sharding --array 16x16 --mesh x=2,y=2,z=2 --spec '(z+x),-' -o replicated.svg",),
    ),
    ("pipeline.svg", "A pipeline: one forward, one backward", ("podsim show pipeline --schedule 1f1b --stages 4 --microbatches 8 -o pipeline.svg",)),
    (
        "zero_bubble.svg",
        "The same without most of the bubble: gradients of weights fill it",
        ("podsim show pipeline --schedule zero-bubble --stages 4 --microbatches 8 -o zero_bubble.svg",),
    ),
    (
        "dual_pipe_v.svg",
        "Two stages on each rank, laid out as a V",
        ("podsim show pipeline --schedule dual-pipe-v --stages 8 --microbatches 8 -o dual_pipe_v.svg",),
    ),
    (
        "fit.svg",
        "A machine fitted to NCCL's times on eight A100",
        ("podsim calibrate validation/datasets/a100_8_nccl/observations.csv --base dgx_a100 --slice 1x8 --plot fit.svg",),
    ),
    ("report.png", "A page about a run, for the browser (the upper part)", REPORTED),
)
# Pictures elsewhere in the tree, that other scripts make and check.
ELSEWHERE = (
    ("validation/validate/validation.svg", "Predictions against measurements, all datasets", "podsim validate --plot validation/validate/validation.svg"),
    ("validation/studies/imperfect/imperfect.svg", "What a broken cable and slow chips cost on 4,096 chips", "validation/studies/imperfect/run.sh"),
    ("validation/studies/nodes/nodes.svg", "All-reduces on 1 to 256 nodes of eight H100", "validation/studies/nodes/run.sh"),
    ("tools/bench/growth.svg", "CPU seconds of podsim over chips", "tools/bench/growth.py"),
)


def page():
    parts = ["<!-- made by make.py -->\n# Gallery\n\nPictures, and the commands that make them. `python3 docs/gallery/make.py build/podsim` draws those of this folder anew; a test holds them to be current.\n"]
    for name, what, commands in PICTURES:
        parts += [f"## {what}\n", *(f"    {command}" for command in commands), f"\n![{what}]({name})\n"]
    for name, what, command in ELSEWHERE:
        parts.append(f"## {what}\n\nBy `{command}`:\n\n![{what}](../../{name})\n")
    return "\n".join(parts)


def screenshot(html, png):
    subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1200,1400", f"--screenshot={png}", html.as_uri()],
        check=True,
        stderr=subprocess.DEVNULL,
    )


def made(podsim, with_report):
    """Bytes by file name."""
    files = {"README.md": page().encode()}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for entry in ROOT.iterdir():
            if entry.is_dir() and not entry.name.startswith((".", "build")):
                (folder / entry.name).symlink_to(entry)
        for picture, _, commands in PICTURES:
            if picture == "report.png" and not with_report:
                continue
            for command in commands:
                subprocess.run([podsim, *shlex.split(command)[1:]], cwd=folder, stdout=subprocess.DEVNULL, check=True)
            if picture == "report.png":
                screenshot(folder / "meshslice.html", folder / picture)
            files[picture] = (folder / picture).read_bytes()
    return files


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("podsim")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    status = 0
    for name, data in made(os.path.abspath(arguments.podsim), arguments.report and not arguments.check).items():
        file = HERE / name
        if arguments.check and (not file.exists() or file.read_bytes() != data):
            print(f"docs/gallery/{name} is not what docs/gallery/make.py makes: run it, and look at the difference")
            status = 1
        if not arguments.check:
            file.write_bytes(data)
    for name, *_ in PICTURES:
        size = (HERE / name).stat().st_size if (HERE / name).exists() else 0
        if not 0 < size <= MOST_BYTES:
            print(f"docs/gallery/{name} has {size} bytes, and should have 1 to {MOST_BYTES}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
