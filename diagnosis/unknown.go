package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// unknownEndFinding lists the possible causes of a wait for a rank whose state is unknown. It returns nil if the rank
// has answered, if its process exists but does not answer, or if the wait is for any source.
func (v *view) unknownEndFinding(e *edge) *Finding {
	if _, silent := v.silentRanks[e.to]; silent || e.to == AnyRank || v.ranks[e.to] != nil {
		return nil
	}
	p := e.peer
	if p == nil {
		return v.findingFromCauses(e, StateUnknown, v.symptomText(StateUnknown, e), allCauses(e), []string{},
			v.askDaemon(e.to))
	}
	evidence := []string{}
	if out := packetsOutText(p); out != noPackets {
		evidence = append(evidence, fmt.Sprintf("rank %d has sent it %s", e.from, out))
	}
	evidence = append(evidence, lastHeardText(p))
	if x := p.Extended; x != nil && x.InFlight > 0 && x.Stalled > 0 {
		evidence = append(evidence, fmt.Sprintf("%s to it not acknowledged for %s", words.Plural(x.InFlight, "packet"),
			words.Duration(x.Stalled)))
	}
	observation := v.newObservation(e)
	left, excluded := infer.Explain(observation)
	if observation.HasWorked && v.hadEarlierProgram(e.from) {
		left = append(left, newPossibility(infer.Restarted, e.from, e.to,
			"an earlier program of rank %d has exited in the middle, and rank %d goes "+
				"on with it", e.from, e.to))
	}
	evidence = append(evidence, excludedTexts(excluded)...)
	symptom := v.symptom(e, observation)
	return v.findingFromCauses(e, symptom, v.symptomText(symptom, e), left, evidence, v.nextStep(symptom, e))
}

// excludedTexts describes, for each observation, the causes that the observation excludes.
func excludedTexts(excluded []infer.Excluded) (facts []string) {
	by := map[string][]string{}
	for _, x := range excluded {
		title := titleOf(string(x.Cause))
		if by[x.Contradiction] == nil {
			facts = append(facts, x.Contradiction)
		}
		if !slices.Contains(by[x.Contradiction], title) {
			by[x.Contradiction] = append(by[x.Contradiction], title)
		}
	}
	for i, f := range facts {
		facts[i] = fmt.Sprintf("%s: this rules out: %s", f, strings.Join(by[f], "; "))
	}
	return facts
}

// symptomText describes what is observed of a wait that has several possible causes.
func (v *view) symptomText(symptom string, e *edge) string {
	switch symptom {
	case NeverHeard:
		return fmt.Sprintf("no packet was ever received from rank %d at %s", e.to, e.peer.Address)
	case PeerSilent:
		return fmt.Sprintf("rank %d at %s does not answer any more", e.to, e.peer.Address)
	case CreditExhausted:
		return fmt.Sprintf("%s messages of rank %d as rank %d allows wait there for receives: its message credit is %d",
			creditText(e), e.from, e.to, e.peer.Extended.MessageCredit)
	case NoReceive:
		return fmt.Sprintf("rank %d has not answered", e.to)
	case NothingSent:
		if everHeard(e.peer) {
			return fmt.Sprintf("rank %d has not asked to send", e.to)
		}
		return fmt.Sprintf("nothing was received from rank %d", e.to)
	case StateUnknown:
		if reason := v.askFailures[e.to]; reason != "" {
			return fmt.Sprintf("what rank %d waits for is not known here: %s", e.to, reason)
		}
		return fmt.Sprintf("what rank %d waits for is not known here", e.to)
	}
	return ""
}

// nextStep returns the next step for the user: the observation that decides between the possible causes of a wait, or
// that excludes most of them.
func (v *view) nextStep(symptom string, e *edge) string {
	p := e.peer
	switch {
	case symptom == NeverHeard && p.Kind == state.KindFPGA:
		return fmt.Sprintf("check that the FPGA at %s runs its role and has this rank map; then %s", p.Address,
			checkNetwork(p, "the firewall of this host"))
	case symptom == NeverHeard && p.Kind == state.KindCPU:
		return fmt.Sprintf("start the program of rank %d at %s with this rank map; then %s", e.to, p.Address,
			checkNetwork(p, "the firewalls"))
	case symptom == NeverHeard:
		return fmt.Sprintf("start rank %d at %s (its daemon, or its program); if it runs, compare its address with the "+
			"rank map, and allow UDP and TCP port 2718 in the firewalls", e.to, p.Address)
	case symptom == PeerSilent:
		return fmt.Sprintf("on the host of rank %d: check that its process runs (zrlctl status); then %s", e.to,
			checkNetwork(p, "the firewalls"))
	case symptom == LostAck:
		return fmt.Sprintf("if rank %d does not go on, restart its role or program, then zrlctl reset %[1]d "+
			"--from %d; to "+
			"avoid it, send messages of up to 346 words (max_message_words), which are retransmitted", e.to, e.from)
	case v.isDeployed(e.to):
		return fmt.Sprintf("compare the calls of both programs in order; zrlctl analyze -i INTERFACE shows what "+
			"rank %d sends", e.to)
	}
	return v.askDaemon(e.to)
}

// checkNetwork returns the step that examines the network to a peer.
func checkNetwork(p *state.Peer, firewalls string) string {
	return fmt.Sprintf("check the network with \"ping %s\" (the system's; zrlctl ping is safe only if the rank runs an "+
		"echo kernel, because any other program may receive its message) and %s", hostOf(p.Address), firewalls)
}

// allCauses lists the possible causes of a wait for a rank about which nothing is known.
func allCauses(e *edge) []Possibility {
	left, _ := infer.Explain(&infer.Observation{Waiter: e.from, Peer: e.to, Extended: true, Kind: state.KindSoftware})
	return left
}

// newObservation collects the facts about a wait.
func (v *view) newObservation(e *edge) *infer.Observation {
	p := e.peer
	observation := &infer.Observation{
		Waiter: e.from, Peer: e.to, Kind: p.Kind, Extended: p.Extended != nil, IsSender: e.isSend, State: e.state,
		WaitSeconds: e.seconds, LastHeard: p.SinceLastPacket, HasWorked: p.Sent+p.Received > 0,
		Refused: v.isRefused(p, e.seconds),
	}
	if observation.LastHeard == nil && everHeard(p) { // daemons of earlier versions do not report when
		observation.LastHeard = new(e.seconds)
	}
	_, observation.NoHandshake = tlsFault(p)
	if e.wait != nil {
		observation.HasLongDatagram = e.wait.Envelope.Bytes >= longData
	}
	if x := p.Extended; x != nil {
		observation.HasLongDatagram = observation.HasLongDatagram || x.InFlight > 0
		unanswered := v.unanswered[[2]int{e.from, e.to}] && (p.SinceLastPacket == nil || *p.SinceLastPacket > maxAnswerTime)
		observation.Silent = unanswered || x.Stalled >= stallThreshold || x.PeerSession == 0 && x.Hellos > 2
		observation.Connected = x.PeerSession != 0
		observation.Acknowledged = x.InFlight == 0 && x.PeerSession != 0 && x.Queued == 0
		observation.Retransmits = p.LastDrop != nil && p.LastDrop.Seconds <= e.seconds+maxRetransmitDelay
		return observation
	}
	observation.PeerAsks = p.Deferred != nil
	observation.RetransmitsRequest = observation.PeerAsks && p.SinceLastPacket != nil &&
		*p.SinceLastPacket < p.Deferred.Seconds-retransmitGap
	standin := v.ranks[e.from] != nil && v.ranks[e.from].Role == state.RoleStandin // it may have dropped a request
	switch talks := e.wait != nil && !standin && hasTalkedSince(p, v.exclusiveSeconds(e)); e.state {
	case handshake.WaitData: // before DATA, a peer sends nothing but another SEND_REQUEST
		observation.PeerAsks, observation.RetransmitsRequest = observation.PeerAsks ||
			talks, observation.RetransmitsRequest || talks
	case handshake.WaitAck:
		software := p.Kind == state.KindSoftware && !standin && e.wait != nil
		clearsAgain := software && p.LastDrop != nil && p.LastDrop.Reason == state.DropStale &&
			p.LastDrop.Seconds < v.exclusiveSeconds(e)-talkDelay
		observation.PeerClears = (talks || clearsAgain) && !observation.PeerAsks
		observation.ClearedAtOnce = software && p.PacketsOut[protocol.SendRequest] <= p.Sent+1
	case handshake.WaitClear:
		observation.RetransmitsData = retransmitsData(p)
	case handshake.WaitRequest:
		observation.PeerClears = p.UnansweredClear != nil
		observation.RetransmitsData = retransmitsData(p)
	}
	return observation
}

// retransmitsData reports whether the peer has repeatedly retransmitted its last message after ACKs were sent to it,
// within the last second, and has sent nothing else since: it is blocked in that send.
func retransmitsData(p *state.Peer) bool {
	acks := p.LostAcks
	return acks != nil && acks.Count > 1 && acks.Seconds <= maxRetransmissionAge && p.SinceLastPacket != nil &&
		*p.SinceLastPacket > acks.Seconds-retransmitGap
}

// maxRetransmissionAge is the maximum age, in seconds, of a retransmission that shows in which call the peer is now.
// Later, an ACK may have arrived.
const maxRetransmissionAge = 1

// exclusiveSeconds returns the number of seconds for which all packets of the pair must have belonged to the message of
// a wait. Earlier packets may belong to other operations of the rank, which may have completed after the message was
// posted.
func (v *view) exclusiveSeconds(e *edge) float64 {
	r := v.ranks[e.from]
	if r.Engine.SinceLastEnd != nil {
		return min(e.wait.Seconds, *r.Engine.SinceLastEnd)
	}
	return e.wait.Seconds
}

// hasTalkedSince reports whether a packet from a peer of the cloudfpga or v0.9 profile was received and used within the
// given number of seconds, except for the first moments.
func hasTalkedSince(p *state.Peer, seconds float64) bool {
	if p.SinceLastPacket == nil || *p.SinceLastPacket >= seconds-talkDelay {
		return false
	}
	return p.LastDrop == nil || p.LastDrop.Seconds > *p.SinceLastPacket+retransmitGap
}

// talkDelay is the number of seconds at the beginning of a wait in which packets from the peer may be late copies.
const talkDelay = 0.5

// maxAnswerTime is the maximum time, in seconds, that a running rank needs to answer a question (E53).
const maxAnswerTime = 1

// retransmitGap is the minimum number of seconds between two packets of which the later counts as a retransmission.
const retransmitGap = 0.05

// symptom returns the ID under which a finding with several possible causes is reported.
func (v *view) symptom(e *edge, observation *infer.Observation) string {
	switch {
	case !everHeard(e.peer) && wasContacted(e.peer):
		return NeverHeard
	case !everHeard(e.peer) && !e.isSend:
		return NothingSent
	case creditText(e) != "" && !observation.Silent:
		return CreditExhausted
	case observation.Silent:
		return PeerSilent
	case e.state == handshake.WaitAck && !observation.Extended && isFragmented(e):
		return LostAck
	case observation.Extended:
		return StateUnknown
	case e.state == handshake.WaitAck, e.state == handshake.WaitData, e.state == handshake.Receiving,
		e.peer.RequestsCleared():
		return LostPacket
	case !v.isDeployed(e.to):
		return StateUnknown
	case e.isSend:
		return NoReceive
	}
	return NothingSent
}

// isFragmented reports whether the message being sent needs more than one datagram.
func isFragmented(e *edge) bool { return e.wait != nil && e.wait.Envelope.Bytes > maxWordsOfDatagram*4 }

// maxWordsOfDatagram is the maximum number of words in a message that fits in one datagram.
const maxWordsOfDatagram = 346

// titleOf returns the title of a cause.
func titleOf(id string) string {
	for i := range Causes {
		if Causes[i].ID == id {
			return Causes[i].Title
		}
	}
	return id
}

// noCallCauses lists the possible causes of a wait for a rank that has answered and is not in a call.
func (v *view) noCallCauses(e *edge) (list []Possibility) {
	add := func(cause infer.Cause, text string) {
		list = append(list, newPossibility(cause, e.to, e.from, "rank %d %s", e.to, text))
	}
	add(ProgramComputes, "computes, or has not come so far")
	rank := v.ranks[e.to]
	if rank.Engine.LastFailed || rank.failed != nil {
		add(CallFailed, "goes on, or has exited, although one of its calls failed")
	}
	late := map[int]bool{}
	for _, o := range v.outEdges[e.to] { // messages for which it waits may be late each time
		if v.isOldEnough(o) || o.to == AnyRank || late[o.to] {
			continue
		}
		if len(late) == 0 {
			add(infer.WaitsElsewhere, "waits itself, in another call")
		}
		late[o.to] = true
		list = append(list, newPossibility(infer.PacketLost, o.to, e.to, "packets between ranks %d and %d are lost, or late",
			min(o.to, e.to), max(o.to, e.to)))
	}
	if up := rank.Engine.Uptime; up > 0 && up < e.seconds+maxRetransmitDelay {
		list = append(list, newPossibility(infer.Restarted, e.to, e.from, "rank %d was started %s ago", e.to,
			words.Duration(up)))
	}
	if e.deferred != nil {
		list = append(list, movedOnCause(e))
	}
	return list
}

// movedOnCause returns the possible cause that a wait known only from a packet is already over.
func movedOnCause(e *edge) Possibility {
	return newPossibility(infer.DeadEnd, e.from, e.to,
		"rank %d does not wait any more: what it has sent is a late copy, or "+
			"its call returned", e.from)
}
