package config

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// validate checks the entry of one rank by itself.
func (r *Rank) validate(p *strictyaml.Problems, key string) {
	r.validateAddress(p, key+".address")
	if r.Link != nil {
		r.Link.validate(p, key+".link")
	}
	if r.Run != RunStandin {
		r.rejectStandinKeys(p, key)
	}
	if r.Allow != nil && r.Run != RunHost {
		p.Add(key+".allow", "programs attach to host ranks only: add run: host to rank %d, or remove the key", r.Rank)
	}
	r.Allow.validate(p, key+".allow")
	switch {
	case r.Timing == "":
	case r.Run == "":
		p.Add(key+".timing", "rank %d is remote and sets its own time-outs: remove the key, or add run: host or "+
			"run: standin", r.Rank)
	default:
		checkOneOf(p, key+".timing", r.Timing, TimingDeployed, TimingDefault)
	}
	switch r.Run {
	case "":
		if r.Peer == "" {
			p.Add(key+".peer", "missing: set the kind of a remote rank to fpga, cpu or software; a rank of this "+
				"daemon needs run: host or run: standin")
			return
		}
	case RunHost:
		if r.Peer == PeerFPGA {
			p.Add(key+".peer", "a host program does not behave like an FPGA: use run: standin, with kernel: "+
				"\"exec:/path/prog\" for your own program")
			return
		}
	case RunStandin:
		r.validateKernel(p, key)
		r.validateNetKernel(p, key)
		switch {
		case r.Quirks == "" || r.Kernel.BypassesEngine():
		case r.Peer != PeerFPGA:
			p.Add(key+".quirks", "they apply to an FPGA, but this stand-in is peer: %s: remove one of the two", r.Peer)
		default:
			checkOneOf(p, key+".quirks", r.Quirks, QuirksOn, QuirksOff)
		}
	default:
		checkOneOf(p, key+".run", r.Run, RunHost, RunStandin)
		return
	}
	checkOneOf(p, key+".peer", r.Peer, PeerFPGA, PeerCPU, PeerSoftware)
}

func (r *Rank) validateAddress(p *strictyaml.Problems, key string) {
	ip := r.Address.Addr()
	switch {
	case !ip.IsValid():
		p.Add(key, "missing: give the IP address of the rank")
	case ip.IsUnspecified() || ip.IsMulticast():
		p.Add(key, "%v is not the address of one node: give the address that the other ranks send to", ip)
	case r.Address.Port() == 0:
		p.Add(key, "no port is left for rank %d on %v: give it one", r.Rank, ip)
	}
}

// rejectStandinKeys rejects keys that have no effect.
func (r *Rank) rejectStandinKeys(p *strictyaml.Problems, key string) {
	given := map[string]bool{
		"kernel": r.Kernel.Name != "", "kernel_options": r.KernelOptions != nil, "quirks": r.Quirks != "",
		"faults": r.Faults != nil,
	}
	for _, name := range []string{"kernel", "kernel_options", "quirks", "faults"} {
		if given[name] {
			p.Add(key+"."+name, "only a stand-in uses it: add run: standin to rank %d, or remove the key", r.Rank)
		}
	}
}

func (r *Rank) validateKernel(p *strictyaml.Problems, key string) {
	if !r.Kernel.runsProgram() {
		checkOneOf(p, key+".kernel", r.Kernel.Name, kernelNames...)
	} else if len(r.Kernel.Command) == 0 {
		p.Add(key+".kernel", noProgramFormat, r.Kernel.Name)
	}
	if r.Rank == 0 && slices.Contains(workerKernels, r.Kernel.Name) {
		p.Add(key+".kernel", "%s needs a host program on rank 0, but this is rank 0: use it for other ranks",
			r.Kernel.Name)
	}
	key += ".kernel_options"
	o := r.KernelOptions
	if o == nil || kernelOptionKeys[r.Kernel.Name] == nil {
		return
	}
	set := []struct {
		name string
		set  bool
	}{
		{"words", o.Words != 0}, {"peer", o.Peer != 0}, {"count", o.Count != 0}, {"interval", o.Interval != 0},
		{"datatype", o.Datatype != 0},
		{"columns", o.Columns != 0}, {"lines", o.Lines != 0},
		{"dimensions", o.Dimensions != 0}, {"iterations", o.Iterations != 0}, {"norm_limit", o.NormLimit != 0},
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
			p.Add(key+"."+option.name, "kernel %s does not use it: its options are %s", r.Kernel.Name, more)
		}
	}
	checkRange(p, key+".words", o.Words, 0, MaxWords)
	if o.Count < 0 {
		p.Add(key+".count", "%d is less than 0: use 0 for no limit, or more", o.Count)
	}
	checkDuration(p, key+".interval", o.Interval)
	if o.Columns != 0 { // 0 means the built-in value
		checkRange(p, key+".columns", o.Columns, minColumns, maxColumns)
	}
	checkRange(p, key+".lines", o.Lines, 0, maxColumns)
	checkRange(p, key+".dimensions", o.Dimensions, 0, maxDimensions)
	checkRange(p, key+".iterations", o.Iterations, 0, math.MaxInt32)
	checkRange(p, key+".norm_limit", o.NormLimit, 0, math.MaxInt32)
}

// lastShellPort is the last AddUDP port that the shell of an FPGA can open for its role; the first is protocol.Port.
const lastShellPort = protocol.Port + 31

// validateNetKernel checks a rank whose kernel exchanges datagrams itself.
func (r *Rank) validateNetKernel(p *strictyaml.Problems, key string) {
	if !r.Kernel.BypassesEngine() {
		return
	}
	if r.Peer != PeerFPGA {
		p.Add(key+".peer", "%s, but kernel %s is an FPGA to the other ranks: remove the key", r.Peer, r.Kernel.Name)
	}
	if port := r.Address.Port(); port != 0 && (port < protocol.Port || port > lastShellPort) {
		p.Add(key+".address", "an FPGA's shell opens ports %d to %d only: give rank %d one of them", protocol.Port,
			lastShellPort, r.Rank)
	}
	const own = "kernel %s has its own MPE: remove the key"
	if r.Quirks != "" {
		p.Add(key+".quirks", own, r.Kernel.Name)
	}
	if r.Timing != "" {
		p.Add(key+".timing", own, r.Kernel.Name)
	}
}

// validateKernelPeer checks the kernel's peer.
func (r *Rank) validateKernelPeer(p *strictyaml.Problems, key string, ranks map[int]int) {
	o := r.KernelOptions
	if r.Run != RunStandin || o == nil || !slices.Contains(kernelOptionKeys[r.Kernel.Name], "peer") {
		return
	}
	key += ".kernel_options.peer"
	if o.Peer == AnyPeer && slices.Contains(anyPeerKernels, r.Kernel.Name) {
		return
	}
	if o.Peer == r.Rank {
		p.Add(key, "rank %d cannot be its own peer: set the rank that kernel %s exchanges messages with", r.Rank,
			r.Kernel.Name)
	} else if _, ok := ranks[o.Peer]; !ok {
		p.Add(key, "there is no rank %d: set the rank that kernel %s exchanges messages with", o.Peer, r.Kernel.Name)
	}
}

func checkRange[T int | Size](p *strictyaml.Problems, key string, got, low, high T) {
	if got < low || got > high {
		p.Add(key, "%v is outside %v to %v", got, low, high)
	}
}

// maxDuration keeps sums of durations within the range of their type.
const maxDuration = 24 * time.Hour

func checkDuration(p *strictyaml.Problems, key string, got time.Duration) {
	if got < 0 || got > maxDuration {
		p.Add(key, "%v is outside 0s to %v", got, maxDuration)
	}
}
