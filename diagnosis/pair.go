package diagnosis

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// heard reports whether a packet has ever come from a peer. Daemons of earlier versions do not say when.
func heard(p *state.Peer) bool { return p.Heard != nil || p.PacketsIn > 0 }

// attempted reports whether anything was sent to a peer that it would have answered.
func attempted(p *state.Peer) bool {
	for _, n := range p.PacketsOut {
		if n > 0 {
			return true
		}
	}
	return p.Extended != nil && p.Extended.Hellos > 0
}

// silentSince reports whether nothing has come from a peer since a wait of so many seconds began, which another rank may have
// reported.
func (v *view) silentSince(p *state.Peer, seconds float64) bool {
	return !heard(p) || p.Heard != nil && *p.Heard > seconds+v.slack
}

// overNetwork reports whether the packets of a pair cross a network.
func overNetwork(p *state.Peer) bool { return p.Transport != state.TransportSHM }

// lastHeard says when the last packet of a peer came.
func lastHeard(p *state.Peer) string {
	switch {
	case !heard(p):
		return fmt.Sprintf("no packet has ever come from %s", p.Address)
	case p.Heard == nil:
		return fmt.Sprintf("packets have come from %s", p.Address)
	}
	return fmt.Sprintf("the last packet from %s came %s ago", p.Address, words.Duration(*p.Heard))
}

// both returns what the two ranks of a wait know of each other; nil for one that has not answered.
func (v *view) both(e *edge) (from, to *state.Peer) {
	if e.to == AnyRank {
		return nil, nil
	}
	return v.about(e.from, e.to), v.about(e.to, e.from)
}

// findProfile: the ranks speak different profiles, or versions of the extended one.
func findProfile(v *view, e *edge) (p proof, ok bool) {
	from, to := v.both(e)
	if from != nil && to != nil && from.Profile != to.Profile {
		return proof{
			why:      fmt.Sprintf("rank %d speaks profile %s to rank %d, which speaks profile %s to it", e.from, from.Profile, e.to, to.Profile),
			evidence: profileEvidence(e, from, to),
			step:     fmt.Sprintf("set the same profile for the pair in the configurations of both: profile: %s or profile: %s", from.Profile, to.Profile),
		}, true
	}
	for i, at := range []*state.Peer{from, to} {
		if at == nil || at.LastDrop == nil || at.LastDrop.Profile == "" {
			continue
		}
		local, remote := e.from, e.to
		if i == 1 {
			local, remote = remote, local
		}
		return proof{
			why:      fmt.Sprintf("rank %d speaks profile %s to rank %d, which is configured for profile %s", remote, at.LastDrop.Profile, local, at.Profile),
			evidence: []string{dropEvidence(local, remote, at)},
			step:     fmt.Sprintf("set profile: %s for rank %d in the configuration of rank %d, or profile: %s at the other side", at.LastDrop.Profile, remote, local, at.Profile),
		}, true
	}
	if from != nil && e.wait != nil && strings.Contains(e.wait.Text, "version 0x") {
		return proof{why: fmt.Sprintf("rank %d runs another version of the extended profile", e.to), evidence: []string{e.wait.Text},
			step: "install the same release of zrlmpid for both"}, true
	}
	return p, false
}

func profileEvidence(e *edge, from, to *state.Peer) []string {
	facts := []string{fmt.Sprintf("the configuration of rank %d has profile %s for rank %d, that of rank %d has %s for rank %d", e.from, from.Profile, e.to, e.to, to.Profile, e.from)}
	if from.LastDrop != nil {
		facts = append(facts, dropEvidence(e.from, e.to, from))
	}
	if to.LastDrop != nil {
		facts = append(facts, dropEvidence(e.to, e.from, to))
	}
	return facts
}

// dropEvidence describes the last packet of a peer that was dropped.
func dropEvidence(rank, peer int, p *state.Peer) string {
	d, n := p.LastDrop, uint64(0)
	for _, count := range p.Dropped {
		n += count
	}
	s := fmt.Sprintf("rank %d has dropped %s from the address of rank %d, the last %s ago: %s", rank, words.Plural(int(n), "packet"), peer, words.Duration(d.Seconds), d.Reason)
	if d.Profile != "" {
		s += ", a packet of profile " + string(d.Profile)
	}
	if d.Source != nil && int(*d.Source) != peer {
		s += fmt.Sprintf(", its header names rank %d as its source", *d.Source)
	}
	return s
}

// findAddress: the rank map of one side has the ranks at other addresses.
func findAddress(v *view, e *edge) (p proof, ok bool) {
	from, to := v.both(e)
	if from != nil && v.ranks[e.to] != nil && from.Address != v.ranks[e.to].Address && !heard(from) {
		return wrongAddress(e.from, e.to, from.Address, v.ranks[e.to].Address, nil), true
	}
	if to != nil && v.ranks[e.from] != nil && to.Address != v.ranks[e.from].Address && !heard(to) {
		return wrongAddress(e.to, e.from, to.Address, v.ranks[e.from].Address, nil), true
	}
	for i, at := range []*state.Peer{from, to} {
		local, remote := e.from, e.to
		if i == 1 {
			local, remote = remote, local
		}
		if at == nil || at.LastDrop == nil || at.LastDrop.Source == nil {
			continue
		}
		switch d := at.LastDrop; d.Reason {
		case state.DropSourceRank:
			return proof{
				why: fmt.Sprintf("the address %s, which the rank map of rank %d gives to rank %d, is that of rank %d", at.Address, local, remote, *d.Source),
				evidence: []string{
					dropEvidence(local, remote, at),
				},
				step: fmt.Sprintf("correct the addresses of ranks %d and %d in the rank map of rank %d, or at the other side: all must have the same map", remote, *d.Source, local),
			}, true
		case state.DropDestination:
			return proof{
				why:      fmt.Sprintf("rank %d has the address of rank %d for that of rank %d", remote, local, *d.Destination),
				evidence: []string{dropEvidence(local, remote, at)},
				step:     fmt.Sprintf("correct the addresses of ranks %d and %d in the rank map of rank %d: all must have the same map", local, *d.Destination, remote),
			}, true
		}
	}
	if r := v.ranks[e.from]; from != nil && !heard(from) && r.Engine.LastDrop != nil && r.Engine.LastDrop.Source != nil && int(*r.Engine.LastDrop.Source) == e.to {
		return wrongAddress(e.from, e.to, from.Address, r.Engine.LastDrop.From, []string{
			fmt.Sprintf("rank %d has dropped packets from %s, which no rank has, and whose header names rank %d as its source", e.from, r.Engine.LastDrop.From, e.to),
		}), true
	}
	return p, false
}

func wrongAddress(rank, peer int, mapped, actual string, evidence []string) proof {
	if evidence == nil {
		evidence = []string{fmt.Sprintf("the rank map of rank %d has rank %d at %s; rank %d itself is at %s", rank, peer, mapped, peer, actual)}
	}
	return proof{
		why: fmt.Sprintf("rank %d is at %s, and the rank map of rank %d has %s", peer, actual, rank, mapped), evidence: evidence,
		step: fmt.Sprintf("set the address of rank %d to %s in the rank map of rank %d, and restart it", peer, actual, rank),
	}
}

// findDeadEnd: an FPGA in a state in which it waits forever.
func findDeadEnd(v *view, e *edge) (p proof, ok bool) {
	from, _ := v.both(e)
	if from == nil || from.Refuses == "" {
		return p, false
	}
	p.evidence = []string{from.Refuses}
	if heard(from) {
		p.evidence = append(p.evidence, lastHeard(from))
	}
	return proof{
		why:      fmt.Sprintf("rank %d, an FPGA, is in a dead end: %s", e.to, firstClause(from.Refuses)),
		evidence: p.evidence,
		step:     fmt.Sprintf("restart the role of the FPGA at %s, then zrlctl reset %d --from %d", from.Address, e.to, e.from),
	}, true
}

// firstClause returns a text up to the end of its first clause.
func firstClause(s string) string {
	s = strings.TrimPrefix(s, "not sent: ")
	if i := strings.IndexAny(s, ";."); i > 0 {
		s = s[:i]
	}
	return s
}

// findMTU: short packets pass, long ones do not.
func findMTU(v *view, e *edge) (p proof, ok bool) {
	from, to := v.both(e)
	if from == nil || !e.send {
		return p, false
	}
	step := fmt.Sprintf("compare the MTU of every interface between the hosts (ip link; tracepath %s): the path has to carry IP packets of %d bytes; let routers report a smaller one (ICMP type 3 code 4)",
		hostOf(from.Address), longestPacket)
	if strings.Contains(from.NetworkError, "message too long") {
		return proof{why: fmt.Sprintf("the path to rank %d does not carry datagrams as long as its DATA", e.to), evidence: []string{from.NetworkError}, step: step}, true
	}
	if to == nil || e.state != handshake.WaitAck || e.wait == nil || to.Receiving == nil || v.silentSince(to, e.wait.Seconds+60) {
		return p, false
	}
	// Its CLEAR_TO_SEND shows that short packets pass in both directions.
	if w := to.Receiving; w.State == handshake.WaitData && e.wait.Envelope.Bytes >= longData {
		return proof{
			why:      fmt.Sprintf("short packets pass between ranks %d and %d, and DATA does not: the path carries no datagrams as long as that", e.from, e.to),
			evidence: []string{fmt.Sprintf("rank %d has cleared rank %d to send %s ago, and none of its DATA has arrived", e.to, e.from, words.Duration(w.Seconds)), fmt.Sprintf("at rank %d, %s", e.to, lastHeard(to))},
			step:     step,
		}, true
	}
	return p, false
}

const (
	// longestPacket is the longest IP packet of the profiles with fixed datagrams: with the headers of IPv4 and UDP.
	longestPacket = 1416 + 28
	// longData is the least length of a message whose loss points to the path's MTU: every path of IPv4 carries datagrams of 548 bytes.
	longData = 548
)

func hostOf(address string) string {
	if i := strings.LastIndexByte(address, ':'); i > 0 {
		return strings.Trim(address[:i], "[]")
	}
	return address
}

// networkErrors are what errors of the network mean.
var networkErrors = []struct{ text, why, step string }{
	{"connection refused", "nothing listens at its address", "start its daemon or program, or correct its address and port in the rank map"},
	{"no route to host", "its host does not answer, or a firewall rejects packets to it", "check that the host is up, its address in the rank map, and the firewall (nft list ruleset)"},
	{"network is unreachable", "there is no route to its network", "add a route (ip route get ADDRESS), or correct its address in the rank map"},
	{"operation not permitted", "the firewall of this host rejects packets to it", "allow UDP and TCP port 2718 to the ranks in the firewall of this host (nft list ruleset)"},
}

// findNetworkError: the network refuses packets to the peer.
func findNetworkError(v *view, e *edge) (p proof, ok bool) {
	from, _ := v.both(e)
	if from == nil || from.NetworkError == "" {
		return p, false
	}
	p = proof{why: "the network refuses packets to it", evidence: []string{from.NetworkError, lastHeard(from)}, step: "check the address of the rank, routes and firewall"}
	for _, known := range networkErrors {
		if strings.Contains(from.NetworkError, known.text) {
			p.why, p.step = known.why, known.step
		}
	}
	p.why = fmt.Sprintf("rank %d at %s cannot be reached: %s", e.to, from.Address, p.why)
	return p, true
}

// findNeverHeard: nothing has come from the peer, although it was asked.
func findNeverHeard(v *view, e *edge) (p proof, ok bool) {
	from, to := v.both(e)
	if from == nil || to != nil || v.ranks[e.to] != nil || heard(from) || !attempted(from) {
		return p, false
	}
	p = proof{
		open: true,
		why: fmt.Sprintf("no packet has ever come from rank %d at %s: it is not running, has another address, "+
			"or a firewall drops its packets", e.to, from.Address),
		evidence: []string{
			fmt.Sprintf("rank %d has sent it %s", e.from, packetsOut(from)),
		},
	}
	switch from.Kind {
	case state.KindFPGA:
		p.step = fmt.Sprintf("check that the FPGA at %s runs its role and has this rank map; then ping %s, and the firewall of this host", from.Address, hostOf(from.Address))
	case state.KindCPU:
		p.step = fmt.Sprintf("start the program of rank %d at %s with this rank map; then ping %s, and the firewalls", e.to, from.Address, hostOf(from.Address))
	default:
		p.step = fmt.Sprintf("start rank %d at %s (its daemon, or its program); if it runs, compare its address with the rank map, and allow UDP and TCP port 2718 in the firewalls", e.to, from.Address)
	}
	return p, true
}

// packetsOut returns what was sent to a peer, by type.
func packetsOut(p *state.Peer) string {
	var parts []string
	for t, n := range p.PacketsOut {
		if p.Extended != nil && protocol.Type(t) == protocol.Ack {
			n -= min(n, p.Extended.Hellos) // a HELLO is an ACK
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", n, protocol.Type(t)))
		}
	}
	if p.Extended != nil && p.Extended.Hellos > 0 {
		parts = append(parts, words.Plural(int(p.Extended.Hellos), "HELLO"))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// oneWay returns in which direction nothing has come since the wait began, although both ranks run and the other side has sent:
// from whom to whom, and what the receiver knows of the sender.
func (v *view) oneWay(e *edge) (sender, receiver int, knows *state.Peer, ok bool) {
	from, to := v.both(e)
	if from == nil || to == nil || !overNetwork(from) || e.wait == nil {
		return 0, 0, nil, false
	}
	sends := e.state == handshake.WaitClear || e.state == handshake.WaitAck || e.state == handshake.Held && from.Extended != nil && from.Extended.PeerSession == 0
	switch {
	case sends && attempted(from) && v.silentSince(to, e.wait.Seconds):
		return e.from, e.to, to, true
	case attempted(to) && v.silentSince(from, e.wait.Seconds) && to.Sending != nil && to.Sending.Seconds >= v.after && to.Sending.Envelope.Bytes != mpe.UnknownLength:
		return e.to, e.from, from, true
	case sends && attempted(to) && !heard(from):
		return e.to, e.from, from, true
	}
	return 0, 0, nil, false
}

// findHalfOpen: one side of a TCP connection is gone, and the other does not know.
func findHalfOpen(v *view, e *edge) (p proof, ok bool) {
	sender, receiver, knows, ok := v.oneWay(e)
	if !ok || knows.Transport != state.TransportTCP {
		return p, false
	}
	return proof{
		why:      fmt.Sprintf("the TCP connection between ranks %d and %d is half-open: what rank %d sends does not arrive at rank %d", e.from, e.to, sender, receiver),
		evidence: []string{fmt.Sprintf("rank %d has sent %s", sender, packetsOut(v.about(sender, receiver))), fmt.Sprintf("at rank %d, %s", receiver, lastHeard(knows))},
		rank:     &sender,
		step:     fmt.Sprintf("check the firewalls between %s and %s for connections that they have forgotten (TCP port 2718), and restart rank %d if it does not reconnect", v.address(sender), v.address(receiver), sender),
	}, true
}

// findBlocked: packets in one direction have never arrived, or not since the wait began.
func findBlocked(v *view, e *edge) (p proof, ok bool) {
	sender, receiver, knows, ok := v.oneWay(e)
	if !ok {
		return p, false
	}
	since := "have never arrived"
	if heard(knows) {
		since = "have not arrived since"
	}
	why := fmt.Sprintf("both ranks run, and packets from rank %d to rank %d %s: a firewall or a route between "+
		"%s and %s drops them",
		sender, receiver, since, v.address(sender), v.address(receiver))
	evidence := []string{fmt.Sprintf("rank %d has sent %s", sender, packetsOut(v.about(sender, receiver))), fmt.Sprintf("at rank %d, %s", receiver, lastHeard(knows))}
	if d := v.ranks[receiver].Engine.LastDrop; d != nil && d.Reason == state.DropUnknownAddress {
		why += ", or something on the path changes their source address"
		evidence = append(evidence, fmt.Sprintf("rank %d has dropped packets from %s, which is not in its rank "+
			"map, the last %s ago", receiver, d.From, words.Duration(d.Seconds)))
	}
	return proof{
		why: why, evidence: evidence,
		rank: &sender,
		step: fmt.Sprintf("allow UDP and TCP port 2718 from %s in the firewall of the host of rank %d (nft list "+
			"ruleset), and check the routes in both directions", hostOf(v.address(sender)), receiver),
	}, true
}

// findLostAck: the receiver has all of a message, and its ACK has not come.
func findLostAck(v *view, e *edge) (p proof, ok bool) {
	from, to := v.both(e)
	if from == nil || e.wait == nil || e.state != handshake.WaitAck || from.Extended != nil || e.wait.Retransmissions == 0 && !fragmented(e) {
		return p, false
	}
	switch {
	case to != nil && (to.Receiving == nil || to.Receiving.State == handshake.WaitRequest) && to.Received > 0:
		p.why = fmt.Sprintf("rank %d has received all of the message, and its ACK was lost; or it was "+
			"restarted, or gave the message up, before it had all", e.to)
		p.evidence = []string{fmt.Sprintf("rank %d is in no message of rank %d, and has received %s from it", e.to, e.from, words.Plural(int(to.Received), "message"))}
	case v.ranks[e.to] == nil && fragmented(e):
		p.why = fmt.Sprintf("the ACK of rank %d was lost, or one of the datagrams of the message: a deployed node acknowledges a message once, and one of several datagrams is not retransmitted", e.to)
	default:
		return p, false
	}
	p.open = true
	p.evidence = append(p.evidence, lastHeard(from))
	p.step = fmt.Sprintf("if rank %d does not go on, restart its role or program, then zrlctl reset %d --from %d; to avoid it, send messages of up to 346 words (max_message_words), which are retransmitted", e.to, e.to, e.from)
	return p, true
}

// fragmented reports whether the message of a send has more than one datagram.
func fragmented(e *edge) bool { return e.wait.Envelope.Bytes > 346*protocol.WordLen }

// findLostPacket: both ranks know of the message, and wait for different packets of it.
func findLostPacket(v *view, e *edge) (p proof, ok bool) {
	from, to := v.both(e)
	if from != nil && !e.send && from.RequestsCleared() {
		return proof{
			open: true,
			why: fmt.Sprintf("rank %[1]d has cleared rank %[2]d to send, which asks to send: CLEAR_TO_SEND of "+
				"rank %[1]d "+
				"does not arrive at rank %[2]d, or DATA of rank %[2]d at rank %[1]d, or rank %[2]d began again "+
				"after it "+
				"was cleared", e.from, e.to),
			evidence: []string{fmt.Sprintf("the SEND_REQUEST of rank %d came %s ago", e.to, words.Duration(from.Deferred.Seconds))},
			step: fmt.Sprintf("zrlctl analyze -i INTERFACE on the host of rank %d: whether CLEAR_TO_SEND "+
				"arrives, and DATA "+
				"is sent; zrlctl status for packets that were dropped", e.to),
		}, true
	}
	if from == nil || to == nil || e.wait == nil || !e.send || from.Extended != nil || to.Receiving == nil || to.Receiving.Seconds < v.after {
		return p, false
	}
	w := to.Receiving
	var packet protocol.Type
	var by, at int
	switch {
	case e.state == handshake.WaitClear && w.State == handshake.WaitData:
		packet, by, at = protocol.ClearToSend, e.to, e.from
	case e.state == handshake.WaitAck && (w.State == handshake.WaitData || w.State == handshake.Receiving):
		packet, by, at = protocol.Data, e.from, e.to
	default:
		return p, false
	}
	return proof{
		why:      fmt.Sprintf("%v of rank %d was lost in transit to rank %d", packet, by, at),
		evidence: []string{w.Text, lastHeard(from), fmt.Sprintf("at rank %d, %s", e.to, lastHeard(to))},
		step:     fmt.Sprintf("look for drops between %s and %s: zrlctl analyze -i INTERFACE on both hosts, zrlctl status for full receive buffers", v.address(e.from), v.address(e.to)),
	}, true
}

// findSilent: an engine that acknowledges packets whatever its program does has stopped to.
func findSilent(v *view, e *edge) (p proof, ok bool) {
	from, to := v.both(e)
	if from == nil || to != nil || v.ranks[e.to] != nil || from.Extended == nil || !overNetwork(from) || from.Heard == nil || from.Extended.InFlight == 0 || *from.Heard < max(v.after, 1) {
		return p, false
	}
	return proof{
		open: true,
		why: fmt.Sprintf("rank %d at %s does not answer any more: its process has ended or is stopped, its "+
			"host is down, or packets are dropped in transit", e.to, from.Address),
		evidence: []string{lastHeard(from), fmt.Sprintf("%s to it not acknowledged, %s", words.Plural(from.Extended.InFlight, "packet"),
			words.Plural(int(from.Extended.Retransmissions), "retransmission"))},
		step: fmt.Sprintf("on the host of rank %d: check that its process runs (zrlctl status), then ping %s and the firewalls", e.to, hostOf(from.Address)),
	}, true
}
