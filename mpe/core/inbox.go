package core

import "github.com/zrlmpi/zrlmpid/extended"

// inbox holds the messages from a peer that have begun to arrive. Most messages consist of one packet and end
// before the next message begins, so the map is rarely needed.
type inbox struct {
	num  extended.Message
	in   *inbound // or nil
	rest map[extended.Message]*inbound
}

func (b *inbox) add(num extended.Message, in *inbound) {
	if b.in != nil {
		if b.rest == nil {
			b.rest = map[extended.Message]*inbound{}
		}
		b.rest[b.num] = b.in
	}
	b.num, b.in = num, in
}

func (b *inbox) at(num extended.Message) *inbound {
	if b.in != nil && b.num == num {
		return b.in
	}
	return b.rest[num]
}

func (b *inbox) remove(num extended.Message) {
	if b.in != nil && b.num == num {
		b.in = nil
		return
	}
	delete(b.rest, num)
}

// all yields every message, in any order.
func (b *inbox) all(yield func(*inbound) bool) {
	if b.in != nil && !yield(b.in) {
		return
	}
	for _, in := range b.rest {
		if !yield(in) {
			return
		}
	}
}
