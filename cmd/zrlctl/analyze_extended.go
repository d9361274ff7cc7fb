package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/zrlmpi/zrlmpid/capture"
)

// printExtended prints a row for each direction of each pair that used the
// extended profile.
func printExtended(out io.Writer, pairs []capture.ExtendedPair) {
	if len(pairs) == 0 {
		return
	}
	fmt.Fprintln(out, "\nEXTENDED PROFILE")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "FROM\tTO\tSESSIONS\tPACKETS\tACKS\tMESSAGES\tCOMPLETE\tOPEN\tBYTES\tRETRANSMISSIONS\tLOST\tDUPLICATES\tOUT OF ORDER\tDAMAGED\t")
	for i := range pairs {
		p := &pairs[i]
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", p.Src, p.Dst, p.Sessions, p.Packets, p.Acks,
			p.Messages, p.Complete, p.Open, p.Bytes, p.Retransmissions, p.Lost, p.Duplicates, p.OutOfOrder, p.Corrupt)
	}
	_ = w.Flush()
	for i := range pairs {
		p := &pairs[i]
		for _, c := range []struct {
			n    int64
			what string
		}{
			{p.Canceled, "messages were canceled"},
			{p.Aborted, "messages were given up half way by ranks that forwarded them"},
			{p.Refused, "messages were refused"},
			{p.Ended, "messages ended with their session"},
			{p.Bad, "packets are bad"},
			{p.OldSession, "packets are of a session that had ended"},
			{p.Unrecorded, "bytes of packets are cut off by the snapshot length: open messages may be complete"},
			{p.NotFollowed, "packets are of more messages than are followed"},
		} {
			if c.n > 0 {
				fmt.Fprintf(out, "from %d to %d: %d %s\n", p.Src, p.Dst, c.n, c.what)
			}
		}
	}
}
