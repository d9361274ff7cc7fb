package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// localTable says how the local ranks are connected.
func localTable(out *strings.Builder, ranks []control.LocalRank) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RANK\tTRANSPORTS\tOFFLOAD\tRECEIVE BUFFER\tSHM RING\tSINGLE COPY\tOVERSUBSCRIBED")
	for i := range ranks {
		r := &ranks[i]
		oversubscribed := "no"
		if r.Oversubscribed {
			oversubscribed = "yes"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Rank, dash(strings.Join(r.Transports, ",")),
			offloadText(r.Offload), bufferText(r), sizeText(r.Ring), singleCopyText(r), oversubscribed)
	}
	_ = w.Flush() // a Builder takes everything
}

// offloadText is what the kernel does for a rank's UDP socket, in words.
func offloadText(o *control.Offload) string {
	if o == nil {
		return "-"
	}
	var words []string
	if o.Batches {
		words = append(words, "batches")
	}
	if o.Segmentation {
		words = append(words, "segmentation")
	}
	if o.Coalescing {
		words = append(words, "coalescing")
	}
	switch {
	case o.Off && o.Batches:
		words = append(words, "the rest is off")
	case o.Off:
		return "off"
	case len(words) == 0:
		return "none"
	}
	return strings.Join(words, ", ")
}

// bufferText is a rank's receive buffer, and what was asked for if that is more.
func bufferText(r *control.LocalRank) string {
	text := sizeText(r.ReceiveBuffer)
	if r.ReceiveBuffer < r.ReceiveBufferAsked {
		text += " of " + sizeText(r.ReceiveBufferAsked)
	}
	return text
}

// singleCopyText says with how many of the peers that a rank shares memory with it
// has long messages copied once only.
func singleCopyText(r *control.LocalRank) string {
	if r.Ring == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", r.SingleCopy, r.Shared)
}

func sizeText(bytes int) string {
	if bytes == 0 {
		return "-"
	}
	return config.Size(bytes).String()
}

// uncut says to which peers the kernel does not cut long messages.
func uncut(s *control.Status) []string {
	var lines []string
	for _, r := range s.Ranks {
		if r.Offload == nil {
			continue
		}
		for _, p := range r.Offload.Refused {
			lines = append(lines, fmt.Sprintf("rank %d has no segmentation to rank %d: the kernel refuses (%s)", r.Rank, p.Peer, p.Error))
		}
	}
	return lines
}
