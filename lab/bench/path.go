package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/udp"
)

// minPathShare is the share of datagrams, in each direction, that must use the path of a rank.
const minPathShare = 0.99

// pathRank is a rank with a configured path, whose datagrams are counted.
type pathRank struct {
	*mpe.Engine
	rank *node.Rank
}

// openWithPath opens a rank like node.OpenFile, but with the path of its links.
func openWithPath(file string, rank int) (*pathRank, error) {
	cfg, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	for i := range cfg.Ranks {
		if cfg.Ranks[i].Rank != rank {
			cfg.Ranks[i].Run = "" // another process runs it
		}
	}
	r, err := node.Plan(cfg, cfg.Rank(rank))
	if err != nil {
		return nil, err
	}
	r.OpenPath = func(config.Path) udp.OpenPath { return openXDP }
	m, err := node.RankMap(cfg)
	if err == nil {
		err = r.Bind(m)
	}
	if err == nil {
		err = r.Start(nil)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close(context.Background()))
	}
	return &pathRank{r.Engine, r}, nil
}

// Close ends the rank.
func (r *pathRank) Close(ctx context.Context) error { return r.rank.Close(ctx) }

// count implements session.countPath.
func (r *pathRank) count() (end func(step) (note string, err error)) {
	info := r.rank.Info(state.DetailScrape)
	if info.Path == nil { // path: kernel
		return func(step) (string, error) { return "", nil }
	}
	// The counters of the path are read first here and last at the end, so that a packet in transit at either moment does
	// not count as one outside the path.
	before := pathCounts{path: *info.Path, engine: r.countPackets()}
	return func(st step) (string, error) {
		now := pathCounts{engine: r.countPackets()}
		now.path = *r.rank.Info(state.DetailScrape).Path
		return now.since(&before).check(st)
	}
}

// directions holds a number for each direction.
type directions struct{ sent, received uint64 }

// countPackets returns the number of datagrams of the engine.
func (r *pathRank) countPackets() (n directions) {
	r.Counters(func(*state.RankCounters) {}, func(c *state.PeerCounters) {
		for t := range c.PacketsOut {
			n.sent += c.PacketsOut[t]
			n.received += c.PacketsIn[t]
		}
	})
	return n
}

// pathCounts holds the counters of a path and of the engine that uses it.
type pathCounts struct {
	path   state.Path
	engine directions
}

// since returns the counts since an earlier moment.
func (c pathCounts) since(before *pathCounts) *pathCounts {
	c.path.Sent -= before.path.Sent
	c.path.Received -= before.path.Received
	c.path.Bypassed -= before.path.Bypassed
	c.path.Long -= before.path.Long
	c.path.Corrupt -= before.path.Corrupt
	c.path.Full -= before.path.Full
	c.engine.sent -= before.engine.sent
	c.engine.received -= before.engine.received
	return &c
}

// check returns an error if fewer than minPathShare of a step's datagrams used the path. For messages in several
// datagrams, it returns a note instead if the path had no problem, because the transport then chose the socket.
func (c *pathCounts) check(st step) (note string, err error) {
	sent, received := share(c.path.Sent, c.engine.sent), share(c.path.Received, c.engine.received)
	if min(sent, received) >= minPathShare {
		return "", nil
	}
	text := fmt.Sprintf("%s: of the datagrams, %.1f %% of %d sent and %.1f %% of %d received used AF_XDP",
		formatSize(st.n), 100*sent, c.engine.sent, 100*received, c.engine.received)
	p := &c.path
	if p.Long == 0 || p.Corrupt+p.Full > 0 || len(p.ByKernel) > 0 {
		return "", fmt.Errorf("%s: %d bypassed it, %d were corrupt, %d found its ring full; refused peers: %v", text,
			p.Bypassed, p.Corrupt, p.Full, p.ByKernel)
	}
	return text + ": the transport chose the kernel's socket for the others", nil
}

// share returns part / whole, or 0 without a whole.
func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
