#!/usr/bin/env bash
# Builds the fuzz programs and runs each of them.
#
# usage: tools/scripts/fuzz.sh [SECONDS [SEED]]     SECONDS of each program, 10 if not given; SEED 1 if not given
#
# A program starts from the inputs in the folder <name>_corpus beside its source, if there is one; new inputs are not written back there.
# A finding stays in build/fuzz/findings/. Run it with an hour and other seeds to look for new ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds="${1:-10}"
seed="${2:-1}"
if ! [[ "$seconds" =~ ^[1-9][0-9]*$ && "$seed" =~ ^[1-9][0-9]*$ ]]; then
  echo "fuzz.sh: error: expected positive whole numbers, got \"$seconds\" seconds and seed \"$seed\"" >&2
  exit 2
fi

cmake --preset fuzz > /dev/null
cmake --build --preset fuzz

findings="$PWD/build/fuzz/findings"
mkdir -p "$findings"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

failed=0
programs=0
# CMake writes one x_fuzz.source for each fuzz program; programs of sources that have been removed since have none that exists.
for record in build/fuzz/fuzz-targets/*_fuzz.source; do
  if [[ ! -e "$record" || ! -e "$(< "$record")" ]]; then
    continue
  fi
  name="$(basename "$record" .source)"
  fuzz_source="$(< "$record")"
  corpus="$scratch/$name"
  log="$scratch/$name.log"
  mkdir "$corpus"
  if [[ -d "${fuzz_source%.cpp}_corpus" ]]; then
    cp -r "${fuzz_source%.cpp}_corpus/." "$corpus"
  fi
  programs=$((programs + 1))
  if "build/fuzz/fuzz-targets/$name" "$corpus" -max_total_time="$seconds" -seed="$seed" -timeout=25 -rss_limit_mb=2048 \
    -artifact_prefix="$findings/$name-" > "$log" 2>&1 < /dev/null; then
    echo "fuzz.sh: $name: $(tail -n 1 "$log")"
  else
    failed=$((failed + 1))
    tail -n 60 "$log"
    echo "fuzz.sh: $name FAILED; repeat with: build/fuzz/fuzz-targets/$name build/fuzz/findings/$name-*"
  fi
done
echo "fuzz.sh: $programs programs, $failed failed"
exit $((failed > 0))
