package statuspage

import (
	"time"
)

// Limits of the history.
const (
	livePoints = 120 // two minutes
	slowPoints = 360 // an hour
	rttPoints  = 40
	// maxRTTPairs is the maximum number of pairs of ranks for which the page keeps a history of round-trip times.
	maxRTTPairs = 1024
)

// point is an average value over an interval that ends at the time in the field at.
type point struct {
	at    time.Time
	value float64
}

// history holds the past values that a page shows: messages per second and round-trip times.
type history struct {
	live, slow ring
	// liveMark and slowMark are the total counts at the most recent points of the rings live and slow.
	liveMark, slowMark mark
	roundTrips         map[pair]*ring
}

// pair is a local rank and one of its peers, which may be local too.
type pair struct{ rank, peer int }

// mark is the total number of messages at one point in time.
type mark struct {
	at       time.Time
	started  time.Time
	messages uint64
}

func newHistory() history {
	return history{live: ring{size: livePoints}, slow: ring{size: slowPoints}, roundTrips: make(map[pair]*ring)}
}

// add adds a sample to the history.
func (p *history) add(s *sample) {
	now := mark{at: s.takenAt, started: s.status.Started}
	for i := range s.digest.Peers {
		peer := &s.digest.Peers[i]
		now.messages += peer.Sent + peer.Received
		p.addRoundTrip(pair{peer.Rank, peer.Peer}, point{s.takenAt, peer.RoundTrip()})
	}
	// A tick may arrive slightly early.
	p.liveMark = p.live.addRate(p.liveMark, now, liveInterval/2)
	p.slowMark = p.slow.addRate(p.slowMark, now, slowInterval-liveInterval/2)
}

// addRoundTrip adds a round-trip time to the history unless the time is unknown.
func (p *history) addRoundTrip(of pair, at point) {
	r := p.roundTrips[of]
	if at.value <= 0 || r == nil && len(p.roundTrips) == maxRTTPairs {
		return
	}
	if r == nil {
		r = &ring{size: rttPoints}
		p.roundTrips[of] = r
	}
	r.push(at)
}

// ring holds the most recent points of a series.
type ring struct {
	size   int
	points []point
	oldest int
}

// push adds a point. Once the ring holds size points, each new point overwrites the oldest.
func (r *ring) push(p point) {
	if len(r.points) < r.size {
		r.points = append(r.points, p)
		return
	}
	r.points[r.oldest] = p
	r.oldest = (r.oldest + 1) % r.size
}

// addRate adds the average rate since a mark, if the mark is at least as old as atLeast. It returns the mark for the
// next call.
func (r *ring) addRate(since, now mark, atLeast time.Duration) mark {
	span := now.at.Sub(since.at)
	if since.at.IsZero() || !since.started.Equal(now.started) || now.messages < since.messages {
		return now
	}
	if span < atLeast {
		return since
	}
	r.push(point{now.at, float64(now.messages-since.messages) / span.Seconds()})
	return now
}

// ordered returns the points, oldest first.
func (r *ring) ordered() []point {
	if r == nil {
		return nil
	}
	return append(append(make([]point, 0, len(r.points)), r.points[r.oldest:]...), r.points[:r.oldest]...)
}
