package handshake_test

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// fpga is an endpoint that uses the model of the deployed MPE, with its flaws. It executes one blocking operation
// at a time, in program order.
type fpga struct {
	m    *mpemodel.Model
	peer int
	ops  []*fpgaOp
	at   int // the operation in progress
	busy bool
}

type fpgaOp struct {
	result
	send  bool
	words []uint32
	count uint32
	after time.Duration
	peer  int
}

var errOverrun = errors.New("the FPGA's buffer was overrun")

func newFPGA(rank, peer int) *fpga {
	return &fpga{m: mpemodel.New(mpemodel.Config{Rank: rank, Peers: []int{0, 1, 2}}), peer: peer}
}

func (f *fpga) add(op *fpgaOp) func() result {
	op.peer = f.peer
	f.ops = append(f.ops, op)
	return func() result { return op.result }
}

func (f *fpga) party() *party {
	return &party{
		endpoint: f,
		send: func(data []byte) func() result {
			op := &fpgaOp{send: true, words: make([]uint32, len(data)/4)}
			for i := range op.words {
				op.words[i] = binary.LittleEndian.Uint32(data[i*4:])
			}
			return f.add(op)
		},
		recv:   func(words int) func() result { return f.add(&fpgaOp{count: uint32(words)}) },
		late:   func(nth int, by time.Duration) { f.ops[nth].after = by },
		broken: func() string { why, _ := f.m.Wedged(); return why },
	}
}

func (f *fpga) start(now time.Duration) {
	for f.at < len(f.ops) {
		op := f.ops[f.at]
		if !f.busy {
			if op.after > now {
				return
			}
			var err error
			if op.send {
				err = f.m.Send(now, op.peer, op.words, protocol.Int)
			} else {
				err = f.m.Recv(now, op.peer, op.count, protocol.Int)
			}
			if err != nil {
				panic(err)
			}
			f.busy = true
		}
		words, overrun, done := f.m.Result()
		if f.m.Busy() || !done {
			return
		}
		op.done, f.busy = true, false
		for _, w := range words {
			op.data = binary.LittleEndian.AppendUint32(op.data, w)
		}
		if overrun {
			op.err = errOverrun
		}
		f.at++
	}
}

func (f *fpga) datagram(now time.Duration, b []byte) { f.m.Datagram(now, f.peer, b) }
func (f *fpga) tick(now time.Duration)               { f.m.Tick(now) }

func (f *fpga) next() (time.Duration, bool) {
	at, ok := f.m.NextEvent()
	if f.at < len(f.ops) && !f.busy && (!ok || f.ops[f.at].after < at) {
		return f.ops[f.at].after, true
	}
	return at, ok
}

func (f *fpga) out() [][]byte {
	var bs [][]byte
	for _, p := range f.m.TakePackets() {
		bs = append(bs, p.Bytes)
	}
	return bs
}
