package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// waitSentence describes a wait in one sentence: which rank waits, in which call, for which packet, and for how long.
func (v *view) waitSentence(e *edge) string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d has waited %s", e.from, words.Duration(e.seconds))
	if c := e.call; c != nil {
		fmt.Fprintf(&b, " in %s", callText(c.Collective, c.Number, c.Comm))
	}
	switch {
	case e.deferred != nil && e.isSend:
		fmt.Fprintf(&b, " in a send (%s) to rank %d", e.deferred.Call, e.to)
	case e.deferred != nil:
		fmt.Fprintf(&b, " in a receive (%s) from rank %d", e.deferred.Call, e.to)
	case e.wait == nil || e.wait.Envelope.Bytes == mpe.UnknownLength:
		fmt.Fprintf(&b, " for rank %d", e.to)
	case e.call != nil && e.isSend:
		fmt.Fprintf(&b, " to send to rank %d", e.to)
	case e.call != nil:
		fmt.Fprintf(&b, " to receive from rank %d", e.to)
	default:
		b.WriteString(operationText(e))
	}
	if m := missingText(e); m != "" {
		b.WriteString(", " + m)
	}
	return b.String()
}

// callText names a collective call.
func callText(name string, number int, comm uint32) string {
	if comm == 0 {
		return fmt.Sprintf("%s (call %d)", name, number)
	}
	return fmt.Sprintf("%s (call %d in communicator %d)", name, number, comm)
}

// operationText describes a send or a receive.
func operationText(e *edge) string {
	envelope := &e.wait.Envelope
	of := ""
	if envelope.Tag != nil {
		of = " with " + tagText(envelope.Tag)
	}
	if envelope.Comm != 0 {
		of += fmt.Sprintf(" in communicator %d", envelope.Comm)
	}
	what := words.Plural(int(envelope.Bytes), "byte")
	switch {
	case e.isSend:
		return fmt.Sprintf(" to send %s%s to rank %d", what, of, e.to)
	case e.to == AnyRank:
		return fmt.Sprintf(" to receive up to %s%s from any rank", what, of)
	}
	return fmt.Sprintf(" to receive up to %s%s from rank %d", what, of, e.to)
}

// missingText names the packet whose absence makes a rank wait. It returns "" if the wait is not for a packet.
func missingText(e *edge) string {
	switch {
	case e.missing != 0:
	case e.peer != nil && e.peer.Extended != nil && e.peer.Extended.PeerSession == 0 && e.peer.Extended.Hellos > 0:
		return fmt.Sprintf("the answer to HELLO is missing despite %s",
			words.Plural(int(e.peer.Extended.Hellos), "transmission"))
	default:
		return ""
	}
	s := e.missing.String() + " is missing"
	switch wait := e.wait; {
	case e.missing == protocol.SendRequest && (e.to == AnyRank || e.peer != nil && e.peer.Extended != nil):
		s = "no message was received that matches" // the message may arrive without a SEND_REQUEST
	case wait == nil:
	case e.state == handshake.Receiving:
		s += fmt.Sprintf(" after %d of %d bytes", wait.BytesDone, int64(wait.Words)*protocol.WordLen)
	case e.state == handshake.WaitAck && e.peer != nil && e.peer.Extended != nil:
		s += fmt.Sprintf(" (%d of %d bytes are acknowledged)", wait.BytesDone, wait.Envelope.Bytes)
	}
	if e.wait != nil && e.wait.Retransmissions > 0 {
		s += fmt.Sprintf(" despite %s", words.Plural(e.wait.Retransmissions, "retransmission"))
	}
	return s
}

func tagText(tag *int) string {
	if tag == nil {
		return "any tag"
	}
	return fmt.Sprintf("tag %d", *tag)
}

// bytesText returns the text before followed by a length, or "" if the length is unknown.
func bytesText(before string, n int64) string {
	if n < 0 {
		return ""
	}
	return before + words.Plural(int(n), "byte")
}

// maxRanks is the maximum number of ranks that one text lists by number.
const maxRanks = 8

// ranksText names ranks, such as "rank 3" or "ranks 1, 2 and 3".
func ranksText(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	words := make([]string, 0, maxRanks)
	for _, r := range ranks[:min(len(ranks), maxRanks)] {
		words = append(words, fmt.Sprint(r))
	}
	last := fmt.Sprintf("%d more", len(ranks)-maxRanks)
	if len(ranks) <= maxRanks {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	return "ranks " + strings.Join(words, ", ") + " and " + last
}

// cycleText formats a cycle, such as "2 → 0 → 1 → 2".
func cycleText(ranks []int) string {
	var b strings.Builder
	for i, r := range ranks {
		if i == maxRanks && len(ranks) > maxRanks+1 {
			fmt.Fprintf(&b, "(%d more) → ", len(ranks)-maxRanks)
			break
		}
		fmt.Fprintf(&b, "%d → ", r)
	}
	fmt.Fprintf(&b, "%d", ranks[0])
	return b.String()
}

// Text formats the diagnosis for people to read.
func (d *Diagnosis) Text() string {
	var b strings.Builder
	if len(d.Findings) == 0 && len(d.Doubts) > 0 {
		fmt.Fprintf(&b, "no rank is known to have waited for longer than %s\n", words.Duration(d.After))
	} else if len(d.Findings) == 0 {
		fmt.Fprintf(&b, "no rank has waited for longer than %s\n", words.Duration(d.After))
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(f.TextBlock())
	}
	for i, u := range d.Unknown {
		if i == maxUnknown {
			fmt.Fprintf(&b, "state not known: %s more\n", words.Plural(len(d.Unknown)-i, "rank"))
			break
		}
		fmt.Fprintf(&b, "state not known: rank %d at %s: %s\n", u.Rank, u.Address, u.Reason)
	}
	for _, doubt := range d.Doubts {
		fmt.Fprintf(&b, "not certain: %s\n", words.Clean(doubt, maxText))
	}
	for _, u := range d.Unanswered {
		fmt.Fprintf(&b, "no answer: %s: %s\n", u.Name, u.Error)
	}
	return b.String()
}

// TextBlock formats the finding as several lines of text.
func (f *Finding) TextBlock() string {
	var b strings.Builder
	fmt.Fprintln(&b, words.Clean(words.Sentence(f.Text), maxText))
	for _, p := range f.Possible {
		fmt.Fprintf(&b, "  possible: %s\n", words.Clean(p.Text, maxText))
	}
	for _, fact := range f.Evidence {
		fmt.Fprintf(&b, "  evidence: %s\n", words.Clean(fact, maxText))
	}
	if others := f.unnamedWaiting(); len(others) > 0 {
		fmt.Fprintf(&b, "  also waiting because of it: %s\n", ranksText(others))
	}
	fmt.Fprintf(&b, "  next: %s\n", words.Clean(f.Step, maxText))
	return b.String()
}

// unnamedWaiting returns the ranks that wait because of the finding but that its text does not name.
func (f *Finding) unnamedWaiting() (list []int) {
	for _, r := range f.Waiting {
		if r != f.named && !slices.Contains(f.Cycle, r) {
			list = append(list, r)
		}
	}
	return list
}

// maxUnknown is the maximum number of lines printed about ranks whose state is unknown.
const maxUnknown = 32

// maxText is the maximum length in characters of one printed line.
const maxText = 600

// Fingerprint returns a string that changes whenever the causes change, but not if only the durations of waits do.
func (d *Diagnosis) Fingerprint() string {
	var b strings.Builder
	for i := range d.Findings {
		f := &d.Findings[i]
		fmt.Fprintf(&b, "%s %d %v;", f.Cause, f.Rank, f.Waiting)
	}
	fmt.Fprint(&b, d.Unknown, d.Doubts, d.Unanswered)
	return b.String()
}
