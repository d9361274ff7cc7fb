package mpe

// MayRest reports whether a send that Post has returned may be left to the engine. It does not change later.
func (r *Request) MayRest() bool { return r.core.MayRest }

// Rest leaves a send to the engine, which MayRest was true for or Wake has returned, whether it has ended or not. The
// Request is the engine's then, and its payload stays in the caller's buffer. The number of a send stays the same.
func (e *Engine) Rest(r *Request, o *Origin) Resting {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.core.Rests.Keep(&r.core, o)
}

// Wake returns the Request of a send that was left, what it was posted for, and its origin. It is to be left again, or
// freed and then forgotten. It is nil if the send was forgotten or is awake.
func (e *Engine) Wake(n Resting) (*Request, Operation, *Origin) {
	e.lock()
	defer e.unlock()
	c, o := e.core.Rests.Wake(n)
	if c == nil {
		return nil, Operation{}, nil
	}
	r := requestOf(c)
	r.e = e
	r.ended.Store(c.Over)
	return r, c.Operation(), o
}

// Pending reports whether a send that was left has not ended, and is not awake.
func (e *Engine) Pending(n Resting) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.core.Rests.Pending(n)
}

// Forget ends the use of a number, and reports whether it was in use. A send that has not ended goes on, and its
// outcome is dropped.
func (e *Engine) Forget(n Resting) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.core.Rests.Forget(n)
}
