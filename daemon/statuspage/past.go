package statuspage

import (
	"time"
)

// Limits of the history.
const (
	livePoints = 120 // two minutes
	slowPoints = 360 // an hour
	tripPoints = 40
	// maxTrips is the maximum number of pairs whose round-trip times are kept.
	maxTrips = 1024
)

// point is an average rate over the interval that ended at time at.
type point struct {
	at    time.Time
	value float64
}

// past is the history shown on a page: messages per second and round-trip times.
type past struct {
	live, slow ring
	// Marks of the most recent points in live and slow.
	liveAt, slowAt mark
	trips          map[pair]*ring
}

type pair struct{ rank, peer int }

// mark is a total count at one point in time.
type mark struct {
	at       time.Time
	started  time.Time
	messages uint64
}

func newPast() past {
	return past{live: ring{size: livePoints}, slow: ring{size: slowPoints}, trips: make(map[pair]*ring)}
}

// add adds a sample to the history.
func (p *past) add(s *sample) {
	now := mark{at: s.at, started: s.status.Started}
	for i := range s.digest.Peers {
		peer := &s.digest.Peers[i]
		now.messages += peer.Sent + peer.Received
		p.trip(pair{peer.Rank, peer.Peer}, point{s.at, peer.RoundTrip()})
	}
	// A tick may arrive slightly early.
	p.liveAt = p.live.rate(p.liveAt, now, liveEvery/2)
	p.slowAt = p.slow.rate(p.slowAt, now, slowEvery-liveEvery/2)
}

// trip adds a round-trip time to the history, if it is known.
func (p *past) trip(of pair, at point) {
	r := p.trips[of]
	if at.value <= 0 || r == nil && len(p.trips) == maxTrips {
		return
	}
	if r == nil {
		r = &ring{size: tripPoints}
		p.trips[of] = r
	}
	r.push(at)
}

// ring holds the most recent points of a series.
type ring struct {
	size   int
	points []point
	first  int
}

func (r *ring) push(p point) {
	if len(r.points) < r.size {
		r.points = append(r.points, p)
		return
	}
	r.points[r.first] = p
	r.first = (r.first + 1) % r.size
}

// rate adds the rate since a mark if the mark is at least atLeast old. It returns the mark to use in the next
// call.
func (r *ring) rate(since, now mark, atLeast time.Duration) mark {
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

// all returns the points, oldest first.
func (r *ring) all() []point {
	if r == nil {
		return nil
	}
	return append(append(make([]point, 0, len(r.points)), r.points[r.first:]...), r.points[:r.first]...)
}
