package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// maxStatus is the maximum length in bytes of a status read over HTTP. maxObjects is the maximum number of objects in
// it. Each of them takes about a hundred times as much memory as its text.
const (
	maxStatus  = 16 << 20
	maxObjects = 1 << 17
)

// FetchStatus returns the status of the daemon at an address. The address is the path of the daemon's control socket,
// or the URL of its HTTP server, such as http://10.12.0.2:9627, from which FetchStatus reads /status.json.
func FetchStatus(ctx context.Context, address string) (status state.Status, err error) {
	if !strings.Contains(address, "://") {
		client := NewClient(address)
		defer client.Close()
		return client.Status(ctx)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/status.json", nil)
	if err != nil {
		return status, Errorf(Usage, "daemon %q: %v: give the URL of its HTTP server, such as http://10.12.0.2:9627, or "+
			"the path of its control socket", address, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return status, unreachableHTTP(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return status, fmt.Errorf("GET %s: %s", req.URL.Redacted(), resp.Status)
	}
	if err := decodeStatus(resp.Body, &status); err != nil {
		return state.Status{}, fmt.Errorf("GET %s: not the status of a zrlmpid: %w", req.URL.Redacted(), err)
	}
	return status, validateStatus(&status, "GET "+req.URL.Redacted())
}

// decodeStatus decodes a status received from an untrusted server.
func decodeStatus(r io.Reader, status *state.Status) error {
	text, err := io.ReadAll(io.LimitReader(r, maxStatus+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxStatus:
		return fmt.Errorf("it is longer than %d bytes", maxStatus)
	case bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("null")) > maxObjects:
		return fmt.Errorf("it has more than %d objects", maxObjects)
	}
	if err := json.Unmarshal(text, status); err != nil {
		return err
	}
	if status.Version == "" || len(status.Cluster) == 0 {
		return errors.New("it has no version or no ranks")
	}
	return nil
}

// unreachableHTTP returns the error for an unanswered request. It omits the URL, which the caller adds.
func unreachableHTTP(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
