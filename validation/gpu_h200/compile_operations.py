"""The operations of measure.py as modules of a GPU that is not there: operations.json.gz, of each row of measured.csv its compiled text.

    build/jax/bin/python validation/gpu_h200/compile_operations.py   # tests/jax_env.sh build/jax makes the environment

XLA compiles them for the H100 that tools/python/podsim/jax/targets describes, without autotuning: the H200 has the same cores. What it cannot compile without a GPU is said and
left out; attention by cuDNN is not asked for.
"""
import concurrent.futures
import gzip
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "aot")]


def main():
    import make
    import os
    import tempfile
    os.environ |= make.ENVIRONMENT
    sys.argv[1:] = [tempfile.mkdtemp()]
    import jax
    import measure
    device = make.devices_of("h100", [1, 1], 1)[0]
    sharding = jax.sharding.SingleDeviceSharding(device)

    def compiled(number, pending):
        what, function, arguments, dtype, _, _, parameters = pending
        key = json.dumps([what, dtype, parameters])
        try:
            shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding), jax.eval_shape(arguments))
            def named(*a):
                return function(*a)
            named.__name__ = f"op{number}x"
            text = jax.jit(named).lower(*shapes).compile().as_text()
            # Tables of source lines and the notes that point into them are nothing that a cost depends on.
            text = re.sub(r", metadata=\{[^}]*\}", "", re.sub(r"(?ms)^(FileNames|FunctionNames|FileLocations|StackFrames)\n.*?\n\n", "", text))
            return key, text
        except Exception as error:
            print("left out:", what, dtype, parameters, repr(error)[:160], flush=True)
            return key, None
    pending = [row for section in (measure.operations(), measure.products()) for row in section.pending]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = pool.map(compiled, range(len(pending)), pending)
        modules = {key: text for key, text in done if text}
    print(len(modules), "of", len(pending))
    (HERE / "operations.json.gz").write_bytes(gzip.compress(json.dumps(modules, indent=0).encode(), 9, mtime=0))


main()
