package extended

import (
	"errors"
	"strings"
	"testing"
)

// sendErrors returns the errors of the sends that actions end.
func sendErrors(acts []Action) (list []error) {
	for i := range acts {
		if acts[i].Kind == SendDone {
			list = append(list, acts[i].Err)
		}
	}
	return list
}

// TestPeerGone: sends to a rank of the job that is gone fail, both sends that wait for its session and later ones.
// Sends to another peer wait for its return.
func TestPeerGone(t *testing.T) {
	for name, tt := range map[string]struct {
		job  bool
		end  func(*Conn) []Action
		text string
	}{
		"a rank that has closed": {true, func(c *Conn) []Action { return c.ProcessClosed(5, nil) },
			"rank 2 has called MPI_Finalize"},
		"a rank that exited": {true, func(c *Conn) []Action { return c.ProcessEnded(5, nil) },
			"rank 2 is gone: its process exited"},
		"another peer that exited": {false, func(c *Conn) []Action { return c.ProcessEnded(5, nil) }, ""},
	} {
		c := New(Config{Local: 1, Remote: 2, Seed: 3, Job: tt.job})
		c.Send(1, SendOp{ID: 1, Length: 4}, nil)
		errs := sendErrors(tt.end(c))
		errs = append(errs, sendErrors(c.Send(9, SendOp{ID: 2, Length: 4}, nil))...)
		want := 2
		if tt.text == "" {
			want = 0
		}
		if len(errs) != want {
			t.Errorf("%s: %d sends are done, want %d", name, len(errs), want)
		}
		for _, err := range errs {
			if !errors.Is(err, ErrSession) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if left, _ := c.PeerGone(); left != tt.job || c.PendingSends() != 2-want {
			t.Errorf("%s: left %v, %d sends", name, left, c.PendingSends())
		}
	}
}

// TestUnreachable: sends to a peer that the transport cannot reach fail with its reason, including the ones that wait
// for a session. Later ones wait for the next attempt.
func TestUnreachable(t *testing.T) {
	c := New(Config{Local: 1, Remote: 2, Seed: 3})
	c.Send(1, SendOp{ID: 1, Length: 4}, nil)
	errs := sendErrors(c.Unreachable(5, "no memory is left", nil))
	if len(errs) != 1 || !errors.Is(errs[0], ErrTimeout) ||
		!strings.Contains(errs[0].Error(), "rank 2 cannot be reached: no memory is left") {
		t.Errorf("%v", errs)
	}
	if errs := sendErrors(c.Send(9, SendOp{ID: 2, Length: 4}, nil)); len(errs) != 0 || c.PendingSends() != 1 {
		t.Errorf("%v, %d sends", errs, c.PendingSends())
	}
}
