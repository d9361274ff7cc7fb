package digest

import (
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Rank describes the state of a local rank.
type Rank struct {
	*state.RankInfo
	// Posted and Unexpected are the lengths of the rank's matching queues.
	Posted     int   `json:"posted"`
	Unexpected int   `json:"unexpected"`
	Rates      Rates `json:"rates"`
}

// OffloadText describes the path past the kernel's network stack, if the rank has one, and the kernel offloads used by
// its UDP socket. It returns "-" if the rank has no UDP socket.
func (r *Rank) OffloadText() string {
	offload := r.Offload
	if offload == nil {
		return "-"
	}
	var words []string
	if path := r.Path; path != nil && path.Error == "" {
		words = append(words, path.Text())
	}
	for _, f := range []struct {
		on   bool
		word string
	}{{offload.Batches, "batches"}, {offload.Segmentation, "segmentation"}, {offload.Coalescing, "coalescing"},
		{offload.Disabled && offload.Batches, "others disabled"}} {
		if f.on {
			words = append(words, f.word)
		}
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, ", ")
	case offload.Disabled:
		return "disabled"
	}
	return "none"
}

// isIdle reports whether a rank has no failures, pending operations, messages or traffic.
func (r *Rank) isIdle() bool {
	operations := 0
	for i := range r.Attached {
		operations += r.Attached[i].Operations
	}
	receives := r.Posted
	if r.Role != state.RoleHost { // ignore the receive in which a stand-in's kernel waits for work
		receives = 0
	}
	return !r.Failed() && receives+r.Unexpected+operations == 0 && r.Rates.Messages == 0
}

// RankList returns a list of ranks as text, such as "0, 3–9".
func RankList(ranks []*Rank) string {
	var words []string
	for i := 0; i < len(ranks); {
		last := i
		for last+1 < len(ranks) && ranks[last+1].Rank == ranks[last].Rank+1 {
			last++
		}
		switch word := strconv.Itoa(ranks[i].Rank); last - i {
		case 0:
			words = append(words, word)
		case 1:
			words = append(words, word, strconv.Itoa(ranks[last].Rank))
		default:
			words = append(words, word+"–"+strconv.Itoa(ranks[last].Rank))
		}
		i = last + 1
	}
	return strings.Join(words, ", ")
}

// Failed reports whether the rank's kernel has failed.
func (r *Rank) Failed() bool { return r.KernelState == state.KernelFailed }
