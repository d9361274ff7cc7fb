package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/connlimit"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Backend is the server's interface to the daemon. Its methods must be safe for concurrent use.
type Backend interface {
	// Handle is the query.Handler for requests of kinds Status, Reports, Reset, Reload and Support. Its errors are of
	// type *Error, with kind Refused if the daemon refused a reloaded configuration.
	Handle(ctx context.Context, r query.Request) query.Response
	// Authorize returns nil if the caller may make a request that does more than read the status, and an *Error
	// otherwise. unknown is the reason why the caller's credentials are unknown, or nil if they are known.
	Authorize(request string, caller wire.Credentials, unknown error) error
	// Host returns the given local rank, through which a caller can send and receive. For AnyRank, it returns the
	// lowest rank with run: host. The error is an *Error.
	Host(rank int) (Port, error)
	// Capture writes the packets recorded by the daemon, as a pcapng file, to the writer returned by open. The argument
	// of open is the profile of the packets that do not use the extended profile. If Capture fails before it calls
	// open, the error is an *Error. Capture returns when it has written all packets or, if req.Follow is set, when ctx
	// is done.
	Capture(ctx context.Context, req CaptureRequest, open func(protocol.Profile) io.Writer) error
}

// Port is a local rank through which a caller sends and receives. Its methods have the same meaning as in
// mpe.Engine.
type Port interface {
	Rank() int
	// Size returns the number of ranks in the cluster.
	Size() int
	// MaxWords returns the maximum length, in words, of a message to send or receive.
	MaxWords() int
	// PieceWords returns the length in words of the pieces into which Send splits longer messages to the peer. 0 means
	// that Send does not split messages. Recv receives a single piece.
	PieceWords(peer int) int
	Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error)
	Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error)
}

// Server serves the control socket.
type Server struct {
	backend  Backend
	errorLog *log.Logger
	pings    pingers
	times    timeLimits
	// waitSlots holds one element for each request that waits for other ranks.
	waitSlots chan struct{}
	payload   payloadBudget
}

// NewServer returns a server for the backend. The server logs errors unrelated to a request to errlog.
func NewServer(backend Backend, errlog *log.Logger) *Server {
	return &Server{backend: backend, errorLog: errlog, times: defaultLimits, waitSlots: make(chan struct{}, maxWaiting)}
}

// shutdownTimeout is the time limit for callers to read their last answers when the server stops.
const shutdownTimeout = time.Second

// Serve serves requests on l until ctx is done. It then cancels all operations, and returns nil once the callers have
// received their answers. Serve closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	// Cancel all operations before stopping the server, because Shutdown would wait for them.
	ops, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	srv := &http.Server{
		Handler: s.newHandler(), ErrorLog: s.errorLog, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: s.times.header, IdleTimeout: s.times.idle,
		ConnState:   connlimit.New(maxConnections).ConnState,
		BaseContext: func(net.Listener) context.Context { return ops }, ConnContext: withCaller,
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	cancel(Errorf(Closed, "the daemon is shutting down"))
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	if srv.Shutdown(grace) != nil {
		srv.Close() // a caller does not read its answer
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// sendPath is the path of requests whose body is a message.
const sendPath = "/v1/send"

// handler answers a request. A returned error is sent as the answer.
type handler func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		writeError(w, err)
	}
}

// newHandler returns the handler that routes all requests.
func (s *Server) newHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/status", s.handleQuery(query.Status))
	mux.Handle("GET /v1/reports", s.limitWaiting(s.handleQuery(query.Reports)))
	mux.Handle("GET /v1/support", s.authorized(s.handleQuery(query.Support)))
	mux.Handle("POST /v1/reset", s.authorized(s.handleQuery(query.Reset)))
	mux.Handle("POST /v1/reload", s.authorized(s.handleQuery(query.Reload)))
	mux.Handle("POST /v1/ping", s.authorized(s.limitWaiting(s.ping)))
	mux.Handle("POST "+sendPath, s.authorized(s.limitWaiting(s.send)))
	mux.Handle("POST /v1/recv", s.authorized(s.limitWaiting(s.recv)))
	mux.Handle("POST /v1/capture", s.authorized(s.limitWaiting(s.capture)))
	mux.Handle("/", handler(func(_ http.ResponseWriter, r *http.Request) error {
		return Errorf(Usage, "%s %s: no such request: use zrlctl and zrlmpid of the same version (zrlmpid is %s, the "+
			"caller %s)",
			r.Method, r.URL.Path, version.String(), cmp.Or(r.UserAgent(), "unknown"))
	}))
	return s.withLimits(withVersion(mux))
}

// VersionHeader is the header that contains the daemon's version in each answer.
const VersionHeader = "Zrlmpid-Version"

// withVersion adds the daemon's version to each answer.
func withVersion(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(VersionHeader, version.String())
		next.ServeHTTP(w, r)
	})
}

// handleQuery answers requests of one kind by calling the backend's Handle.
func (s *Server) handleQuery(kind query.Kind) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		req := query.Request{Rank: AnyRank, Peer: AnyRank}
		if r.ContentLength != 0 {
			if err := readJSON(r, &req); err != nil {
				return err
			}
		}
		req.Kind = kind
		resp := s.backend.Handle(r.Context(), req)
		if resp.Err == nil {
			writeJSON(w, http.StatusOK, cmp.Or[any](resp.Document, struct{}{}))
		}
		return resp.Err
	}
}

// readJSON decodes the body of a request. It rejects unknown fields.
func readJSON(r *http.Request, into any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return Errorf(Usage, "%s: invalid request: %v", r.URL.Path, err)
	}
	if dec.More() {
		return Errorf(Usage, "%s: invalid request: more than one JSON object", r.URL.Path)
	}
	return nil
}

// The functions below ignore write errors, which only mean that the caller has disconnected.

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func writeError(w http.ResponseWriter, err error) {
	e := AsError(err)
	writeJSON(w, e.Kind.httpStatus(), e)
}
