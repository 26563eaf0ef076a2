#!/usr/bin/env bash
# Everything that has to hold before a change is accepted; the automatic checks run this and nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat << 'TEXT'
usage: ./test.sh [--quick] [--fuzz-seconds N]

Installs the missing Debian packages (as root; otherwise names them and stops with status 2), then
  * builds with the address and undefined-behaviour sanitizers, and runs all unit tests so,
  * builds optimised, and runs so what is no unit test (golden command lines, Python, the installed package ...) and the unit tests of those programs that
    try fewer cases where there are sanitizers: each case that is claimed runs at least once,
  * checks the layers of the code base (who may include whom), and that files compile one by one: those of the last commit and one in 56 of the others.
Installs JAX from PyPI into build/jax as well, 490 MB, for a test that compiles modules of TPUs and GPUs anew; without network that test is skipped.
Ends with a summary; exit status 0 if all of it holds, 1 if not. A second run builds only what has changed.
  --quick             everything optimised, all unit tests as well; without sanitizers, JAX, and without compiling files one by one
  --fuzz-seconds N    also fuzzes every reader of input, N seconds each; a third build of everything, by clang
TEXT
}

quick=false
fuzz_seconds=0
while (($# > 0)); do
  case "$1" in
    --quick) quick=true ;;
    --fuzz-seconds)
      fuzz_seconds="${2:-}"
      if ! [[ "$fuzz_seconds" =~ ^[1-9][0-9]*$ ]]; then
        echo "test.sh: error: --fuzz-seconds needs a positive whole number, got \"$fuzz_seconds\"" >&2
        exit 2
      fi
      shift
      ;;
    -h | --help) usage && exit 0 ;;
    *)
      echo "test.sh: error: unknown option \"$1\"" >&2
      usage >&2
      exit 2
      ;;
  esac
  shift
done

# Nothing here may wait for a person.
exec < /dev/null

# shellcheck source=tools/scripts/packages.sh
source tools/scripts/packages.sh
packages=("${build_packages[@]}")
if ! $quick; then packages+=("${test_packages[@]}"); fi
if ((fuzz_seconds > 0)); then packages+=("${fuzz_packages[@]}"); fi
install_missing "${packages[@]}"

jobs="$(nproc)"
summary=()
failed_outputs=()
failures=0
log="$(mktemp)"
jax_log="$(mktemp)"
jax_process=""
trap 'rm -f "$log" "$jax_log"; if [[ -n "$jax_process" ]]; then kill "$jax_process" 2> /dev/null || true; fi' EXIT

# JAX is installed while the first build runs; an index that does not answer costs no more than this.
if ! $quick && [[ -z "${PODSIM_JAX:-}" ]]; then
  timeout 600 tests/jax_env.sh build/jax > "$jax_log" 2>&1 &
  jax_process="$!"
fi

# Names the Python with JAX to the test that needs it. JAX that is not to be had fails nothing: the test is skipped, and the summary says so.
use_jax() {
  local status=0
  if [[ -z "$jax_process" ]]; then return; fi
  wait "$jax_process" || status=$?
  jax_process=""
  if ((status == 0)); then
    export PODSIM_JAX="$PWD/build/jax/bin/python"
    return
  fi
  echo
  echo "== JAX: tests/jax_env.sh build/jax ended with status $status"
  cat "$jax_log"
  local reason
  # What keeps pip from the index says more than its last words, that nothing matches.
  reason="$(grep -oE "(Failed to establish|Connection (refused|reset|aborted)|[Rr]ead timed out|HTTP error|No space left)[^')]*" "$jax_log" | tail -n 1 || true)"
  if [[ -z "$reason" ]]; then reason="$(grep -v '^$' "$jax_log" | tail -n 1 || true)"; fi
  if ((status == 124)); then reason="not installed in 600 s"; fi
  summary+=("$(printf '%-8s%-17s%10s %s' skipped aot_modules "" "no JAX: ${reason:-tests/jax_env.sh ended with status $status}")")
}

# The failed tests in a log of ctest: the name and the last lines of the output of each.
failed_tests() {
  awk '/^ *[0-9]+\/[0-9]+ Test +#[0-9]+:/ { kept = /\*\*\*(Failed|Timeout|Exception|Not Run)/; gsub(/\.\.\.+/, "...") }
       /^ +Start +[0-9]+:/ { kept = 0 }
       kept && /\*\*\*/ { tests++ }
       kept { line[tests, ++lines[tests]] = $0 }
       END { for (t = 1; t <= tests; t++) {
               print line[t, 1]
               for (l = lines[t] > 41 ? lines[t] - 40 : 2; l <= lines[t]; l++) print line[t, l] } }' "$1"
}

# step NAME COMMAND...: runs a command, shows its output, keeps one line for the summary. A failure does not stop the others, so that one
# run tells everything that is wrong.
step() {
  local name="$1" began="$SECONDS" status=0 result outcome
  shift
  echo
  echo "== $name: $*"
  "$@" 2>&1 | tee "$log" || status=$?
  # The line by which a tool sums itself up, where it has one.
  result="$(grep -E '^([0-9]+% tests passed|fuzz\.sh: [0-9]+ programs|check_includes: [0-9]+ includes|check_each_file: [0-9]+ of)' "$log" | tail -n 1 || true)"
  if ((status == 0)); then
    outcome="ok"
  else
    outcome="FAILED"
    failures=$((failures + 1))
    failed_outputs+=("== $name" "$(failed_tests "$log")" "$(grep -E -A 8 '^\[  FAILED  \]|: Failure$|ERROR: (Address|Leak)Sanitizer|runtime error:' "$log" |
      tail -n 80 || true)" "$(tail -n 12 "$log")")
  fi
  summary+=("$(printf '%-7s%-18s%6d s   %s' "$outcome" "$name" $((SECONDS - began)) "$result")")
  return "$status"
}

# build PRESET [TARGET]
build() {
  cmake --preset "$1" && cmake --build --preset "$1" ${2:+--target "$2"}
}

each_file() {
  cmake --preset developer && cmake --build --preset developer --target podsim_generated && python3 tools/scripts/check_each_file.py
}

# Programs of unit tests that the sanitized build tries whole (cmake/podsim_targets.cmake) are neither built nor run a second time here.
optimised_target=()
optimised_tests=()
if ! $quick; then
  optimised_target=(podsim_but_whole_when_sanitized)
  optimised_tests=(-LE '^unit_whole_when_sanitized$' -E '_NOT_BUILT$')
fi

# Tests of something that did not build would only hide the reason.
if step "release build" build release "${optimised_target[@]}"; then
  use_jax
  # One more than there are processors: some tests mostly wait, for signals, servers and terminals.
  step "release tests" ctest --preset release -j "$((jobs + 1))" "${optimised_tests[@]}" || true
fi
step "include check" python3 tools/scripts/check_includes.py || true
if ! $quick; then
  step "each file" each_file || true
  if step "sanitize build" build sanitize; then
    step "sanitize tests" ctest --preset sanitize -j "$jobs" || true
  fi
fi
if ((fuzz_seconds > 0)) && step "fuzz build" build fuzz; then
  step "fuzz" tools/scripts/fuzz.sh "$fuzz_seconds" || true
fi

echo
echo "== summary"
printf '%s\n' "${summary[@]}"
if ((failures > 0)); then
  printf '%s\n' "${failed_outputs[@]}"
  echo "test.sh: $failures failed, after $SECONDS s"
  exit 1
fi
echo "test.sh: everything passed, after $SECONDS s"
