package control

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// ping answers with one Trip per line.
func (s *Server) ping(w http.ResponseWriter, r *http.Request) error {
	req := PingRequest{From: AnyRank, To: AnyRank, Words: 1, Count: 1, Datatype: protocol.Int.String(), Timeout: "10s"}
	err := readJSON(r, &req)
	var p checkedPing
	if err == nil {
		p, err = s.checkPing(req)
	}
	if err != nil {
		return err
	}
	size := pingBuffers * p.words * protocol.WordLen
	if err := s.payload.charge(size); err != nil {
		return err
	}
	defer s.payload.release(size)
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines, flush := json.NewEncoder(w), http.NewResponseController(w)
	for seq := range req.Count {
		t := s.runTrip(r.Context(), &p, seq)
		if lines.Encode(t) != nil || flush.Flush() != nil || (t.Error != "" && t.Kind != Mismatch) {
			return nil
		}
	}
	return nil
}

// pingBuffers is the number of buffers that a ping needs. Each is as long as the ping's message.
const pingBuffers = 3

// checkedPing is a validated PingRequest.
type checkedPing struct {
	port      Port
	to, words int
	datatype  protocol.Datatype
	timeout   time.Duration
	seed      uint64
}

// seedMask limits the seeds that the daemon chooses to integers that floating-point numbers in JSON represent exactly.
const seedMask = 1<<48 - 1

// checkPing validates a request, and chooses a seed if the request contains none.
func (s *Server) checkPing(req PingRequest) (ping checkedPing, err error) {
	ping = checkedPing{to: req.To, words: req.Words, seed: req.Seed}
	if ping.port, err = s.backend.Host(req.From); err != nil {
		return ping, err
	}
	if err := checkPeer(ping.port, req.To); err != nil {
		return ping, err
	}
	if ping.datatype, err = protocol.ParseDatatype(req.Datatype); err != nil {
		return ping, Errorf(Usage, "datatype: %v", err)
	}
	if ping.timeout, err = parseTimeout(req.Timeout); err != nil {
		return ping, err
	}
	if err := checkWords(ping.port, req.Words); err != nil {
		return ping, err
	}
	if req.Count < 1 {
		return ping, Errorf(Usage, "count %d: must be at least 1", req.Count)
	}
	if ping.seed == 0 {
		ping.seed = uint64(time.Now().UnixNano()) & seedMask
	}
	return ping, nil
}

// runTrip makes the round trip with the number seq. It continues for up to PingLinger after the caller has
// disconnected.
func (s *Server) runTrip(caller context.Context, ping *checkedPing, seq int) *Trip {
	ctx, stop := withTimeout(caller, ping.timeout)
	defer stop()
	trip := &Trip{Seq: seq, From: ping.port.Rank(), To: ping.to, Words: ping.words, Seed: ping.seed + uint64(seq)}
	pair, err := s.pings.acquire(ctx, trip.From, trip.To)
	if err != nil {
		trip.setError(err)
		return trip
	}
	defer pair.release()
	ctx, settled := pair.pingContext(ctx)
	defer settled()
	pair.roundTrip(ctx, ping.port, ping.datatype, trip)
	if trip.Error != "" && KindOf(context.Cause(caller)) == Canceled {
		s.errorLog.Printf("ping failed after its caller disconnected: rank %d to rank %d, %d words: %s", trip.From, trip.To,
			trip.Words, trip.Error)
	}
	return trip
}

func checkPeer(port Port, peer int) error {
	switch {
	case peer < 0 || peer >= port.Size():
		return Errorf(Rank, "rank %d: no such rank: the cluster has ranks 0 to %d", peer, port.Size()-1)
	case peer == port.Rank():
		return Errorf(Rank, "rank %d cannot send to itself: name another rank", peer)
	}
	return nil
}

func checkWords(port Port, words int) error {
	switch {
	case words < 0:
		return Errorf(Usage, "%d words: must be at least 0", words)
	case words > port.MaxWords():
		return Errorf(TooLong, "%d words: must be at most %d", words, port.MaxWords())
	}
	return nil
}

func parseTimeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, Errorf(Usage, "timeout %q: not a duration: give a time with its unit, as in 10s, or 0s for none", s)
	}
	return d, nil
}
