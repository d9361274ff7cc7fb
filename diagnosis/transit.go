package diagnosis

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// A message is in transit if both of its ranks have made their calls, but some of its packets have not arrived. If the
// states of both ranks are known, they explain the wait, and no program is at fault.

// pairLink is a pair of ranks that have both answered. Its fields describe the pair from the view of one wait.
type pairLink struct {
	view                 *view
	edge                 *edge
	fromReport, toReport *state.Peer // what each rank reports about the other
}

// side is one direction of a link. It describes the packets that its rank sends to the other rank.
type side struct {
	rank, other    int
	senderReport   *state.Peer // what rank reports about other
	receiverReport *state.Peer // what other reports about rank
}

func (l *pairLink) outbound() side { return side{l.edge.from, l.edge.to, l.fromReport, l.toReport} }
func (l *pairLink) inbound() side  { return side{l.edge.to, l.edge.from, l.toReport, l.fromReport} }

// stallThreshold is the number of seconds without an acknowledgement after which unacknowledged packets count as lost.
const stallThreshold = 0.5

// stallTime reports whether the side's packets of the extended profile are not acknowledged, and for how many seconds
// the acknowledgement has been missing.
func (s side) stallTime() (seconds float64, stalls bool) {
	x := s.senderReport.Extended
	switch {
	case x == nil:
	case x.Stalled >= stallThreshold:
		return x.Stalled, true
	case x.PeerSession == 0 && x.Hellos > 2 && (x.Queued > 0 || x.Begun > 0):
		return seconds, true
	}
	return 0, false
}

// arrivesWithin reports whether a packet from the side was received within the given number of seconds.
func (s side) arrivesWithin(seconds float64) bool {
	return s.receiverReport.SinceLastPacket != nil && *s.receiverReport.SinceLastPacket <= seconds
}

// declaredUnreachable reports whether the rank of the side has declared the other rank unreachable within the given
// number of seconds. If so, it has dropped its messages.
func (s side) declaredUnreachable(seconds float64) bool {
	return s.senderReport.Unreachable != nil && *s.senderReport.Unreachable <= seconds
}

// minRetransmitDelay is the minimum time, in seconds, from the beginning of a wait to the first retransmission. A
// packet that arrives earlier may belong to the previous message.
const minRetransmitDelay = 0.5

// maxRetransmitDelay is the number of seconds within which a rank that waits for retransmitted packets receives them,
// in any profile.
const maxRetransmitDelay = 4.5

// explainTransit explains a wait for a message in transit. It returns nil if the message is not in transit.
func (v *view) explainTransit(e *edge) *Finding {
	from, to := v.bothReports(e)
	if from == nil || to == nil || !overNetwork(from) || e.deferred != nil {
		return nil
	}
	link := &pairLink{v, e, from, to}
	if f := link.explainUnreachable(); f != nil {
		return f
	}
	if from.Extended != nil || to.Extended != nil {
		return link.explainExtended()
	}
	if e.wait == nil {
		return nil
	}
	if e.isSend {
		return link.explainHandshake(link.outbound(), e.wait, to)
	}
	if to.Sending == nil {
		if e.state == handshake.WaitData || e.state == handshake.Receiving {
			return link.explainSenderGone()
		}
		return nil
	}
	return link.explainHandshake(link.inbound(), to.Sending, from)
}

// explainUnreachable explains a receive whose message may have been lost because one of the two ranks declared the
// other unreachable.
func (l *pairLink) explainUnreachable() *Finding {
	var list []Possibility
	for _, s := range []side{l.inbound(), l.outbound()} {
		if l.edge.isSend || !s.declaredUnreachable(l.edge.seconds) {
			continue // a rank declared unreachable before the wait began lost another message
		}
		for _, lost := range []side{s, {s.other, s.rank, s.receiverReport, s.senderReport}} {
			list = append(list, newPossibility(infer.PacketsBlocked, lost.rank, lost.other,
				"packets from rank %d to rank %d did "+
					"not arrive, until rank %d declared rank %d unreachable and dropped its messages", lost.rank, lost.other,
				s.rank, s.other))
		}
		list = append(list, mtuCause(s))
	}
	if list == nil {
		return nil
	}
	list = append(list, newPossibility(infer.ProgramComputes, l.edge.to, l.edge.from, "rank %d has not sent the message",
		l.edge.to),
		newPossibility(infer.WaitsElsewhere, l.edge.to, l.edge.from, "rank %d waits itself", l.edge.to))
	if r := l.view.ranks[l.edge.to]; r.Role == state.RoleHost && len(r.Attached) == 0 {
		list = append(list, newPossibility(infer.ProcessEnded, l.edge.to, l.edge.from, "the program of rank %d has exited",
			l.edge.to))
	}
	return l.openFinding(LostPacket, list...)
}

// explainSenderGone explains why a receive waits although its sender is no longer in a send.
func (l *pairLink) explainSenderGone() *Finding {
	e := l.edge
	if r := l.view.ranks[e.to]; len(r.Attached) == 0 && r.Role == state.RoleHost {
		return nil // its program has ended
	}
	lost := lostPacketCause(protocol.Data, l.inbound())
	lost.Text += fmt.Sprintf(", and rank %d takes it for received", e.to)
	return l.openFinding(LostPacket, lost, restartedCause(l.inbound(), "in the middle of the message"))
}

// lostPacketCause returns the possible cause that a packet sent by the side was lost.
func lostPacketCause(packet protocol.Type, s side) Possibility {
	return newPossibility(infer.PacketLost, s.rank, s.other, "%v from rank %d to rank %d was lost", packet, s.rank,
		s.other)
}

// restartedCause returns the possible cause that the rank of the side, or its program, has restarted.
func restartedCause(s side, when string) Possibility {
	return newPossibility(infer.Restarted, s.rank, s.other, "rank %d, or its program, has begun again %s", s.rank, when)
}

// blockedCause returns the possible cause that packets from one rank do not arrive at its peer.
func blockedCause(rank, peer int) Possibility {
	return newPossibility(infer.PacketsBlocked, rank, peer, "packets from rank %d do not arrive at rank %d", rank, peer)
}

func newPossibility(cause infer.Cause, rank, peer int, format string, args ...any) Possibility {
	return Possibility{Cause: cause, Rank: rank, Peer: peer, Text: fmt.Sprintf(format, args...)}
}

// explainHandshake explains a wait for a message in the cloudfpga or v0.9 profile. send is the sender's operation, and
// receiver is the receiver's report about the sender.
func (l *pairLink) explainHandshake(s side, send *state.Wait, receiver *state.Peer) *Finding {
	recv := receiver.Receiving
	back := side{s.other, s.rank, s.receiverReport, s.senderReport}
	switch {
	case send.State == handshake.WaitClear && receiver.Deferred != nil && (recv == nil ||
		recv.State == handshake.WaitRequest):
		return nil // the program of the receiver has posted no matching receive
	case send.State == handshake.WaitClear && isMatched(recv):
		return l.explainLoss(back, protocol.ClearToSend, min(send.Seconds, recv.Seconds), false)
	case send.State == handshake.WaitClear:
		if send.Retransmissions == 0 { // it may have been sent before the receiver started
			return nil
		}
		if s.arrivesWithin(send.Seconds - minRetransmitDelay) {
			if l.view.waitsElsewhere(s.other, s.rank) { // meanwhile, the rank drops the request
				return nil
			}
			return l.openFinding(LostPacket, lostPacketCause(protocol.SendRequest, s), restartedCause(back, "after the request"),
				restartedCause(s, fmt.Sprintf("and rank %d takes its request for one of before", s.other)))
		}
		return l.explainLoss(s, protocol.SendRequest, send.Seconds, false)
	case send.State == handshake.WaitAck && isMatched(recv):
		return l.explainLoss(s, protocol.Data, min(send.Seconds, recv.Seconds), send.Envelope.Bytes >= longData)
	case send.State == handshake.WaitAck:
		return l.openFinding(LostAck, lostPacketCause(protocol.Ack, back),
			restartedCause(back, "in the middle of the message"))
	}
	return nil
}

// waitsElsewhere reports whether a rank is known to wait in some call other than a receive from the given peer.
func (v *view) waitsElsewhere(rank, peer int) bool {
	return slices.ContainsFunc(v.outEdges[rank],
		func(e *edge) bool { return v.isOldEnough(e) && !e.isIdle && (e.to != peer || e.isSend) })
}

// isMatched reports whether a message has been matched to the given receive.
func isMatched(recv *state.Wait) bool {
	return recv != nil && (recv.State == handshake.WaitData || recv.State == handshake.Receiving)
}

// explainExtended explains a wait caused by packets of the extended profile that have not been acknowledged.
func (l *pairLink) explainExtended() *Finding {
	for _, s := range []side{l.outbound(), l.inbound()} {
		seconds, stalls := s.stallTime()
		if !stalls {
			continue
		}
		if seconds == 0 {
			seconds = l.edge.seconds
		}
		x, oldest := s.senderReport.Extended, s.senderReport.Sending
		// A single SEND_REQUEST, which is short, may be the only packet in flight.
		long := x != nil && x.InFlight > 0 && (oldest == nil || oldest.State != handshake.WaitClear || x.Begun > 1)
		back := side{s.other, s.rank, s.receiverReport, s.senderReport}
		if s.arrivesWithin(seconds/2) && !back.arrivesWithin(seconds) {
			return l.explainLoss(back, 0, seconds, false)
		}
		return l.explainLoss(s, 0, seconds, long)
	}
	return nil
}

// explainLoss explains a wait caused by missing packets from one side. packet is their type, or 0 for packets of all
// types. seconds is the time for which they have been missing. long is set if some paths do not carry packets of their
// length.
func (l *pairLink) explainLoss(s side, packet protocol.Type, seconds float64, long bool) *Finding {
	what := "packets"
	if packet != 0 {
		what = packet.String()
	}
	if d := s.receiverReport.LastDrop; d != nil && d.Seconds <= seconds+l.view.slack {
		// The packets arrive, but the receiver cannot use them.
		list := []Possibility{
			newPossibility(infer.PacketDropped, s.other, s.rank, "rank %d cannot use %s of rank %d: %v", s.other, what, s.rank,
				d.Reason),
			newPossibility(infer.PacketLost, s.rank, s.other, "%s of rank %d arrives changed, or in part", what, s.rank),
		}
		if long {
			list = append(list, mtuCause(s))
		}
		f := l.openFinding(PacketDropped, list...)
		if long {
			f.Step = mtuStep(l.view.address(s.other)) + "; if it does, " + f.Step
		}
		f.Evidence = append(f.Evidence, dropEvidence(s.other, s.rank, s.receiverReport))
		return f
	}
	young, up := s.other, l.view.ranks[s.other].Engine.Uptime
	if other := l.view.ranks[s.rank].Engine.Uptime; other < up {
		young, up = s.rank, other
	}
	// packets sent before it started did not arrive
	if up > 0 && up < min(seconds+minRetransmitDelay, maxRetransmitDelay) {
		list := []Possibility{
			newPossibility(infer.PacketsBlocked, s.rank, s.other, "%s from rank %d to rank %d were lost", what, s.rank, s.other),
		}
		if long {
			list = append(list, mtuCause(s))
		}
		list = append(list, newPossibility(infer.Restarted, young, s.rank+s.other-young, "rank %d was started %s ago",
			young,
			words.Duration(up)))
		return l.openFinding(LostPacket, list...)
	}
	if s.arrivesWithin(seconds) {
		lost := newPossibility(infer.PacketLost, s.rank, s.other, "%s from rank %d to rank %d was lost", what, s.rank,
			s.other)
		if long {
			return l.explainLongLoss(s, lost)
		}
		return l.openFinding(LostPacket, lost)
	}
	if long { // no shorter packets may have been sent since
		return l.explainLongLoss(s, blockedCause(s.rank, s.other))
	}
	return l.view.certainFinding(l.edge, PacketsBlocked, l.view.blockedProof(s.rank, s.other, s.receiverReport))
}

// explainLongLoss explains a wait caused by missing long packets. The cause is either the given possibility other, or a
// path that carries only shorter packets.
func (l *pairLink) explainLongLoss(s side, other Possibility) *Finding {
	f := l.openFinding(string(other.Cause), other, mtuCause(s))
	if packet := l.edge.missing; packet == protocol.Ack || packet == protocol.Data {
		f.Step = mtuStep(l.view.address(s.other)) + "; if it does, " + f.Step
	}
	return f
}

// mtuCause returns the possible cause that long datagrams from the side do not arrive.
func mtuCause(s side) Possibility {
	return newPossibility(infer.PathMTU, s.rank, s.other,
		"the path from rank %d to rank %d does not carry datagrams of that "+
			"length", s.rank, s.other)
}

// certainFinding builds a finding that is certain.
func (v *view) certainFinding(e *edge, cause string, p proof) *Finding {
	f := v.newFinding(e, cause, p)
	f.Certain = true
	return f
}

// openFinding builds a finding that has several possible causes.
func (l *pairLink) openFinding(cause string, list ...Possibility) *Finding {
	f := l.view.findingFromCauses(l.edge, cause, "", list, []string{
		lastHeardAtText(l.edge.from, l.fromReport), lastHeardAtText(l.edge.to, l.toReport),
	}, fmt.Sprintf("look for drops between %s and %s: zrlctl analyze -i INTERFACE on both hosts, zrlctl status for "+
		"full receive buffers", l.view.address(l.edge.from), l.view.address(l.edge.to)))
	f.Rank, f.Peer = list[0].Rank, list[0].Peer // both ranks wait because of it
	return f
}

func lastHeardAtText(rank int, p *state.Peer) string {
	return fmt.Sprintf("at rank %d, %s", rank, lastHeardText(p))
}

// findingFromCauses builds a finding from the possible causes of a wait. If there is only one, it is certain. lead
// describes the symptom, and may be empty.
func (v *view) findingFromCauses(e *edge, symptom, lead string, list []Possibility, evidence []string,
	step string) *Finding {
	p := proof{evidence: evidence, step: step, reason: causesText(list)}
	if lead != "" && len(list) != 1 {
		p.reason = lead + "; " + p.reason
	}
	finding := v.newFinding(e, symptom, p)
	finding.Rank, finding.Peer = e.to, e.from
	if len(list) == 1 {
		finding.Cause, finding.Certain, finding.Rank, finding.Peer = string(list[0].Cause), true, list[0].Rank, list[0].Peer
		return finding
	}
	finding.Possible = list
	return finding
}

// causesText says which causes are possible.
func causesText(list []Possibility) string {
	switch len(list) {
	case 0:
		return "nothing that is known explains it"
	case 1:
		return list[0].Text
	case 2:
		return fmt.Sprintf("either %s, or %s", list[0].Text, list[1].Text)
	}
	return fmt.Sprintf("%d causes are possible, of which the likeliest is that %s", len(list), list[0].Text)
}

// restartCauses lists the ranks of a cycle whose counters show a restart after an exchange of messages. The other ranks
// may then wait for messages from before the restart.
func (v *view) restartCauses(path []*edge) (list []Possibility) {
	for _, e := range path {
		from, to := v.bothReports(e)
		if from == nil || to == nil {
			continue
		}
		for _, s := range []side{{e.from, e.to, from, to}, {e.to, e.from, to, from}} {
			// A restart before the start of the other rank's program is harmless. The comparison must allow for reports
			// that are as old as After.
			if s.hasForgotten() && v.isYounger(s.rank, s.other, MinWaitAge.Seconds()) {
				list = append(list, newPossibility(infer.Restarted, s.rank, s.other,
					"rank %d began again after rank %d had "+
						"exchanged messages with it", s.rank, s.other))
			}
		}
	}
	return list
}

// isYounger reports whether the engine of one rank started later than the program of the other, or less than slack
// seconds before it.
func (v *view) isYounger(rank, than int, slack float64) bool {
	up := v.ranks[rank].Engine.Uptime
	return up > 0 && up < v.programAge(than)+slack
}

// programAge returns for how many seconds the current program of a rank has used the rank.
func (v *view) programAge(rank int) float64 {
	r := v.ranks[rank]
	age := r.Engine.Uptime
	for _, a := range r.Attached {
		if a.Seconds > 0 {
			age = a.Seconds
		}
	}
	return age
}

// hadEarlierProgram reports whether the rank's last operation was completed by an earlier program of the rank.
func (v *view) hadEarlierProgram(rank int) bool {
	r := v.ranks[rank]
	if r == nil || r.Engine.SinceLastEnd == nil {
		return false
	}
	age := v.programAge(rank)
	return age > 0 && *r.Engine.SinceLastEnd > age
}

// programCauses lists the ranks whose current program may not be the one that exchanged messages with the other rank of
// a wait, because an earlier program exited in the middle of the exchange.
func (v *view) programCauses(path []*edge) (list []Possibility) {
	for _, e := range path {
		for _, pair := range [][2]int{{e.from, e.to}, {e.to, e.from}} {
			rank, at := v.ranks[pair[0]], v.peerReport(pair[0], pair[1])
			if at == nil || v.ranks[pair[1]] == nil || at.Sent+at.Received == 0 {
				continue
			}
			// The ages of programs started together differ by less than After.
			age, other := v.programAge(pair[0])+MinWaitAge.Seconds(), v.programAge(pair[1])
			if age < rank.Engine.Uptime && age < other || v.hadEarlierProgram(pair[0]) && *rank.Engine.SinceLastEnd < other {
				list = append(list, newPossibility(infer.Restarted, pair[0], pair[1],
					"the program of rank %d began %s ago, and an earlier one has "+
						"ended in the middle", pair[0], words.Duration(v.programAge(pair[0]))))
			}
		}
		if r := v.ranks[e.to]; e.call != nil && r != nil &&
			slices.ContainsFunc(r.Engine.EndedCalls, func(c collective.EndedCall) bool {
				return c.Comm == e.call.Comm && c.Number >= e.call.Number
			}) {
			list = append(list, newPossibility(infer.Restarted, e.from, e.to,
				"rank %d completed call %d: the program of rank %d has begun again",
				e.to, e.call.Number, e.from))
		}
	}
	return list
}

// oneCallCauses lists the possible causes of a cycle whose waits all belong to one collective call. The schedule of a
// call contains no cycle, so messages may be lost, or members may have restarted.
func (v *view) oneCallCauses(path []*edge) (list []Possibility) {
	var call *collective.Snapshot
	for _, e := range path {
		switch {
		case e.call == nil && (e.wait == nil || !e.wait.Envelope.Agreement || e.wait.Envelope.Comm != path[0].comm()):
			return nil
		case e.call == nil: // the call is not known: it is the first one of the communicator
		case call != nil && e.call.Number != call.Number || e.call.Comm != path[0].comm():
			return nil
		default:
			call = e.call
		}
		for _, pair := range [][2]int{{e.to, e.from}, {e.from, e.to}} {
			list = append(list, blockedCause(pair[0], pair[1]))
		}
	}
	if call == nil {
		return list
	}
	for _, rank := range v.membersOf(call) {
		if r := v.ranks[rank]; r != nil && v.isYounger(rank, path[0].from, 0) {
			list = append(list, newPossibility(infer.Restarted, rank, path[0].from, "rank %d began again %s ago", rank,
				words.Duration(r.Engine.Uptime)))
		}
	}
	return list
}

// comm returns the communicator of a wait.
func (e *edge) comm() uint32 {
	switch {
	case e.call != nil:
		return e.call.Comm
	case e.wait != nil:
		return e.wait.Envelope.Comm
	}
	return 0
}

// hasForgotten reports whether this rank does not know of all messages that the other rank has exchanged with it.
func (s side) hasForgotten() bool {
	own, other := s.senderReport, s.receiverReport
	known := own.Received + own.Failed + uint64(own.Unexpected)
	if w := own.Receiving; w != nil && w.State != handshake.WaitRequest { // the message may be acknowledged
		known++
	}
	sent := own.Sent + own.Failed
	if w := own.Sending; w != nil && w.State != handshake.WaitClear && w.State != handshake.Held {
		sent++
	}
	if x := own.Extended; x != nil {
		sent += uint64(x.Begun)
	}
	return other.Events[state.EventSessionChanged] > 0 || other.Received > sent || other.Sent > known
}
