package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// CaptureRequest is a request for packets recorded by a daemon.
type CaptureRequest struct {
	// MaxAge limits the age of the packets. 0 selects all recorded packets or, if Follow is set, none of them.
	MaxAge time.Duration
	// Follow requests future packets as well, until the caller disconnects.
	Follow bool
	// Duration is the maximum time for which Follow streams packets; 0 means no limit.
	Duration time.Duration
}

// ProfileHeader is the header, in an answer to capture, that contains the profile of the packets that do not use the
// extended profile.
const ProfileHeader = "Zrlmpid-Profile"

// capture answers with a pcapng file.
func (s *Server) capture(w http.ResponseWriter, r *http.Request) error {
	q := parseParameters(r)
	req := CaptureRequest{MaxAge: q.duration("last"), Follow: q.values.Get("follow") != "", Duration: q.duration("for")}
	if q.err != nil {
		return q.err
	}
	begun := false
	err := s.backend.Capture(r.Context(), req, func(p protocol.Profile) io.Writer {
		begun = true
		w.Header().Set(ProfileHeader, p.String())
		w.Header().Set("Content-Type", "application/octet-stream")
		if req.Follow {
			control := http.NewResponseController(w)
			_ = control.Flush() // the next packet may be far off; if the caller is gone, the next write fails too
			return flushWriter{w, control}
		}
		return w
	})
	if err != nil && begun {
		panic(http.ErrAbortHandler) // so that the caller knows that the file is incomplete
	}
	return err
}

// flushWriter is a writer that flushes after every write.
type flushWriter struct {
	io.Writer
	control *http.ResponseController
}

// Write writes b and flushes it.
func (f flushWriter) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	return n, errors.Join(err, f.control.Flush())
}

// duration returns the value of a request parameter that is a duration, or 0 if the parameter is missing.
func (q *parameters) duration(name string) time.Duration {
	text := q.values.Get(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		q.setError(Errorf(Usage, "%s %q: not a time: give a number with a unit, as in 30s", name, text))
	}
	return d
}

// Capture returns a pcapng file with the packets recorded by the daemon, and the profile of the packets that do not use
// the extended profile. The caller must close the file.
func (c *Client) Capture(ctx context.Context, req CaptureRequest) (io.ReadCloser, protocol.Profile, error) {
	q := url.Values{"last": {req.MaxAge.String()}}
	if req.Follow {
		q.Set("follow", strconv.FormatBool(true))
		q.Set("for", req.Duration.String())
	}
	resp, err := c.do(ctx, c.replyTimeout, http.MethodPost, "capture", q, nil)
	if err != nil {
		return nil, 0, err
	}
	if body, ok := resp.Body.(*boundedBody); ok && req.Follow { // the next packet may be far off
		limit := c.answerLimit(req.Duration)
		body.wait.limit, body.wait.err = limit, silentError(c.socket, limit)
	}
	profile, err := protocol.ParseProfile(resp.Header.Get(ProfileHeader))
	if err != nil {
		resp.Body.Close()
		return nil, 0, fmt.Errorf("invalid %s header in the daemon's answer: %w", ProfileHeader, err)
	}
	return resp.Body, profile, nil
}
