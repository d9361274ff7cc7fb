package mpe

// engineResting implements RestingSends for an engine.
type engineResting Engine

// Resting returns the engine's resting sends.
func (e *Engine) Resting() RestingSends { return (*engineResting)(e) }

// MayRest reports whether a send may be handed over to the engine (RestingSends).
func (e *engineResting) MayRest(op Op) bool {
	r, ok := op.(*Request)
	return ok && r.core.MayRest
}

// Rest hands over a send to the engine, which returns a number for it.
func (e *engineResting) Rest(op Op, o *Origin) RestingID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.core.RestingSends.Keep(&op.(*Request).core, o)
}

// Wake returns a resting send to the caller: its Op, its operation and its origin.
func (e *engineResting) Wake(n RestingID) (Op, Operation, *Origin) {
	(*Engine)(e).lock()
	defer (*Engine)(e).unlock()
	request, origin := e.core.RestingSends.Wake(n)
	if request == nil {
		return nil, Operation{}, nil
	}
	r := requestOf(request)
	r.engine = (*Engine)(e)
	r.ended.Store(request.Done)
	return r, request.Operation(), origin
}

// Pending reports whether a send is resting and incomplete.
func (e *engineResting) Pending(n RestingID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.core.RestingSends.Pending(n)
}

// Forget releases a resting send's number, and reports whether it was in use.
func (e *engineResting) Forget(n RestingID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.core.RestingSends.Forget(n)
}
