package mpe_test

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// TestAnySourceOverProfiles checks that receives from any source get messages from peers of each profile.
func TestAnySourceOverProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(4)
		var engines []*mpe.Engine
		hs := func(p protocol.Profile) mpe.Peer {
			return mpe.Peer{Handshake: handshake.Config{Profile: p, Shape: protocol.CPUShape(),
				Timing: handshake.DefaultTiming(handshake.PeerRules{}), MaxWords: 1 << 20}}
		}
		for rank := range 4 {
			cfg, tr := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 4)}, net.Transport(rank)
			for p := range 4 {
				switch max(rank, p) {
				case 1:
					cfg.Peers[p] = hs(protocol.CloudFPGA)
				case 2:
					cfg.Peers[p] = hs(protocol.V09)
				default:
					cfg.Peers[p].Extended = &extended.Config{Seed: uint64(4*rank + p + 1)}
				}
				if rank > 0 && p > 0 {
					cfg.Peers[p] = hs(protocol.CloudFPGA)
				}
				cfg.Peers[p].Transport = tr
			}
			e, err := mpe.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			engines = append(engines, e)
		}
		c := &cluster{t: t, net: net, engines: engines}
		defer c.close()
		for i, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}} {
			var bufs [3][]byte
			var ops []mpe.Op
			for j := range 3 {
				bufs[j] = make([]byte, 4000)
				ops = append(ops, start(t, engines[0],
					mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: mpe.AnyTag, Buf: bufs[j],
						AnyDatatype: true}))
			}
			for j, src := range order {
				tag := 0
				if src > 1 {
					tag = 10*src + i
				}
				data := pattern(4*(100+src), uint64(src))
				if _, err := engines[src].Send(t.Context(), 0, data, mpe.Options{Tag: tag}); err != nil {
					t.Fatal(err)
				}
				st, err := ops[j].Await(t.Context())
				if err != nil || st.Peer != src || st.Tag != tag || st.Bytes != int64(len(data)) ||
					!bytes.Equal(bufs[j][:len(data)], data) {
					t.Fatalf("from %d: %+v, %v", src, st, err)
				}
			}
		}
	})
}

// TestV09MatchesByTag checks that v0.9 carries tags: receives that are posted in a different order from the sends
// get the right messages, as far as one handshake at a time permits.
func TestV09MatchesByTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), func(h *handshake.Config) { h.Profile = protocol.V09 })
		defer c.close()
		var recvs [3]*mpe.Request
		var bufs [3][]byte
		for i, tag := range []int{3, 1, 2} {
			bufs[i] = make([]byte, 4)
			recvs[i], _ = c.engines[1].Irecv(0, bufs[i], mpe.Options{Tag: tag})
		}
		for _, tag := range []int{1, 2, 3} {
			if _, err := c.engines[0].Send(t.Context(), 1, words(1, uint32(tag)), mpe.Options{Tag: tag}); err != nil {
				t.Fatal(err)
			}
		}
		for i, tag := range []int{3, 1, 2} {
			if st, err := recvs[i].Wait(t.Context()); err != nil || st.Tag != tag ||
				!bytes.Equal(bufs[i], words(1, uint32(tag))) {
				t.Errorf("tag %d: %+v, %v", tag, st, err)
			}
		}
	})
}
