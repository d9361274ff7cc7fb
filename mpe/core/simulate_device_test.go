package core_test

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// simulatedRank is a simulated rank that implements mpe.Device.
type simulatedRank struct {
	mpe.BasicDevice
	*core.SimulatedDevice
}

// devices returns the ranks of a simulated cluster.
func devices(s *core.Simulated) []mpe.Device {
	var all []mpe.Device
	for _, d := range s.Devices() {
		all = append(all, simulatedRank{SimulatedDevice: d})
	}
	return all
}

// Start implements mpe.Device.
func (d simulatedRank) Start(op mpe.Operation) (mpe.Op, error) {
	o, err := d.SimulatedDevice.Start(op)
	if err != nil {
		return nil, err // avoids a nil pointer in an mpe.Op
	}
	return o, nil
}

// StartCollective implements mpe.Device.
func (d simulatedRank) StartCollective(c *collective.Operation) (mpe.Op, error) {
	o, err := d.SimulatedDevice.StartCollective(c)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Send sends a message as Engine.Send does, with tag 0 in the world.
func (d simulatedRank) Send(ctx context.Context, dst int, data []byte, _ mpe.Options) (mpe.Status, error) {
	return d.run(ctx, mpe.Operation{Kind: mpe.OpSend, Peer: dst, Buf: data})
}

// Recv receives a message with tag 0 in the world.
func (d simulatedRank) Recv(ctx context.Context, src int, buf []byte, _ mpe.Options) (mpe.Status, error) {
	return d.run(ctx, mpe.Operation{Kind: mpe.OpRecv, Peer: src, Buf: buf})
}

func (d simulatedRank) run(ctx context.Context, op mpe.Operation) (mpe.Status, error) {
	o, err := d.Start(op)
	if err != nil {
		return mpe.Status{}, err
	}
	defer o.Free()
	st, err := o.Await(ctx)
	return *st, err
}
