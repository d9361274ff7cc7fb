package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// The kernels that a stand-in can run.
const (
	// KernelEcho receives from its peer, and sends every message back.
	KernelEcho = "echo"
	// KernelRing passes messages from the rank below to the rank above.
	KernelRing = "ring"
	// KernelSink receives and drops.
	KernelSink = "sink"
	// KernelSource sends.
	KernelSource = "source"
	// KernelJacobi computes lines of a grid for rank 0.
	KernelJacobi = "jacobi"
	// KernelKmeans divides vectors into clusters with rank 0.
	KernelKmeans = "kmeans"
	// KernelMatvec multiplies rows of a matrix by a vector for rank 0.
	KernelMatvec = "matvec"
	// KernelBacksub solves equations with rank 0.
	KernelBacksub = "backsub"
	// KernelExec is a program of the user's.
	KernelExec = "exec"
	// KernelRTL is a simulator of the user's, with the FPGA's role in it.
	KernelRTL = "rtl"
	// KernelRTLNet is one with the role and its MPE in it, which exchanges datagrams itself.
	KernelRTLNet = "rtl-net"
)

// programKernels are kernels that run a program of the user's.
var programKernels = []string{KernelExec, KernelRTL, KernelRTLNet}

// noProgram is the problem of such a kernel without a program.
const noProgram = "%[1]s: no program: write %[1]s:/path/prog, followed by its arguments"

// MaxWords is the largest message in 32-bit words that a configuration can ask
// for: 1 GiB. A kernel holds a whole message in memory.
const MaxWords = 1 << 28

// The bounds of what only the kernels jacobi and kmeans have. A worker of the
// widest grid has two blocks of 1 GiB at most.
const (
	minColumns    = 3
	maxColumns    = 1 << 14
	maxDimensions = 1 << 10
)

// optionsOf says which of KernelOptions a kernel uses.
var optionsOf = map[string][]string{
	KernelEcho:    {"peer", "words"},
	KernelRing:    {"words", "count", "datatype"},
	KernelSink:    {"peer", "words"},
	KernelSource:  {"peer", "words", "count", "interval", "datatype"},
	KernelJacobi:  {"words", "datatype", "columns", "lines"},
	KernelKmeans:  {"words", "dimensions", "iterations", "norm_limit"},
	KernelMatvec:  {"words"},
	KernelBacksub: {"words"},
	KernelExec:    {"words"},
	KernelRTL:     {"words"},
	KernelRTLNet:  {"words"},
}

// limited are the kernels that take no message longer than KernelOptions.Words.
var limited = []string{KernelEcho, KernelSink, KernelExec, KernelRTL, KernelRTLNet}

// Takes returns the longest message in words that the rank's kernel takes by its options; 0 if they do not say.
func (r *Rank) Takes() uint32 {
	if r.KernelOptions == nil || !slices.Contains(limited, r.Kernel.Name) {
		return 0
	}
	return uint32(r.KernelOptions.Words)
}

var kernelNames = []string{KernelEcho, KernelRing, KernelSink, KernelSource, KernelJacobi, KernelKmeans, KernelMatvec, KernelBacksub}

// AnyPeer is the KernelOptions.Peer of a kernel that receives from every rank, and answers the sender.
const AnyPeer = -1

// answering are the kernels that may have AnyPeer.
var answering = []string{KernelEcho, KernelSink}

// workers are kernels that work for a program on rank 0.
var workers = []string{KernelJacobi, KernelKmeans, KernelMatvec, KernelBacksub}

// Kernel is what a stand-in runs.
type Kernel struct {
	// Name is one of the Kernel constants.
	Name string
	// Command is the program and its arguments; KernelExec, KernelRTL and KernelRTLNet only.
	Command []string
	// Simulation is of KernelRTL and KernelRTLNet only.
	Simulation Simulation
}

// OnWire reports whether the kernel exchanges datagrams itself: its rank's engine has nothing to do.
func (k Kernel) OnWire() bool { return k.Name == KernelRTLNet }

// ParseKernel reads the name of a built-in kernel, or "exec:/path/prog args", or
// "rtl:option=value /path/simulator args" or the same with "rtl-net", with any number of options of
// Simulation. The words are split at blanks, with no quoting.
func ParseKernel(s string) (Kernel, error) {
	if name, command, ok := strings.Cut(s, ":"); ok && slices.Contains(programKernels, name) {
		k := Kernel{Name: name, Command: strings.Fields(command)}
		if name != KernelExec {
			var err error
			if k.Command, err = k.Simulation.parse(k.Command); err != nil {
				return Kernel{}, fmt.Errorf("%s: %w", name, err)
			}
		}
		if len(k.Command) == 0 {
			return Kernel{}, fmt.Errorf(noProgram, name)
		}
		return k, nil
	}
	if slices.Contains(kernelNames, s) {
		return Kernel{Name: s}, nil
	}
	name, _, _ := strings.Cut(s, " ") // arguments that were meant for a program may be secret
	return Kernel{}, fmt.Errorf("unknown kernel %s%s: the kernels are %s, \"exec:/path/prog args\", \"rtl:/path/simulator args\" and \"rtl-net:/path/simulator args\"",
		strictyaml.Quote(name), strictyaml.DidYouMean(s, kernelNames), strings.Join(kernelNames, ", "))
}

// runsProgram reports whether the kernel runs a program of the user's.
func (k Kernel) runsProgram() bool { return slices.Contains(programKernels, k.Name) }

// String returns the kernel for logs, status and metrics: of a program without its
// arguments, which may be secret.
func (k Kernel) String() string {
	if k.runsProgram() && len(k.Command) > 0 {
		return k.Name + ":" + k.Command[0]
	}
	return k.Name
}

// Spec is the inverse of ParseKernel. It has the arguments of a program.
func (k Kernel) Spec() string {
	if k.runsProgram() {
		return k.Name + ":" + strings.Join(append(k.Simulation.words(), k.Command...), " ")
	}
	return k.Name
}

// MarshalText returns String, for JSON and logs.
func (k Kernel) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalYAML returns Spec, for configurations.
func (k Kernel) MarshalYAML() (any, error) { return k.Spec(), nil }

// UnmarshalText is ParseKernel.
func (k *Kernel) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKernel(string(text))
	return err
}

// KernelOptions are the options of kernels. A program of exec, and a simulator, have Words only; what else they
// are to know are their arguments.
type KernelOptions struct {
	// Peer is the rank the kernel talks to; echo, sink and source. AnyPeer is every rank that sends to it; echo and
	// sink.
	Peer int `yaml:"peer,omitempty"`
	// Words is the largest message the kernel takes, or the length of those
	// that source, and ring at rank 0, send, in 32-bit words; jacobi cuts longer
	// lines. 0 is standin.DefaultWords, or standin.DefaultLength of those sent.
	Words int `yaml:"words,omitempty"`
	// Count is how many messages source sends, or how often ring goes
	// round. 0: no limit.
	Count int `yaml:"count,omitempty"`
	// Interval is the time that source waits between messages.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Datatype is that of the calls that begin a message: source, and ring at
	// rank 0; and of jacobi's grid. What else receives takes both.
	Datatype Datatype `yaml:"datatype,omitempty"`
	// Columns is the width of jacobi's grid; 0 is that of upstream's example.
	Columns int `yaml:"columns,omitempty"`
	// Lines is how many lines of the grid jacobi computes; 0 is an even share
	// of a square grid.
	Lines int `yaml:"lines,omitempty"`
	// Dimensions is the length of kmeans' vectors, Iterations how often its
	// centroids move at most, and NormLimit ends that when they moved by no
	// more. 0 is the value of upstream's example.
	Dimensions int `yaml:"dimensions,omitempty"`
	Iterations int `yaml:"iterations,omitempty"`
	NormLimit  int `yaml:"norm_limit,omitempty"`
}

// StandIn makes stand-ins that run a kernel of all FPGAs that are not local. The configuration must be valid.
func (c *Config) StandIn(k Kernel) {
	for i := range c.Ranks {
		if r := &c.Ranks[i]; r.Peer == PeerFPGA && !r.Local() {
			r.StandIn(k)
		}
	}
	c.complete()
}

// StandIn makes the rank a stand-in that runs a kernel, for every rank that sends to it if the kernel only answers.
func (r *Rank) StandIn(k Kernel) {
	r.Run, r.Kernel = RunStandin, k
	if slices.Contains(answering, cmp.Or(k.Name, KernelEcho)) {
		r.KernelOptions = &KernelOptions{Peer: AnyPeer}
	}
}
