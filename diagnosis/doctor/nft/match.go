package nft

import (
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
)

// truth says whether a condition holds for a packet.
type truth uint8

const (
	no truth = iota
	maybe
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// not returns the opposite.
func (t truth) not() truth { return yes - t }

// match evaluates a match statement.
func (w *walk) match(c *chain, body json.RawMessage) truth {
	var m struct {
		Op          string
		Left, Right json.RawMessage
	}
	if json.Unmarshal(body, &m) != nil {
		return maybe
	}
	return w.compare(c, m.Op, m.Left, m.Right)
}

// compare compares what an expression has for the packet with values.
func (w *walk) compare(c *chain, op string, left, right json.RawMessage) truth {
	value, known := w.packet.value(left)
	switch {
	case known == no: // the packet has no such field
		return no
	case known == maybe:
		return maybe
	}
	switch op {
	case "==", "in":
		return w.among(c, value, right)
	case "!=":
		return w.among(c, value, right).not()
	}
	number, err := strconv.Atoi(value)
	var other int
	if err != nil || json.Unmarshal(right, &other) != nil {
		return maybe
	}
	switch op {
	case "<":
		return truthOf(number < other)
	case ">":
		return truthOf(number > other)
	case "<=":
		return truthOf(number <= other)
	case ">=":
		return truthOf(number >= other)
	}
	return maybe
}

// value returns what an expression has for the packet, as text: yes. no: the packet does not have it; maybe: it is not
// known.
func (p *Packet) value(expression json.RawMessage) (string, truth) {
	var e struct {
		Payload struct{ Protocol, Field string }
		Meta    struct{ Key string }
		CT      struct{ Key string } `json:"ct"`
	}
	if json.Unmarshal(expression, &e) != nil {
		return "", maybe
	}
	switch {
	case e.Payload.Protocol != "":
		return p.payload(e.Payload.Protocol, e.Payload.Field)
	case e.CT.Key == "state":
		return "new", yes
	}
	switch e.Meta.Key {
	case "l4proto":
		return p.Transport, yes
	case "nfproto":
		return map[bool]string{true: "ipv4", false: "ipv6"}[p.From.Addr().Is4()], yes
	case "iif", "iifname":
		return p.Interface, p.at(Input)
	case "oif", "oifname":
		return p.Interface, p.at(Output)
	}
	return "", maybe
}

// at says whether the packet has an interface in a direction.
func (p *Packet) at(h Hook) truth {
	switch {
	case p.Hook != h:
		return no
	case p.Interface == "":
		return maybe
	}
	return yes
}

func (p *Packet) payload(protocol, field string) (string, truth) {
	switch protocol {
	case "ip", "ip6":
		if (protocol == "ip") != p.From.Addr().Is4() {
			return "", no
		}
		switch field {
		case "saddr":
			return p.From.Addr().String(), yes
		case "daddr":
			return p.To.Addr().String(), yes
		case "protocol", "nexthdr":
			return p.Transport, yes
		}
	case "udp", "tcp", "th":
		if protocol != "th" && protocol != p.Transport {
			return "", no
		}
		switch field {
		case "sport":
			return strconv.Itoa(int(p.From.Port())), yes
		case "dport":
			return strconv.Itoa(int(p.To.Port())), yes
		}
	case "icmp", "icmpv6", "sctp", "dccp", "udplite", "esp", "ah":
		return "", no
	}
	return "", maybe
}

// elements returns the elements of a value: those of a set, named or not, or itself.
func (w *walk) elements(c *chain, right json.RawMessage) []json.RawMessage {
	var set struct{ Set json.RawMessage }
	if json.Unmarshal(right, &set) == nil && set.Set != nil {
		right = set.Set
	}
	var name string
	if json.Unmarshal(right, &name) == nil && strings.HasPrefix(name, "@") {
		return w.set.sets[chainKey{c.family, c.table, name[1:]}]
	}
	var elements []json.RawMessage
	if json.Unmarshal(right, &elements) == nil {
		return elements
	}
	return []json.RawMessage{right}
}

// among says whether a value is one of others.
func (w *walk) among(c *chain, value string, right json.RawMessage) truth {
	result := no
	for _, element := range w.elements(c, right) {
		result = max(result, equal(value, element))
	}
	return result
}

// equal compares a value with an element: a text, a number, a prefix or a range.
func equal(value string, element json.RawMessage) truth {
	var with struct {
		Elem   struct{ Val json.RawMessage }
		Prefix *struct {
			Addr string
			Len  int
		}
		Range []json.RawMessage
	}
	var text string
	var number int
	switch {
	case json.Unmarshal(element, &text) == nil:
		if before, ok := strings.CutSuffix(text, "*"); ok {
			return truthOf(strings.HasPrefix(value, before))
		}
		return truthOf(value == text)
	case json.Unmarshal(element, &number) == nil:
		if protocol, ok := numbers[number]; ok && value == protocol {
			return yes
		}
		return truthOf(value == strconv.Itoa(number))
	case json.Unmarshal(element, &with) != nil:
		return maybe
	case with.Elem.Val != nil:
		return equal(value, with.Elem.Val)
	case with.Prefix != nil:
		ip, err := netip.ParseAddr(value)
		base, bad := netip.ParseAddr(with.Prefix.Addr)
		if err != nil || bad != nil {
			return maybe
		}
		return truthOf(netip.PrefixFrom(base, with.Prefix.Len).Contains(ip))
	case len(with.Range) == 2:
		return between(value, with.Range[0], with.Range[1])
	}
	return maybe
}

// numbers are those of the transports.
var numbers = map[int]string{6: "tcp", 17: "udp"}

func between(value string, low, high json.RawMessage) truth {
	var from, to int
	if json.Unmarshal(low, &from) == nil && json.Unmarshal(high, &to) == nil {
		n, err := strconv.Atoi(value)
		if err != nil {
			return maybe
		}
		return truthOf(n >= from && n <= to)
	}
	var first, last netip.Addr
	ip, err := netip.ParseAddr(value)
	if err != nil || json.Unmarshal(low, &first) != nil || json.Unmarshal(high, &last) != nil {
		return maybe
	}
	return truthOf(ip.Compare(first) >= 0 && ip.Compare(last) <= 0)
}
