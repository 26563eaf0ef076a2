#!/usr/bin/env python3
"""The runs of the study: what is measured on a lab, as fields of `podsim run`.

usage: runs.py FILE    writes them into a study, validation.textproto, below its line `# Runs`
"""

import pathlib
import random
import sys

MARK = "# Runs, written by validation/lab/runs.py\n"
KiB = 1024

# Where a collective runs. `all`: both axes of 4x4, as one group of 16.
AXES = {"row": ("4x4", "row"), "col": ("4x4", "col"), "all": ("4x4", "row,col"), "row of 8": ("8x2", "row")}
# Inputs in KiB, so that a run takes some 20, 80 and 300 ms, in messages of several packets.
SIZES = {
    "all-gather": {"row": (16, 64, 192), "col": (16, 64, 192), "all": (12, 24, 48), "row of 8": (8, 24, 80)},
    "reduce-scatter": {"row": (64, 256, 768), "col": (64, 256, 768), "all": (64, 192, 640), "row of 8": (64, 192, 640)},
    "all-reduce": {"row": (32, 128, 448), "col": (32, 128, 448), "all": (32, 96, 384), "row of 8": (32, 96, 320)},
    "all-to-all": {"row": (64, 192, 640), "col": (64, 192, 640), "all": (32, 96, 320), "row of 8": (32, 96, 320)},
    "broadcast": {"row": (32, 96, 320), "all": (32, 64, 160), "row of 8": (32, 64, 192)},
    "reduce": {"row": (32, 96, 320), "all": (32, 64, 160), "row of 8": (32, 64, 192)},
    "permute": {"row": (16, 64, 256), "row of 8": (16, 64, 256)},
}
# No two of their messages share a link at a time.
COLLECTIVES = {
    "all-gather": {"ring": ("row", "col", "all", "row of 8"), "ring-one-way": ("row", "row of 8"), "ring-shortest": ("row", "row of 8"), "rotations": ("all",), "hamiltonian-ring": ("all",)},
    "reduce-scatter": {"ring": ("row", "col", "all", "row of 8"), "ring-one-way": ("row of 8",), "rotations": ("all",), "hamiltonian-ring": ("all",)},
    "all-reduce": {"ring": ("row", "col", "all", "row of 8"), "ring-one-way": ("row",), "rotations": ("all",), "hamiltonian-ring": ("all",)},
    "all-to-all": {"ring": ("row", "all", "row of 8"), "rotations": ("all",)},
    "broadcast": {"ring": ("row", "all", "row of 8")},
    "reduce": {"ring": ("row", "all", "row of 8")},
    "permute": {"direct": ("row", "row of 8")},
}
# Here they do.
CONTENDED = {
    "all-gather": {"halving-doubling": ("row", "row of 8"), "direct": ("row", "all")},
    "reduce-scatter": {"halving-doubling": ("row", "row of 8"), "direct": ("all",)},
    "all-reduce": {"halving-doubling": ("row", "row of 8"), "tree": ("row",)},
    "all-to-all": {"direct": ("row", "all", "row of 8"), "pairwise": ("row", "all")},
    "broadcast": {"tree": ("row of 8",)},
    "reduce": {"direct": ("row", "row of 8", "all"), "tree": ("row of 8",)},  # direct: all send to one
}
CHUNKS = {"ring": 4}  # of broadcast and reduce
PERMUTATIONS = 16
MESHES = {"4x4": (2, 4, 8, 16), "8x2": (2, 4, 8), "16x1": (2, 4)}  # and how many slices divide the products
PRODUCTS = {"cube": "m=512,n=512,k=512,dtype=f32", "flat": "m=1024,n=512,k=256,dtype=f32"}
SURVEY_CHUNKS = (16, 4, 2)  # KiB of a stream's messages: 12, 3 and 2 packets
PIPELINES = (("gpipe", 1), ("1f1b", 1), ("eager-1f1b", 1), ("interleaved-1f1b", 2), ("zero-bubble", 1), ("dual-pipe-v", 2))
DAMAGES = {"broken cable": {"fail": "1.1-2.1"}, "half-rate cable": {"degrade": "1.1-2.1=0.5"}, "straggler": {"straggler": "1.2=0.5"}}


def survey(most=1024, line=True):
    """What a fit wants to know of a lab: messages between two neighbours, one way, both ways, and added up on arrival; streams of short ones; and two flows that share
    a cable, on chips in a row, if there is such a row. Inputs of up to `most` KiB."""
    on_two = {"slice": "2", "axis": "row", "dtype": "f32"}
    for size in (most // 8, most // 4, most // 2, most):
        yield f"survey: one way {size}KiB", {**on_two, "collective": "broadcast", "bytes": f"{size}KiB", "algorithm": "ring", "chunks": 1}
        yield f"survey: both ways {size}KiB", {**on_two, "collective": "permute", "bytes": f"{size}KiB", "algorithm": "direct", "shift": 1}
        yield f"survey: both ways and added {size}KiB", {**on_two, "collective": "all-reduce", "bytes": f"{size}KiB", "algorithm": "ring"}
    for chunk in SURVEY_CHUNKS:
        size = most // 4 // chunk * chunk
        yield f"survey: stream of {size}KiB by {chunk}KiB", {**on_two, "collective": "broadcast", "bytes": f"{size}KiB", "algorithm": "ring", "chunks": size // chunk}
    for size in (most // 8, most // 4) if line else ():
        # A flow from the first to the third of four chips, and one from the second to the fourth.
        fields = {"program": "shard_map { Y = ppermute(X, row, [(0, 2), (1, 3)]) as row,- }", "shape": f"X={4 * size}x256", "shard": "X=row,-", "dtype": "f32"}
        yield f"survey: two flows of {size}KiB on one cable", {"slice": "4", "wrap": "none", **fields}


def collective(where, kind, algorithm, size):
    on, axis = AXES[where]
    fields = {"slice": on, "collective": kind, "axis": axis, "bytes": f"{size}KiB", "dtype": "f32", "algorithm": algorithm}
    if kind in ("broadcast", "reduce"):
        fields["chunks"] = CHUNKS.get(algorithm, 1)
    if kind == "permute":
        fields["shift"] = 1
    return fields


def collectives(group, table):
    for kind, algorithms in table.items():
        for algorithm, places in algorithms.items():
            for where in places:
                for size in SIZES[kind][where]:
                    yield f"{group}: {kind} {algorithm} {where} {size}KiB", collective(where, kind, algorithm, size)


def body(statements, rows):
    """A program of one array whose rows are divided over all chips."""
    return {"slice": "4x4", "program": f"shard_map {{ {statements} }}", "shape": f"X={rows}x256", "shard": "X=(row+col),-", "dtype": "f32"}


def permutations():
    draw = random.Random(42)
    for number in range(PERMUTATIONS):
        order = list(range(16))
        draw.shuffle(order)
        pairs = ", ".join(f"({sender}, {receiver})" for sender, receiver in enumerate(order) if sender != receiver)
        for size in (32, 128):
            yield f"contended: permutation {number} {size}KiB", body(f"Y = ppermute(X, (row,col), [{pairs}]) as (row+col),-", 16 * size)


def at_once():
    """Two collectives that begin together, each along its own axis of the mesh; on 2x8 chips of 4x4 both axes use some of the same cables."""
    for mesh in ("row=4,col=4", "row=2,col=8"):
        for size in (16, 48):
            for name, statements in (
                ("all-gathers", "A = all_gather(X, 0, row, tiled) as col,-; B = all_gather(X, 0, col, tiled) as row,-"),
                ("all-reduces", "A = psum(X, row) as col,-; B = psum(X, col) as row,-"),
            ):
                yield f"contended: two {name} at once {mesh} {size}KiB", {**body(statements, 16 * size), "mesh": mesh}


def gemm(mesh, product, algorithm, slices=None, direction="forward"):
    rows, columns = mesh.split("x")
    fields = {"slice": "16" if columns == "1" else mesh, "mesh": f"row={rows},col={columns}", "gemm": PRODUCTS[product], "algorithm": algorithm, "pass": direction}
    return {**fields, "slice_count": slices} if slices else fields


def gemms():
    for mesh, counts in MESHES.items():
        for product in PRODUCTS if mesh != "16x1" else ("cube",):
            for direction in ("forward", "backward") if product == "cube" else ("forward",):
                for algorithm in ("collective", "summa", "wang") + (("cannon",) if mesh == "4x4" else ()):
                    yield f"gemm: {algorithm} {mesh} {product} {direction}", gemm(mesh, product, algorithm, None, direction)
                for slices in counts if product == "cube" else counts[:-1]:
                    yield f"gemm: meshslice S={slices} {mesh} {product} {direction}", gemm(mesh, product, "meshslice", slices, direction)


def training(mesh, **fields):
    devices = 1
    for axis in mesh.split(","):
        devices *= int(axis.split("=")[1])
    return {"slice": "4" if devices == 4 else "4x4", "training": "layers.textproto", "mesh": mesh, "optimizer": "sgd", **fields}


def pipelines():
    for name, stages in PIPELINES:
        for microbatches in (4, 8) if name != "dual-pipe-v" else (8,):
            yield f"pipeline: {name} {microbatches} microbatches", training("stage=4", batch=8, microbatches=microbatches, pipeline=name, virtual_stages=stages)


def fsdp():
    """Layers of the model's width of 64, whose parts on 16 chips are messages of one packet, and of 128."""
    for mesh in ("fsdp=4", "data=4,fsdp=4", "fsdp=16"):
        yield f"fsdp: {mesh} width 64", training(mesh, batch=16, layers=1, heads=4)
        for remat in ("none", "full"):
            yield f"fsdp: {mesh} width 128 remat {remat}", training(mesh, batch=16, layers=1, heads=8, head_dim=16, remat=remat)


def damaged():
    whole = {
        "all-gather ring row 64KiB": collective("row", "all-gather", "ring", 64),
        "all-reduce ring row 128KiB": collective("row", "all-reduce", "ring", 128),
        "all-reduce ring all 96KiB": collective("all", "all-reduce", "ring", 96),
        "all-gather rotations all 24KiB": collective("all", "all-gather", "rotations", 24),
    }
    products = {f"{algorithm} 4x4 cube": gemm("4x4", "cube", algorithm, slices) for algorithm, slices in (("collective", None), ("meshslice", 4), ("summa", None), ("cannon", None), ("wang", None))}
    for damage, fields in DAMAGES.items():
        for name, run in {**({} if damage == "straggler" else whole), **products}.items():
            yield f"damaged: {damage} {name}", {**run, **fields}
    for name, stages in PIPELINES[1:5:2]:
        yield f"damaged: straggler {name} 8 microbatches", {**training("stage=4", batch=8, microbatches=8, pipeline=name, virtual_stages=stages), "straggler": "2=0.5"}


def runs():
    """Name and fields of each, in an order in which those on one lab follow one another."""
    found = [*survey(), *collectives("collective", COLLECTIVES), *collectives("contended", CONTENDED), *permutations(), *at_once(), *gemms(), *pipelines(), *fsdp(), *damaged()]
    if len(dict(found)) != len(found):
        raise AssertionError("two runs have one name")
    return found


def line(name, fields):
    texts = [f'{field}: {value}' if isinstance(value, int) else f'{field}: "{value}"' for field, value in fields.items()]
    return f'run {{ name: "{name}" scenario {{ {" ".join(texts)} }} }}\n'


def section():
    return MARK + "".join(line(name, fields) for name, fields in runs())


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    file = pathlib.Path(sys.argv[1])
    head = file.read_text(encoding="utf-8").partition(MARK)[0]
    file.write_text(head + section(), encoding="utf-8")


if __name__ == "__main__":
    main()
