package doctor

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// noDaemon returns the finding for a check that needs a running daemon although no daemon is running.
func noDaemon() []Finding {
	var f findings
	f.addUnknown("start it, and examine again", "no daemon runs")
	return f
}

// setupDrops lists the reasons for dropping packets that indicate a wrong setup, and their remedies. Occasional drops
// for other reasons are normal on a network that loses or duplicates packets.
var setupDrops = []struct {
	reason        state.DropReason
	found, action string
}{
	{state.DropUnknownAddress, "from addresses that are no rank's",
		"compare the rank map with the addresses of the nodes; the log has the addresses; look for NAT"},
	{state.DropSourceRank, "with another rank than their address has",
		"compare the rank maps of the nodes, the cluster file and the routing table of the FPGAs"},
	{state.DropDestination, "for another rank than this address has",
		"compare the rank maps of the nodes, the cluster file and the routing table of the FPGAs"},
	{state.DropStartMark, "with no start mark of the link's profile",
		"set the same profile on both sides; zrlctl why names the one of the peer"},
	{state.DropEndMark, "with no end mark of the link's profile",
		"set the same profile on both sides; zrlctl why names the one of the peer"},
	{state.DropReserved, "with reserved bytes that are not 0",
		"set the same profile on both sides: v0.9 has a tag there"},
	{state.DropChecksum, "with a wrong checksum", "examine the path: something corrupts packets"},
}

// examineDropped checks why the daemon has dropped packets.
func examineDropped(in *input) []Finding {
	var f findings
	if in.status == nil {
		return noDaemon()
	}
	for i := range in.status.Ranks {
		r := &in.status.Ranks[i]
		f.addDrops(fmt.Sprintf("rank %d", r.Rank), &r.Engine.Dropped)
		for j := range r.Engine.Peers {
			p := &r.Engine.Peers[j]
			f.addDrops(fmt.Sprintf("rank %d, from rank %d at %s", r.Rank, p.Rank, p.Address), &p.Dropped)
		}
	}
	return f.orRight("none that shows a wrong setup")
}

func (f *findings) addDrops(where string, counts *state.DropCounts) {
	for _, d := range setupDrops {
		if n := counts[d.reason]; n > 0 {
			f.addWrong(d.action, "%s: dropped %s %s (%v)", where, plural(int(n), "packet"), d.found, d.reason)
		}
	}
}

// setupCauses contains those causes of waits that indicate a wrong setup.
var setupCauses = map[string]bool{
	diagnosis.WrongProfile: true, diagnosis.WrongAddress: true, diagnosis.PathMTU: true, diagnosis.NetworkError: true,
	diagnosis.TLSMismatch: true, diagnosis.NeverHeard: true, diagnosis.PacketsBlocked: true,
}

// examineWaits reports the root causes of waits for which a wrong setup is responsible.
func examineWaits(in *input) []Finding {
	var f findings
	if in.status == nil {
		return noDaemon()
	}
	d := diagnosis.Diagnose([]diagnosis.Source{{Status: in.status}}, diagnosis.MinWaitAge)
	for i := range d.Findings {
		if c := &d.Findings[i]; setupCauses[c.Cause] {
			f.addWrong(c.Step, "%s", c.Text)
		}
	}
	if len(d.Waiting) > 0 {
		return f.orRight("not the setup: zrlctl why explains the waits")
	}
	return f.orRight("no rank waits")
}
