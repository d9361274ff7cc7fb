package extended

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// random is a pseudorandom number generator, splitmix64. An attacker who knows its output can predict it. The caller
// seeds it, so that simulations are reproducible.
type random uint64

func (r *random) nextUint64() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// newSession returns a random session other than 0 and old.
func (r *random) newSession(old protocol.Session) protocol.Session {
	for {
		if s := protocol.Session(r.nextUint64()); s != 0 && s != old {
			return s
		}
	}
}

// jitter returns a random duration, which is at most an eighth longer or shorter than d.
func (r *random) jitter(d time.Duration) time.Duration {
	eighth := d / 8
	if eighth <= 0 {
		return d
	}
	return d - eighth + time.Duration(r.nextUint64()%uint64(2*eighth+1))
}
