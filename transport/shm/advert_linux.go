package shm

// advertised is a message that the peer advertises.
type advertised struct {
	// number is what the advertised buffer is known by: no other one of the peer's has it.
	number uint64
	away
}

// note keeps an advertised buffer until another one has its slot, and returns its number, or 0 if
// it cannot be taken.
func (l *link) note(a away) uint64 {
	if !l.fetches {
		return 0
	}
	p := l.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adverts++
	o := advertised{number: p.adverts*advertSlots + uint64(a.slot()), away: a}
	l.advertised[a.slot()] = o
	return o.number
}

// Get copies the beginning of a message that peer advertises to dst, as much of it as dst
// has room for. It may be called at any time, by anyone. It reports false if the
// message is not available, or not any more, or is not in the peer's memory now, or if the Conn
// is pipelined and the peer polls and is near, so that both had better copy: then what dst holds is undefined. What is advertised over a link is available as long as
// that lasts, and to the first Get.
func (c *Conn) Get(peer int, advertised uint64, dst []byte) bool {
	p, err := c.peer(peer)
	if err != nil {
		return false
	}
	// Only with mu is the link's memory sure to stay.
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.link
	if l == nil || l.untrusted || c.cfg.Pipelined && l.peerDoorbell.asleep().Load() == 0 && l.peerFar.Load() == 0 {
		return false
	}
	o := &l.advertised[advertised%advertSlots]
	if advertised == 0 || o.number != advertised || uint64(len(dst)) > o.payload {
		return false
	}
	// What is not there will be asked for instead.
	if !o.valid() || !p.reader.resident(l.pages, o.addr, len(dst)) {
		return false
	}
	err = p.reader.readResident(&l.remote, dst, o.addr)
	if !o.confirm() {
		return false
	}
	// The message will be asked for instead. If it cannot be fetched then either, that
	// is the end of the link.
	l.untrusted = err != nil
	return err == nil
}
