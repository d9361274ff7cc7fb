package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// library describes an MPI library with which zrlmpid is compared. It is installed as a Debian package.
type library struct {
	name, compiler, launcher, packages string
	// versionLine is the text with which the version line begins when the launcher is called with --version.
	versionLine string
	// modes lists the ways in which the library is run and measured.
	modes []runMode
	// yields lists the launcher's arguments that make ranks yield the processor. They are added if there are more ranks
	// than processors.
	yields []string
	// pollsOnly means that the library polls without yielding the processor. With more ranks than processors, a message
	// then takes milliseconds or never completes.
	pollsOnly bool
}

// runMode describes one way to run the ranks of an MPI library.
type runMode struct {
	key, name string
	group     Group
	args, env []string
}

// Keys of the sides used as references.
const (
	openMPITCP  = "openmpi-tcp"
	openMPIVeth = "openmpi-tcp-veth"
	openMPIShm  = "openmpi"
	mpichShm    = "mpich"
)

// asRoot lists the settings that let Open MPI run as root, and with more ranks than processors.
var asRoot = []string{"--allow-run-as-root", "--oversubscribe"}

var libraries = []library{
	{
		name: "Open MPI", compiler: "mpicc.openmpi", launcher: "mpirun.openmpi", packages: "openmpi-bin libopenmpi-dev",
		versionLine: "mpirun.openmpi",
		yields:      []string{"--mca", "mpi_yield_when_idle", "1"},
		modes: []runMode{
			// ob1 selects Open MPI's messaging layer ob1, which uses byte transfer layers such as tcp.
			{key: openMPITCP, name: "Open MPI, TCP", group: Network,
				args: append([]string{"--mca", "pml", "ob1", "--mca", "btl", "tcp,self"}, asRoot...)},
			{key: openMPIShm, name: "Open MPI, shared memory", group: Memory, args: asRoot},
		},
	},
	{
		name: "MPICH", compiler: "mpicc.mpich", launcher: "mpirun.mpich", packages: "mpich libmpich-dev",
		versionLine: "Version:",
		pollsOnly:   true,
		modes: []runMode{
			// Debian's build of MPICH uses UCX, which reads from the environment which transports it may use.
			{key: "mpich-tcp", name: "MPICH, TCP", group: Network,
				env: []string{"MPIR_CVAR_NOLOCAL=1", "MPIR_CVAR_CH4_NETMOD=ucx", "UCX_TLS=tcp,self"}},
			{key: mpichShm, name: "MPICH, shared memory", group: Memory},
		},
	},
}

// vethMPI is Open MPI between two hosts. Without --bind-to none, it binds the first rank of each host to the same
// processor.
var vethMPI = func() library {
	l := libraries[0]
	l.modes = []runMode{{key: openMPIVeth, name: "Open MPI, TCP", group: Hosts,
		args: append([]string{"--bind-to", "none"}, l.modes[0].args...)}}
	return l
}()

func (l *library) family() family {
	f := family{find: l.find}
	for _, w := range l.modes {
		f.keys = append(f.keys, w.key)
	}
	return f
}

func (l *library) find(ctx context.Context, dir string, _ func(string) bool) (found []side, missing []string,
	err error) {
	if m := l.missing(); m != "" {
		return nil, []string{m}, nil
	}
	version := l.askVersion(ctx)
	compiler := newCompiler(dir, l.compiler, "-pthread")
	for _, w := range l.modes {
		found = append(found, l.side(w, compiler, version))
	}
	return found, nil, nil
}

// missing names the library's programs that are not installed. It returns "" if all are installed.
func (l *library) missing() string {
	var names []string
	for _, name := range []string{l.compiler, l.launcher} {
		if !installed(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is missing: %s not found. It is not measured. On Debian: apt-get install %s",
		l.name, strings.Join(names, " and "), l.packages)
}

// side returns the library, run in the given way, as a side that can be measured.
func (l *library) side(mode runMode, compiler *compiler, version string) side {
	s := side{Side: Side{
		Key: mode.key, Name: mode.name, Kind: Peer, Group: mode.group, Version: version,
		Command: strings.Join(append(append(mode.env[:len(mode.env):len(mode.env)], l.launcher, "-np", "N"), mode.args...),
			" "),
	}}
	s.steps = func(work *workload, steps []step) []step {
		if !l.pollsOnly || work.ranks == nil {
			return steps
		}
		var some []step
		for _, st := range steps {
			if work.numRanks(st) <= max(2, runtime.NumCPU()) {
				some = append(some, st)
			}
		}
		return some
	}
	s.run = func(ctx context.Context, j job, out io.Writer) error {
		path, err := compiler.compile(ctx, j.w.source)
		if err != nil {
			return err
		}
		args := append([]string{"-np", strconv.Itoa(j.ranks)}, mode.args...)
		if j.ranks > runtime.NumCPU() {
			args = append(args, l.yields...)
		}
		if j.hosts != nil {
			hostArgs, err := j.hosts.mpirunArgs(j.dir)
			if err != nil {
				return err
			}
			args = append(args, hostArgs...)
		}
		args = append(append(append(args, path), j.w.args...), j.arguments()...)
		cmd := command(ctx, l.launcher, args...)
		cmd.do = j.hosts.on(0)
		cmd.Env = append(os.Environ(), mode.env...)
		cmd.Stdout = out
		return cmd.run()
	}
	return s
}

// askVersion returns the library's name, followed by its version if known.
func (l *library) askVersion(ctx context.Context) string {
	out, err := command(ctx, l.launcher, "--version").output()
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
