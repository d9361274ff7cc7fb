package extended

// RecvState describes an inbound message that has begun and is not complete.
type RecvState struct {
	Wait
	Comm, Tag uint32
}

// EachRecv calls yield for every inbound message that has begun and is not complete, in order, until yield returns
// false.
func (c *Conn) EachRecv(yield func(RecvState) bool) {
	for m := c.recvs.first; m != nil; m = m.next {
		if !m.isComplete() && !yield(RecvState{Wait: c.recvs.describeWait(m), Comm: m.comm, Tag: m.tag}) {
			return
		}
	}
}
