package main

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/node"
)

// forgetPeerState discards the saved state of a peer. Otherwise, the next process that runs the configured rank would
// use this state. It replaces AnyRank in the request by the lowest rank with run: host.
func forgetPeerState(file string, req *query.Request) error {
	cfg, err := config.Load(file)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return err
	}
	if req.Rank == control.AnyRank {
		req.Rank = 0
		for _, r := range slices.Backward(cfg.Ranks) {
			if r.Run == config.RunHost {
				req.Rank = r.Rank
			}
		}
	}
	self := cfg.Rank(req.Rank)
	if self == nil || cfg.Rank(req.Peer) == nil || req.Rank == req.Peer {
		return control.Errorf(control.Usage, "%s has no ranks %d and %d", file, req.Rank, req.Peer)
	}
	self.Run = config.RunHost
	was, err := node.ForgetState(cfg, self, req.Peer)
	if err == nil && !was {
		err = fmt.Errorf("there is no saved state of rank %d for rank %d of %s", req.Peer, req.Rank, file)
	}
	return err
}
