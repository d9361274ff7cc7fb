package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

// printExtended prints a row for each direction of each pair that used the extended profile.
func printExtended(out io.Writer, pairs []capture.ExtendedPair) {
	if len(pairs) == 0 {
		return
	}
	fmt.Fprintln(out, "\nEXTENDED PROFILE")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "FROM\tTO\tSESSIONS\tPACKETS\tACKS\tMESSAGES\tCOMPLETE\tOPEN\tBYTES\tRETRANSMISSIONS\tLOST\tDUPLICATES\tOUT OF ORDER\tCORRUPT\t")
	for i := range pairs {
		p := &pairs[i]
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", p.Src, p.Dst, p.Sessions,
			p.Packets, p.Acks,
			p.Messages, p.Complete, p.Open, p.Bytes, p.Retransmissions, p.Lost, p.Duplicates, p.OutOfOrder, p.Corrupt)
	}
	_ = w.Flush()
	for i := range pairs {
		pair := &pairs[i]
		for _, c := range []struct {
			n         int64
			what, how string
		}{
			{pair.Canceled, "message", "canceled"},
			{pair.Aborted, "message", "aborted by ranks that forwarded them"},
			{pair.Refused, "message", "refused"},
			{pair.Ended, "message", "ended with their session"},
			{pair.Bad, "packet", "invalid"},
			{pair.OldSession, "packet", "of an earlier session"},
			{pair.Unrecorded, "byte", "cut off by the snapshot length: open messages may be complete"},
			{pair.NotFollowed, "packet", "ignored: too many messages"},
		} {
			if c.n > 0 {
				fmt.Fprintf(out, "from %d to %d: %s %s\n", pair.Src, pair.Dst, words.Plural(int(c.n), c.what), c.how)
			}
		}
	}
}
