package relay

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// pipeLen is the maximum number of pieces of a stream that are delayed at the same time. When it is reached, the sender
// blocks.
const pipeLen = 1024

// pipe is one direction of a connection.
type pipe struct {
	*streams
	from, to     int
	source, sink *net.TCPConn
	// ctx is done at the end of the connection; cancel resets the connection.
	ctx    context.Context
	cancel context.CancelFunc
	pieces chan piece
}

// piece is all or part of a packet, and the time at which it is delivered.
type piece struct {
	bytes []byte
	due   time.Time
	// closes is true if the direction ends after this piece.
	closes bool
}

// read reads packets and decides their fate, until the source or the connection ends.
func (p *pipe) read() {
	defer close(p.pieces)
	in := newSplitter(p.source)
	for {
		kind, b, err := in.next()
		if err != nil {
			if err != io.EOF { //nolint:errorlint // the splitter returns it as it is
				p.cancel()
			}
			return
		}
		x, resets := p.decide(kind, b)
		if resets {
			p.cancel()
			return
		}
		select {
		case p.pieces <- x:
		case <-p.ctx.Done():
			return
		}
		if x.closes {
			// The source is not notified. All further data from it is lost.
			_, _ = io.Copy(io.Discard, p.source)
			return
		}
	}
}

// decide asks the Impairer for the fate of a packet. It returns the piece to deliver, and whether to reset the
// connection.
func (p *pipe) decide(kind impair.Kind, b []byte) (x piece, resets bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	fate := p.impairer.Piece(now.Sub(p.begin), p.from, p.to, kind, len(b))
	fate.Apply(b)
	x = piece{bytes: b, closes: fate.Ending == impair.Closes}
	switch {
	case fate.After == impair.Forever:
		x.due = now.Add(forever)
	case fate.After > 0:
		x.due = now.Add(fate.After)
	}
	return x, fate.Ending == impair.Resets
}

// forever is a delay that no relay outlives.
const forever = 100 * 365 * 24 * time.Hour

// write delivers each piece when it is due, until the direction or the connection ends.
func (p *pipe) write() {
	for x := range p.pieces {
		if !x.due.IsZero() {
			pause(p.ctx, time.Until(x.due))
		}
		if p.ctx.Err() != nil {
			return
		}
		if _, err := p.sink.Write(x.bytes); err != nil {
			p.cancel()
			return
		}
		if x.closes {
			break
		}
	}
	if p.ctx.Err() == nil { // otherwise it is reset
		_ = p.sink.CloseWrite() // fails only if the connection is closed
	}
}
