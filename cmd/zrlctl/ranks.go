package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

func (a *app) ranksCommand() *cobra.Command {
	var t *target
	cmd := &cobra.Command{
		Use: "ranks", Short: "List the ranks of the cluster", Args: argCount(0, 0),
		Long: `List the ranks of the cluster. SENT and RECEIVED count the messages that the rank has
sent to and received from ranks of this daemon; FAILED counts messages to or from the
rank that ended with an error.`,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			s, err := t.queryFunc(cmd)(cmd.Context())
			if err != nil {
				return err
			}
			rows := rankRows(&s)
			if a.json {
				return writeJSON(cmd.OutOrStdout(), rows)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "RANK\tROLE\tKIND\tADDRESS\tPROFILE\tTRANSPORT\tSENT\tRECEIVED\tFAILED")
			for _, r := range rows {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n",
					r.Rank, r.roleText(), r.Kind, r.Address, orDash(r.Profile), orDash(r.Transport), r.Sent, r.Received,
					r.Failed)
			}
			return w.Flush()
		}),
	}
	t = a.addTargetFlags(cmd)
	return cmd
}

// rankRow is a row of the table.
type rankRow struct {
	state.Member
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	Failed   uint64 `json:"failed"`
}

func (r *rankRow) roleText() string {
	switch {
	case r.Role == "":
		return "remote"
	case r.Kernel != "":
		return string(r.Role) + " " + r.Kernel
	}
	return string(r.Role)
}

// rankRows counts the messages of each rank. The counts of a local rank come from its engine; the counts of a remote
// rank include only messages exchanged with local ranks.
func rankRows(s *state.Status) []rankRow {
	rows := make([]rankRow, len(s.Cluster))
	for i, m := range s.Cluster {
		rows[i].Member = m
	}
	for _, local := range s.Ranks {
		for _, peer := range local.Engine.Peers {
			own, other := &rows[local.Rank], &rows[peer.Rank]
			own.Sent += peer.Sent
			own.Received += peer.Received
			own.Failed += peer.Failed
			if other.Role == "" {
				other.Sent += peer.Received
				other.Received += peer.Sent
				other.Failed += peer.Failed
			}
		}
	}
	return rows
}

func orDash[S ~string](s S) string {
	if s == "" {
		return "-"
	}
	return string(s)
}
