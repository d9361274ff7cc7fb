package mpe

// source has the packets of a transport that can be polled. It is a drive.Source.
type source struct {
	e     *Engine
	tr    PollTransport
	land  LandingTransport // or nil
	batch []Arrival
}

func newSource(e *Engine, tr PollTransport) *source {
	s := &source{e: e, tr: tr, batch: make([]Arrival, batchSize)}
	s.land, _ = tr.(LandingTransport)
	return s
}

// Poll takes what has arrived, and returns how many packets that was.
func (s *source) Poll() (n int, err error) {
	var gen uint32
	if s.land != nil && s.e.landing.on.Load() {
		n, gen, err = s.e.landing.poll(s.land, s.batch)
	} else {
		n, err = s.tr.Poll(s.batch)
	}
	if n > 0 {
		s.e.arrived(s.tr, s.batch[:n], gen)
	}
	return n, err
}

// Sleep announces that nobody polls.
func (s *source) Sleep() bool { return s.tr.Sleep() }
