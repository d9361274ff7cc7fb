package match

// Claim is like Probe, but also removes the message from the UMQ, as a matched probe does.
func (m *Matcher[R, M]) Claim(source, tag int32) (msg M, ok bool) {
	if f := m.probe(source, tag); f.i != 0 {
		return m.takeMessage(f), true
	}
	return msg, false
}
