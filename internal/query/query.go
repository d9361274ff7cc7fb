// Package query is how tools ask for states, of a daemon, a job or a rank alike: a request names its kind and version, and
// a Handler answers it. Requests are carried by HTTP to a daemon (package daemon/control), and by a Unix socket to a rank
// of a job (package internal/jobs).
//
// It must never know who answers, or how a request is carried.
package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Version of requests. A higher one has requests that a lower one does not know.
const Version = 1

// AnyRank as Request.Rank leaves the choice of a local rank to the handler.
const AnyRank = -1

// Kind of a request.
type Kind string

// The kinds of requests, and the documents of their responses.
const (
	Status  Kind = "status"  // state.Status of a daemon or job, node.Report of a rank
	Metrics Kind = "metrics" // node.Report with counters and histograms
	Reports Kind = "reports" // state.Reports, of ranks that are asked over links
	Reset   Kind = "reset"   // none; ends the dead end of a peer that was restarted
	Reload  Kind = "reload"  // control.Reloaded
	Support Kind = "support" // control.Support
	Packets Kind = "packets" // a stream: a recording, in pcapng
)

// Request asks for something.
type Request struct {
	// Version is that of the caller.
	Version int  `json:"version"`
	Kind    Kind `json:"kind"`
	// Rank is the local rank that the request is for, or AnyRank, and Peer the other rank that it is about.
	Rank int `json:"rank"`
	Peer int `json:"peer"`
}

// Response answers a request by one of its fields, or by none if the request was carried out.
type Response struct {
	// Document is encoded as JSON. From a carrier it is a json.RawMessage.
	Document any
	// Stream writes the answer until ctx is done or writing fails.
	Stream func(ctx context.Context, to io.Writer)
	Err    error
}

// Handler answers requests. It is called concurrently.
type Handler func(ctx context.Context, r Request) Response

// ErrUnknown: the handler does not answer requests of this kind.
var ErrUnknown = errors.New("no such request")

// Unknown is the response to a request that the handler does not answer.
func Unknown(r Request) Response { return Response{Err: fmt.Errorf("%w: %q", ErrUnknown, r.Kind)} }

// Get makes a request and returns its document.
func Get[T any](ctx context.Context, h Handler, r Request) (document T, err error) {
	r.Version = Version
	resp := h(ctx, r)
	if resp.Err != nil {
		return document, resp.Err
	}
	switch d := resp.Document.(type) {
	case T:
		return d, nil
	case json.RawMessage:
		err = json.Unmarshal(d, &document)
		return document, err
	}
	return document, fmt.Errorf("the answer to %q is %T, and no %T", r.Kind, resp.Document, document)
}

// Do makes a request that has no document.
func Do(ctx context.Context, h Handler, r Request) error {
	r.Version = Version
	return h(ctx, r).Err
}
