package capture

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// deployedRetransmissions is the number of times that a deployed node retransmits a packet. After that it waits
// forever.
const deployedRetransmissions = 3

// maxRequestInterval is the longest time between two SEND_REQUESTs from a zrlmpid that receives no answer: 3 s by
// default, plus the delays of a busy host.
const maxRequestInterval = 4 * time.Second

// newCallGap is the pause after which a SEND_REQUEST counts as part of another call, provided that the previous
// SEND_REQUEST was retransmitted at least deployedRetransmissions times. It allows for the loss of two packets.
const newCallGap = 3 * maxRequestInterval

// wait is a Wait together with the flow, message and addresses it concerns.
type wait struct {
	Wait
	flow         *flow
	msg          *message
	at, peerAddr netip.AddrPort // addresses of Rank and Peer
}

func (t *Tracker) waitText(w wait) string {
	if t.endsHere(w) {
		return fmt.Sprintf("the recording ends here: rank %d waits for %s from rank %d", w.Rank, w.PacketType, w.Peer)
	}
	return fmt.Sprintf("rank %d has waited %v for %s from rank %d", w.Rank, handshake.Round(t.now.Sub(w.Since)),
		w.PacketType,
		w.Peer)
}

// minRetransmitTime is the shortest retransmission timeout of any node.
const minRetransmitTime = 100 * time.Millisecond

// endsHere reports whether a wait cannot be judged because the recording ends too soon after the wait began.
func (t *Tracker) endsHere(w wait) bool {
	return t.now.Sub(w.Since) < minRetransmitTime && w.msg.requestSends.n+w.msg.dataSends.n == 0
}

// reportOpen reports the last message of each flow and the waits that are still in progress.
func (t *Tracker) reportOpen() {
	var open []wait
	for _, f := range t.sortedFlows() {
		f.reportLast()
		if f.earlyClears.n > 0 {
			e := &Event{Time: f.earlyClears.last, Packet: f.earlyClears.packets[0]}
			f.tracker.addFinding(StaleHeader, e, "rank %d sent CLEAR_TO_SEND to rank %d, which had not asked",
				f.earlyClears.header.Src,
				f.earlyClears.header.Dst).setPackets(f.earlyClears.packets)
		}
		if f.msg != nil {
			open = append(open, f.openWait(f.msg))
		}
	}
	slices.SortFunc(open, func(a, b wait) int { return cmp.Compare(a.msg.ID, b.msg.ID) })
	stuck := map[*message]bool{}
	// Only these waits can be part of a deadlock, because the others may end with the next packet or have another
	// cause.
	lasting := slices.DeleteFunc(slices.Clone(open),
		func(w wait) bool { return t.endsHere(w) || w.msg.isLastPacketLost() })
	for _, circle := range findCycles(lasting) {
		t.reportDeadlock(circle)
		for _, w := range circle {
			stuck[w.msg] = true
		}
	}
	for _, w := range open {
		if len(w.msg.knownLosses) > 0 {
			w.flow.findKnownLosses(w.msg)
		}
		if !stuck[w.msg] {
			t.reportWait(w)
		}
		w.flow.reportUnsolicited()
		w.flow.msg, w.flow.previous = nil, w.msg
		w.msg.reported = true
		w.flow.reportMessage(w.msg)
	}
	for _, f := range t.sortedFlows() {
		f.reportUnsolicited()
	}
}

// sortedFlows returns all flows in a deterministic order.
func (t *Tracker) sortedFlows() []*flow {
	flows := make([]*flow, 0, 2*len(t.convs))
	for _, c := range t.convs {
		flows = append(flows, &c.flows[0], &c.flows[1])
	}
	slices.SortFunc(flows, func(a, b *flow) int {
		return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to))
	})
	return flows
}

// openWait returns the wait of an open message.
func (f *flow) openWait(msg *message) wait {
	sender := wait{Wait{Message: msg.ID, Rank: msg.Src, Peer: msg.Dst}, f, msg, f.from, f.to}
	receiver := wait{Wait{Message: msg.ID, Rank: msg.Dst, Peer: msg.Src, PacketType: "DATA"}, f, msg, f.to, f.from}
	switch msg.state {
	case requested:
		sender.PacketType, sender.Since = "CLEAR_TO_SEND", msg.request
		if msg.request.IsZero() {
			sender.Since = msg.lastRequest
		}
		return sender
	case cleared:
		receiver.Since = msg.clear
		return receiver
	case receiving:
		receiver.Since = msg.lastData
		return receiver
	}
	sender.PacketType, sender.Since = "ACK", msg.firstDataEnd
	if sender.Since.IsZero() {
		sender.Since = msg.lastData
	}
	return sender
}

// reportWait reports a wait that is not part of a cycle of waits.
func (t *Tracker) reportWait(w wait) {
	msg := w.msg
	e := &Event{Time: t.now, Packet: msg.firstPacket}
	packets := append([]int64{msg.firstPacket}, msg.retransmits...)
	say := func(kind FindingKind, verdict, format string, args ...any) {
		msg.setProblem(verdict)
		found := t.addFinding(kind, e, "%s", t.waitText(w)+fmt.Sprintf(format, args...))
		found.relateTo(msg, packets...)
		found.Waits = []Wait{w.Wait}
		if kind != Wedged && !t.endsHere(w) {
			found.Possible = t.possibleCauses(w)
		}
	}
	unsolicited := w.flow.reverse.unsolicited // sent by the waiting rank to its peer
	switch {
	case msg.state != receiving && unsolicited == nil && t.endsHere(w):
		say(StillWaiting, "recording ends", "")
	case msg.state == requested && unsolicited != nil:
		w.flow.reverse.unsolicited = nil
		packets = append(unsolicited.Packets, packets...)
		say(Wedged, "the receiver is wedged", ": if rank %d is an FPGA, it took the CLEAR_TO_SEND or ACK of packet "+
			"%d, which it had not asked for, as the header deferred for rank %d, and swallowed the "+
			"SEND_REQUEST (trap 2)",
			w.Peer, unsolicited.Packets[len(unsolicited.Packets)-1], w.Rank)
	case msg.state == received && msg.dataSends.n == deployedRetransmissions:
		say(RetransmissionsExhausted, "retransmissions exhausted", ": it has sent DATA again %d times, which is as "+
			"often as any node does: a deployed one now waits forever, a zrlmpid reports an error%s", msg.dataSends.n,
			w.flow.lossText(msg))
	case msg.state == requested:
		kind, verdict, text := w.flow.classifyRequest(msg)
		say(kind, verdict, "%s", text)
	case msg.state == receiving && msg.dataProgress.datagrams > 0:
		say(StillWaiting, "not ended", ": %s%s", w.flow.progressText(msg, &msg.dataProgress), w.flow.retransmissionText(msg))
	default:
		say(StillWaiting, "not ended", "%s%s%s", w.flow.missingText(msg), w.flow.lossText(msg),
			w.flow.retransmissionText(msg))
	}
}

// missingText names the packets that do not reach their destination. The destination reveals this by retransmitting the
// packet that they answer.
func (f *flow) missingText(msg *message) string {
	switch {
	case msg.isLastPacketLost():
		return ": " + msg.knownLossText()
	case msg.missedClear():
		return fmt.Sprintf(": rank %d sends SEND_REQUEST again, so CLEAR_TO_SEND, which is in the recording, "+
			"does not reach it, or it drops it", msg.Src)
	case msg.state == received && msg.inferredLoss == "DATA":
		text := fmt.Sprintf(": rank %d sends CLEAR_TO_SEND again, so DATA, which is in the recording, does not "+
			"reach it as a whole, or it drops it", msg.Dst)
		if msg.longestDatagram > f.ackedLen {
			text += fmt.Sprintf("; of the datagrams to it, up to %d bytes were acknowledged, and these have up "+
				"to %d: the path may carry less", f.ackedLen, msg.longestDatagram)
		}
		return text
	case msg.state == received && strings.HasSuffix(msg.inferredLoss, "ACK"):
		return fmt.Sprintf(": rank %d sends DATA again, so it has got no ACK, which rank %d has not sent, or "+
			"which was lost", msg.Src, msg.Dst)
	}
	return ""
}

// findAbandoned reports a message whose sender made another call before the message was cleared.
func (f *flow) findAbandoned(m *message) {
	m.setProblem("never cleared")
	f.tracker.addMessageFinding(NeverCleared, m,
		"message %d from rank %d to rank %d: SEND_REQUEST was sent %d times within %v, and "+
			"then not for %v: its call ended without CLEAR_TO_SEND, and packet %d belongs to another one",
		m.ID, m.Src, m.Dst, m.Retransmissions+1, handshake.Round(m.lastRequest.Sub(m.request)),
		handshake.Round(m.nextCall.Sub(m.lastRequest)), m.nextCallPacket)
}

// classifyRequest classifies an unanswered SEND_REQUEST by how often it was retransmitted.
func (f *flow) classifyRequest(msg *message) (kind FindingKind, verdict, text string) {
	n, quiet := msg.requestSends.n, f.tracker.now.Sub(msg.requestSends.last)
	insists := f.tracker.ranks.node(f.from).keepsRequesting
	again := fmt.Sprintf("SEND_REQUEST was retransmitted %s", formatCount(int64(n), "time"))
	if n == deployedRetransmissions && !insists && quiet > maxRequestInterval {
		return RetransmissionsExhausted, "retransmissions exhausted",
			fmt.Sprintf(": %s, and then not for %v: a deployed node has stopped and waits forever, and the call of a "+
				"zrlmpid is done", again, handshake.Round(quiet))
	}
	if node := f.reverse.node; node.hasSent && int(node.sourceRank) != msg.Dst {
		return NeverCleared, "never cleared", fmt.Sprintf(": the node at %v identifies itself as rank %d, so "+
			"rank %d accepts no answer from it", f.to, node.sourceRank, msg.Src)
	}
	text = ": " + msg.unclearedReasons()
	switch {
	case n == 0:
	case insists && quiet > maxRequestInterval:
		text += fmt.Sprintf("; %s, and then not for %v: rank %d is no deployed node, which stops after %d times, and "+
			"its call ended", again, handshake.Round(quiet), msg.Src, deployedRetransmissions)
	case insists:
		text += fmt.Sprintf("; %s, and rank %d continues, although a deployed node stops after %d times", again, msg.Src,
			deployedRetransmissions)
	case n > deployedRetransmissions:
		text += fmt.Sprintf("; %s: a deployed node stops after %d times, so rank %d is a zrlmpid, or was started again",
			again, deployedRetransmissions, msg.Src)
	case n == deployedRetransmissions:
		text += fmt.Sprintf("; %s: a deployed node now waits forever, a zrlmpid continues, and the recording ends too "+
			"soon to decide", again)
	default:
		text += "; " + again
	}
	return NeverCleared, "never cleared", text
}

// unclearedReasons lists the possible reasons why a SEND_REQUEST has not been answered.
func (m *message) unclearedReasons() string {
	switch {
	case m.allRequestsLost():
		return "no SEND_REQUEST arrived: " + m.knownLossText()
	case m.arrivedRequest != 0:
		return fmt.Sprintf("SEND_REQUEST arrived (packet %d, in %s), and no answer was sent: rank %d has not "+
			"posted the "+
			"matching receive, is not running, or drops the packets of rank %d", m.arrivedRequest, m.arrivedIn, m.Dst, m.Src)
	}
	return fmt.Sprintf("rank %d has not posted the matching receive, is not running, or drops the packets of "+
		"rank %d; or one of the two directions "+
		"between them is broken", m.Dst, m.Src)
}

// reportDeadlock reports ranks that wait for each other.
func (t *Tracker) reportDeadlock(circle []wait) {
	e := &Event{Time: t.now, Packet: circle[0].msg.firstPacket}
	var texts []string
	fd := t.addFinding(Deadlock, e, "")
	fd.Packets = nil
	for _, w := range circle {
		texts = append(texts, t.waitText(w))
		w.msg.setProblem("deadlock")
		fd.Messages = appendNew(fd.Messages, w.msg.ID)
		fd.Packets = appendNew(fd.Packets, w.msg.firstPacket)
		fd.Waits = append(fd.Waits, w.Wait)
	}
	fd.Text = strings.Join(texts, "; ")
}

// findCycles returns cycles of ranks that wait for each other. It visits each wait only once, so it may miss a cycle
// that shares a wait with a returned one. It follows a wait to every wait of the peer, because a deployed node does one
// thing at a time: a single wait in a cycle blocks its rank.
func findCycles(open []wait) [][]wait {
	byWho := map[netip.AddrPort][]int{}
	for i, w := range open {
		byWho[w.at] = append(byWho[w.at], i)
	}
	const unseen, onPath, done = 0, 1, 2
	marks := make([]int, len(open))
	var path []int
	var out [][]wait
	var visit func(i int)
	visit = func(i int) {
		marks[i] = onPath
		path = append(path, i)
		for _, next := range byWho[open[i].peerAddr] {
			switch marks[next] {
			case unseen:
				visit(next)
			case onPath:
				start := slices.Index(path, next)
				var circle []wait
				for _, j := range path[start:] {
					circle = append(circle, open[j])
				}
				out = append(out, circle)
			}
		}
		path = path[:len(path)-1]
		marks[i] = done
	}
	for i := range open {
		if marks[i] == unseen {
			visit(i)
		}
	}
	return out
}
