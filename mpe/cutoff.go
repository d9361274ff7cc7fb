package mpe

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// CutOff returns what was under way when Close had no time left, as it was then.
func (e *Engine) CutOff() []Waiting {
	e.lock()
	defer e.unlock()
	return e.cut
}

// moving returns the messages that keep Close waiting. The lock is held.
func (e *Engine) moving() []Waiting {
	now := e.at
	var ws []Waiting
	add := func(w handshake.Wait, text string) {
		ws = append(ws, Waiting{Wait: w, Elapsed: now - w.Since, Text: text})
	}
	for _, p := range e.peers {
		if p == nil || !p.busy() {
			continue
		}
		if p.pair != nil {
			if w, ok := p.pair.SendWait(); ok && w.State == handshake.WaitAck {
				add(w, w.Describe(now))
			}
			if w, ok := p.pair.RecvWait(); ok && (w.State == handshake.WaitData || w.State == handshake.Receiving) {
				add(w, w.Describe(now))
			}
			continue
		}
		n := len(ws)
		p.conn.EachSend(func(st extended.SendState) bool {
			add(sendWait(st), p.describeSend(st, now))
			return true
		})
		for in := range p.ins.all {
			if !in.arrived {
				w := e.recvWait(in)
				add(w, w.Describe(now))
			}
		}
		if len(ws) == n { // not of messages, but of what ends them
			add(handshake.Wait{Local: uint32(e.rank), Remote: uint32(p.rank), Since: now},
				fmt.Sprintf("rank %d has sent rank %d what it has not acknowledged", e.rank, p.rank))
		}
	}
	return ws
}
