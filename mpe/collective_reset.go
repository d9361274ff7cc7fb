package mpe

// resetCollectives is Engine.ResetCollectives.
func (e *core) resetCollectives() {
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
