package daemon

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// port gives callers of the control socket access to a host rank. It splits sends into pieces of the link's
// max_message_words. A receive returns one message, or one piece of a split message.
type port struct {
	*mpe.Engine
	log   *zap.Logger
	links func() []node.Link // returns the current links
	limit int                // maximum message length in words
	peers []portPeer
	// explain adds what the daemon knows about the cause to the error of an operation.
	explain func(error) error
}

type portPeer struct {
	// sendToken holds a token while the pieces of a message are being sent, so that the pieces of two messages never
	// interleave.
	sendToken chan struct{}
	// tagNoted is set once the daemon has logged that it does not send tags to this peer.
	tagNoted atomic.Bool
}

var _ control.Port = (*port)(nil)

func newPort(log *zap.Logger, engine *mpe.Engine, links func() []node.Link, limit int,
	explain func(error) error) *port {
	p := &port{Engine: engine, log: log, links: links, limit: limit, peers: make([]portPeer, engine.Size()),
		explain: explain}
	for i := range p.peers {
		p.peers[i].sendToken = make(chan struct{}, 1)
	}
	return p
}

// MaxWords implements control.Port.
func (p *port) MaxWords() int { return p.limit }

// PieceWords implements control.Port.
func (p *port) PieceWords(peer int) int {
	if peer < 0 || peer >= len(p.peers) {
		return 0
	}
	return p.links()[peer].MaxMessageWords
}

// Recv receives a message from rank src.
func (p *port) Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error) {
	st, err := p.Engine.Recv(ctx, src, buf, opts)
	if err != nil {
		err = p.explain(err)
	}
	return st, err
}

// Send sends data to rank dst, split into pieces if the link sets max_message_words.
func (p *port) Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error) {
	p.noteTag(dst, opts)
	st, err := p.sendPieces(ctx, dst, data, opts)
	if err != nil {
		err = p.explain(err)
	}
	return st, err
}

// sendPieces sends a message in pieces if the link has a max_message_words. It waits until the pieces of another
// message to the peer are sent. If it fails, the peer may have received some pieces.
func (p *port) sendPieces(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error) {
	piece := p.PieceWords(dst) * protocol.WordLen
	if piece == 0 {
		return p.Engine.Send(ctx, dst, data, opts)
	}
	select {
	case p.peers[dst].sendToken <- struct{}{}:
		defer func() { <-p.peers[dst].sendToken }()
	case <-ctx.Done():
		return mpe.Status{}, fmt.Errorf("rank %d: send to rank %d: another message to it is in progress: %w", p.Rank(),
			dst, context.Cause(ctx))
	}
	st, err := p.Engine.Send(ctx, dst, data[:min(piece, len(data))], opts)
	for off := piece; err == nil && off < len(data); off += piece {
		var next mpe.Status
		next, err = p.Engine.Send(ctx, dst, data[off:min(off+piece, len(data))], opts)
		if err != nil {
			return st, fmt.Errorf("after %d of %d words: %w", off/protocol.WordLen, len(data)/protocol.WordLen, err)
		}
		st = control.JoinStatus(st, next)
	}
	return st, err
}

// noteTag logs, once per peer, that the profile of the peer cannot carry the tag of a message.
func (p *port) noteTag(peer int, opts mpe.Options) {
	if opts.Tag == 0 || peer < 0 || peer >= len(p.peers) || p.links()[peer].Profile != protocol.CloudFPGA {
		return
	}
	if p.peers[peer].tagNoted.CompareAndSwap(false, true) {
		p.log.Info("tag not sent, profile cloudfpga has no tags and messages match by their order",
			zap.Int("rank", p.Rank()), zap.Int("peer", peer), zap.Int("tag", opts.Tag))
	}
}
