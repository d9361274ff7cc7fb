package capture

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// ExtendedPair summarizes the packets of the extended profile from one rank to another.
type ExtendedPair struct {
	Src uint32 `json:"src"`
	Dst uint32 `json:"dst"`
	// Sessions counts the sessions that the source rank has had with the destination rank.
	Sessions int64 `json:"sessions"`
	Packets  int64 `json:"packets"`
	Acks     int64 `json:"acks"`
	// Messages counts all messages. Complete, Open, Canceled, Aborted, Refused and Ended (with the session) count them
	// by outcome. NotFollowed counts the packets ignored because maxOpenMessages messages were open.
	Messages    int64 `json:"messages"`
	Complete    int64 `json:"complete"`
	Open        int64 `json:"open"`
	Canceled    int64 `json:"canceled,omitempty"`
	Aborted     int64 `json:"aborted,omitempty"`
	Refused     int64 `json:"refused,omitempty"`
	Ended       int64 `json:"ended,omitempty"`
	NotFollowed int64 `json:"not_followed,omitempty"`
	// Bytes counts the payload of messages, without retransmissions.
	Bytes int64 `json:"bytes"`
	// Retransmissions counts packets with flag RETRANSMIT. Lost counts retransmissions whose original is not in the
	// recording.
	Retransmissions int64 `json:"retransmissions"`
	Lost            int64 `json:"lost"`
	Duplicates      int64 `json:"duplicates"`
	OutOfOrder      int64 `json:"out_of_order"`
	// Corrupt counts packets with a wrong checksum, Bad counts packets with another defect, and OldSession counts
	// packets of an earlier session.
	Corrupt    int64 `json:"corrupt"`
	Bad        int64 `json:"bad,omitempty"`
	OldSession int64 `json:"old_session,omitempty"`
	// Unrecorded counts the bytes of packets that segmentation offload appended to another packet, and that the
	// snapshot length then cut off entirely.
	Unrecorded int64 `json:"unrecorded,omitempty"`
}

// extendedFlows returns the flows of the extended profile in an order that is the same in every run.
func (t *Tracker) extendedFlows() []*extFlow {
	var flows []*extFlow
	for _, c := range t.convs {
		if c.ext != nil {
			flows = append(flows, &c.ext[0], &c.ext[1])
		}
	}
	slices.SortFunc(flows, func(a, b *extFlow) int {
		return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to))
	})
	return flows
}

// Extended returns a summary of each pair that used the extended profile, sorted by rank.
func (t *Tracker) Extended() []ExtendedPair {
	var pairs []ExtendedPair
	for _, f := range t.extendedFlows() {
		if f.counts.Packets > 0 {
			p := f.counts
			p.Open = int64(len(f.openMessages))
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(pairs, func(a, b ExtendedPair) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
	})
	return pairs
}

// reportExtended reports retransmissions, losses and duplicates, unanswered HELLOs, and the messages open at the end.
func (t *Tracker) reportExtended() {
	for _, f := range t.extendedFlows() {
		f.judgeHellos()
		if f.knownLosses.n > 0 {
			f.reportSample(LostPacket, &f.knownLosses, fmt.Sprintf("lost between %s and %s", f.lostFrom, f.lostTo))
		}
		if !f.hasGaps && f.lost.n > f.knownLosses.n {
			f.reportSample(LostPacket, &f.lost,
				"retransmitted, and the original is not in the recording: lost before the place of the recording")
		}
		f.reportSample(RetransmittedPacket, &f.retransmitted,
			"retransmitted: lost after the place of the recording, or not acknowledged in time")
		f.reportAll(MessageOpen)
		f.reportSample(DuplicatePacket, &f.duplicated, "delivered twice by the network, and used once")
		if !f.hasGaps {
			f.reportOpen()
		}
	}
}

// judgeHellos reports repeated HELLOs to a rank from which no packet of the extended profile was recorded. The
// recording does not show the reason: the rank may use another profile, not be running, or be unreachable.
func (f *extFlow) judgeHellos() {
	if f.hellos.n < 2 || f.back.counts.Packets > 0 {
		return
	}
	waited := f.lastHello.Sub(f.hellos.first)
	found := f.tracker.addFinding(StillWaiting, &Event{Time: f.tracker.now, Packet: f.hellos.list[0]},
		"%d HELLOs from rank %d to rank %d within %v, unanswered in this recording", f.hellos.n, f.counts.Src,
		f.counts.Dst, handshake.Round(waited))
	found.setPackets(f.hellos.list)
	if f.tracker.isJoined {
		return
	}
	observation := &infer.Observation{
		Waiter: int(f.counts.Src), Peer: int(f.counts.Dst), Kind: state.KindSoftware, Extended: true, Silent: true,
		WaitSeconds: waited.Seconds(),
	}
	if heard := f.plainBack.lastHeard; !heard.IsZero() {
		observation.LastHeard = new(f.tracker.now.Sub(heard).Seconds())
	}
	found.Possible, _ = infer.Explain(observation)
}

// reportSample reports all packets of a sample in one finding, at the time of the first. what completes the sentence,
// as in "lost between a and b".
func (f *extFlow) reportSample(kind FindingKind, s *packetSample, what string) {
	if s.n == 0 {
		return
	}
	e := &Event{Time: s.first, Packet: s.list[0]}
	count := "1 packet from rank %d to rank %d was "
	if s.n > 1 {
		count = fmt.Sprintf("%d packets from rank %%d to rank %%d were ", s.n)
	}
	f.tracker.addFinding(kind, e, count+"%s", f.counts.Src, f.counts.Dst, what).setPackets(s.list)
}

// reportOpen reports two kinds of open messages: messages that no receive matched, and messages that were matched but
// are incomplete.
func (f *extFlow) reportOpen() {
	var unmatched, incomplete []*extMessage
	for _, m := range f.openMessages {
		if m.isUnmatched() {
			unmatched = append(unmatched, m)
		} else {
			incomplete = append(incomplete, m)
		}
	}
	f.reportMessages(NeverCleared, unmatched, f.unmatchedText)
	f.reportMessages(StillWaiting, incomplete, f.incompleteText)
}

// reportMessages reports all messages in list as one finding. The messages have the same outcome.
func (f *extFlow) reportMessages(kind FindingKind, list []*extMessage, describe func(*extMessage) string) {
	if len(list) == 0 {
		return
	}
	// Sort by packet number, which increases with time, because message numbers wrap around.
	slices.SortFunc(list, func(a, b *extMessage) int { return cmp.Compare(a.firstPacket, b.firstPacket) })
	text := describe(list[0])
	if more := len(list) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	var packets []int64
	for _, m := range list[:min(len(list), maxPackets)] {
		packets = append(packets, m.firstPacket)
	}
	f.tracker.addFinding(kind, &Event{Time: f.tracker.now, Packet: packets[0]}, "%s", text).setPackets(packets)
}

func endedMessagesText(open int) string {
	switch open {
	case 0:
		return "no message was open"
	case 1:
		return "1 open message ends"
	}
	return fmt.Sprintf("%d open messages end", open)
}
