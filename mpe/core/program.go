package core

// ProgramEnded implements Engine.ProgramEnded.
func (e *Core) ProgramEnded(clean bool) {
	e.calls.Reset()
	e.matching.dropMatched()
	for p := range e.peers.created {
		if p.extended != nil {
			p.extended.retractAborts()
		} else {
			p.handshake.programEnded(clean)
		}
	}
	e.flush()
}

// dropMatched drops the messages kept for later receives of the same program after the caller of their first receive
// stopped waiting. Each is the oldest message with its source and tag.
func (x *matching) dropMatched() {
	for comm, m := range x.matchers {
		var list []*inbound
		m.EachUnexpected(func(_, _ int32, u unexpected) bool {
			if u.inbound != nil && u.inbound.matchedBefore {
				list = append(list, u.inbound)
			}
			return true
		})
		for _, in := range list {
			x.discard(comm, in.source, int(in.tag))
		}
	}
}

// discard receives and drops the oldest message that has the given source and tag.
func (x *matching) discard(comm uint32, source, tag int) {
	r := x.core.effects.NewRequest()
	x.core.Init(r, &Operation{Kind: OpRecv, Peer: source, Comm: comm, Tag: tag, AnyDatatype: true})
	r.dropsMessage = true
	x.core.nextID++
	r.id, r.posted = x.core.nextID, x.core.now
	_ = x.postRecv(r) // the message is there, so the receive is never queued
}

// noteLeftRecv notes that a receive was cancelled because its program no longer exists.
func noteLeftRecv(e *Core, r *Request) {
	for rank := range e.peers.list {
		if rank != e.rank && (rank == r.peer || r.peer == AnySource) {
			if l := e.peers.at(rank).handshake; l != nil {
				l.noteLeftRecv()
			}
		}
	}
}
