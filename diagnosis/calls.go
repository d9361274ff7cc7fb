package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// findDatatype finds a send of datatype INT whose receive is FLOAT, or vice versa: profiles cloudfpga and v0.9 match
// messages by datatype.
func findDatatype(v *view, e *edge) (p proof, ok bool) {
	from, to := v.bothReports(e)
	sender, receiver, at := e.from, e.to, to
	if !e.isSend {
		sender, receiver, at = e.to, e.from, from
	}
	if at == nil || at.Receiving == nil || at.Receiving.Deferred == "" {
		return p, false
	}
	wait := at.Receiving
	expects := protocol.RecvInt
	if wait.Envelope.Datatype == state.DatatypeOf(protocol.Float) {
		expects = protocol.RecvFloat
	}
	if wait.Deferred == state.CallOf(expects.Counterpart()) { // the datatypes match; the tags of profile v0.9 differ
		return p, false
	}
	return proof{
		reason: fmt.Sprintf("rank %d sends with %s, and rank %d receives with %s: INT and FLOAT do not match", sender,
			wait.Deferred, receiver, expects),
		evidence: []string{fmt.Sprintf("the SEND_REQUEST of rank %d arrived at rank %d, whose posted receive "+
			"does not match it", sender, receiver)},
		step: fmt.Sprintf("use the same datatype (MPI_INT or MPI_FLOAT) in the send of rank %d and the receive "+
			"of rank %d", sender, receiver),
		rank: &receiver,
	}, true
}

// findMismatch finds a waiting receive that does not match the messages its source has sent. If the parameter tags is
// set, the messages have another tag; otherwise they belong to another communicator.
func (v *view) findMismatch(e *edge, tags bool) (p proof, ok bool) {
	if e.call != nil || e.wait == nil {
		return p, false
	}
	receiver, wait := e.from, e.wait
	if e.isSend {
		at := v.peerReport(e.to, e.from)
		if at == nil || at.Receiving == nil || at.Receiving.State != handshake.WaitRequest {
			return p, false
		}
		receiver, wait = e.to, at.Receiving
	}
	if wait.State != handshake.WaitRequest || wait.Envelope.Collective != "" {
		return p, false
	}
	for i := range v.ranks[receiver].Engine.Peers {
		at := &v.ranks[receiver].Engine.Peers[i]
		if source := sourceOf(e, receiver); source != AnyRank && at.Rank != source {
			continue
		}
		for j := range at.Unmatched {
			m := &at.Unmatched[j]
			if differsInTag(&wait.Envelope, m) && tags || m.Comm != wait.Envelope.Comm && !tags && !v.isCollectiveComm(m.Comm) {
				p := mismatchProof(receiver, at, wait, m, tags)
				p.alternatives = v.laterSendCauses(at.Rank, receiver)
				return p, true
			}
		}
		if d := at.Deferred; tags && d != nil && wait.Deferred != "" { // profile v0.9
			if want := wait.Envelope.Tag; want != nil && *want != int(d.Tag) {
				return mismatchProof(receiver, at, wait, &state.Envelope{Tag: new(int(d.Tag)), Bytes: mpe.UnknownLength},
					true), true
			}
		}
	}
	return p, false
}

// laterSendCauses lists the causes that are possible if rank may yet send the message for which receiver waits. It
// returns nil if rank is known to wait for receiver.
func (v *view) laterSendCauses(rank, receiver int) (list []Possibility) {
	r, waits := v.ranks[rank], false
	for _, e := range v.edges {
		if e.from == rank && v.isOldEnough(e) && !e.isIdle {
			if e.to == receiver {
				return nil
			}
			waits = true
		}
	}
	if r == nil || !waits {
		list = append(list, newPossibility(infer.ProgramComputes, rank, receiver,
			"rank %d computes, and has not sent the message yet", rank))
	}
	if r == nil || waits {
		list = append(list, newPossibility(infer.WaitsElsewhere, rank, receiver,
			"rank %d waits itself, before it sends the message", rank))
	}
	return list
}

// isCollectiveComm reports whether a communicator carries only the messages of collective calls, which no receive of a
// program matches.
func (v *view) isCollectiveComm(comm uint32) bool {
	for _, r := range v.ranks {
		if slices.ContainsFunc(r.Engine.Calls, func(c collective.Snapshot) bool { return c.Comm == comm }) ||
			slices.ContainsFunc(r.Engine.EndedCalls, func(c collective.EndedCall) bool { return c.Comm == comm }) {
			return true
		}
	}
	return false
}

// sourceOf returns the rank from which receiver receives in the wait e: the other of its two ranks.
func sourceOf(e *edge, receiver int) int {
	if e.from == receiver {
		return e.to
	}
	return e.from
}

// differsInTag reports whether a receive and a message of one communicator both have a tag, and the tags differ.
func differsInTag(recv, message *state.Envelope) bool {
	return recv.Comm == message.Comm && recv.Tag != nil && message.Tag != nil && *recv.Tag != *message.Tag
}

// mismatchProof states that an unmatched message from rank at.Rank differs from the awaited one in its tag, if tags is
// set, or in its communicator.
func mismatchProof(receiver int, at *state.Peer, wait *state.Wait, envelope *state.Envelope, tags bool) proof {
	sent, expected := tagText(envelope.Tag), tagText(wait.Envelope.Tag)
	what := "tag"
	if !tags {
		sent, expected = fmt.Sprintf("communicator %d", envelope.Comm), fmt.Sprintf("communicator %d", wait.Envelope.Comm)
		what = "communicator"
	}
	return proof{
		reason: fmt.Sprintf("rank %d has sent with %s, and rank %d receives with %s", at.Rank, sent, receiver, expected),
		evidence: []string{fmt.Sprintf("rank %d has %s of rank %d that no receive has matched, the oldest with %s%s",
			receiver,
			words.Plural(max(at.Unexpected, 1), "message"), at.Rank, sent, bytesText(" and ", envelope.Bytes))},
		step: fmt.Sprintf("use the same %s in the send of rank %d and the receive of rank %d", what, at.Rank, receiver),
		rank: new(receiver),
	}
}

// member is a member of a communicator together with a call that it has made.
type member struct {
	rank int
	call collective.EndedCall
}

// calls returns the calls that the members of the snapshot's communicator are in or have completed, by call number.
func (v *view) calls(snapshot *collective.Snapshot) map[int][]member {
	byNumber := map[int][]member{}
	add := func(rank int, call collective.EndedCall) {
		if call.Comm == snapshot.Comm {
			byNumber[call.Number] = append(byNumber[call.Number], member{rank, call})
		}
	}
	for _, rank := range v.membersOf(snapshot) {
		r := v.ranks[rank]
		if r == nil {
			continue
		}
		for _, o := range r.Engine.EndedCalls {
			add(rank, o)
		}
		for i := range r.Engine.Calls {
			o := &r.Engine.Calls[i]
			add(rank, collective.EndedCall{Collective: o.Collective, Comm: o.Comm, Number: o.Number, Root: o.Root,
				Bytes: o.Bytes})
		}
	}
	return byNumber
}

// membersOf returns the ranks that take part in a call, as numbered in the world communicator.
func (v *view) membersOf(c *collective.Snapshot) []int {
	if c.Members != nil {
		return c.Members
	}
	all := make([]int, len(v.members))
	for i := range all {
		all[i] = i
	}
	return all
}

// collectiveOf, rootOf and bytesOf return properties of a call that must agree among its members.
func collectiveOf(c *collective.EndedCall) string { return c.Collective }

func rootOf(c *collective.EndedCall) string {
	if c.Root == nil {
		return c.Collective
	}
	return fmt.Sprintf("%s with root %d", c.Collective, *c.Root)
}

func bytesOf(c *collective.EndedCall) string {
	if c.Bytes < 0 {
		return c.Collective
	}
	return fmt.Sprintf("%s of %d bytes", c.Collective, c.Bytes)
}

// groupByProperty groups the members in list by a property of their calls, which the function of returns as a string.
// The smallest group comes first.
func groupByProperty(list []member, of func(c *collective.EndedCall) string) (groups [][]member) {
	for _, m := range list {
		i := slices.IndexFunc(groups, func(g []member) bool { return of(&g[0].call) == of(&m.call) })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], m)
	}
	slices.SortStableFunc(groups, func(a, b []member) int { return cmp.Compare(len(a), len(b)) })
	return groups
}

// findContradiction returns a function that finds the first call of a communicator in which the members' calls
// contradict each other; any later contradiction follows from it. The function returns a proof only if these calls
// differ in the property that of returns.
func findContradiction(of func(c *collective.EndedCall) string, step string) func(*view, *edge) (proof, bool) {
	return func(v *view, e *edge) (p proof, ok bool) {
		if e.call == nil {
			return p, false
		}
		byNumber := v.calls(e.call)
		for _, number := range slices.Sorted(maps.Keys(byNumber)) {
			for _, by := range []func(*collective.EndedCall) string{collectiveOf, rootOf, bytesOf} {
				if g := groupByProperty(byNumber[number], by); len(g) > 1 {
					if of(&g[0][0].call) == of(&g[1][0].call) || by(&g[0][0].call) != of(&g[0][0].call) {
						return p, false // another cause
					}
					return callProof(g, e.call.Comm, number, of, step), true
				}
			}
		}
		return p, false
	}
}

// callProof states which ranks have made which call. It blames the first group, the smallest one.
func callProof(groups [][]member, comm uint32, number int, of func(c *collective.EndedCall) string, step string) proof {
	var words []string
	for _, g := range groups {
		ranks := make([]int, len(g))
		for i, m := range g {
			ranks[i] = m.rank
		}
		verb := "has"
		if len(g) > 1 {
			verb = "have"
		}
		words = append(words, fmt.Sprintf("%s %s called %s", ranksText(ranks), verb, of(&g[0].call)))
	}
	last := len(words) - 1
	return proof{
		reason:   strings.Join(words[:last], ", ") + ", and " + words[last],
		evidence: []string{fmt.Sprintf("all are call %d in communicator %d", number, comm)},
		step:     step, rank: new(groups[0][0].rank),
	}
}
