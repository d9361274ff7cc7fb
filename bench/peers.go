package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed c
var sources embed.FS

// library is an MPI library to compare with, as Debian installs it.
type library struct {
	name, compiler, launcher, packages string
	// version are arguments of the launcher, and versionLine is how the line
	// begins that has the version.
	version     []string
	versionLine string
	// ways are those in which it is measured.
	ways []way
}

// way is a way to run a library's two ranks.
type way struct {
	key, name string
	args      []string
}

// openMPITCP is the side that ping-pong is compared with: like ours, it crosses
// the kernel's network.
const openMPITCP = "openmpi-tcp"

// asRoot lets Open MPI run as root, and on fewer cores than ranks.
var asRoot = []string{"--allow-run-as-root", "--oversubscribe"}

var libraries = []library{
	{
		name: "Open MPI", compiler: "mpicc.openmpi", launcher: "mpirun.openmpi", packages: "openmpi-bin libopenmpi-dev",
		version: []string{"--version"}, versionLine: "mpirun.openmpi",
		ways: []way{
			// ob1 is the layer that uses byte transfer layers, such as tcp.
			{openMPITCP, "Open MPI, TCP", append([]string{"--mca", "pml", "ob1", "--mca", "btl", "tcp,self"}, asRoot...)},
			{"openmpi", "Open MPI", asRoot},
		},
	},
	{
		name: "MPICH", compiler: "mpicc.mpich", launcher: "mpirun.mpich", packages: "mpich libmpich-dev",
		version: []string{"--version"}, versionLine: "Version:",
		ways: []way{{"mpich", "MPICH", nil}},
	},
}

// missing says which of the library's programs are not there, or returns "".
func (l *library) missing() string {
	var names []string
	for _, name := range []string{l.compiler, l.launcher} {
		if _, err := exec.LookPath(name); err != nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is missing: %s not found. It is not measured. On Debian: apt-get install %s",
		l.name, strings.Join(names, " and "), l.packages)
}

// sides compiles the workload's program, and returns the ways to run it.
func (l *library) sides(ctx context.Context, w *workload, dir string) ([]side, error) {
	program, err := l.compile(ctx, w, dir)
	if err != nil {
		return nil, err
	}
	version := l.askVersion(ctx)
	var all []side
	for _, way := range l.ways {
		args := append([]string{"-np", "2"}, way.args...)
		s := side{Key: way.key, Name: way.name, Peer: true, Version: version, Command: strings.Join(append([]string{l.launcher}, args...), " ")}
		s.run = func(ctx context.Context, steps []step) ([]byte, error) {
			var out bytes.Buffer
			cmd := command(ctx, l.launcher, append(append(args[:len(args):len(args)], program), texts(steps)...)...)
			cmd.Stdout = &out
			err := runCommand(cmd)
			return out.Bytes(), err
		}
		all = append(all, s)
	}
	return all, nil
}

// compile returns the path of the workload's program, made for the library.
func (l *library) compile(ctx context.Context, w *workload, dir string) (string, error) {
	for _, name := range []string{"bench.h", w.name + ".c"} {
		text, err := sources.ReadFile("c/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, w.name+"-"+l.launcher)
	return program, runCommand(command(ctx, l.compiler, "-O2", "-o", program, filepath.Join(dir, w.name+".c")))
}

// askVersion returns the library's name and version, as far as it tells.
func (l *library) askVersion(ctx context.Context) string {
	out, err := command(ctx, l.launcher, l.version...).Output()
	if err != nil {
		return l.name
	}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == l.versionLine {
			return l.name + " " + fields[len(fields)-1]
		}
	}
	return l.name
}
