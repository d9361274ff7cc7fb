package extended

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// random is a generator of numbers that are as good as unpredictable to
// anything but an attacker: splitmix64. It is seeded by the caller, so that a
// simulation can be run again.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// session returns a new session: any number but 0 and the given one.
func (r *random) session(old protocol.Session) protocol.Session {
	for {
		if s := protocol.Session(r.next()); s != 0 && s != old {
			return s
		}
	}
}

// jitter returns d ± 1/8.
func (r *random) jitter(d time.Duration) time.Duration {
	eighth := d / 8
	if eighth <= 0 {
		return d
	}
	return d - eighth + time.Duration(r.next()%uint64(2*eighth+1))
}
