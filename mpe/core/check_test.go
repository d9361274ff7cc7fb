package core

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// TestCheck checks that an operation is refused exactly if the wire cannot carry it.
func TestCheck(t *testing.T) {
	const longest = 1000
	peers := []func(local, remote int) Peer{extendedPeer, software, v09, func(_, _ int) Peer {
		return Peer{Extended: &extended.Config{MaxPayload: 1400, MaxLength: longest}}
	}}
	cluster := func(last int) *Core { // with rank 0, and one peer of each kind up to last
		return newCores(t, 1, last+1, faults{}, func(local, remote int) Peer {
			return peers[max(local,
				remote)](local, remote)
		}).cores[0]
	}
	all := cluster(3)
	const self, cloudFPGA, older, extended = 0, 1, 2, 3
	for _, tt := range []struct {
		op   Operation
		err  error
		text string
	}{
		{op: Operation{Kind: OpSend, Peer: -1}, err: ErrRank,
			text: "rank -1: no such peer: the cluster has ranks 0 to 3"},
		{op: Operation{Kind: OpSend, Peer: 4}, err: ErrRank,
			text: "rank 4: no such peer: the cluster has ranks 0 to 3"},
		{op: Operation{Kind: OpSend, Peer: AnySource}, err: ErrRank},
		{op: Operation{Kind: OpRecv, Peer: AnySource}},
		{op: Operation{Kind: OpRecv, Peer: -2}, err: ErrRank},
		{op: Operation{Kind: OpRecv, Peer: 4}, err: ErrRank},
		{op: Operation{Kind: OpSend, Peer: self}},
		{op: Operation{Kind: OpSend, Peer: self, Tag: math.MaxInt32, Comm: 1, Buf: make([]byte, 3)}},

		{op: Operation{Kind: OpSend, Peer: extended, Tag: -1}, err: ErrTag, text: "tag -1: "},
		{op: Operation{Kind: OpSend, Peer: extended, Tag: math.MaxInt32}},
		{op: Operation{Kind: OpSend, Peer: extended, Tag: math.MaxInt32 + 1}, err: ErrTag,
			text: "it is 0 to 2147483647"},
		{op: Operation{Kind: OpRecv, Peer: extended, Tag: AnyTag}},
		{op: Operation{Kind: OpRecv, Peer: extended, Tag: AnyTag - 1}, err: ErrTag},
		{op: Operation{Kind: OpRecv, Peer: AnySource, Tag: math.MaxInt32 + 1}, err: ErrTag},
		{op: Operation{Kind: OpRecv, Peer: AnySource, Tag: AnyTag}},
		{op: Operation{Kind: OpRecv, Peer: AnySource, Tag: 1}, err: ErrWildcard, text: "tag 1: "},
		{op: Operation{Kind: OpRecv, Peer: AnySource, Tag: 1, Comm: 1}},

		{op: Operation{Kind: OpSend, Peer: extended, Comm: 7, Tag: 256, Buf: make([]byte, longest)}},
		{op: Operation{Kind: OpSend, Peer: extended, Buf: make([]byte, longest+1)}, err: handshake.ErrTooLong,
			text: "1001 bytes to rank 3: "},
		{op: Operation{Kind: OpSendSync, Peer: extended, Buf: make([]byte, longest+1)}, err: handshake.ErrTooLong,
			text: "of 1000 bytes"},
		{op: Operation{Kind: OpRecv, Peer: extended, Buf: make([]byte, longest+1)}},

		{op: Operation{Kind: OpSend, Peer: cloudFPGA, Tag: math.MaxInt32, Buf: make([]byte, 8)}},
		{op: Operation{Kind: OpSend, Peer: cloudFPGA}},
		{op: Operation{Kind: OpSend, Peer: cloudFPGA, Comm: 1}, err: ErrComm, text: "rank 1: "},
		{op: Operation{Kind: OpRecv, Peer: cloudFPGA, Comm: 1}, err: ErrComm},
		{op: Operation{Kind: OpSend, Peer: cloudFPGA, Buf: make([]byte, 9)}, err: ErrLength, text: "9 bytes: "},
		{op: Operation{Kind: OpRecv, Peer: cloudFPGA, Buf: make([]byte, 7)}, err: ErrLength},
		{op: Operation{Kind: OpSend, Peer: older, Tag: 255}},
		{op: Operation{Kind: OpSend, Peer: older, Tag: 256}, err: ErrTag, text: "tag 256: "},
		{op: Operation{Kind: OpRecv, Peer: older, Tag: 256}, err: ErrTag},
	} {
		err := all.Check(&tt.op)
		if !errors.Is(err, tt.err) || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("kind %d, rank %d, tag %d, communicator %d, %d bytes: %v, not %v with %q",
				tt.op.Kind, tt.op.Peer, tt.op.Tag, tt.op.Comm, len(tt.op.Buf), err, tt.err, tt.text)
		}
	}
	peers[1] = peers[3]
	if err := cluster(1).Check(&Operation{Kind: OpRecv, Peer: AnySource, Tag: 1}); err != nil {
		t.Errorf("where all peers carry tags: %v", err)
	}
}
