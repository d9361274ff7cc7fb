package digest

import (
	"strings"

	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// Rank is the state of a local rank.
type Rank struct {
	*control.RankInfo
	// Posted and Unexpected are the depths of its matching queues.
	Posted     int   `json:"posted"`
	Unexpected int   `json:"unexpected"`
	Rates      Rates `json:"rates"`
}

// OffloadText returns what the kernel does for the rank's UDP socket in words, or "-"
// for a rank without one.
func (r *Rank) OffloadText() string {
	o := r.Offload
	if o == nil {
		return "-"
	}
	var words []string
	for _, f := range []struct {
		on   bool
		word string
	}{{o.Batches, "batches"}, {o.Segmentation, "segmentation"}, {o.Coalescing, "coalescing"}, {o.Disabled && o.Batches, "others disabled"}} {
		if f.on {
			words = append(words, f.word)
		}
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, ", ")
	case o.Disabled:
		return "disabled"
	}
	return "none"
}

// Failed reports whether the rank's kernel has failed.
func (r *Rank) Failed() bool { return r.KernelState == control.KernelFailed }
