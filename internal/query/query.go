// Package query is the interface by which tools query the state of a daemon, a job or a rank: a request has a kind and
// a version, and a Handler answers it. HTTP carries requests to a daemon (package daemon/control), a Unix socket to a
// rank of a job (package internal/jobs).
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

// Version is the version of requests. A higher version adds requests.
const Version = 1

// AnyRank in Request.Rank leaves the choice of a local rank to the handler.
const AnyRank = -1

// Kind is the kind of a request.
type Kind string

// Kinds of requests, with the documents of their responses.
const (
	Status  Kind = "status"  // state.Status of a daemon or job, node.Report of a rank
	Metrics Kind = "metrics" // node.Report with counters and histograms
	Reports Kind = "reports" // state.Reports of ranks asked over links
	Reset   Kind = "reset"   // none; ends the dead end of a peer that was restarted
	Reload  Kind = "reload"  // control.Reloaded
	Support Kind = "support" // control.Support
	Packets Kind = "packets" // a stream: a recording, in pcapng
)

// Request is a request of a tool.
type Request struct {
	// Version is the version of the caller.
	Version int  `json:"version"`
	Kind    Kind `json:"kind"`
	// Rank is the local rank that handles the request, or AnyRank. Peer is the other rank that it concerns.
	Rank int `json:"rank"`
	Peer int `json:"peer"`
}

// Response is the answer to a request. At most one field is set. The zero value means success without a document.
type Response struct {
	// Document is encoded as JSON. A carrier returns it as a json.RawMessage.
	Document any
	// Stream writes the answer until ctx is done or writing fails.
	Stream func(ctx context.Context, to io.Writer)
	Err    error
}

// Handler answers requests. It is called concurrently.
type Handler func(ctx context.Context, r Request) Response

// ErrUnknown is returned when the handler does not answer requests of this kind.
var ErrUnknown = errors.New("no such request")

// Unknown returns the response for requests of a kind that the handler does not answer.
func Unknown(r Request) Response { return Response{Err: fmt.Errorf("%w: %q", ErrUnknown, r.Kind)} }

// Get makes a request and returns its document.
func Get[T any](ctx context.Context, h Handler, request Request) (document T, err error) {
	request.Version = Version
	resp := h(ctx, request)
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
	return document, fmt.Errorf("the answer to %q is %T, and no %T", request.Kind, resp.Document, document)
}

// Do makes a request without a document.
func Do(ctx context.Context, h Handler, r Request) error {
	r.Version = Version
	return h(ctx, r).Err
}
