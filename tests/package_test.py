#!/usr/bin/env python3
"""The Debian packages, unpacked into a folder: what they hold works from any directory for a user who is not root, and they say what they depend on. Where
lintian is installed, it finds no error in them.

usage: package_test.py CPACK_CONFIG SCRATCH
"""

import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77  # CTest's SKIP_RETURN_CODE
LOADED_LATER = ["libopenblas0-pthread", "libfftw3-single3", "libfftw3-double3", "libcairo2"]
EXPECTED_DEPENDENCIES = {"podsim": [*LOADED_LATER, "libc6", "libsimgrid", "libprotobuf"],
                         "python3-podsim": [*LOADED_LATER, "libc6", "libsimgrid", "libprotobuf", "python3-numpy", "python3 (>= 3.", "python3 (<< 3."],
                         "libpodsim-dev": ["podsim (= ", "libfmt-dev", "libprotobuf-dev"]}
EXPECTED_FILES = ["usr/bin/podsim", "usr/share/podsim/machines/tpu_v4.textproto", "usr/share/podsim/datasets/h100_16_nccl", "usr/lib/cmake/podsim/podsimConfig.cmake",
                  "usr/share/podsim/launch/slurm_sweep.sh", "usr/share/podsim/launch/shard.sbatch", "usr/share/podsim/launch/merge.sbatch", "usr/share/podsim/launch/parallel_sweep.sh",
                  "usr/include/podsim/workloads/scenario/scenario.hpp", "usr/lib/podsim/podsim_simgrid.so", "usr/share/doc/podsim/docs/tutorial.md",
                  "usr/share/man/man1/podsim.1.gz", "usr/share/man/man1/podsim-run.1.gz", "usr/share/man/man1/podsim-show-mesh.1.gz",
                  "usr/share/bash-completion/completions/podsim", "usr/share/zsh/vendor-completions/_podsim"]


def as_nobody():
    """For subprocess: another user, if this one is root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def output_of(*command, **how):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"package_test.py: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def main():
    config, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for program in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
        if shutil.which(program) is None:
            print(f"package_test.py: skipped: there is no {program} (Debian package dpkg-dev)")
            return SKIPPED
    shutil.rmtree(scratch, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:  # where other users may go: the build folder may be root's alone
        os.chmod(folder, 0o755)
        return test(config, scratch, pathlib.Path(folder))


def test(config, scratch, root):
    output_of("cpack", "--config", config, "-B", scratch / "package")
    packages = {package.name.partition("_")[0]: package for package in (scratch / "package").glob("*.deb")}
    if sorted(packages) != sorted(EXPECTED_DEPENDENCIES):
        sys.exit(f"package_test.py: expected the packages {sorted(EXPECTED_DEPENDENCIES)}, found {sorted(packages)}")
    wrong = []
    for name, package in packages.items():
        depends = output_of("dpkg-deb", "--field", package, "Depends")
        output_of("dpkg-deb", "--extract", package, root)
        wrong += [f"{name} does not depend on {dependency}" for dependency in EXPECTED_DEPENDENCIES[name] if dependency not in depends]
        wrong += [f"{name} has no {file}" for file in ("copyright", "changelog.gz") if not (root / "usr/share/doc" / name / file).exists()]
        print(f"{package.name}: {package.stat().st_size} bytes. Depends: {depends}", end="")
    wrong += [f"there is no {name}" for name in EXPECTED_FILES if not (root / name).exists()]
    modules = list(root.glob("usr/lib/python3/dist-packages/podsim/_core*.so"))
    wrong += [] if len(modules) == 1 else [f"there are {len(modules)} Python modules, expected 1"]
    for script in [*root.glob("usr/share/podsim/launch/*.sh"), *root.glob("usr/share/podsim/launch/*.sbatch")]:
        output_of("bash", "-n", script)
    if shutil.which("lintian") is not None:
        told = subprocess.run(["lintian", "--allow-root", "--tag-display-limit", "0", *packages.values()], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        wrong += [line for line in told.splitlines() if line.startswith("E:")]
    if wrong:
        sys.exit("package_test.py:\n" + "\n".join(wrong))
    output_of(sys.executable, pathlib.Path(__file__).with_name("library_paths_test.py"), root)
    home = {"cwd": "/", "env": {"PATH": f"{root}/usr/bin:/usr/bin:/bin", "PYTHONPATH": str(modules[0].parent.parent), "HOME": "/nonexistent"}, **as_nobody()}
    gemm = ["--machine", "tpu_v4", "--slice", "4x4", "--gemm", "m=4096,n=4096,k=4096", "--algorithm", "collective"]
    table = output_of("podsim", "run", *gemm, **home)
    output_of("podsim", "tune", "--machine", str(root / EXPECTED_FILES[1]), "--chips", "16", "--workload", "llama3-8b-mlp", "--top", "1", **home)
    # What is loaded when it is needed: SimGrid, OpenBLAS, FFTW.
    output_of("podsim", "run", *gemm, "--engine", "simgrid", **home)
    output_of("podsim", "check", "--mesh", "row=2,col=2", "--gemm", "m=64,n=64,k=64", "--algorithm", "collective", **home)
    output_of("/usr/bin/python3", "-B", "-c", "import podsim; podsim.run('tpu_v4', slice='4x4', gemm=(4096, 4096, 4096), algorithm='collective', engine='simgrid')", **home)
    told = output_of("/usr/bin/python3", "-B", "-c", "import podsim; r = podsim.run('tpu_v4', slice='4x4', gemm=(4096, 4096, 4096), algorithm='collective'); print(r.table())", **home)
    masked = [re.sub(r"simulated in .*", "", text) for text in (table, told.rstrip("\n") + "\n")]
    if masked[0].strip() != masked[1].strip():
        sys.exit(f"package_test.py: the command says\n{table}\nand Python\n{told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
