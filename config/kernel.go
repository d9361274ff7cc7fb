package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
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
	// KernelExec is a program of the user's.
	KernelExec = "exec"
)

const (
	execPrefix = KernelExec + ":"
	noProgram  = "exec: names no program: write exec:/path/prog, with arguments behind it"
)

// MaxWords is the largest message in 32-bit words that a configuration can ask
// for: 1 GiB. A kernel holds a whole message in memory.
const MaxWords = 1 << 28

// optionsOf says which of KernelOptions a built-in kernel uses.
var optionsOf = map[string][]string{
	KernelEcho:   {"peer", "words"},
	KernelRing:   {"words", "count", "datatype"},
	KernelSink:   {"peer", "words"},
	KernelSource: {"peer", "words", "count", "interval", "datatype"},
}

var kernelNames = []string{KernelEcho, KernelRing, KernelSink, KernelSource}

// Kernel is what a stand-in runs.
type Kernel struct {
	// Name is one of the Kernel constants.
	Name string
	// Command is the program and its arguments; KernelExec only.
	Command []string
}

// ParseKernel reads "echo", "ring", "sink", "source" or "exec:/path/prog args".
// The program's arguments are split at blanks, with no quoting.
func ParseKernel(s string) (Kernel, error) {
	if command, ok := strings.CutPrefix(s, execPrefix); ok {
		words := strings.Fields(command)
		if len(words) == 0 {
			return Kernel{}, errors.New(noProgram)
		}
		return Kernel{Name: KernelExec, Command: words}, nil
	}
	if slices.Contains(kernelNames, s) {
		return Kernel{Name: s}, nil
	}
	return Kernel{}, fmt.Errorf("unknown kernel %s%s: the kernels are %s and \"exec:/path/prog args\"",
		quote(s), didYouMean(s, kernelNames), strings.Join(kernelNames, ", "))
}

// String is the inverse of ParseKernel.
func (k Kernel) String() string {
	if k.Name == KernelExec {
		return execPrefix + strings.Join(k.Command, " ")
	}
	return k.Name
}

// MarshalText returns String.
func (k Kernel) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText is ParseKernel.
func (k *Kernel) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKernel(string(text))
	return err
}

// KernelOptions are the options of the built-in kernels.
type KernelOptions struct {
	// Peer is the rank the kernel talks to; echo, sink and source.
	Peer int `yaml:"peer,omitempty"`
	// Words is the largest message the kernel takes, or the length of those
	// that source sends, in 32-bit words.
	Words int `yaml:"words"`
	// Count is how many messages source sends, or how often ring goes
	// round. 0: for ever.
	Count int `yaml:"count,omitempty"`
	// Interval is the time that source waits between messages.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Datatype is that of the calls that begin a message: source, and ring at
	// rank 0. What receives takes both.
	Datatype Datatype `yaml:"datatype,omitempty"`
}

func (o *KernelOptions) setDefaults() {
	*o = KernelOptions{Words: protocol.MaxCallWords}
}
