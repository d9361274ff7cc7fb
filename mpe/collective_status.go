package mpe

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// statusComm is the communicator of the messages by which ranks report how much they
// have to send: messages without payload, whose tag is a coll.Status. No communicator of
// a program has this number.
const statusComm = 1<<32 - 1

// reportStatus fills in what the ranks have reported, if this one is the root; if not,
// it reports its own status to the root if that has changed. Nobody waits for a report:
// it counts from the next call on.
func (e *Engine) reportStatus(c *Collective) {
	call := &c.Call
	if call.Form == coll.OrderFixed {
		return
	}
	if call.Rank == call.Root {
		call.Status = make([]coll.Status, call.Ranks)
		for i, rank := range c.Members {
			if p := e.peers[rank]; p != nil {
				call.Status[i] = p.status
			}
		}
		return
	}
	p := e.peers[c.Members[call.Root]]
	if now := coll.StatusOf(e.left()); now != p.told {
		p.told = now
		id := p.outs.add(&Request{})
		p.outs.at(id).req = nil
		e.xacts = p.conn.Send(e.at, extended.SendOp{ID: id, Comm: statusComm, Tag: uint32(now)}, e.xacts[:0])
		e.actExtended(p, nil)
	}
}

// left is how many bytes of messages there are of which not all was sent, about.
func (e *Engine) left() (bytes int) {
	for _, p := range e.peers {
		if p == nil {
			continue
		}
		for i := range p.outs.slots {
			if o := &p.outs.slots[i]; o.used && !o.out {
				bytes += int(o.length)
			}
		}
	}
	return bytes
}

// reported takes a report.
func (e *Engine) reported(p *peer, in *inbound) {
	p.status = coll.Status(in.tag & 3)
	in.accepted, in.room = true, 0
	e.accepts = append(e.accepts, in)
}
