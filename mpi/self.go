package mpi

// selfNumber is the number of each rank's Self. New gives the numbers after it to other communicators.
const selfNumber = numberStep

// Self returns the communicator that consists of the calling rank alone (MPI_COMM_SELF, section 7.3.1). All
// communicators of a world share it. It cannot be freed; Finalize first deletes its attributes. Self returns nil if c
// is nil.
func (c *Comm) Self() *Comm {
	if c == nil {
		return nil
	}
	p := c.proc
	p.selfOnce.Do(func() {
		me := p.dev.Rank()
		p.self = p.newIntracomm(selfNumber, &Group{ranks: []int{me}, self: me}, "self")
	})
	return p.self
}
