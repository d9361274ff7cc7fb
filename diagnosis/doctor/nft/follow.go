package nft

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
)

// Hook is where a packet meets the rules.
type Hook string

// The hooks: a packet that this host receives, and one that it sends.
const (
	Input  Hook = "input"
	Output Hook = "output"
)

// hooks are those of nftables at which such a packet is seen.
func (h Hook) hooks() []string {
	if h == Input {
		return []string{"prerouting", "input"}
	}
	return []string{"output", "postrouting"}
}

// Packet is the first packet of a connection.
type Packet struct {
	Hook      Hook
	Transport string // udp or tcp
	From, To  netip.AddrPort
	// Interface is the one that receives or sends it; empty if unknown.
	Interface string
}

// Accept returns the rule that accepts the packet, as the program nft takes it.
func (p *Packet) Accept() string {
	family := "ip"
	if !p.From.Addr().Is4() {
		family = "ip6"
	}
	if p.Hook == Input {
		return fmt.Sprintf("%s saddr %v %s dport %d accept", family, p.From.Addr(), p.Transport, p.To.Port())
	}
	return fmt.Sprintf("%s daddr %v %s sport %d accept", family, p.To.Addr(), p.Transport, p.From.Port())
}

// Result is what becomes of a packet.
type Result string

// The results.
const (
	Passes  Result = "passes"
	Dropped Result = "dropped"
	// Depends: on something that this package does not know.
	Depends Result = "depends"
)

// Verdict is what becomes of a packet, and where that is decided.
type Verdict struct {
	Result Result
	// At is the rule or policy in words; empty for a packet that passes. Chain names its base chain as nft does.
	At, Chain string
}

// Follow returns what becomes of a packet.
func (s *Ruleset) Follow(p *Packet) Verdict {
	depends := Verdict{Result: Passes}
	for _, c := range s.base {
		if !slices.Contains(p.Hook.hooks(), c.hook) || !p.meets(c.family) {
			continue
		}
		w := walk{set: s, packet: p}
		end, at := w.chain(c, 0)
		if (end == goesOn || end == leaves) && c.policy == "drop" {
			end, at = drops, fmt.Sprintf("the policy of chain %v", c.chainKey)
		}
		switch {
		case end == drops && w.mayAccept == "":
			return Verdict{Dropped, at, c.String()}
		case end == drops && depends.Result == Passes:
			depends = Verdict{Depends, w.mayAccept, c.String()}
		case end != drops && w.mayDrop != "" && depends.Result == Passes:
			depends = Verdict{Depends, w.mayDrop, c.String()}
		}
	}
	return depends
}

// meets reports whether the packet meets chains of a family.
func (p *Packet) meets(family string) bool {
	return family == "inet" || family == "ip" && p.From.Addr().Is4() || family == "ip6" && p.From.Addr().Is6()
}

// end is how a rule or chain ends for a packet.
type end uint8

const (
	goesOn end = iota // with the next rule
	accepts
	drops
	returns
	leaves // the chain: the target of a goto has ended
)

// walk follows a packet through a base chain.
type walk struct {
	set    *Ruleset
	packet *Packet
	// mayAccept and mayDrop are the first rules that do so, or jump, under conditions that are not known.
	mayAccept, mayDrop string
}

// maxDepth bounds jumps, as the kernel does.
const maxDepth = 16

func (w *walk) chain(c *chain, depth int) (e end, at string) {
	for i := range c.rules {
		e, at = w.rule(c, &c.rules[i], depth)
		switch e {
		case goesOn:
			continue
		case returns:
			return goesOn, ""
		}
		return e, at
	}
	return goesOn, ""
}

// rule applies a rule: its statements in order, until a condition does not hold.
func (w *walk) rule(c *chain, r *rule, depth int) (e end, at string) {
	at = fmt.Sprintf("rule %d of chain %v", r.handle, c.chainKey)
	holds := yes
	for _, statement := range r.statements {
		for kind, body := range statement {
			switch kind {
			case "match":
				holds = min(holds, w.match(c, body))
			case "limit", "xt", "socket", "osf", "synproxy", "quota", "tproxy", "queue", "ct count":
				holds = min(holds, maybe)
				if kind == "xt" || kind == "queue" { // it may be a target
					w.may(drops, at)
				}
			case "vmap":
				e, at = w.verdictMap(c, body, holds, depth, at)
			case "accept", "drop", "reject", "return", "jump", "goto":
				e, at = w.verdict(c, kind, body, holds, depth, at)
			}
			if holds == no {
				return goesOn, ""
			}
			if e != goesOn {
				return e, at
			}
		}
	}
	return goesOn, ""
}

// may notes that the packet may end so.
func (w *walk) may(e end, at string) {
	switch {
	case e == drops && w.mayDrop == "":
		w.mayDrop = at
	case e == accepts && w.mayAccept == "":
		w.mayAccept = at
	}
}

// verdict applies a verdict under a condition that holds, or may hold.
func (w *walk) verdict(c *chain, kind string, body json.RawMessage, holds truth, depth int, at string) (end, string) {
	var e end
	switch kind {
	case "accept":
		e = accepts
	case "drop", "reject":
		e = drops
	case "return":
		e = returns
	default:
		var to struct{ Target string }
		if json.Unmarshal(body, &to) != nil {
			w.may(drops, at)
			return goesOn, ""
		}
		target := w.set.chains[chainKey{c.family, c.table, to.Target}]
		if target == nil || depth >= maxDepth {
			w.may(drops, at)
			return goesOn, ""
		}
		switch e, at = w.chain(target, depth+1); {
		case e == goesOn && kind == "goto":
			e = leaves
		case e == leaves && kind == "jump":
			e = goesOn
		}
	}
	if holds == maybe {
		if e == returns || e == leaves { // what follows may be skipped
			w.may(accepts, at)
			return goesOn, ""
		}
		w.may(e, at)
		return goesOn, ""
	}
	return e, at
}

// verdictMap applies a map from values to verdicts.
func (w *walk) verdictMap(c *chain, body json.RawMessage, holds truth, depth int, at string) (end, string) {
	var m struct{ Key, Data json.RawMessage }
	if json.Unmarshal(body, &m) != nil {
		w.may(drops, at)
		return goesOn, ""
	}
	for _, element := range w.elements(c, m.Data) {
		var pair [2]json.RawMessage
		var verdict map[string]json.RawMessage
		if json.Unmarshal(element, &pair) != nil || json.Unmarshal(pair[1], &verdict) != nil {
			w.may(drops, at)
			continue
		}
		hit := min(holds, w.compare(c, "==", m.Key, pair[0]))
		if hit == no {
			continue
		}
		for kind, body := range verdict {
			if e, at := w.verdict(c, kind, body, hit, depth, at); e != goesOn {
				return e, at
			}
		}
	}
	return goesOn, ""
}
