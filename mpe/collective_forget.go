package mpe

// ForgetCollectives forgets what the members of communicators have agreed on. It is for a
// rank that programs use one after another: the next one's communicators may have the
// numbers of these, and other members, and its peers may have been started anew, and want
// to agree. Calls that wait until their members have agreed stay as they are.
func (e *Engine) ForgetCollectives() {
	e.lock()
	defer e.mu.Unlock()
	for comm, a := range e.agreements {
		if len(a.waiting) > 0 {
			continue
		}
		delete(e.agreements, comm)
		x := a.call
		if x == nil {
			continue
		}
		a.call, x.then, x.failed = nil, nil, ErrCancelled
		for len(x.under) > 0 {
			x.giveUp(x.under[len(x.under)-1], ErrCancelled)
		}
		x.end(nil) // nobody has made it
	}
	e.settle()
}
