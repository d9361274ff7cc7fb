#!/usr/bin/env bash
# Measures the C library in bin/lib, MPICH and Open MPI alternately, in rounds, and prints medians as Markdown:
# lib/speed.sh calls|osu|nas [ROUNDS]
#
#   calls  time in µs of messages and collective calls of 2 and 4 ranks, by lib/testdata/speed.c
#   osu    latency in µs by the OSU micro-benchmarks, and by the same loops in Go (package mpi, lab/cmd/osu): point to
#          point, and collectives of 2 and 4 ranks. OSU and OSU_OPENMPI name the folders
#          libexec/osu-micro-benchmarks/mpi of the builds for MPICH and Open MPI
#   nas    the NAS parallel benchmarks of class A, 2 ranks, in Mop/s. NAS and NAS_OPENMPI name their folders bin, likewise
#
# ROUNDS is 3 by default. The machine should be idle otherwise. The script needs `make build lib`, and Debian's packages
# mpich, libmpich-dev, openmpi-bin and libopenmpi-dev.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in -h | --help | help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
rounds=${2:-3}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "lib/speed.sh: \"$rounds\" is not a number of rounds" >&2; exit 2; }
cores=$(nproc)
limit=300 # seconds for a program

need() {
  [ -x "$1" ] || { echo "lib/speed.sh: no program $1 ($2)" >&2; exit 1; }
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run SIDE RANKS PROGRAM-OF-MPICH PROGRAM-OF-OPEN-MPI ARGUMENTS…: side go runs the Go loop for the program osu_NAME.
run() {
  local side=$1 ranks=$2 mpich=$3 openmpi=$4 code=0
  local -a yields=()
  shift 4
  if [ "$ranks" -gt "$cores" ]; then yields=(--mca mpi_yield_when_idle 1); fi
  case $side in
  library) LD_LIBRARY_PATH=$PWD/bin/lib timeout "$limit" bin/zrlctl run -n "$ranks" "$mpich" "$@" ;;
  go) timeout "$limit" bin/zrlctl run -n "$ranks" "$work/osu" "${mpich##*/osu_}" "$@" ;;
  mpich) timeout "$limit" mpiexec.mpich -n "$ranks" "$mpich" "$@" ;;
  openmpi) timeout "$limit" mpirun.openmpi --allow-run-as-root --oversubscribe "${yields[@]}" -n "$ranks" "$openmpi" "$@" ;;
  esac </dev/null >"$work/output" 2>"$work/errors" || code=$?
  if [ "$code" != 0 ]; then
    echo "lib/speed.sh: $side, $ranks ranks, $mpich: exit code $code: $(head -1 "$work/errors")" >&2
    exit 1
  fi
}

# note ROW SIDE: records the values of a round from standard input.
note() {
  local value
  while read -r value; do echo "$1|$2|$value" >>"$work/values"; done
}

# median ROW SIDE: prints the median of all rounds, or – if there are no values.
median() {
  awk -F'|' -v row="$1" -v side="$2" '$1 == row && $2 == side { print $3 }' "$work/values" | sort -g |
    awk '{ v[NR] = $1 } END { if (NR == 0) print "–"; else print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# table SIDE…: prints all rows, in the order of their first measurement.
table() {
  local row side line
  while read -r -u 3 row; do
    line="| $row |"
    for side in "$@"; do line+=" $(median "$row" "$side") |"; done
    echo "$line"
  done 3< <(awk -F'|' '!seen[$1]++ { print $1 }' "$work/values")
}

lengths='4 64 1024 16384 65536 1048576'

# latencies NAME SIDE: records the lines "length latency" of the output for the lengths of the table.
latencies() {
  local length latency
  while read -r length latency; do
    case " $lengths " in *" $length "*) note "$1, $length B" "$2" <<<"$latency" ;; esac
  done < <(grep -E '^[0-9]+ +[0-9.]+ *$' "$work/output")
}

calls() {
  local round ranks iterations side name length latency
  mpicc.mpich -O2 -o "$work/speed" lib/testdata/speed.c
  mpicc.openmpi -O2 -o "$work/speed-openmpi" lib/testdata/speed.c
  for ((round = 1; round <= rounds; round++)); do
    for ranks in 2 4; do
      iterations=50000
      if [ "$ranks" -gt "$cores" ]; then iterations=5000; fi
      for side in library mpich openmpi; do
        # MPICH polls without yielding: with more ranks than processors a call may take forever.
        if [ "$side" = mpich ] && [ "$ranks" -gt "$cores" ]; then continue; fi
        run "$side" "$ranks" "$work/speed" "$work/speed-openmpi" "$iterations"
        while read -r name length latency; do
          note "$name, $ranks ranks, $length B" "$side" <<<"$latency"
        done <"$work/output"
      done
    done
  done
  printf '| µs | this library | MPICH | Open MPI |\n|---|---|---|---|\n'
  table library mpich openmpi
}

osu() {
  local round program ranks side short long name
  need "${OSU:-}/pt2pt/osu_latency" 'OSU names the folder libexec/osu-micro-benchmarks/mpi, built for MPICH'
  need "${OSU_OPENMPI:-}/pt2pt/osu_latency" 'OSU_OPENMPI names that folder, built for Open MPI'
  go -C lab build -o "$work/osu" ./cmd/osu
  for ((round = 1; round <= rounds; round++)); do
    for program in pt2pt/osu_latency collective/osu_{barrier,bcast,reduce,allreduce,allgather,alltoall}; do
      for ranks in 2 4; do
        if [ "$program $ranks" = 'pt2pt/osu_latency 4' ]; then continue; fi
        short=20000 long=2000
        if [ "$ranks" -gt "$cores" ]; then short=5000 long=200; fi
        name="${program#*/osu_}, $ranks ranks"
        for side in library go mpich openmpi; do
          # MPICH polls without yielding: with more ranks than processors a call may take forever.
          if [ "$side" = mpich ] && [ "$ranks" -gt "$cores" ]; then continue; fi
          if [ "$program" = collective/osu_barrier ]; then
            run "$side" "$ranks" "$OSU/$program" "$OSU_OPENMPI/$program" -i "$short"
            grep -E '^ *[0-9.]+ *$' "$work/output" | note "$name" "$side"
            continue
          fi
          run "$side" "$ranks" "$OSU/$program" "$OSU_OPENMPI/$program" -m 4:1024 -i "$short"
          latencies "$name" "$side"
          run "$side" "$ranks" "$OSU/$program" "$OSU_OPENMPI/$program" -m 16384:1048576 -i "$long"
          latencies "$name" "$side"
        done
      done
    done
  done
  printf '| µs | this library, C | Go | MPICH | Open MPI |\n|---|---|---|---|---|\n'
  table library go mpich openmpi
}

nas() {
  local round program side
  need "${NAS:-}/cg.A.x" 'NAS names the folder bin of the NAS parallel benchmarks, class A, built for MPICH'
  need "${NAS_OPENMPI:-}/cg.A.x" 'NAS_OPENMPI names that folder, built for Open MPI'
  for ((round = 1; round <= rounds; round++)); do
    for program in ep mg cg ft lu is; do
      for side in library openmpi mpich; do
        run "$side" 2 "$NAS/$program.A.x" "$NAS_OPENMPI/$program.A.x"
        grep -Eq '^ *Verification *= *SUCCESSFUL' "$work/output" || { echo "lib/speed.sh: $side, $program: not verified" >&2; exit 1; }
        awk '/Mop\/s total/ { print $NF }' "$work/output" | note "${program^^}" "$side"
      done
    done
  done
  printf '| Mop/s | this library | Open MPI | MPICH |\n|---|---|---|---|\n'
  table library openmpi mpich
}

for file in bin/lib/libmpich.so.12 bin/zrlctl; do
  need "$file" 'make build lib'
done
for program in mpiexec.mpich mpirun.openmpi; do
  need "$(command -v "$program" || echo "$program")" "Debian's packages mpich and openmpi-bin"
done
: >"$work/values"
case ${1:-} in
calls | osu | nas) "$1" ;;
*) echo "lib/speed.sh: \"${1:-}\" is not calls, osu or nas (--help)" >&2; exit 2 ;;
esac
