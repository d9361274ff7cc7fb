#!/bin/sh
# Compiles and links a program with ZRLMPI. The name of the script selects the language:
#
#   zrlmpicc     C, with cc or $ZRLMPI_CC
#   zrlmpicxx    C++, with c++ or $ZRLMPI_CXX
#   zrlmpifort   Fortran, with gfortran (version 10 or later) or $ZRLMPI_FC
#
# All arguments are passed to the compiler, except these, which must come first:
#
#   -abi=standard|mpich|upstream
#                           the ABI of MPI 5.0 (default for C and C++), the ABI of MPICH (the only one for Fortran),
#                           or the C++ API of upstream's CPU library
#   -show                   print the command without running it
#   -compile_info           print the command for compiling, and exit
#   -link_info              print the command for linking, and exit
here=$(dirname "$(readlink -f "$0")")
lib=$here/lib include=$here/include
[ -e "$lib/libzrlmpi.so" ] || {
	echo "$0: no libzrlmpi.so in $lib: run make lib, or install the package libzrlmpi" >&2
	exit 1
}

abi=standard
case $(basename "$0") in
*cc) language=c compiler=${ZRLMPI_CC:-cc} ;;
*cxx) language=cxx compiler=${ZRLMPI_CXX:-c++} ;;
*fort) language=fort compiler=${ZRLMPI_FC:-gfortran} abi=fortran ;;
*)
	echo "$0: the name has to be zrlmpicc, zrlmpicxx or zrlmpifort" >&2
	exit 1
	;;
esac

show=
while :; do
	case $1 in
	-show) show=all ;;
	-compile_info | -compile-info) show=compile ;;
	-link_info | -link-info) show=link ;;
	-abi=*)
		case $language${1#-abi} in
		c=standard | c=mpich | cxx=standard | cxx=mpich | cxx=upstream) abi=${1#-abi=} ;;
		fort=mpich) ;;
		*)
			echo "$0: no ABI \"${1#-abi=}\" here (C: standard, mpich; C++: also upstream; Fortran: mpich)" >&2
			exit 1
			;;
		esac
		;;
	*) break ;;
	esac
	shift
done

option=
case $abi in
standard) compile=-I$include/standard libraries=-lmpi_abi ;;
mpich) compile=-I$include/mpich libraries=-lmpi ;;
upstream) compile=-I$include/upstream libraries=-lzrlmpi_upstream ;;
fortran)
	compile=-I$include/mpich
	# Without it, gfortran rejects calls of one procedure with buffers of different types.
	[ "$compiler" != gfortran ] || option=-fallow-argument-mismatch
	libraries="-lmpifort -lmpi"
	;;
esac
# Do not pass libraries to a compiler that does not link, or only prints its version.
linking=yes
[ $# -gt 0 ] || [ -n "$show" ] || linking=no
for argument; do
	case $argument in
	-c | -E | -S | -M | -MM | -fsyntax-only | --version | -v) linking=no ;;
	esac
done
case $show in
compile) linking=no ;;
link) linking=yes ;;
esac

set -- "$compiler" "$compile" $option "$@"
if [ $linking = yes ]; then
	set -- "$@" "-L$lib" "-Wl,-rpath,$lib" $libraries
fi
if [ -n "$show" ]; then
	echo "$*"
	exit
fi
exec "$@"
