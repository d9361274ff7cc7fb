package mpe

// ResetCollectives drops what the members of communicators have agreed on, and the aborts of
// calls that were not made here. It is for a rank that programs use one after another: the
// communicators of the next program may have the same numbers and other members, and its
// peers may have been restarted, and have to agree again. Calls that wait until their
// members have agreed are not changed.
func (e *Engine) ResetCollectives() {
	e.lock()
	defer e.unlock()
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
		x.cancelAll()
		x.end(nil) // no program has made it
	}
	e.commEpoch = 0 // the next program's communicators get another one
	for _, p := range e.peers {
		if p != nil {
			p.retractAborts()
		}
	}
	e.flush()
}
