package goodput

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestStream checks that messages sent within a short time differ, and that verify finds a single wrong byte.
func TestStream(t *testing.T) {
	s := newStream()
	seen := make(map[string]int64)
	for i := range int64(100) {
		m := string(s.bytesAt(i*messageLen, messageLen))
		if have, ok := seen[m]; ok {
			t.Fatalf("messages %d and %d are the same", have, i)
		}
		seen[m] = i
	}
	for _, position := range []int64{0, period - 1, 12345678901} {
		b := bytes.Clone(s.bytesAt(position, 1000))
		if err := s.verify(position, b); err != nil {
			t.Error(err)
		}
		if err := s.verify(position+1, b); err == nil {
			t.Errorf("position %d: bytes of another position are accepted", position)
		}
		b[999] ^= 4
		if err := s.verify(position, b); err == nil || !strings.HasPrefix(err.Error(), "byte ") ||
			!strings.Contains(err.Error(), " instead of 0x") {
			t.Errorf("position %d: %v", position, err)
		}
	}
}

// TestCounter checks which bytes count, and in which time.
func TestCounter(t *testing.T) {
	begin := time.Unix(0, 0)
	for _, tt := range []struct {
		name     string
		job      job
		at       []time.Duration // times at which blocks of 1000 bytes arrive
		want     Flow
		complete bool
		late     string
	}{
		{"nothing", job{Time: time.Second}, nil, Flow{}, false, ""},
		{"until the last bytes", job{Time: 9 * time.Second}, []time.Duration{time.Second, 2 * time.Second},
			Flow{Bytes: 2000, Seconds: 2}, false, ""},
		{"after the first seconds", job{Time: 9 * time.Second, Skip: time.Second},
			[]time.Duration{900 * time.Millisecond, time.Second, 3 * time.Second}, Flow{Bytes: 2000, Seconds: 2}, false,
			""},
		{"too little", job{Time: 9 * time.Second, Bytes: 2001}, []time.Duration{time.Second, time.Second},
			Flow{Bytes: 2000, Seconds: 1}, false, "2000 bytes of 2001 arrived in 9s"},
		{"all", job{Time: 9 * time.Second, Bytes: 2000}, []time.Duration{time.Second, time.Second},
			Flow{Bytes: 2000, Seconds: 1}, true, ""},
	} {
		c := counter{job: &tt.job, stream: newStream()}
		c.start(begin)
		for i, at := range tt.at {
			if err := c.addReceived(begin.Add(at), c.stream.bytesAt(int64(i)*1000, 1000)); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if got := c.result(); got != tt.want || c.isComplete() != tt.complete {
			t.Errorf("%s: %+v, complete %v", tt.name, got, c.isComplete())
		}
		if err := c.timeoutError(); !tt.complete && (err == nil) != (tt.late == "") || tt.late != "" &&
			err.Error() != tt.late {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	c := counter{job: &job{}, stream: newStream()}
	if err := c.addReceived(begin, c.stream.bytesAt(1, 10)); err == nil || c.position != 0 {
		t.Errorf("bytes of another position count: %v", err)
	}
}
