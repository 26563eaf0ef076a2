#!/usr/bin/env bash
# Kills a sweep (kill -9) at random moments, resumes it each time, and compares what it exports with what an undisturbed one does, byte for byte.
#
# usage: tools/scripts/kill_sweep.sh [KILLS [SEED [PODSIM [SWEEP]]]]     20 kills, seed 1, build/podsim, tools/sweep/examples/gemm.textproto
#
# Exit status 0: the same bytes, and no kill lost a point that was stored.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

kills="${1:-20}"
seed="${2:-1}"
podsim="${3:-build/podsim}"
sweep="${4:-tools/sweep/examples/gemm.textproto}"
if ! [[ "$kills" =~ ^[1-9][0-9]*$ && "$seed" =~ ^[0-9]+$ && -x "$podsim" && -r "$sweep" ]]; then
  echo "kill_sweep.sh: error: expected [KILLS [SEED [PODSIM [SWEEP]]]], see the head of this file" >&2
  exit 2
fi
RANDOM=$seed
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

known_points() {
  "$podsim" sweep --store "$1" --query "SELECT count(*) FROM points WHERE key IS NOT NULL OR reason IS NOT NULL" --format csv 2> /dev/null | tail -n 1
}

begin="$(date +%s%N)"
"$podsim" sweep "$sweep" --store "$scratch/undisturbed.sqlite" > /dev/null
whole_ns=$(($(date +%s%N) - begin))
"$podsim" sweep --store "$scratch/undisturbed.sqlite" --export csv -o "$scratch/undisturbed.csv"
echo "undisturbed: $(known_points "$scratch/undisturbed.sqlite") points in $((whole_ns / 1000000)) ms"

# A round ends when the sweep does; the next one begins anew, until there were as many kills as asked for.
round=0
done_kills=0
while ((done_kills < kills)); do
  store="$scratch/round_$round.sqlite"
  known=0
  for ((;;)); do
    "$podsim" sweep "$sweep" --store "$store" > /dev/null 2>> "$scratch/errors" &
    child=$!
    # Mostly within the first half of what an undisturbed sweep takes, so that a round has several kills.
    sleep "$(awk -v ns="$whole_ns" -v part="$((RANDOM % 1000))" 'BEGIN { printf "%.4f", ns * part / 1000 * 0.5 / 1e9 }')"
    if ((done_kills >= kills)) || ! kill -9 "$child" 2> /dev/null; then
      wait "$child"
      break
    fi
    status=0
    wait "$child" 2> /dev/null || status=$?
    if ((status != 137)); then
      break # it had ended by itself
    fi
    done_kills=$((done_kills + 1))
    now="$(known_points "$store" || true)" # killed before there was a table: nothing
    now="${now:-0}"
    echo "round $round, kill $done_kills: $now points stored"
    if ((now < known)); then
      echo "kill_sweep.sh: FAILED: $known points were stored before" >&2
      exit 1
    fi
    known=$now
  done
  "$podsim" sweep --store "$store" --export csv -o "$store.csv"
  if ! cmp "$store.csv" "$scratch/undisturbed.csv"; then
    echo "kill_sweep.sh: FAILED: round $round exports other bytes" >&2
    exit 1
  fi
  echo "round $round: resumed to its end, the same $(wc -c < "$store.csv") bytes"
  round=$((round + 1))
done
if [[ -s "$scratch/errors" ]]; then
  echo "kill_sweep.sh: FAILED: a resumed sweep complained:" >&2
  cat "$scratch/errors" >&2
  exit 1
fi
echo "$done_kills kills in $round rounds: every export is the undisturbed one, byte for byte"
