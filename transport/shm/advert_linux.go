package shm

// advertisedBuffer is a message that the peer advertises.
type advertisedBuffer struct {
	// number identifies the advertised buffer among all buffers that the peer has ever advertised.
	number uint64
	remotePayload
}

// storeAdvert stores an advertised buffer until another one occupies its slot. It returns the buffer's number, or 0 if
// this rank cannot read the peer's memory.
func (l *link) storeAdvert(payload remotePayload) uint64 {
	if !l.canFetch {
		return 0
	}
	p := l.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advertCount++
	o := advertisedBuffer{number: p.advertCount*advertSlots + uint64(payload.slot()), remotePayload: payload}
	l.advertBuffers[payload.slot()] = o
	return o.number
}

// Get copies the first len(dst) bytes of a message that peer advertises. It is safe for concurrent use. It returns
// false, with undefined contents of dst, if the message is no longer available, if its pages are not resident, or if
// the Conn is pipelined and should use the ring because the peer polls and is near. A message is available until the
// first call of Get or the end of its link.
func (c *Conn) Get(peer int, advertised uint64, dst []byte) bool {
	p, err := c.peer(peer)
	if err != nil {
		return false
	}
	// mu keeps the link's memory mapped.
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.link
	if l == nil || l.untrusted || c.cfg.Pipelined && l.peerDoorbell.asleepFlag().Load() == 0 && l.peerFarFlag.Load() == 0 {
		return false
	}
	buffer := &l.advertBuffers[advertised%advertSlots]
	if advertised == 0 || buffer.number != advertised || uint64(len(dst)) > buffer.payloadLen {
		return false
	}
	// If the payload is not resident, the caller requests the message instead.
	if !buffer.isValid() || !p.reader.resident(l.pages, buffer.addr, len(dst)) {
		return false
	}
	err = p.reader.readResident(&l.remote, dst, buffer.addr)
	if !buffer.confirmCopy() {
		return false
	}
	// The caller requests the message instead. If that copy fails as well, the link is closed.
	l.untrusted = err != nil
	return err == nil
}
