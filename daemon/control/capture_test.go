package control

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestCapture checks that the client gets the daemon's recording and its profile for as long as requested, or
// else the daemon's error.
func TestCapture(t *testing.T) {
	b := &fakeBackend{}
	c := serve(t, filepath.Join(t.TempDir(), "c.sock"), b)
	body, profile, err := c.Capture(t.Context(), CaptureRequest{MaxAge: 30 * time.Second})
	if err != nil || profile != protocol.V09 {
		t.Fatal(profile, err)
	}
	if text, err := io.ReadAll(body); err != nil || string(text) != "last 30s\n" {
		t.Errorf("%q, %v", text, err)
	}
	body.Close()

	ctx, cancel := context.WithCancel(t.Context())
	body, _, err = c.Capture(ctx, CaptureRequest{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if n, err := io.ReadFull(body, make([]byte, len("last 0s\n"))); err != nil {
		t.Errorf("%d bytes come at once: %v", n, err)
	}
	cancel()
	if _, err := io.ReadAll(body); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}

	b.refuses = true
	if _, _, err := c.Capture(t.Context(), CaptureRequest{}); KindOf(err) != Failed ||
		err.Error() != "records nothing" {
		t.Errorf("refused: %v", err)
	}
}
