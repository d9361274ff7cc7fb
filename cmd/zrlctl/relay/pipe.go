package relay

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// maxDelayedPieces is the maximum number of pieces of a stream delayed at the same time. At the limit, the sender
// blocks.
const maxDelayedPieces = 1024

// pipe is one direction of a connection.
type pipe struct {
	*streams
	from, to     int
	source, sink *net.TCPConn
	// ctx is done when the connection is closed; cancel resets the connection.
	ctx    context.Context
	cancel context.CancelFunc
	pieces chan piece
}

// piece is a packet or part of one, with the time at which it must be delivered.
type piece struct {
	bytes []byte
	due   time.Time
	// isLast is set if the relay closes this direction of the connection after the piece.
	isLast bool
}

// readLoop reads packets and decides their fate, until the source or the connection is closed.
func (p *pipe) readLoop() {
	defer close(p.pieces)
	in := newSplitter(p.source)
	for {
		kind, b, err := in.nextPiece()
		if err != nil {
			if err != io.EOF { //nolint:errorlint // the splitter returns it as it is
				p.cancel()
			}
			return
		}
		x, resets := p.decideFate(kind, b)
		if resets {
			p.cancel()
			return
		}
		select {
		case p.pieces <- x:
		case <-p.ctx.Done():
			return
		}
		if x.isLast {
			// The source is not notified that this direction is closed, so all that it still sends is discarded.
			_, _ = io.Copy(io.Discard, p.source)
			return
		}
	}
}

// decideFate lets the Impairer decide what happens to a packet. It returns the piece to deliver, and whether to reset
// the connection.
func (p *pipe) decideFate(kind impair.Kind, b []byte) (x piece, resets bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	fate := p.impairer.DecideStream(now.Sub(p.startTime), p.from, p.to, kind, len(b))
	fate.Apply(b)
	x = piece{bytes: b, isLast: fate.Ending == impair.Closes}
	switch {
	case fate.After == impair.Forever:
		x.due = now.Add(foreverDelay)
	case fate.After > 0:
		x.due = now.Add(fate.After)
	}
	return x, fate.Ending == impair.Resets
}

// foreverDelay is a delay longer than any relay runs.
const foreverDelay = 100 * 365 * 24 * time.Hour

// writeLoop delivers each piece when it is due, until the direction or the connection is closed.
func (p *pipe) writeLoop() {
	for x := range p.pieces {
		if !x.due.IsZero() {
			sleep(p.ctx, time.Until(x.due))
		}
		if p.ctx.Err() != nil {
			return
		}
		if _, err := p.sink.Write(x.bytes); err != nil {
			p.cancel()
			return
		}
		if x.isLast {
			break
		}
	}
	if p.ctx.Err() == nil { // otherwise it is reset
		_ = p.sink.CloseWrite() // fails only if the connection is closed
	}
}
