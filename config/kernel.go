package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Kernels of stand-ins.
const (
	// KernelEcho receives messages from its peer, and sends each back.
	KernelEcho = "echo"
	// KernelRing receives each message from the rank below and passes it to the rank above.
	KernelRing = "ring"
	// KernelSink receives messages and drops them.
	KernelSink = "sink"
	// KernelSource sends messages.
	KernelSource = "source"
	// KernelJacobi computes lines of a grid for rank 0.
	KernelJacobi = "jacobi"
	// KernelKmeans divides vectors into clusters with rank 0.
	KernelKmeans = "kmeans"
	// KernelMatvec multiplies rows of a matrix by a vector for rank 0.
	KernelMatvec = "matvec"
	// KernelBacksub solves equations with rank 0.
	KernelBacksub = "backsub"
	// KernelExec runs a program of the user.
	KernelExec = "exec"
	// KernelRTL runs the user's simulation of an FPGA's role.
	KernelRTL = "rtl"
	// KernelRTLNet runs the user's simulation of a role and its MPE, which exchanges datagrams itself.
	KernelRTLNet = "rtl-net"
)

// programKernels lists the kernels that run a program supplied by the user.
var programKernels = []string{KernelExec, KernelRTL, KernelRTLNet}

// noProgramFormat is the text of the error for a kernel that requires a program but has none.
const noProgramFormat = "%[1]s: no program: write %[1]s:/path/prog, followed by its arguments"

// MaxWords is the maximum length of a message, in 32-bit words, that a configuration can set: 1 GiB. A kernel stores a
// whole message in memory.
const MaxWords = 1 << 28

// Limits of the options for the kernels jacobi and kmeans. A worker on the widest grid allocates two blocks of at most
// 1 GiB.
const (
	minColumns    = 3
	maxColumns    = 1 << 14
	maxDimensions = 1 << 10
)

// kernelOptionKeys lists, for each kernel, the KernelOptions that it uses.
var kernelOptionKeys = map[string][]string{
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

// boundedKernels lists the kernels whose KernelOptions.Words limits the length of messages that they accept.
var boundedKernels = []string{KernelEcho, KernelSink, KernelExec, KernelRTL, KernelRTLNet}

// MaxKernelWords returns the maximum length of a message, in words, that the rank's kernel accepts, or 0 if the
// kernel's options do not limit it.
func (r *Rank) MaxKernelWords() uint32 {
	if r.KernelOptions == nil || !slices.Contains(boundedKernels, r.Kernel.Name) {
		return 0
	}
	return uint32(r.KernelOptions.Words)
}

var kernelNames = []string{KernelEcho, KernelRing, KernelSink, KernelSource, KernelJacobi, KernelKmeans, KernelMatvec,
	KernelBacksub}

// AnyPeer is the KernelOptions.Peer of a kernel that receives from every rank and answers the sender.
const AnyPeer = -1

// anyPeerKernels lists the kernels that support AnyPeer.
var anyPeerKernels = []string{KernelEcho, KernelSink}

// workerKernels lists the kernels that work for a program on rank 0.
var workerKernels = []string{KernelJacobi, KernelKmeans, KernelMatvec, KernelBacksub}

// Kernel is the kernel that a stand-in runs.
type Kernel struct {
	// Name is one of the Kernel constants.
	Name string
	// Command is the program and its arguments, set only for KernelExec, KernelRTL and KernelRTLNet.
	Command []string
	// Simulation applies to KernelRTL and KernelRTLNet only.
	Simulation Simulation
}

// BypassesEngine reports whether the kernel exchanges datagrams itself, so that its rank's engine is idle.
func (k Kernel) BypassesEngine() bool { return k.Name == KernelRTLNet }

// ParseKernel parses the name of a built-in kernel, "exec:/path/prog args", "rtl:option=value /path/simulator args", or
// "rtl-net:" with the same syntax. Any number of options of Simulation may precede the simulator. Words are split at
// blanks, without quoting.
func ParseKernel(s string) (Kernel, error) {
	if name, command, ok := strings.Cut(s, ":"); ok && slices.Contains(programKernels, name) {
		kernel := Kernel{Name: name, Command: strings.Fields(command)}
		if name != KernelExec {
			var err error
			if kernel.Command, err = kernel.Simulation.parseArgs(kernel.Command); err != nil {
				return Kernel{}, fmt.Errorf("%s: %w", name, err)
			}
		}
		if len(kernel.Command) == 0 {
			return Kernel{}, fmt.Errorf(noProgramFormat, name)
		}
		return kernel, nil
	}
	if slices.Contains(kernelNames, s) {
		return Kernel{Name: s}, nil
	}
	name, _, _ := strings.Cut(s, " ") // arguments intended for a program may be secret
	return Kernel{}, fmt.Errorf("unknown kernel %s%s: the kernels are %s, \"exec:/path/prog args\", "+
		"\"rtl:/path/simulator args\" and \"rtl-net:/path/simulator args\"",
		strictyaml.Quote(name), strictyaml.SuggestName(s, kernelNames), strings.Join(kernelNames, ", "))
}

// runsProgram reports whether the kernel runs a program of the user.
func (k Kernel) runsProgram() bool { return slices.Contains(programKernels, k.Name) }

// String returns the kernel for logs, status and metrics, without the arguments of a program, which may be secret.
func (k Kernel) String() string {
	if k.runsProgram() && len(k.Command) > 0 {
		return k.Name + ":" + k.Command[0]
	}
	return k.Name
}

// Spec is the inverse of ParseKernel. It includes the arguments of a program.
func (k Kernel) Spec() string {
	if k.runsProgram() {
		return k.Name + ":" + strings.Join(append(k.Simulation.args(), k.Command...), " ")
	}
	return k.Name
}

// MarshalText returns String, for JSON and logs.
func (k Kernel) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalYAML returns Spec, for configurations.
func (k Kernel) MarshalYAML() (any, error) { return k.Spec(), nil }

// UnmarshalText implements encoding.TextUnmarshaler with ParseKernel.
func (k *Kernel) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKernel(string(text))
	return err
}

// KernelOptions configures a kernel. Kernels that run a program or a simulator support only Words and take all other
// options as command-line arguments.
type KernelOptions struct {
	// Peer is the rank with which echo, sink or source exchanges messages. For echo and sink, AnyPeer means every rank
	// that sends to them.
	Peer int `yaml:"peer,omitempty"`
	// Words is the maximum length, in 32-bit words, of a message that the kernel accepts, by default
	// standin.DefaultWords; jacobi splits longer lines. For source, and for ring at rank 0, it is the length of the
	// messages sent, by default standin.DefaultLength.
	Words int `yaml:"words,omitempty"`
	// Count is the number of messages that source sends, or of rounds of ring. 0 means no limit.
	Count int `yaml:"count,omitempty"`
	// Interval is the time for which source pauses between two messages.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Datatype is the datatype of the messages that source sends, or that ring sends at rank 0, and of the cells in
	// jacobi's grid. Other kernels accept both datatypes.
	Datatype Datatype `yaml:"datatype,omitempty"`
	// Columns is the width of jacobi's grid. 0 means the width in upstream's example.
	Columns int `yaml:"columns,omitempty"`
	// Lines is the number of lines of the grid that jacobi computes. 0 means an even share of a square grid.
	Lines int `yaml:"lines,omitempty"`
	// Dimensions is the length of the vectors in kmeans. Iterations limits how often its centroids move; kmeans stops
	// earlier once they move by at most NormLimit. 0 means the value in upstream's example.
	Dimensions int `yaml:"dimensions,omitempty"`
	Iterations int `yaml:"iterations,omitempty"`
	NormLimit  int `yaml:"norm_limit,omitempty"`
}

// ReplaceFPGAs replaces all remote FPGAs by stand-ins that run a kernel. The configuration must be valid.
func (c *Config) ReplaceFPGAs(k Kernel) {
	for i := range c.Ranks {
		if r := &c.Ranks[i]; r.Peer == PeerFPGA && !r.IsLocal() {
			r.MakeStandIn(k)
		}
	}
	c.setDerived()
}

// MakeStandIn makes the rank a stand-in that runs kernel k. A kernel that only answers then serves every rank that
// sends to it.
func (r *Rank) MakeStandIn(k Kernel) {
	r.Run, r.Kernel = RunStandin, k
	if slices.Contains(anyPeerKernels, cmp.Or(k.Name, KernelEcho)) {
		r.KernelOptions = &KernelOptions{Peer: AnyPeer}
	}
}
