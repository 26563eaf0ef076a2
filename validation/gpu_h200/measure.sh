#!/bin/bash
# go.sh SECONDS_STEPS SECONDS_OPERATIONS [AFTER]
here="$(cd "$(dirname "$0")" && pwd)"
work=/tmp/measured; mkdir -p $work
export XLA_PYTHON_CLIENT_MEM_FRACTION=0.92 TF_CPP_MIN_LOG_LEVEL=2
nvidia-smi -q > $work/nvidia_smi_q.txt; nvidia-smi > $work/nvidia_smi.txt
python3 -m pip list 2>/dev/null | grep -i -E "^(jax|nvidia|numpy)" > $work/versions.txt; python3 -V >> $work/versions.txt
after=""; if [[ -n "$3" ]]; then after="--after $here/$3"; fi
if (($1 > 0)); then timeout $(($1 + 60)) python3 $here/measure.py $work --sections steps --seconds $1 $after 2>&1 | tee -a $work/log.txt; fi
nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active --format=csv >> $work/log.txt
if (($2 > 0)); then XLA_FLAGS="--xla_gpu_enable_command_buffer=" timeout $(($2 + 40)) python3 $here/measure.py $work --sections host,operations,products,attention --seconds $2 $after 2>&1 | tee -a $work/log.txt; fi
cd $work && ls -la . profiles modules
tar czf $OUT/measured.tar.gz measured.csv steps.csv modules log.txt nvidia_smi_q.txt nvidia_smi.txt versions.txt
cd profiles && for f in *; do if (($(stat -c %s $f) < 9000000)); then cp $f /tmp/keep_$f; fi; done; cd /tmp
tar cf $OUT/profiles1.tar keep_*full* 2>/dev/null; tar cf $OUT/profiles2.tar keep_*gpt* 2>/dev/null; tar cf $OUT/profiles3.tar keep_*mixtral* 2>/dev/null; tar cf $OUT/profiles4.tar keep_*resnet* 2>/dev/null; tar cf $OUT/profiles5.tar keep_*L4_b2_none* 2>/dev/null
ls -la $OUT
