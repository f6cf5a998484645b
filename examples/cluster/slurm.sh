#!/bin/bash
# evenhand on a Slurm allocation: Ray inside the job, the run folder on the shared file system.
#   sbatch slurm.sh MODEL SUITE /shared/runs/mine        (again after a time limit: it goes on)
#SBATCH --job-name=evenhand
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-task=1
#SBATCH --time=02:00:00
set -euo pipefail
model=$1 suite=$2 out=$3
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# Two jobs may share a node, and whoever reaches Ray's port can run programs as you: a port and a
# token of this job's own. srun passes the token on to every node.
address=$head:$((20000 + SLURM_JOB_ID % 20000))
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
RAY_AUTH_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN
cpus=${SLURM_CPUS_PER_TASK:-1} others=$((SLURM_JOB_NUM_NODES - 1))

srun --nodes=1 --ntasks=1 -w "$head" \
  ray start --head --port="${address##*:}" --num-cpus="$cpus" --include-dashboard=false --block &
for _ in $(seq 90); do
  ray health-check --address "$address" >/dev/null 2>&1 && break
  sleep 1
done
if [ "$others" -gt 0 ]; then
  srun --nodes="$others" --ntasks="$others" --exclude="$head" \
    ray start --address="$address" --num-cpus="$cpus" --block &
  sleep 15 # workers that come later are not given shards
fi

if [ -f "$out/run.json" ]; then
  evenhand resume "$out" --executor ray --address "$address"
else
  evenhand audit "$model" --suite "$suite" --out "$out" --executor ray --address "$address"
fi
