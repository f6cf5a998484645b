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
address=$head:6379

srun --nodes=1 --ntasks=1 -w "$head" ray start --head --port=6379 --disable-usage-stats --block &
sleep 20
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
  srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) \
    --exclude="$head" ray start --address="$address" --disable-usage-stats --block &
  sleep 20
fi

if [ -f "$out/run.json" ]; then
  evenhand resume "$out" --executor ray --address "$address"
else
  evenhand audit "$model" --suite "$suite" --out "$out" --executor ray --address "$address"
fi
