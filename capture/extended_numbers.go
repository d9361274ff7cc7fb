package capture

// numberWindow is the number of packet numbers that a numberSet remembers, counted back from the highest one. It is
// twice the usual window of 512 packets.
const numberWindow = 1024

// numberSet remembers which packet numbers of a session appeared in the recording.
type numberSet struct {
	begun   bool
	highest uint32
	bits    [numberWindow / 64]uint64
}

func (s *numberSet) bit(n uint32) (word *uint64, mask uint64) {
	return &s.bits[n%numberWindow/64], 1 << (n % 64)
}

// add adds the packet number n. seen is true if n was added before, or is too old to decide whether it was. behind is
// true if a higher number was added before.
func (s *numberSet) add(n uint32) (seen, behind bool) {
	if !s.begun {
		s.begun, s.highest = true, n
	}
	ahead := int32(n - s.highest) // distances modulo 2³²
	switch {
	case ahead >= numberWindow:
		clear(s.bits[:])
		s.highest = n
	case ahead > 0:
		for s.highest != n {
			s.highest++
			word, mask := s.bit(s.highest)
			*word &^= mask
		}
	case ahead <= -numberWindow:
		return true, true
	}
	word, mask := s.bit(n)
	seen = *word&mask != 0
	*word |= mask
	return seen, ahead < 0
}
