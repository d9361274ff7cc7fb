package diagnosis

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// everHeard reports whether any packet from the peer was ever received. It also checks the packet count, because
// daemons of earlier versions do not report the time of the last packet.
func everHeard(p *state.Peer) bool { return p.SinceLastPacket != nil || p.PacketsIn > 0 }

// wasContacted reports whether any packet that requires an answer was sent to the peer.
func wasContacted(p *state.Peer) bool {
	for _, n := range p.PacketsOut {
		if n > 0 {
			return true
		}
	}
	return p.Extended != nil && p.Extended.Hellos > 0
}

// silentSince reports whether no packet from the peer was received during a wait that began the given number of seconds
// ago. It allows for different times of reports, because another rank may have reported the wait.
func (v *view) silentSince(p *state.Peer, seconds float64) bool {
	return !everHeard(p) || p.SinceLastPacket != nil && *p.SinceLastPacket > seconds+v.slack
}

// overNetwork reports whether the pair's packets cross a network.
func overNetwork(p *state.Peer) bool { return p.Transport != state.TransportSHM }

// lastHeardText returns a clause that states when the last packet from a peer arrived.
func lastHeardText(p *state.Peer) string {
	switch {
	case !everHeard(p):
		return fmt.Sprintf("no packet was ever received from %s", p.Address)
	case p.SinceLastPacket == nil:
		return fmt.Sprintf("packets were received from %s", p.Address)
	}
	return fmt.Sprintf("the last packet from %s came %s ago", p.Address, words.Duration(*p.SinceLastPacket))
}

// bothReports returns what the two ranks of a wait have reported about each other. A report is nil if its rank has not
// answered.
func (v *view) bothReports(e *edge) (from, to *state.Peer) {
	if e.to == AnyRank {
		return nil, nil
	}
	return v.peerReport(e.from, e.to), v.peerReport(e.to, e.from)
}

// findProfile finds two ranks that use different profiles, or different versions of the extended profile.
func findProfile(v *view, e *edge) (p proof, ok bool) {
	from, to := v.bothReports(e)
	if from != nil && to != nil && from.Profile != to.Profile {
		return proof{
			reason: fmt.Sprintf("rank %d speaks profile %s to rank %d, which speaks profile %s to it", e.from,
				from.Profile, e.to, to.Profile),
			evidence: profileEvidence(e, from, to),
			step: fmt.Sprintf("set the same profile for the pair in the configurations of both: profile: %s or "+
				"profile: %s", from.Profile, to.Profile),
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
			reason: fmt.Sprintf("rank %d speaks profile %s to rank %d, which is configured for profile %s", remote,
				at.LastDrop.Profile, local, at.Profile),
			evidence: []string{dropEvidence(local, remote, at)},
			step: fmt.Sprintf("set profile: %s for rank %d in the configuration of rank %d, or profile: %s at "+
				"the other side", at.LastDrop.Profile, remote, local, at.Profile),
		}, true
	}
	if from != nil && e.wait != nil && strings.Contains(e.wait.Text, "version 0x") {
		return proof{reason: fmt.Sprintf("rank %d runs another version of the extended profile", e.to),
			evidence: []string{e.wait.Text},
			step:     "install the same release of zrlmpid for both"}, true
	}
	return p, false
}

func profileEvidence(e *edge, from, to *state.Peer) []string {
	facts := []string{fmt.Sprintf("the configuration of rank %d has profile %s for rank %d, that of rank %d has %s "+
		"for rank %d", e.from, from.Profile, e.to, e.to, to.Profile, e.from)}
	if from.LastDrop != nil {
		facts = append(facts, dropEvidence(e.from, e.to, from))
	}
	if to.LastDrop != nil {
		facts = append(facts, dropEvidence(e.to, e.from, to))
	}
	return facts
}

// dropEvidence describes the last packet from a peer that was dropped.
func dropEvidence(rank, peer int, p *state.Peer) string {
	drop, n := p.LastDrop, uint64(0)
	for _, count := range p.Dropped {
		n += count
	}
	s := fmt.Sprintf("rank %d has dropped %s from the address of rank %d, the last %s ago: %s", rank,
		words.Plural(int(n), "packet"), peer, words.Duration(drop.Seconds), drop.Reason)
	if drop.Profile != "" {
		s += ", a packet of profile " + string(drop.Profile)
	}
	if drop.Source != nil && int(*drop.Source) != peer {
		s += fmt.Sprintf(", its header names rank %d as its source", *drop.Source)
	}
	return s
}

// findAddress finds ranks for which a rank map contains a wrong address.
func findAddress(v *view, e *edge) (p proof, ok bool) {
	from, to := v.bothReports(e)
	if from != nil && v.ranks[e.to] != nil && from.Address != v.ranks[e.to].Address && !everHeard(from) {
		return wrongAddressProof(e.from, e.to, from.Address, v.ranks[e.to].Address, nil), true
	}
	if to != nil && v.ranks[e.from] != nil && to.Address != v.ranks[e.from].Address && !everHeard(to) {
		return wrongAddressProof(e.to, e.from, to.Address, v.ranks[e.from].Address, nil), true
	}
	for i, at := range []*state.Peer{from, to} {
		local, remote := e.from, e.to
		if i == 1 {
			local, remote = remote, local
		}
		if at == nil || at.LastDrop == nil || at.LastDrop.Source == nil {
			continue
		}
		switch drop := at.LastDrop; drop.Reason {
		case state.DropSourceRank:
			return proof{
				reason: fmt.Sprintf("the address %s, which the rank map of rank %d gives to rank %d, is that of rank %d",
					at.Address, local, remote, *drop.Source),
				evidence: []string{
					dropEvidence(local, remote, at),
				},
				step: fmt.Sprintf("correct the addresses of ranks %d and %d in the rank map of rank %d, or at the "+
					"other side: all must have the same map", remote, *drop.Source, local),
			}, true
		case state.DropDestination:
			return proof{
				reason: fmt.Sprintf("rank %d has the address of rank %d for that of rank %d", remote, local,
					*drop.Destination),
				evidence: []string{dropEvidence(local, remote, at)},
				step: fmt.Sprintf("correct the addresses of ranks %d and %d in the rank map of rank %d: all must "+
					"have the same map", local, *drop.Destination, remote),
			}, true
		}
	}
	if r := v.ranks[e.from]; from != nil && !everHeard(from) && r.Engine.LastDrop != nil &&
		r.Engine.LastDrop.Source != nil && int(*r.Engine.LastDrop.Source) == e.to {
		return wrongAddressProof(e.from, e.to, from.Address, r.Engine.LastDrop.From, []string{
			fmt.Sprintf("rank %d has dropped packets from %s, which no rank has, and whose header names rank %d as "+
				"its source", e.from, r.Engine.LastDrop.From, e.to),
		}), true
	}
	return p, false
}

func wrongAddressProof(rank, peer int, mapped, actual string, evidence []string) proof {
	if evidence == nil {
		evidence = []string{fmt.Sprintf("the rank map of rank %d has rank %d at %s; rank %d itself is at %s", rank,
			peer, mapped, peer, actual)}
	}
	return proof{
		reason:   fmt.Sprintf("rank %d is at %s, and the rank map of rank %d has %s", peer, actual, rank, mapped),
		evidence: evidence,
		step: fmt.Sprintf("set the address of rank %d to %s in the rank map of rank %d, and restart it", peer,
			actual, rank),
	}
}

// findDeadEnd finds an FPGA in a state that it cannot leave.
func findDeadEnd(v *view, e *edge) (p proof, ok bool) {
	from, _ := v.bothReports(e)
	if from == nil || from.Refuses == "" {
		return p, false
	}
	p.evidence = []string{from.Refuses}
	if everHeard(from) {
		p.evidence = append(p.evidence, lastHeardText(from))
	}
	return proof{
		reason:   fmt.Sprintf("rank %d, an FPGA, is in a dead end: %s", e.to, firstClause(from.Refuses)),
		evidence: p.evidence,
		step: fmt.Sprintf("restart the role of the FPGA at %s, then zrlctl reset %d --from %d", from.Address, e.to,
			e.from),
	}, true
}

// firstClause returns the first clause of a text.
func firstClause(s string) string {
	s = strings.TrimPrefix(s, "not sent: ")
	if i := strings.IndexAny(s, ";."); i > 0 {
		s = s[:i]
	}
	return s
}

// mtuStep returns the next step for the user, given that a path to address may not carry long datagrams.
func mtuStep(address string) string {
	return fmt.Sprintf("compare the MTU of every interface between the hosts (ip link; tracepath %s): the path has to "+
		"carry IP packets of %d bytes; let routers report a smaller one (ICMP type 3 code 4)", hostOf(address),
		longestPacket)
}

// findMTU finds a path that carries short packets but not long ones.
func findMTU(v *view, e *edge) (p proof, ok bool) {
	from, _ := v.bothReports(e)
	if from == nil || !e.isSend {
		return p, false
	}
	if strings.Contains(from.NetworkError, "message too long") {
		return proof{reason: fmt.Sprintf("the path to rank %d does not carry datagrams as long as its DATA", e.to),
			evidence: []string{from.NetworkError}, step: mtuStep(from.Address)}, true
	}
	return p, false
}

const (
	// longestPacket is the length in bytes of the longest IP packet in the profiles whose datagram length is fixed,
	// including the IPv4 and UDP headers.
	longestPacket = 1416 + 28
	// longData is the minimum length in bytes of a message whose loss suggests that the path MTU is too small. Every
	// IPv4 path carries datagrams of 548 bytes.
	longData = 548
)

func hostOf(address string) string {
	if i := strings.LastIndexByte(address, ':'); i > 0 {
		return strings.Trim(address[:i], "[]")
	}
	return address
}

// tlsFault returns the TLS error that ended the connection to a peer, or an empty string. open is set if the only error
// is that the other end did not answer the handshake; it may then not use TLS, or not exist.
func tlsFault(p *state.Peer) (text string, open bool) {
	if !strings.HasPrefix(p.NetworkError, "tls with ") {
		return "", false
	}
	return p.NetworkError, strings.Contains(p.NetworkError, "no answer to the handshake")
}

// findTLS finds a connection between ranks with incompatible TLS settings, or between a rank with TLS and one without.
func findTLS(v *view, e *edge) (p proof, ok bool) {
	from, to := v.bothReports(e)
	for i, at := range []*state.Peer{from, to} {
		if at == nil {
			continue
		}
		text, open := tlsFault(at)
		if text == "" || open {
			continue
		}
		local, remote := e.from, e.to
		if i == 1 {
			local, remote = remote, local
		}
		return proof{
			reason:   fmt.Sprintf("TLS prevents the connection between ranks %d and %d", local, remote),
			evidence: []string{fmt.Sprintf("at rank %d: %s", local, text)},
			step: fmt.Sprintf("compare tls in the configurations of ranks %d and %d: both need it, with certificates "+
				"of the same authority, "+
				"or neither", local, remote),
		}, true
	}
	return p, false
}

// networkErrors maps the text of a network error to an explanation and the next step for the user.
var networkErrors = []struct{ text, why, step string }{
	{"connection refused", "nothing listens at its address",
		"start its daemon or program, or correct its address and port in the rank map"},
	{"no route to host", "its host does not answer, or a firewall rejects packets to it",
		"check that the host is up, its address in the rank map, and the firewall (nft list ruleset)"},
	{"network is unreachable", "there is no route to its network",
		"add a route (ip route get ADDRESS), or correct its address in the rank map"},
	{"operation not permitted", "the firewall of this host rejects packets to it",
		"allow UDP and TCP port 2718 to the ranks in the firewall of this host (nft list ruleset)"},
}

// isRefused reports whether the network refuses packets to a peer, and the peer has been silent for the given number of
// seconds.
func (v *view) isRefused(p *state.Peer, seconds float64) bool {
	fault, _ := tlsFault(p)
	return p.NetworkError != "" && fault == "" && v.silentSince(p, seconds)
}

// findNetworkError finds a peer to which the network refuses packets.
func findNetworkError(v *view, e *edge) (p proof, ok bool) {
	from, _ := v.bothReports(e)
	if from == nil || !v.isRefused(from, e.seconds) {
		return p, false
	}
	p = proof{reason: "the network refuses packets to it", evidence: []string{from.NetworkError, lastHeardText(from)},
		step: "check the address of the rank, routes and firewall"}
	for _, known := range networkErrors {
		if strings.Contains(from.NetworkError, known.text) {
			p.reason, p.step = known.why, known.step
		}
	}
	p.reason = fmt.Sprintf("rank %d at %s cannot be reached: %s", e.to, from.Address, p.reason)
	return p, true
}

// noPackets is the text that packetsOutText returns if no packet was sent.
const noPackets = "nothing"

// packetsOutText returns a text with the number of packets sent to a peer, by type.
func packetsOutText(p *state.Peer) string {
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
		return noPackets
	}
	return strings.Join(parts, ", ")
}

// blockedProof returns the proof that packets from the rank sender do not arrive at the rank receiver. knows is the
// receiver's report about the sender.
func (v *view) blockedProof(sender, receiver int, knows *state.Peer) proof {
	since := "have never arrived"
	if everHeard(knows) {
		since = "have not arrived since"
	}
	why := fmt.Sprintf("both ranks run, and packets from rank %d to rank %d %s: they are lost between %s and %s",
		sender, receiver, since, v.address(sender), v.address(receiver))
	evidence := []string{
		fmt.Sprintf("rank %d has sent %s", sender,
			packetsOutText(v.peerReport(sender, receiver))), lastHeardAtText(receiver, knows),
	}
	if d := v.ranks[receiver].Engine.LastDrop; d != nil && d.Reason == state.DropUnknownAddress {
		why += ", or something on the path changes their source address"
		evidence = append(evidence, fmt.Sprintf("rank %d has dropped packets from %s, which is not in its rank "+
			"map, the last %s ago", receiver, d.From, words.Duration(d.Seconds)))
	}
	step := fmt.Sprintf("allow UDP and TCP port 2718 from %s in the firewall of the host of rank %d (nft list "+
		"ruleset), and check the routes in both directions", hostOf(v.address(sender)), receiver)
	if everHeard(knows) && knows.Transport == state.TransportTCP {
		step += fmt.Sprintf("; a firewall between them may have forgotten the TCP connection: restart rank %d "+
			"if it does "+
			"not reconnect", sender)
	}
	return proof{reason: why, evidence: evidence, rank: &sender, step: step}
}
