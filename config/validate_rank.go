package config

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// validate checks the entry of one rank, independently of all other entries.
func (r *Rank) validate(problems *strictyaml.Problems, key string) {
	r.validateAddress(problems, key+".address")
	if r.Link != nil {
		r.Link.validate(problems, key+".link")
	}
	if r.Run != RunStandin {
		r.rejectStandinKeys(problems, key)
	}
	if r.Allow != nil && r.Run != RunHost {
		problems.Add(key+".allow", "programs attach to host ranks only: add run: host to rank %d, or remove the key", r.Rank)
	}
	r.Allow.validate(problems, key+".allow")
	switch {
	case r.Timing == "":
	case r.Run == "":
		problems.Add(key+".timing", "rank %d is remote and sets its own timeouts: remove the key, or add run: host or "+
			"run: standin", r.Rank)
	default:
		checkOneOf(problems, key+".timing", r.Timing, TimingDeployed, TimingDefault)
	}
	switch r.Run {
	case "":
		if r.Peer == "" {
			problems.Add(key+".peer", "missing: set the kind of a remote rank to fpga, cpu or software; a rank of this "+
				"daemon needs run: host or run: standin")
			return
		}
	case RunHost:
		if r.Peer == PeerFPGA {
			problems.Add(key+".peer", "a host program does not behave like an FPGA: use run: standin, with kernel: "+
				"\"exec:/path/prog\" for your own program")
			return
		}
	case RunStandin:
		r.validateKernel(problems, key)
		r.validateNetKernel(problems, key)
		switch {
		case r.Quirks == "" || r.Kernel.BypassesEngine():
		case r.Peer != PeerFPGA:
			problems.Add(key+".quirks", "they apply to an FPGA, but this stand-in is peer: %s: remove one of the two", r.Peer)
		default:
			checkOneOf(problems, key+".quirks", r.Quirks, QuirksOn, QuirksOff)
		}
	default:
		checkOneOf(problems, key+".run", r.Run, RunHost, RunStandin)
		return
	}
	checkOneOf(problems, key+".peer", r.Peer, PeerFPGA, PeerCPU, PeerSoftware)
}

func (r *Rank) validateAddress(problems *strictyaml.Problems, key string) {
	ip := r.Address.Addr()
	switch {
	case !ip.IsValid():
		problems.Add(key, "missing: give the IP address of the rank")
	case ip.IsUnspecified() || ip.IsMulticast():
		problems.Add(key, "%v is not the address of one node: give the address that the other ranks send to", ip)
	case r.Address.Port() == 0:
		problems.Add(key, "no port is left for rank %d on %v: give it one", r.Rank, ip)
	}
}

// rejectStandinKeys rejects keys that have no effect.
func (r *Rank) rejectStandinKeys(problems *strictyaml.Problems, key string) {
	given := map[string]bool{
		"kernel": r.Kernel.Name != "", "kernel_options": r.KernelOptions != nil, "quirks": r.Quirks != "",
		"faults": r.Faults != nil,
	}
	for _, name := range []string{"kernel", "kernel_options", "quirks", "faults"} {
		if given[name] {
			problems.Add(key+"."+name, "only a stand-in uses it: add run: standin to rank %d, or remove the key", r.Rank)
		}
	}
}

func (r *Rank) validateKernel(problems *strictyaml.Problems, key string) {
	if !r.Kernel.runsProgram() {
		checkOneOf(problems, key+".kernel", r.Kernel.Name, kernelNames...)
	} else if len(r.Kernel.Command) == 0 {
		problems.Add(key+".kernel", noProgramFormat, r.Kernel.Name)
	}
	if r.Rank == 0 && slices.Contains(workerKernels, r.Kernel.Name) {
		problems.Add(key+".kernel", "%s needs a host program on rank 0, but this is rank 0: use it for other ranks",
			r.Kernel.Name)
	}
	key += ".kernel_options"
	options := r.KernelOptions
	if options == nil || kernelOptionKeys[r.Kernel.Name] == nil {
		return
	}
	set := []struct {
		name string
		set  bool
	}{
		{"words", options.Words != 0}, {"peer", options.Peer != 0}, {"count", options.Count != 0}, {"interval",
			options.Interval != 0},
		{"datatype", options.Datatype != 0},
		{"columns", options.Columns != 0}, {"lines", options.Lines != 0},
		{"dimensions", options.Dimensions != 0}, {"iterations", options.Iterations != 0}, {"norm_limit",
			options.NormLimit != 0},
	}
	for _, option := range set {
		if uses := kernelOptionKeys[r.Kernel.Name]; option.set && !slices.Contains(uses, option.name) {
			more := strings.Join(uses, ", ")
			switch r.Kernel.Name {
			case KernelExec:
				more += "; options of the program itself are its arguments"
			case KernelRTLNet:
				more += "; options precede the simulator, as in rtl-net:seed=7 PROGRAM"
			}
			problems.Add(key+"."+option.name, "kernel %s does not use it: its options are %s", r.Kernel.Name, more)
		}
	}
	checkRange(problems, key+".words", options.Words, 0, MaxWords)
	if options.Count < 0 {
		problems.Add(key+".count", "%d is less than 0: use 0 for no limit, or more", options.Count)
	}
	checkDuration(problems, key+".interval", options.Interval)
	if options.Columns != 0 { // 0 means the built-in value
		checkRange(problems, key+".columns", options.Columns, minColumns, maxColumns)
	}
	checkRange(problems, key+".lines", options.Lines, 0, maxColumns)
	checkRange(problems, key+".dimensions", options.Dimensions, 0, maxDimensions)
	checkRange(problems, key+".iterations", options.Iterations, 0, math.MaxInt32)
	checkRange(problems, key+".norm_limit", options.NormLimit, 0, math.MaxInt32)
}

// lastShellPort is the last UDP port that the shell of an FPGA can open for its role; the first is protocol.Port.
const lastShellPort = protocol.Port + 31

// validateNetKernel checks a rank whose kernel exchanges datagrams itself.
func (r *Rank) validateNetKernel(problems *strictyaml.Problems, key string) {
	if !r.Kernel.BypassesEngine() {
		return
	}
	if r.Peer != PeerFPGA {
		problems.Add(key+".peer", "%s, but kernel %s is an FPGA to the other ranks: remove the key", r.Peer, r.Kernel.Name)
	}
	if port := r.Address.Port(); port != 0 && (port < protocol.Port || port > lastShellPort) {
		problems.Add(key+".address", "an FPGA's shell opens ports %d to %d only: give rank %d one of them", protocol.Port,
			lastShellPort, r.Rank)
	}
	const own = "kernel %s has its own MPE: remove the key"
	if r.Quirks != "" {
		problems.Add(key+".quirks", own, r.Kernel.Name)
	}
	if r.Timing != "" {
		problems.Add(key+".timing", own, r.Kernel.Name)
	}
}

// validateKernelPeer checks the kernel's peer.
func (r *Rank) validateKernelPeer(problems *strictyaml.Problems, key string, ranks map[int]int) {
	options := r.KernelOptions
	if r.Run != RunStandin || options == nil || !slices.Contains(kernelOptionKeys[r.Kernel.Name], "peer") {
		return
	}
	key += ".kernel_options.peer"
	if options.Peer == AnyPeer && slices.Contains(anyPeerKernels, r.Kernel.Name) {
		return
	}
	if options.Peer == r.Rank {
		problems.Add(key, "rank %d cannot be its own peer: set the rank that kernel %s exchanges messages with", r.Rank,
			r.Kernel.Name)
	} else if _, ok := ranks[options.Peer]; !ok {
		problems.Add(key, "there is no rank %d: set the rank that kernel %s exchanges messages with", options.Peer,
			r.Kernel.Name)
	}
}

func checkRange[T int | Size](p *strictyaml.Problems, key string, got, low, high T) {
	if got < low || got > high {
		p.Add(key, "%v is outside %v to %v", got, low, high)
	}
}

// maxDuration is the longest duration that a configuration may set, so that sums of durations do not overflow.
const maxDuration = 24 * time.Hour

func checkDuration(p *strictyaml.Problems, key string, got time.Duration) {
	if got < 0 || got > maxDuration {
		p.Add(key, "%v is outside 0s to %v", got, maxDuration)
	}
}
