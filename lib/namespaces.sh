#!/usr/bin/env bash
# Starts a job on simulated hosts in namespaces of this machine, as root: lib/namespaces.sh KIND RANKS PROGRAM…
#
#   slurm  with `srun --mpi=pmi2` on a one-node Slurm (Debian's packages slurmctld, slurmd, slurm-client, munge)
#   nodes  with `zrlctl run`, which runs srun, in an allocation of two nodes of such a Slurm
#   hosts  with `zrlctl run --hosts`, which runs MPICH's mpiexec.hydra, on three hosts in separate network namespaces
#
# ZRLCTL is the path of zrlctl, bin/zrlctl by default. The script removes all processes and interfaces when it exits. It
# does not affect the machine's Slurm, if any.
set -euo pipefail

kind=${1:-} ranks=${2:-}
case $kind in slurm | nodes | hosts) ;; *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;; esac
if [ -z "${NAMESPACES_DIR:-}" ]; then
  NAMESPACES_DIR=$(mktemp -d)
  export NAMESPACES_DIR
  trap 'rm -rf "$NAMESPACES_DIR"' EXIT
  # All processes of the PID namespace are killed when its first process exits.
  # The signal ends unshare, and so all of them, when this script is killed.
  setpriv --pdeathsig KILL unshare --net --mount --uts --pid --fork --mount-proc --kill-child "$0" "$@"
  exit
fi
shift 2
zrlctl=${ZRLCTL:-$(dirname "$0")/../bin/zrlctl}
dir=$NAMESPACES_DIR
ip link set lo up

# start_slurm NODES: starts one slurmd per node on this host.
start_slurm() {
  local i last=$(($1 - 1))
  PATH=$PATH:/usr/sbin
  hostname node0
  # Names are resolved only if there is an address other than 127.0.0.1.
  ip address add 10.9.0.1/24 dev lo
  printf '10.9.0.1 node0\n127.0.0.1 localhost\n' >"$dir/hosts"
  mount --bind "$dir/hosts" /etc/hosts
  mkdir "$dir"/spool{,0,1}
  (umask 077 && head -c 1024 /dev/urandom >"$dir/key")
  cat >"$dir/slurm.conf" <<EOF
ClusterName=test
SlurmctldHost=node0(10.9.0.1)
SlurmUser=root
AuthInfo=socket=$dir/munge.socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/linear
SlurmdParameters=config_overrides
ReturnToService=2
StateSaveLocation=$dir/spool
SlurmdSpoolDir=$dir/spool%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd%n.pid
NodeName=node[0-$last] NodeHostname=node0 NodeAddr=10.9.0.1 Port=[7000-700$last] CPUs=16
PartitionName=all Nodes=node[0-$last] Default=YES State=UP
EOF
  export SLURM_CONF=$dir/slurm.conf
  munged --foreground --force --key-file="$dir/key" --socket="$dir/munge.socket" --pid-file="$dir/munge.pid" --seed-file="$dir/seed" \
    --log-file="$dir/munge.log" >"$dir/munged.out" 2>&1 &
  until [ -S "$dir/munge.socket" ]; do sleep 0.1; done
  slurmctld -D -c >"$dir/slurmctld.out" 2>&1 &
  for ((i = 0; i <= last; i++)); do slurmd -D -N "node$i" >"$dir/slurmd$i.out" 2>&1 & done
  for i in {1..100}; do
    [ "$(sinfo --noheader --format=%t 2>&1)" != idle ] || break
    [ "$i" != 100 ] || { cat "$dir"/*.out >&2; exit 1; }
    sleep 0.2
  done
}

slurm() {
  start_slurm 1
  srun --mpi=pmi2 -n "$ranks" "$@"
}

nodes() {
  start_slurm 2
  salloc --quiet -N 2 "$zrlctl" run -n "$ranks" "$@"
}

hosts() {
  local host line launcher next=1
  mkdir -p /run/netns
  mount -t tmpfs none /run/netns
  ip link add bridge0 type bridge
  ip address add 10.9.0.254/24 dev bridge0
  ip link set bridge0 up
  for host in 1 2 3; do
    ip netns add "host$host"
    ip link add "veth$host" type veth peer name eth0 netns "host$host"
    ip link set "veth$host" master bridge0 up
    ip -n "host$host" address add "10.9.0.$host/24" dev eth0
    ip -n "host$host" link set eth0 up
    ip -n "host$host" link set lo up
  done
  # The launcher prints the command to start on each host, in order. ZRLMPI_ADDRESS is needed because the hosts have no
  # route to other networks, from which a rank could derive its address.
  mkfifo "$dir/output"
  HYDRA_LAUNCHER=manual HYDRA_IFACE=bridge0 ZRLMPI_ADDRESS=10.9.0.0/24 \
    "$zrlctl" run --hosts 10.9.0.1,10.9.0.2,10.9.0.3 -n "$ranks" "$@" >"$dir/output" &
  launcher=$!
  while IFS= read -r line; do
    case $line in
    'HYDRA_LAUNCH: '*)
      # shellcheck disable=SC2086 # a command line
      ip netns exec "host$next" ${line#HYDRA_LAUNCH: } </dev/null &
      next=$((next + 1))
      ;;
    HYDRA_LAUNCH_END) ;;
    *) printf '%s\n' "$line" ;;
    esac
  done <"$dir/output"
  wait "$launcher"
}

"$kind" "$@"
