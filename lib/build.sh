#!/bin/bash
# Builds the C library with its shims, headers and compiler wrappers into a folder: lib/build.sh bin. See `make lib`.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1 go=${GO:-go} cc=${CC:-cc} fc=${FC:-gfortran} version=${VERSION:-unknown}
prefix=${PREFIX:-} # of the installed library; by default found from the files for pkg-config
[ -n "$prefix" ] || prefix='${pcfiledir}/../..'
lib=$out/lib src=$out/lib/src include=$out/include
same=(-ffile-prefix-map="$PWD"=.) # reproducible in any folder
read -ra extra <<<"${CFLAGS:-}"
flags=(-O2 -g -fPIC -Wall -Wextra "${same[@]}" -I lib/c "${extra[@]}")

command -v "$cc" >/dev/null || { echo "lib/build.sh: no C compiler \"$cc\" (apt-get install gcc, or set CC)" >&2; exit 1; }
rm -rf "$lib" "$include"
mkdir -p "$lib/pkgconfig" "$src"
CGO_ENABLED=0 GOOS='' GOARCH='' "$go" run -trimpath ./lib/gen "$src" # for this machine, also in a cross build

# asyncpreemptoff stops Go from interrupting threads with SIGURG, for which the program may have a handler.
CGO_ENABLED=1 CC=$cc "$go" build -trimpath -ldflags "${LDFLAGS:-} -X runtime.godebugDefault=asyncpreemptoff=1 -extldflags=-Wl,-soname,libzrlmpi.so,--wrap=pthread_create" -buildmode=c-shared -o "$lib/libzrlmpi.so" ./lib
rm -f "$lib/libzrlmpi.h" # programs include mpi.h

# library NAME.so.N SOURCE ABI LIBRARIES: builds a library that finds its dependencies in its own folder.
library() {
  "$cc" "${flags[@]}" -I "$src/$3" -shared -Wl,-soname,"$1" -Wl,-z,defs -Wl,-rpath,'$ORIGIN' -o "$lib/$1" "$2" lib/c/signals.c -L "$lib" "${@:4}" -ldl
  ln -s "$1" "$lib/${1%.so.*}.so"
}
library libmpi_abi.so.1 "$src/standard.c" standard -lzrlmpi
library libmpi.so.12 "$src/mpich.c" mpich -lzrlmpi
# Debian's names. They are links, so that a process that needs both names loads the library once.
ln -s libmpi.so.12 "$lib/libmpich.so.12"
ln -s libmpich.so.12 "$lib/libmpich.so"
# Upstream's C++ API. The library is written in C and calls the program's app_main.
library libzrlmpi_upstream.so.1 lib/c/upstream/upstream.c standard -lmpi_abi -lzrlmpi
install -D -m 644 -t "$include/upstream" lib/c/upstream/*.hpp
for abi in standard mpich; do install -D -m 644 "$src/$abi/mpi.h" "$include/$abi/mpi.h"; done


# Fortran, for the ABI of MPICH. The modules can be used with this compiler's version only.
objects=()
install -m 644 "$src/mpich/mpif.h" "$include/mpich/mpif.h"
if command -v "$fc" >/dev/null; then
  for module in mpi mpi_f08; do
    "$fc" -O2 -fPIC "${same[@]}" -I "$src/mpich" -J "$include/mpich" -c "$src/$module.f90" -o "$src/$module.o"
    objects+=("$src/$module.o")
  done
else
  echo "lib/build.sh: no Fortran compiler \"$fc\" (apt-get install gfortran, or set FC): there is mpif.h, but no module mpi or mpi_f08" >&2
fi
library libmpifort.so.12 "$src/fortran.c" mpich "${objects[@]}" -lmpi
ln -s libmpifort.so.12 "$lib/libmpichfort.so.12"
ln -s libmpichfort.so.12 "$lib/libmpichfort.so"

for tool in zrlmpicc zrlmpicxx zrlmpifort; do install -m 755 lib/compiler.sh "$out/$tool"; done

# module NAME ABI LIBRARY DESCRIPTION: writes a file for pkg-config.
module() {
  cat >"$lib/pkgconfig/$1.pc" <<EOF
prefix=$prefix
libdir=\${prefix}/lib
Name: $1
Description: $4
Version: ${version#v}
Cflags: -I\${prefix}/include/$2
Libs: -L\${libdir} -Wl,-rpath,\${libdir} $3
EOF
}
module zrlmpi standard -lmpi_abi "MPI 5.0 for C and C++ by the standard's ABI"
module zrlmpi-mpich mpich -lmpi "MPI for C and C++ by the ABI of MPICH"
module zrlmpi-upstream upstream -lzrlmpi_upstream "the C++ API of cloudFPGA's CPU library"
module zrlmpi-fortran mpich "-lmpifort -lmpi" "MPI for Fortran by the ABI of MPICH"
