package core

// ProgramEnded implements Engine.ProgramEnded.
func (e *Core) ProgramEnded(clean bool) {
	e.calls.Reset()
	e.matching.dropMatched()
	for _, p := range e.peers {
		if p != nil {
			if p.extended != nil {
				p.extended.retractAborts()
			} else {
				p.handshake.programEnded(clean)
			}
		}
	}
	e.flush()
}

// dropMatched drops the messages that were matched by receives whose callers then stopped waiting. They were kept
// for later receives of the same program. Each is the oldest message with its source and tag.
func (x *matching) dropMatched() {
	for comm, m := range x.all {
		var list []*inbound
		m.EachUnexpected(func(_, _ int32, u unexpected) bool {
			if u.in != nil && u.in.matchedBefore {
				list = append(list, u.in)
			}
			return true
		})
		for _, in := range list {
			x.discard(comm, in.source, int(in.tag))
		}
	}
}

// discard receives and drops a message, the oldest of its source and tag.
func (x *matching) discard(comm uint32, source, tag int) {
	r := x.c.effects.NewRequest()
	x.c.Init(r, &Operation{Kind: OpRecv, Peer: source, Comm: comm, Tag: tag, AnyDatatype: true})
	r.discards = true
	x.c.nextID++
	r.id, r.posted = x.c.nextID, x.c.at
	_ = x.postRecv(r) // the message is there, so it is never queued
}

// leaveRecv notes that a receive was cancelled because its program no longer exists.
func leaveRecv(e *Core, r *Request) {
	for _, p := range e.peers {
		if p != nil && p.handshake != nil && (p == r.p || r.peer == AnySource) {
			p.handshake.leaveRecv()
		}
	}
}
