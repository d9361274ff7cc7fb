package handshake_test

import (
	"encoding/binary"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/handshake/cpumodel"
)

// cpu is an endpoint that uses the model of upstream's CPU library, with its flaws. It executes one blocking operation
// at a time, in program order.
type cpu struct {
	m    *cpumodel.Model
	peer int
	ops  []*cpuOp
	at   int  // the operation in progress
	busy bool // it has begun
}

type cpuOp struct {
	result
	send  bool
	words []uint32
	count int
	after time.Duration
}

func newCPU(rank, peer int) *cpu {
	return &cpu{m: cpumodel.New(cpumodel.Config{Rank: rank, Peers: []int{peer}}), peer: peer}
}

func (c *cpu) add(op *cpuOp) func() result {
	c.ops = append(c.ops, op)
	return func() result { return op.result }
}

func (c *cpu) party() *party {
	return &party{
		endpoint: c,
		send: func(data []byte) func() result {
			op := &cpuOp{send: true, words: make([]uint32, len(data)/4)}
			for i := range op.words {
				op.words[i] = binary.LittleEndian.Uint32(data[i*4:])
			}
			return c.add(op)
		},
		recv: func(words int) func() result { return c.add(&cpuOp{count: words}) },
		broken: func() string {
			why, _ := c.m.Crashed()
			return why
		},
	}
}

func (c *cpu) start(now time.Duration) {
	for c.at < len(c.ops) {
		op := c.ops[c.at]
		if _, crashed := c.m.Crashed(); crashed || c.m.Busy() {
			return
		}
		if !c.busy {
			if op.after > now {
				return
			}
			var err error
			if op.send {
				err = c.m.Send(now, c.peer, op.words)
			} else {
				err = c.m.Recv(now, c.peer, op.count)
			}
			if err != nil {
				panic(err)
			}
			c.busy = true
			continue
		}
		words, _ := c.m.Result()
		for _, w := range words {
			op.data = binary.LittleEndian.AppendUint32(op.data, w)
		}
		op.done, c.busy = true, false
		c.at++
	}
}

func (c *cpu) datagram(now time.Duration, b []byte) { c.m.Datagram(now, c.peer, b) }
func (c *cpu) tick(now time.Duration)               { c.m.Tick(now) }
func (c *cpu) stall(now, d time.Duration)           { c.m.Stall(now, d) }

func (c *cpu) next() (time.Duration, bool) {
	at, ok := c.m.NextEvent()
	if c.at < len(c.ops) && !c.busy && (!ok || c.ops[c.at].after < at) {
		return c.ops[c.at].after, true
	}
	return at, ok
}

func (c *cpu) out() [][]byte {
	var bs [][]byte
	for _, p := range c.m.TakePackets() {
		bs = append(bs, p.Bytes)
	}
	return bs
}

// hostToCPU returns the configuration of a host whose peer is an upstream CPU rank.
func hostToCPU() handshake.Config { return hostTo(1, handshake.CPUPeer()) }
