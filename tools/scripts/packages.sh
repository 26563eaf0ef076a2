# Debian packages that the build and the tests need; sourced by build.sh and test.sh, which say what they are for.
# shellcheck shell=bash

build_packages=(
  g++ cmake ninja-build
  python3                                            # the include check
  libfmt-dev                                         # text
  libboost-dev libboost-program-options-dev          # Boost.Graph and Boost.Math (headers only), command line
  libsimgrid-dev                                     # the reference engine
  libopenblas-pthread-dev                            # the numeric engine; the serial one is not safe to call from threads
  liblapacke-dev libfftw3-dev                        # factorisations and transforms of the numeric engine
  libprotobuf-dev protobuf-compiler                  # machine and schedule files
  libeigen3-dev                                      # fits: validation/calibration/fit
  nlohmann-json3-dev                                 # JSON that is written
  libsimdjson-dev                                    # JSON that is read: traces an event at a time, runs
  libsqlite3-dev                                     # stores of sweeps
  libyaml-cpp-dev                                    # configurations of MaxText
  libpugixml-dev                                     # algorithms of MSCCL
  zlib1g-dev                                         # compressed traces
  libmimalloc-dev                                    # memory of the programs: searches take half the time
  libcairo2-dev fonts-dejavu-core                    # PNG pictures of shardings
  python3-dev pybind11-dev python3-numpy             # the Python module
  libgtest-dev libgmock-dev                          # tests
  libbenchmark-dev                                   # podsim_bench
)
# What a Debian package is made with.
# shellcheck disable=SC2034  # used by the scripts that source this
package_packages=(dpkg-dev file)
# What the tests need besides.
# shellcheck disable=SC2034
test_packages=(
  libopenmpi-dev openmpi-bin           # schedules run for real over MPI
  iproute2                             # labs of network namespaces, on which they run: validation/lab
  parallel                             # launches sweeps in shards
  slurmctld slurmd slurm-client munge  # so does Slurm, of which the test starts a cluster of its own: 3.3 MB
  "${package_packages[@]}"             # the package is tested
  python3-venv                         # JAX, which compiles modules anew: tests/jax_env.sh
  # Clusters, notebooks and tables of the Python module: 96 packages with what they need, 25 MB to download, 119 MB installed.
  python3-distributed python3-nbclient python3-nbconvert python3-ipykernel python3-pandas
)
# Fuzzing is libFuzzer's, which comes with clang.
# shellcheck disable=SC2034
fuzz_packages=(clang libclang-rt-14-dev)

# install_missing PACKAGE...: installs those that are missing; a system without dpkg is left to CMake, which names what it cannot find.
install_missing() {
  if ! command -v dpkg-query > /dev/null; then
    echo "This is no Debian system: the packages are not checked. Needed here, by their Debian names: $*"
    return 0
  fi
  local missing=() package
  for package in "$@"; do
    if [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2> /dev/null)" != installed ]]; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then
    return 0
  fi
  if ((EUID != 0)); then
    echo "Missing packages. Run this as root, then this script again:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 2
  fi
  echo "Installing Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # A machine without network may still have what is needed in its cache, so only the installation decides.
  apt-get update -qq || echo "apt-get update failed; trying with the package lists that are there"
  apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}"
}
