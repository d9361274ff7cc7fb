package attach

// Sends to a peer are started in the order of their STARTs, which is the order in which
// they are matched, each when its payload is complete. To and from peers that know no
// communicators, messages of collective calls meet by the same order, so a call is
// in the send queues of all of them.

// sendQueue has the sends to a peer, and the calls, that have not been started. None of them
// has ended.
type sendQueue struct{ first, last *place }

// place is that of an operation in a send queue.
type place struct {
	op     *operation
	peer   int32
	behind *place
}

// complete reports whether all of the payload has come.
func (op *operation) complete() bool { return op.got == op.length }

// enter begins an operation, or has it wait for its payload or its place in the queue.
func (s *session) enter(op *operation) {
	if op.complete() && s.first(op) {
		s.begin(op)
		return
	}
	s.enqueue(op)
}

// first reports whether there is no operation that this one must not overtake.
func (s *session) first(op *operation) bool {
	if op.kind != opCall {
		return s.sendQueues[op.peer].first == nil
	}
	if len(s.sendQueues) == 0 {
		return true
	}
	for _, peer := range s.byOrder {
		if s.sendQueues[peer].first != nil {
			return false
		}
	}
	return true
}

// enqueue gives an operation its places.
func (s *session) enqueue(op *operation) {
	if op.kind == opCall {
		op.places = make([]place, 0, len(s.byOrder))
		for _, peer := range s.byOrder {
			op.places = append(op.places, place{op: op, peer: peer})
		}
	} else {
		op.alone[0] = place{op: op, peer: op.peer}
		op.places = op.alone[:]
	}
	for i := range op.places {
		p := &op.places[i]
		l := s.sendQueues[p.peer]
		if l.first == nil {
			l.first = p
		} else {
			l.last.behind = p
			op.ahead++
		}
		l.last = p
		s.sendQueues[p.peer] = l
	}
}

// proceed begins the operations in s.turns whose payload is complete, and those behind
// them that become first.
func (s *session) proceed() {
	for i := 0; i < len(s.ready); i++ {
		if op := s.ready[i]; op.complete() {
			s.dequeue(op)
			s.begin(op)
		}
	}
	clear(s.ready)
	s.ready = s.ready[:0]
}

// dequeue takes an operation out of its send queues. Those that become first are put into
// s.turns.
func (s *session) dequeue(op *operation) {
	for i := range op.places {
		p := &op.places[i]
		l := s.sendQueues[p.peer]
		var before *place
		for at := l.first; at != p; at = at.behind {
			before = at
		}
		if before == nil {
			l.first = p.behind
			if next := p.behind; next != nil {
				if next.op.ahead--; next.op.ahead == 0 {
					s.ready = append(s.ready, next.op)
				}
			}
		} else {
			before.behind = p.behind
		}
		if l.last == p {
			l.last = before
		}
		if l.first == nil {
			delete(s.sendQueues, p.peer)
		} else {
			s.sendQueues[p.peer] = l
		}
	}
	op.places = nil
}
