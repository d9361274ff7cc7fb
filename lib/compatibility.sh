#!/usr/bin/env bash
# Runs existing MPI programs, as they were built for MPICH, with the C library in bin/lib: lib/compatibility.sh [FAMILY…]
#
#   netpipe    NPmpich2 of Debian's package netpipe-mpich2, 2 ranks
#   scalapack  the tests of Debian's package scalapack-mpi-test that are built for MPICH, 4 ranks
#   mpich      MPICH's test programs in the folder MPICH_TESTS, those that its files testlist name, at most 8 ranks
#
# Without arguments: netpipe, scalapack, and mpich if MPICH_TESTS is set. It prints a table and the first line of each failure, and exits
# with 1 if fewer pass than the project expects. It needs `make lib build`. docs/compatibility.md says how to build MPICH's tests.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# How many of Debian 12's programs and of MPICH 4.0.2's have to pass.
expect_netpipe=1 expect_scalapack=95 expect_mpich=418
# Folders of MPICH's tests whose calls the library has.
folders=(attr coll comm datatype errhan group info init mpi_t pt2pt topo threads/pt2pt)
limit=100 # seconds for a program, if its test has no shorter limit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run RANKS COMMAND…: its output is in $work/output, its exit code in $code, 124 after $seconds.
run() {
  code=0
  LD_LIBRARY_PATH=$root/bin/lib timeout -k 5 "$seconds" "$root/bin/zrlctl" run -n "$@" </dev/null >"$work/output" 2>&1 || code=$?
}

has() { grep -aq -e "$1" "$work/output"; }

passed=0 failed=0 xfailed=0 missing=0 status=0 seconds=$limit
row() { printf '%-24s %7s %7s %17s %10s\n' "$@"; }

# count NAME RESULT: RESULT is 0 if the program has passed.
count() {
  if [ "$2" = 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$1: exit code $code: $(grep -am1 -E 'zrlmpi:|[Ff]ound [0-9]+ errors|FAILED|[Ee]rror|.' "$work/output" | cut -c -300)" >>"$work/failures"
  fi
}

# finish FAMILY EXPECTED: the row of the family.
finish() {
  row "$1" "$passed" "$failed" "$xfailed" "$missing"
  if [ "$passed" -lt "$2" ]; then
    echo "$1: $passed programs passed, at least $2 are expected" >>"$work/failures"
    status=1
  fi
  passed=0 failed=0 xfailed=0 missing=0
}

# need FILE PACKAGE: ends the script unless the program is there.
need() {
  [ -x "$1" ] || { echo "lib/compatibility.sh: no program $1 (apt-get install $2)" >&2; exit 1; }
}

netpipe() {
  local program=/usr/bin/NPmpich2
  need "$program" netpipe-mpich2
  cd "$work"
  run 2 "$program" -u 100000
  local result=1
  if [ "$code" = 0 ] && has ' Mbps'; then result=0; fi
  count NPmpich2 "$result"
  cd "$root"
  finish netpipe "$expect_netpipe"
}

scalapack() {
  local tests program name result
  tests=$(echo /usr/lib/*/scalapack/mpich-tests)
  need "$tests/xslu" scalapack-mpi-test
  mkdir "$work/scalapack"
  cd "$work/scalapack"
  # They read their parameters in the current folder.
  find /usr/share/scalapack -name '*.dat' -exec cp {} . \;
  for program in "$tests"/x* "$tests"/PBLAS/*tst "$tests"/PBLAS/TIMING/*tim; do
    name=$(basename "$program") result=1
    run 4 "$program"
    case $name in
    xCbtest | xFbtest)
      # The last of their tests is that BLACS_ABORT ends the job. Each of the others prints how many have failed.
      if [ "$code" != 124 ] && has 'BLACS_ABORT' && has 'aborted the job' && ! has '[1-9][0-9]* FAILED' && ! has '^ *FAILED'; then result=0; fi
      ;;
    *)
      # The tests of PBLAS end with a table: routine, tests, passed, failed, skipped. xshseqr and xdhseqr have one test, without an end.
      if [ "$code" = 0 ] && has '[Ee][Nn][Dd] [Oo][Ff] [Tt][Ee][Ss][Tt][Ss]\|500 .* PASSED' && ! has 'FAILED *$' &&
        ! has '[1-9][0-9]* tests completed and failed' && ! has '^ *|  P[A-Z0-9]* *[0-9]* *[0-9]* *[1-9][0-9]* *[0-9]* *$'; then result=0; fi
      ;;
    esac
    count "$name" "$result"
  done
  cd "$root"
  finish scalapack "$expect_scalapack"
}

mpich() {
  local folder line words word name ranks result kind xfail all=0
  local -a args environment
  [ -d "${MPICH_TESTS:-}/attr" ] || { echo "lib/compatibility.sh: MPICH_TESTS is no folder of MPICH's tests (docs/compatibility.md says how to build them)" >&2; exit 1; }
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
      TestStatusNoErrors) if has '[Nn]o [Ee]rrors'; then result=0; fi ;;
      *) if [ "$code" = 0 ] && has '[Nn]o [Ee]rrors'; then result=0; fi ;;
      esac
      if [ "$result" != 0 ] && [ -n "$xfail" ]; then
        xfailed=$((xfailed + 1)) # MPICH expects it of itself as well
      else
        count "mpich/$folder: ${words[*]}" "$result"
      fi
    done 3<testlist
    all=$((all + passed))
    finish "mpich/$folder" 0
  done
  cd "$root"
  passed=$all
  if [ "$passed" -lt "$expect_mpich" ]; then
    echo "mpich: $passed runs passed, at least $expect_mpich are expected" >>"$work/failures"
    status=1
  fi
}

case ${1:-} in -h | --help | help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
families=("$@")
if [ $# = 0 ]; then families=(netpipe scalapack); [ -z "${MPICH_TESTS:-}" ] || families+=(mpich); fi
for family in "${families[@]}"; do
  case $family in netpipe | scalapack | mpich) ;; *) echo "lib/compatibility.sh: no family \"$family\" (netpipe, scalapack, mpich)" >&2; exit 2 ;; esac
done
for file in bin/lib/libmpich.so.12 bin/zrlctl; do
  [ -e "$file" ] || { echo "lib/compatibility.sh: no $file (make lib build)" >&2; exit 1; }
done
: >"$work/failures"
row programs passed failed 'expected failures' 'not built'
for family in "${families[@]}"; do "$family"; done
cat "$work/failures"
exit "$status"
