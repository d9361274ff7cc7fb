package digest

import "github.com/zrlmpi/zrlmpid/daemon/control"

// Rank is how a local rank is doing.
type Rank struct {
	Rank int `json:"rank"`
	// Role is host or standin; Kernel is what a stand-in runs, and KernelState how.
	Role        string   `json:"role"`
	Kernel      string   `json:"kernel,omitempty"`
	KernelState string   `json:"kernel_state,omitempty"`
	Address     string   `json:"address"`
	Transports  []string `json:"transports"`
	// Offload is what the kernel does for the rank's UDP socket, in words; nil
	// without one.
	Offload []string `json:"offload"`
	// Posted and Unexpected are the depths of its matching queues.
	Posted     int `json:"posted"`
	Unexpected int `json:"unexpected"`
	// Programs are those that have the rank.
	Programs []control.Program `json:"programs,omitempty"`
	Rates    Rates             `json:"rates"`
}

func rank(r *control.LocalRank) Rank {
	return Rank{
		Rank: r.Rank, Role: r.Role, Kernel: r.Kernel, KernelState: r.KernelState, Address: r.Address, Transports: r.Transports,
		Offload: offload(r.Offload), Posted: r.Engine.Posted, Unexpected: r.Engine.Unexpected, Programs: r.Attached,
	}
}

// offload lists what the kernel does.
func offload(o *control.Offload) []string {
	if o == nil {
		return nil
	}
	words := []string{}
	for _, f := range []struct {
		on   bool
		word string
	}{{o.Batches, "batches"}, {o.Segmentation, "segmentation"}, {o.Coalescing, "coalescing"}} {
		if f.on {
			words = append(words, f.word)
		}
	}
	return words
}

// Failed reports whether the rank's kernel has failed.
func (r *Rank) Failed() bool { return r.KernelState == control.KernelFailed }
