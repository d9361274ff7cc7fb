// Gen generates what follows from the standard's list of functions and from the constants of an ABI: the files lib/capi/calls.go and
// lib/capi/constants.go, which are committed, and, into a folder that is named, the C library's shims and headers.
//
//	go run ./lib/gen                 # lib/capi
//	go run ./lib/gen bin/lib/src     # C
//
// It runs in the folder of the module.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	flag.Parse()
	if err := run("lib", flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run generates from the tables in the folder lib.
func run(lib string, args []string) error {
	src, err := readSource(lib)
	if err != nil {
		return err
	}
	switch len(args) {
	case 0:
		return write(filepath.Join(lib, "capi"), src.goFiles())
	case 1:
		files, err := src.cFiles()
		if err != nil {
			return err
		}
		return write(args[0], files)
	}
	return fmt.Errorf("%d arguments: want none, or the folder to write C to", len(args))
}

// A source is what everything is generated from.
type source struct {
	table []function
	abis  []*abi // mpich, standard
}

func readSource(lib string) (*source, error) {
	read := func(name string) (string, []byte, error) {
		file := filepath.Join(lib, name)
		text, err := os.ReadFile(file)
		return file, text, err
	}
	file, text, err := read("functions.txt")
	if err != nil {
		return nil, err
	}
	src := &source{}
	if src.table, err = parseFunctions(file, text); err != nil {
		return nil, err
	}
	for _, name := range []abiName{mpich, standard} {
		file, text, err := read(filepath.Join("abi", string(name)+".txt"))
		if err != nil {
			return nil, err
		}
		a, err := parseABI(name, file, text)
		if err != nil {
			return nil, err
		}
		if err := a.check(src.table); err != nil {
			return nil, err
		}
		src.abis = append(src.abis, a)
	}
	return src, nil
}

// goFiles are the files of lib/capi, by name.
func (s *source) goFiles() map[string]string {
	return map[string]string{"calls.go": callsGo(s.table), "constants.go": constantsGo(s.abis)}
}

// cFiles are the sources of the C library, by path.
func (s *source) cFiles() (map[string]string, error) {
	files := map[string]string{}
	for _, a := range s.abis {
		files[string(a.name)+".c"] = a.shims(s.table)
		files[filepath.Join(string(a.name), "mpi.h")] = a.header(s.table)
	}
	fortran, err := s.abis[0].fortranC(s.table)
	files["fortran.c"] = fortran
	files["mpich/mpif.h"] = s.abis[0].mpifH()
	files["mpi.f90"] = mpiModule()
	files["mpi_f08.f90"] = s.abis[0].f08Module(s.table)
	return files, err
}

func write(folder string, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}
