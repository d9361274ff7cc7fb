package collcheck

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// Data holds the buffers of one rank.
type Data struct {
	Send, Recv      []byte
	scratch, shared []byte
}

// Execute runs the schedules of all ranks on data. combine is the operation on whole elements.
func Execute(a *coll.Algorithm, calls []coll.Call, data []Data, combine op.Func) error {
	programs, err := Programs(a, calls)
	if err != nil {
		return err
	}
	m := &dataMemory{data: make([]Data, len(data)), op: combine}
	copy(m.data, data)
	for i := range programs {
		m.data[i].scratch, m.data[i].shared = make([]byte, programs[i].Scratch), make([]byte, calls[i].Shared)
	}
	if programs[0].InOrder {
		return newSharedSim(programs, m, calls[0].Shared).run()
	}
	return newSimulation(programs, m, 0, false).run()
}

// dataMemory is the memory of Execute.
type dataMemory struct {
	data []Data
	op   op.Func
}

// view returns n bytes of a rank's buffer. A Blank buffer has 0 bytes.
func (m *dataMemory) view(rank int, at coll.Loc, n int) ([]byte, error) {
	data := &m.data[rank]
	var b []byte
	switch at.Buf {
	case coll.SendBuf:
		b = data.Send
	case coll.RecvBuf:
		b = data.Recv
	case coll.Scratch:
		b = data.scratch
	case coll.Shared:
		b = data.shared
	}
	if at.Off < 0 || n < 0 || at.Off > len(b)-n {
		return nil, fmt.Errorf("%d bytes at %d of the %v, which has %d", n, at.Off, at.Buf, len(b))
	}
	return b[at.Off : at.Off+n], nil
}

func (m *dataMemory) move(fromRank int, from coll.Loc, rank int, into coll.Loc, n int) error {
	if from.Buf == coll.Blank && into.Buf == coll.Blank {
		return nil
	}
	src, err := m.view(fromRank, from, n)
	if err != nil {
		return err
	}
	dst, err := m.view(rank, into, n)
	if err != nil {
		return err
	}
	copy(dst, src)
	return nil
}

// reduce combines step.From of one rank with step.Into of another. In a StepReduceRight, the operands are exchanged,
// for operations that are not commutative; the contents of From are then lost.
func (m *dataMemory) reduce(fromRank, rank int, step *coll.Step) error {
	from, with, into, err := operands(m.view, fromRank, rank, step)
	if err != nil {
		return err
	}
	if step.Kind == coll.StepReduce {
		m.op(into, from, with)
		return nil
	}
	m.op(into, into, from)
	clear(from)
	return nil
}
