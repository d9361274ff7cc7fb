package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// writeLocalTable writes the table of local ranks and their transports.
func writeLocalTable(out *strings.Builder, ranks []digest.Rank) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RANK\tTRANSPORTS\tOFFLOAD\tRECEIVE BUFFER\tSHM RING\tSINGLE COPY\tOVERSUBSCRIBED")
	for i := range ranks {
		rank := &ranks[i]
		oversubscribed := "no"
		if rank.Oversubscribed {
			oversubscribed = "yes"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", rank.Rank, orDash(rank.TransportText(",")),
			rank.OffloadText(), bufferText(rank.RankInfo), sizeText(rank.Ring), singleCopyText(rank.RankInfo), oversubscribed)
	}
	_ = w.Flush() // a Builder returns no errors
}

// bufferText returns the size of a rank's receive buffer, and the requested size if that is larger.
func bufferText(r *state.RankInfo) string {
	text := sizeText(r.ReceiveBuffer)
	if r.ReceiveBuffer < r.ReceiveBufferRequested {
		text += " of " + sizeText(r.ReceiveBufferRequested)
	}
	return text
}

// singleCopyText returns the number of peers with which the rank uses single copy, and the number of peers with which
// it shares memory.
func singleCopyText(r *state.RankInfo) string {
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
