package mpe

// ForgetCollectives forgets what the members of communicators have agreed on, and what they
// were told of calls that others have given up. It is for a rank that programs use one
// after another: the next one's communicators may have the numbers of these, and other
// members, and its peers may have been started anew, and want to agree. Calls that wait
// until their members have agreed stay as they are.
func (e *Engine) ForgetCollectives() {
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
		x.abandonAll()
		x.end(nil) // nobody has made it
	}
	e.life = 0 // the next program's communicators get another
	for _, p := range e.peers {
		if p != nil {
			p.retractAborts()
		}
	}
	e.flush()
}
