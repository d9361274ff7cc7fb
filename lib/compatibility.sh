#!/usr/bin/env bash
# Runs existing MPI programs, built for MPICH, with the C library in bin/lib: lib/compatibility.sh [FAMILY…]
#
#   netpipe    NPmpich2 of Debian's package netpipe-mpich2, 2 ranks
#   mocassin   mocassin and a benchmark of Debian's packages mocassin and mocassin-benchmarks, 4 ranks
#   launchers  a C and a Fortran program of examples/c, 4 ranks, with zrlctl run, mpiexec.hydra and srun, on two nodes
#              of Slurm and on three hosts, as root (Debian's packages mpich, iproute2, slurmctld, slurmd, slurm-client,
#              munge)
#   scalapack  the tests in Debian's package scalapack-mpi-test that are built for MPICH, 4 ranks
#   mpich      MPICH's test programs in the folder MPICH_TESTS that its testlist files name, at most 8 ranks, and all of
#              folder basic
#   nas        the NAS parallel benchmarks in the folder NAS (its bin), classes S and W, 2 and 4 ranks
#   osu        the OSU micro-benchmarks in the folder OSU (libexec/osu-micro-benchmarks/mpi), 2 ranks, collectives 4
#   kernels    the MPI1 programs of the Parallel Research Kernels in the folder KERNELS (its MPI1), 4 ranks
#   hpccg      the program test_HPCCG that HPCCG names, 4 ranks
#
# The default is netpipe, mocassin, launchers, scalapack, and the families whose variable is set. The script prints a
# table and the first line of each failure, and exits with 1 if fewer programs pass than expected. It needs
# `make lib build`. docs/compatibility.md lists the versions and the locations of the programs.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# Number of programs of Debian 12 and MPICH 4.0.2 that have to pass.
expect_netpipe=1 expect_mocassin=1 expect_launchers=10 expect_scalapack=95 expect_mpich=795
# The same for NPB 3.4, OSU 7.4, the kernels of 2025-08-28 and HPCCG of 2017-07-04.
expect_nas=38 expect_osu=64 expect_kernels=13 expect_hpccg=1
# Folders of MPICH's tests for calls that the library has.
folders=(attr basic coll comm datatype errhan errors/{coll,comm,datatype,group,pt2pt,topo} group info init mpi_t part pt2pt topo threads/pt2pt
  f77/{attr,coll,comm,datatype,info,init,pt2pt,topo} f90/{attr,coll,comm,datatype,f90types,info,init,misc,pt2pt,topo}
  f08/{attr,coll,comm,datatype,ext,info,init,misc,pt2pt,profile,subarray,timer,topo})
limit=100 # seconds for a program, if its test has no shorter limit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run RANKS COMMAND…: writes the output to $work/output, and sets $code to the exit code, or 124 after $seconds.
run() { start "$root/bin/zrlctl" run -n "$@"; }

start() {
  code=0
  LD_LIBRARY_PATH=$root/bin/lib timeout -k 5 "$seconds" "$@" </dev/null >"$work/output" 2>&1 || code=$?
}

has() { grep -aq -e "$1" "$work/output"; }

passed=0 failed=0 xfailed=0 missing=0 status=0 seconds=$limit
row() { printf '%-24s %7s %7s %17s %10s\n' "$@"; }

# count NAME RESULT: counts a program, which has passed if RESULT is 0.
count() {
  if [ "$2" = 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$1: exit code $code: $(grep -am1 -E 'zrlmpi:|[Ff]ound [0-9]+ errors|FAILED|[Ee]rror|.' "$work/output" | cut -c -300)" >>"$work/failures"
  fi
}

# finish FAMILY EXPECTED: prints the row of the family.
finish() {
  row "$1" "$passed" "$failed" "$xfailed" "$missing"
  if [ "$passed" -lt "$2" ]; then
    echo "$1: $passed programs passed, at least $2 are expected" >>"$work/failures"
    status=1
  fi
  passed=0 failed=0 xfailed=0 missing=0
}

# need FILE WHAT: exits unless the program exists.
need() {
  [ -x "$1" ] || { echo "lib/compatibility.sh: no program $1 ($2)" >&2; exit 1; }
}

netpipe() {
  local program=/usr/bin/NPmpich2
  need "$program" "Debian's package netpipe-mpich2"
  cd "$work"
  run 2 "$program" -u 100000 -n 200
  local result=1
  if [ "$code" = 0 ] && has ' Mbps'; then result=0; fi
  count NPmpich2 "$result"
  cd "$root"
  finish netpipe "$expect_netpipe"
}

mocassin() {
  local benchmark=/usr/share/mocassin/benchmarks/dust/1D/p0tau1 result=1
  need /usr/bin/mocassin "Debian's package mocassin"
  [ -e "$benchmark" ] || { echo "lib/compatibility.sh: no $benchmark (apt-get install mocassin-benchmarks)" >&2; exit 1; }
  mkdir -p "$work"/mocassin/{input,output}
  cd "$work/mocassin"
  cp "$benchmark"/* input
  # 20,000 random photons and three iterations, which take some seconds.
  sed -i -e '/^autoPackets/d' -e 's/^nPhotons .*/nPhotons 20000/' -e 's/^maxIterateMC .*/maxIterateMC 3 95./' input/input.in
  run 4 /usr/bin/mocassin
  if [ "$code" = 0 ] && has 'end simulation reached - clean exit' && grep -q '20000 *energy packets used' output/summary.out; then result=0; fi
  count mocassin "$result"
  cd "$root"
  finish mocassin "$expect_mocassin"
}

launchers() {
  local launcher program result
  need /usr/bin/mpiexec.hydra "Debian's package mpich"
  need /usr/sbin/slurmctld "Debian's packages slurmctld, slurmd, slurm-client, munge"
  bin/zrlmpicc -O2 -o "$work/ring" examples/c/ring.c
  bin/zrlmpifort -o "$work/pi" examples/c/pi.f90
  for launcher in 'bin/zrlctl run -n' 'mpiexec.hydra -n' 'lib/namespaces.sh slurm' 'lib/namespaces.sh nodes' \
    'lib/namespaces.sh hosts'; do
    for program in ring pi; do
      result=1
      # shellcheck disable=SC2086 # a command and its first arguments
      start $launcher 4 "$work/$program"
      case $program in
      ring) if [ "$code" = 0 ] && has '^ *65536 words: mean of a round'; then result=0; fi ;;
      pi) if [ "$code" = 0 ] && has '^ *pi is 3\.1415926536, by 4 ranks'; then result=0; fi ;;
      esac
      count "$launcher 4 $program" "$result"
    done
  done
  finish launchers "$expect_launchers"
}

nas() {
  local program class ranks graph result
  need "${NAS:-}/cg.S.x" 'NAS names the folder bin of the NAS parallel benchmarks'
  for class in S W; do
    for ranks in 2 4; do
      for program in is ep cg mg ft lu bt sp; do
        result=1
        run "$ranks" "$NAS/$program.$class.x"
        if [ "$code" = 0 ] && has '^ *Verification *= *SUCCESSFUL'; then result=0; fi
        count "nas: $program.$class, $ranks ranks" "$result"
      done
    done
    # A graph needs one rank per node.
    for graph in BH WH SH; do
      case $class$graph in S[BW]H) ranks=5 ;; W[BW]H) ranks=11 ;; SSH) ranks=12 ;; WSH) ranks=32 ;; esac
      result=1
      run "$ranks" "$NAS/dt.$class.x" "$graph"
      if [ "$code" = 0 ] && has '^ *Verification *= *SUCCESSFUL'; then result=0; fi
      count "nas: dt.$class $graph, $ranks ranks" "$result"
    done
  done
  finish nas "$expect_nas"
}

osu() {
  local program name ranks result
  local -a args
  need "${OSU:-}/startup/osu_init" 'OSU names the folder libexec/osu-micro-benchmarks/mpi'
  for program in "$OSU"/{pt2pt,collective}/{,*/}osu_* "$OSU"/startup/osu_*; do
    [ -f "$program" ] || continue
    name=$(basename "$program") ranks=2 result=1 args=(-m 1:65536 -i 50 -x 5)
    case $program in */collective/*) ranks=4 ;; esac
    case $name in
    osu_hello | osu_init) args=() ;;
    osu_barrier | osu_ibarrier | osu_barrier_persistent) args=(-i 50 -x 5) ;;
    osu_latency_m[pt]) ;; # these programs do not validate
    *) args+=(-c) ;;
    esac
    run "$ranks" "$program" "${args[@]}"
    # Each of the 17 lengths must pass.
    if [ "$code" = 0 ] && { [[ " ${args[*]} " != *" -c "* ]] || [ "$(grep -ac ' Pass *$' "$work/output")" = 17 ]; }; then result=0; fi
    count "osu: $name" "$result"
  done
  finish osu "$expect_osu"
}

kernels() {
  local line result
  local -a words
  need "${KERNELS:-}/Stencil/stencil" 'KERNELS names the folder MPI1 of the Parallel Research Kernels'
  while read -r -u 3 line; do
    read -ra words <<<"$line"
    result=1
    run 4 "$KERNELS/${words[0]}" "${words[@]:1}"
    if [ "$code" = 0 ] && has 'Solution validates'; then result=0; fi
    count "kernels: $line" "$result"
  done 3<<'END'
AMR/amr 10 1000 100 2 2 1 5 FINE_GRAIN 2
Branch/branch 10 1000 vector_go
Branch/branch 10 1000 ins_heavy
DGEMM/dgemm 10 500 32 1
Nstream/nstream 10 2000000 0
PIC-static/pic 10 1000 1000000 1 2 GEOMETRIC 0.99
PIC-static/pic 10 1000 1000000 1 0 PATCH 0 200 100 200
Random/random 16 16
Reduce/reduce 10 2000000
Sparse/sparse 10 10 4
Stencil/stencil 10 1000
Synch_global/global 10 10000
Synch_p2p/p2p 10 1000 100
Transpose/transpose 10 2000 64
END
  finish kernels "$expect_kernels"
}

hpccg() {
  local result=1
  need "${HPCCG:-}" 'HPCCG names the program test_HPCCG'
  cd "$work"
  run 4 "$HPCCG" 40 40 40
  # Every MPI needs 149 iterations until the squared residual is below 1e-20.
  if [ "$code" = 0 ] && has '^Number of iterations: 149' && has '^Final residual: [0-9.]*e-2[1-9]'; then result=0; fi
  count HPCCG "$result"
  cd "$root"
  finish hpccg "$expect_hpccg"
}

scalapack() {
  local tests program name result
  tests=$(echo /usr/lib/*/scalapack/mpich-tests)
  need "$tests/xslu" "Debian's package scalapack-mpi-test"
  mkdir "$work/scalapack"
  cd "$work/scalapack"
  # The tests read their parameters from the current folder.
  find /usr/share/scalapack -name '*.dat' -exec cp {} . \;
  for program in "$tests"/x* "$tests"/PBLAS/*tst "$tests"/PBLAS/TIMING/*tim; do
    name=$(basename "$program") result=1
    run 4 "$program"
    case $name in
    xCbtest | xFbtest)
      # The last test checks that BLACS_ABORT ends the job. Each other test prints the number of failures.
      if [ "$code" != 124 ] && has 'BLACS_ABORT' && has 'aborted the job' && ! has '[1-9][0-9]* FAILED' && ! has '^ *FAILED'; then result=0; fi
      ;;
    *)
      # The tests of PBLAS end with a table: routine, tests, passed, failed, skipped. xshseqr and xdhseqr have one test,
      # and print no end.
      if [ "$code" = 0 ] && has '[Ee][Nn][Dd] [Oo][Ff] [Tt][Ee][Ss][Tt][Ss]\|500 .* PASSED' && ! has 'FAILED *$' &&
        ! has '[1-9][0-9]* tests completed and failed' && ! has '^ *|  P[A-Z0-9]* *[0-9]* *[0-9]* *[1-9][0-9]* *[0-9]* *$'; then result=0; fi
      ;;
    esac
    count "$name" "$result"
  done
  cd "$root"
  finish scalapack "$expect_scalapack"
}

# tests FOLDER: prints the test list of a folder of MPICH's tests. Tests in basic print no result, and have no list.
tests() {
  case $1 in
  basic) printf '%s resultTest=TestEnd\n' 'self 1' 'simple 4' 'sendrecv 2 arg=100' 'srtest 4' 'wtime 1' 'patterns 2' \
    {'netpipe 2','adapt 3'}' arg=-reps arg=1 arg=-time arg=0.001 arg=-out arg=/dev/null' ;;
  *) cat "$MPICH_TESTS/$1/testlist" ;;
  esac
}

mpich() {
  local folder line words word name ranks result kind xfail all=0
  local -a args environment
  [ -d "${MPICH_TESTS:-}/attr" ] || { echo "lib/compatibility.sh: MPICH_TESTS is not the folder of MPICH's tests (see docs/compatibility.md)" >&2; exit 1; }
  for folder in "${folders[@]}"; do
    cd "$MPICH_TESTS/$folder"
    while read -r -u 3 line; do
      read -ra words <<<"${line%%#*}"
      # A line is PROGRAM RANKS OPTION…
      [[ ${#words[@]} -ge 2 && ${words[1]} =~ ^[0-9]+$ ]] || continue
      name=${words[0]} ranks=${words[1]} kind= xfail= seconds=$limit args=() environment=()
      for word in "${words[@]:2}"; do
        case $word in
        arg=*) args+=("${word#arg=}") ;;
        env=*) environment+=("${word#env=}") ;;
        resultTest=*) kind=${word#resultTest=} ;;
        timeLimit=*) seconds=$((${word#timeLimit=} < limit ? ${word#timeLimit=} : limit)) ;;
        xfail=*) xfail=${word#xfail=} ;;
        esac
      done
      if [ ! -x "$name" ]; then
        missing=$((missing + 1))
        continue
      fi
      run "$((ranks < 8 ? ranks : 8))" env "${environment[@]}" "./$name" "${args[@]}"
      result=1
      case $kind in
      TestStatus | TestErrFatal) if [ "$code" != 0 ] && [ "$code" != 124 ]; then result=0; fi ;;
      TestEnd) if [ "$code" = 0 ]; then result=0; fi ;;
      TestStatusNoErrors) if has '[Nn]o [Ee]rrors'; then result=0; fi ;;
      *) if [ "$code" = 0 ] && has '[Nn]o [Ee]rrors'; then result=0; fi ;;
      esac
      if [ "$result" != 0 ] && [ -n "$xfail" ]; then
        xfailed=$((xfailed + 1)) # MPICH expects this failure as well
      else
        count "mpich/$folder: ${words[*]}" "$result"
      fi
    done 3< <(tests "$folder")
    all=$((all + passed))
    finish "mpich/$folder" 0
  done
  cd "$root"
  if [ "$all" -lt "$expect_mpich" ]; then
    echo "mpich: $all runs passed, at least $expect_mpich are expected" >>"$work/failures"
    status=1
  fi
}

case ${1:-} in -h | --help | help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
families=("$@")
if [ $# = 0 ]; then
  families=(netpipe mocassin launchers scalapack)
  [ -z "${MPICH_TESTS:-}" ] || families+=(mpich)
  [ -z "${NAS:-}" ] || families+=(nas)
  [ -z "${OSU:-}" ] || families+=(osu)
  [ -z "${KERNELS:-}" ] || families+=(kernels)
  [ -z "${HPCCG:-}" ] || families+=(hpccg)
fi
for family in "${families[@]}"; do
  case $family in netpipe | mocassin | launchers | scalapack | mpich | nas | osu | kernels | hpccg) ;; *) echo "lib/compatibility.sh: no family \"$family\" (--help lists them)" >&2; exit 2 ;; esac
done
for file in bin/lib/libmpich.so.12 bin/zrlctl; do
  [ -e "$file" ] || { echo "lib/compatibility.sh: no $file (make lib build)" >&2; exit 1; }
done
: >"$work/failures"
row programs passed failed 'expected failures' 'not built'
for family in "${families[@]}"; do "$family"; done
cat "$work/failures"
exit "$status"
