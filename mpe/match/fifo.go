package match

// enter puts entry i, whose key and seq are set, into the FIFO of its key, at
// the place that its seq gives it: nearly always the end.
func (s nodes) enter(b *bucket, h uint64, i uint32, n *node) {
	first := s.find(b, h, n.key)
	if first == 0 {
		n.next, n.prev = 0, i
		b.place(h, i, n)
		return
	}
	head := s.at(first)
	if n.seq < head.seq {
		s.replace(b, h, first, i)
		n.chain, n.next, n.prev = head.chain, first, head.prev
		head.chain, head.prev = notHead, i
		return
	}
	p := head.prev
	for s.at(p).seq > n.seq {
		p = s.at(p).prev
	}
	after := s.at(p)
	n.chain, n.next, n.prev = notHead, after.next, p
	if n.next != 0 {
		s.at(n.next).prev = i
	} else {
		head.prev = i
	}
	after.next = i
}

// leave takes entry i out of the FIFO of its key.
func (s nodes) leave(b *bucket, h uint64, i uint32, n *node) {
	if n.chain == notHead {
		s.at(n.prev).next = n.next
		if n.next == 0 {
			s.at(s.find(b, h, n.key)).prev = n.prev
		} else {
			s.at(n.next).prev = n.prev
		}
		return
	}
	s.replace(b, h, i, n.next)
	if n.next != 0 {
		head := s.at(n.next)
		head.chain, head.prev = n.chain, n.prev
	}
}
