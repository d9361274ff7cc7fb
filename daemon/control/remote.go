package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxStatus bounds the length of a status that is read, in bytes.
const maxStatus = 256 << 20

// Ask returns the status of the daemon at an address: the URL of its HTTP server, such as http://10.12.0.2:9627, whose
// /status.json it reads, or the path of its control socket.
func Ask(ctx context.Context, address string) (s Status, err error) {
	if !strings.Contains(address, "://") {
		client := NewClient(address)
		defer client.Close()
		return client.Status(ctx)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/status.json", nil)
	if err != nil {
		return s, Errorf(Usage, "daemon %q: %v: give the URL of its HTTP server, such as http://10.12.0.2:9627, or the path of its control socket", address, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, unreachableHTTP(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("GET %s: %s", req.URL.Redacted(), resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxStatus)).Decode(&s); err != nil {
		return s, fmt.Errorf("GET %s: no status of a zrlmpid: %w", req.URL.Redacted(), err)
	}
	return s, nil
}

// unreachableHTTP returns the error of a request without an answer: the URL is not named twice.
func unreachableHTTP(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
