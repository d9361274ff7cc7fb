package htmlreport

import (
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/capture"
)

// Flags of a step. The page's script uses the same numbers.
const (
	flagFromSender = 1 << iota
	// flagRetransmitted: the packet was retransmitted after a timeout.
	flagRetransmitted
	// flagDuplicate: the network delivered the packet twice.
	flagDuplicate
	// flagLost: the packet was recorded, but a retransmission shows that all or part of it did not arrive.
	flagLost
	// flagMissing: the packet was not recorded, but later packets show that it was sent.
	flagMissing
)

// wireOrder lists the packet types of a message in the order of the handshake.
var wireOrder = []string{"SEND_REQUEST", "CLEAR_TO_SEND", "DATA", "ACK"}

// step is a step and its flags.
type step struct {
	capture.Step
	flags byte
}

// copiedPackets returns the numbers of the packets that the network delivered twice.
func copiedPackets(r *capture.Report) map[int64]bool {
	copies := map[int64]bool{}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Kind == capture.DuplicatePacket {
			for _, p := range f.Packets {
				copies[p] = true
			}
		}
	}
	return copies
}

// drawnSteps returns the steps of a message as the diagram shows them, with flags derived from the message's verdict.
func drawnSteps(message *capture.Message, copies map[int64]bool) []step {
	if len(message.Steps) == 0 {
		return nil
	}
	steps := make([]step, 0, len(message.Steps)+1)
	for _, s := range message.Steps {
		st := step{Step: s}
		if s.FromSender {
			st.flags |= flagFromSender
		}
		switch {
		case s.Retransmitted && copies[s.Packet]:
			st.flags |= flagDuplicate
		case s.Retransmitted:
			st.flags |= flagRetransmitted
		}
		steps = append(steps, st)
	}
	what, ok := strings.CutSuffix(message.Verdict, " lost")
	if !ok {
		return steps
	}
	// Mark "DATA or its ACK" at DATA, because the report does not show which of the two was lost.
	what, _, _ = strings.Cut(what, " or ")
	for place, typ := range wireOrder {
		if !strings.Contains(what, typ) {
			continue
		}
		if i := slices.IndexFunc(steps, func(s step) bool { return s.Type == typ }); i >= 0 {
			steps[i].flags |= flagLost
		} else if !wasRecorded(message, place) {
			steps = insertMissing(steps, place)
		}
	}
	return steps
}

// wasRecorded reports whether a packet of type wireOrder[place] must have been recorded, because the durations of the
// phases prove it. The list of steps may lack it, because the list ends after KeepSteps steps.
func wasRecorded(message *capture.Message, place int) bool {
	phases := &message.Phases
	switch place {
	case 0:
		return phases.RequestToClear != nil || phases.Total != nil
	case 1:
		return phases.RequestToClear != nil || phases.ClearToData != nil
	case 2:
		return phases.ClearToData != nil || phases.DataToAck != nil
	}
	return message.Complete
}

// insertMissing inserts a step for an unrecorded packet at its place between the recorded steps.
func insertMissing(steps []step, place int) []step {
	at := slices.IndexFunc(steps, func(s step) bool {
		return slices.Index(wireOrder, s.Type) > place
	})
	if at < 0 {
		at = len(steps)
	}
	s := step{flags: flagMissing, Step: capture.Step{Type: wireOrder[place], FromSender: place%2 == 0}}
	if s.FromSender {
		s.flags |= flagFromSender
	}
	switch {
	case at == 0:
		s.Time = steps[0].Time
	case at == len(steps):
		s.Time = steps[at-1].End
	default:
		before := steps[at-1].End
		s.Time = before.Add(steps[at].Time.Sub(before) / 2)
	}
	s.End = s.Time
	return slices.Insert(steps, at, s)
}
