package bcast

import (
	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// A message passing engine (MPE) takes a cycle to read a control message and one to compose an
// answer. The crossbar takes one to carry a control message or a word over a hop.
const (
	readCycles    sim.Cycle = 1
	composeCycles sim.Cycle = 1
	hopCycles     sim.Cycle = 1
)

// syncCycles is what one message over one hop takes beside its data: request; read it, compose
// and carry the ready message, read it; compose, carry and read the complete message. It is m of
// equation 2, and α of equation 1.
const syncCycles = hopCycles + readCycles + composeCycles + hopCycles + readCycles + composeCycles + hopCycles + readCycles

// machine is the crossbar with its nodes.
type machine struct {
	clock sim.Clock
	word  int
	nodes []*node
	// ended is when the last operation was complete.
	ended sim.Cycle
}

// node is the MPE of a node. Its issue queue has the operations of a schedule; those that have
// begun hold, one at a time and in order, the port that they receive or send through.
type node struct {
	machine  *machine
	schedule coll.Schedule
	progress coll.Progress
	in, out  sim.FIFO[*operation]
}

// operation is a Send, a Recv or a Fwd: the head, the tail or a node of the body of a path.
type operation struct {
	node   *node
	number int
	step   coll.Step
	// up and down are the operations before and behind this one on its path.
	up, down *operation
	// requested: the request of the node before has arrived.
	requested bool
	// words is how many words have left the head, or have arrived elsewhere.
	words int
}

// issue puts the operations that may begin now into effect.
func (n *node) issue() {
	for {
		step, number, ok := n.progress.Next()
		if !ok {
			return
		}
		o := &operation{node: n, number: number, step: *step}
		if o.step.Sends() {
			n.out.Push(o)
		}
		if o.step.Receives() {
			n.in.Push(o)
		}
		n.request()
		n.accept()
	}
}

// request carries the request of the operation that holds the output port to the next node, if
// that receives from this one now. The request of a Fwd goes on when one has arrived: so the path
// is held from head to tail.
func (n *node) request() {
	if n.out.Len() == 0 {
		return
	}
	o := n.out.Head()
	next := n.machine.nodes[o.step.Dest()]
	if o.down != nil || o.step.Receives() && !o.requested || next.in.Len() == 0 {
		return
	}
	to := next.in.Head()
	if n.machine.nodes[to.step.Peer] != n {
		return
	}
	o.down, to.up = to, o
	n.machine.clock.After(hopCycles, to.onRequest)
}

// accept has the node from which the input port is to receive request again.
func (n *node) accept() {
	if n.in.Len() > 0 {
		n.machine.nodes[n.in.Head().step.Peer].request()
	}
}

func (o *operation) onRequest() {
	o.requested = true
	if o.step.Sends() {
		o.node.request()
		return
	}
	o.node.machine.clock.After(readCycles+composeCycles+hopCycles, o.head().onReady)
}

// head returns the first operation of the path. The path is held, so that control messages pass
// its body in the cycle in which they are sent.
func (o *operation) head() *operation {
	for o.up != nil {
		o = o.up
	}
	return o
}

func (o *operation) onReady() { o.node.machine.clock.After(readCycles, o.sendWord) }

// sendWord sends a word of the head's data in each cycle.
func (o *operation) sendWord() {
	clock := &o.node.machine.clock
	clock.After(hopCycles, o.down.onWord)
	if o.words++; o.words < o.total() {
		clock.After(1, o.sendWord)
	}
}

// onWord stores a word and forwards it in the next cycle.
func (o *operation) onWord() {
	clock := &o.node.machine.clock
	o.words++
	switch {
	case o.step.Sends():
		clock.After(hopCycles, o.down.onWord)
	case o.words == o.total():
		clock.After(composeCycles+hopCycles, o.onComplete)
	}
}

// onComplete ends the operations of the path whose tail is o. The head reads the message first.
func (o *operation) onComplete() {
	for o.up != nil {
		up := o.up
		o.end()
		o = up
	}
	o.node.machine.clock.After(readCycles, o.end)
}

// end leaves the ports to the next operations.
func (o *operation) end() {
	n := o.node
	if o.step.Sends() {
		n.out.Pop()
	}
	if o.step.Receives() {
		n.in.Pop()
	}
	n.machine.ended = n.machine.clock.Now()
	n.progress.Done(o.number)
	n.issue()
	n.request()
	n.accept()
}

// total is how many words the operation moves.
func (o *operation) total() int { return words(o.step.Len, o.node.machine.word) }

func words(bytes, word int) int { return (bytes + word - 1) / word }
