package core

import "github.com/zrlmpi/zrlmpid/extended"

// inbox holds the messages from a peer that have begun to arrive. Most messages consist of one packet and are complete
// before the next message begins, so the map is rarely needed.
type inbox struct {
	// current is the message that was added last, until it is removed. others holds the earlier ones.
	currentID extended.Message
	current   *inbound // or nil
	others    map[extended.Message]*inbound
}

func (b *inbox) add(num extended.Message, in *inbound) {
	if b.current != nil {
		if b.others == nil {
			b.others = map[extended.Message]*inbound{}
		}
		b.others[b.currentID] = b.current
	}
	b.currentID, b.current = num, in
}

// find returns a message, or nil if it is not in the inbox, for example because it rests.
func (b *inbox) find(num extended.Message) *inbound {
	if b.current != nil && b.currentID == num {
		return b.current
	}
	return b.others[num]
}

func (b *inbox) remove(num extended.Message) {
	if b.current != nil && b.currentID == num {
		b.current = nil
		return
	}
	delete(b.others, num)
}

// each yields every message, in any order.
func (b *inbox) each(yield func(*inbound) bool) {
	if b.current != nil && !yield(b.current) {
		return
	}
	for _, in := range b.others {
		if !yield(in) {
			return
		}
	}
}
