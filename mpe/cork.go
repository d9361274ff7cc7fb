package mpe

import (
	"time"
)

// A program that posts many sends in a row has them go out together: one system
// call for several packets, which the kernel may even carry as one.

const (
	// corkAfter is how many sends to a peer go out at once, each by itself, before
	// others wait for company. A program that posts a few and then computes for
	// long has them all on their way.
	corkAfter = 4
	// corkMost is how many wait for company at most.
	corkMost = 16
	// corkTime is how long a send waits for company where nothing else happens.
	// That is rare: whoever posts so many soon waits, tests, or is answered.
	corkTime = time.Millisecond
)

// cork reports whether the send that was just posted to an extended peer may wait
// for company.
func (e *Engine) cork(p *peer) bool {
	p.burst++
	if p.burst <= corkAfter || (p.burst-corkAfter)%corkMost == 0 {
		return false
	}
	if !e.corked.Load() {
		e.corked.Store(true)
		if due := int64(e.at + corkTime); due < e.due.Load() {
			e.due.Store(due)
			e.setTimer()
		}
	}
	return true // the peer is touched: whatever settles next sends it
}

// uncork sends what waits for company: its caller wants to see progress.
func (e *Engine) uncork() {
	if !e.corked.Load() {
		return
	}
	e.lock()
	defer e.unlock()
	for _, p := range e.touched {
		p.burst = 0
	}
	e.settle()
}
