package mpi

// selfNumber is the number of each rank's Self. New has the numbers of other communicators begin behind it.
const selfNumber = numberStep

// Self returns the communicator of the calling rank alone (MPI_COMM_SELF, section 7.3.1): the same one for all communicators of a
// world. It cannot be freed. Finalize deletes its attributes before it does anything else. It is nil if c is.
func (c *Comm) Self() *Comm {
	if c == nil {
		return nil
	}
	p := c.p
	p.selfOnce.Do(func() {
		me := p.dev.Rank()
		p.self = p.comm(selfNumber, &Group{ranks: []int{me}, self: me}, "self")
	})
	return p.self
}
