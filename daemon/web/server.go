package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/zrlmpi/zrlmpid/daemon/connlimit"
)

// Limits on clients of the server.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	// maxConnections limits the number of open connections. At the limit, a new connection closes an older one,
	// preferably an idle one.
	maxConnections = 128
	// maxRequests is the maximum number of concurrent requests on an HTTP/2 connection.
	maxRequests = 16
	// answerTimeout is the time limit for writing the answer to a short request.
	answerTimeout = 30 * time.Second
	// stopTimeout is the time limit for requests to finish after the server has cancelled their contexts to stop. The
	// server then closes their connections.
	stopTimeout = time.Second
)

// Options configures a Server.
type Options struct {
	// Listen is the address to bind, in the form of the configuration key http.listen.
	Listen string
	// Config is the path of the web configuration file, or empty if there is none.
	Config string
	// Pprof enables the profiles of the Go runtime.
	Pprof bool
	// Hosts are additional names by which requests may address the server. IP addresses, names without a dot and the
	// host's own name are always allowed. *.name matches every name that ends in .name.
	Hosts []string
	// Ready returns nil if the daemon is ready, and the reason why it is not otherwise. It must be safe for concurrent
	// use.
	Ready func() error
	// Log is the server's log. The server never logs values from the web configuration.
	Log *slog.Logger
}

// Server is an HTTP server bound to an address.
type Server struct {
	opts     Options
	listener net.Listener
	mux      *http.ServeMux
	names    []string   // result of serverNames
	config   *webConfig // or nil
}

// Listen binds the address and reads the web configuration, which the server rereads for every connection and request.
// The server answers no request before Serve is called. The error is a *ListenError or a *ConfigError.
func Listen(opts Options) (*Server, error) {
	server := &Server{opts: opts, mux: http.NewServeMux(), names: serverNames(opts.Listen, opts.Hosts)}
	if opts.Config != "" {
		var err error
		if server.config, err = newWebConfig(opts.Config, opts.Log); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", opts.Listen)
	if err != nil {
		return nil, &ListenError{opts.Listen, err}
	}
	server.listener = l
	server.mux.HandleFunc("GET /-/healthy", server.serveHealthy)
	server.mux.HandleFunc("GET /-/ready", server.serveReady)
	if opts.Pprof {
		server.handleProfiles()
	}
	return server, nil
}

// Addr returns the address to which the server is bound.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns the URL of the server's root page.
func (s *Server) URL() string {
	scheme := "http"
	if s.config != nil && s.config.tls {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%v/", scheme, s.Addr())
}

// Handle mounts a handler for short requests. The syntax of pattern is that of http.ServeMux. Handle must not be called
// after Serve.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// HandleStreams mounts a handler whose answers may take unlimited time. The request's context is cancelled when the
// client disconnects or the server stops.
func (s *Server) HandleStreams(pattern string, h http.Handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		// The request's deadlines would cut the answer short. If a deadline cannot be cleared, the next write fails
		// too.
		rc := http.NewResponseController(w)
		_, _ = rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})
		h.ServeHTTP(w, r)
	})
}

// ServeHTTP sets a new write deadline and answers a request. Without the new deadline, the connection would keep the
// deadline of the previous request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.refresh()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
	markGranted(r)
	if !s.isHostAllowed(r) {
		rejectHost(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// refresh applies the web configuration if it has changed.
func (s *Server) refresh() {
	if s.config != nil {
		s.config.refresh()
	}
}

// ConfigFailures returns the number of times that the server rejected a changed web configuration.
func (s *Server) ConfigFailures() uint64 {
	if s.config == nil {
		return 0
	}
	return s.config.failures.Load()
}

// Close releases the address. It is needed only if Serve is never called, because Serve releases the address itself.
func (s *Server) Close() error { return s.listener.Close() }

// Serve answers requests until ctx is done. It then cancels open requests and returns nil.
func (s *Server) Serve(ctx context.Context) error {
	streams, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	limit := connlimit.New(maxConnections)
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: maxRequests},
		BaseContext:    func(net.Listener) context.Context { return streams },
		ConnState: func(c net.Conn, state http.ConnState) {
			// Refresh before each TLS handshake and before each request is authenticated. On an HTTP/2 connection that
			// is never idle, refresh in ServeHTTP updates the configuration for later requests.
			if state == http.StateNew || state == http.StateActive {
				s.refresh()
			}
			limit.ConnState(c, state)
		},
		// These lines have level debug, because any client can cause them with an invalid TLS handshake.
		ErrorLog: slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		end()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if server.Shutdown(late) != nil {
			server.Close()
		}
	})
	var path string
	if s.config != nil {
		path = s.config.path()
	}
	err := toolkit.Serve(&guardedListener{Listener: s.listener, server: server}, server,
		&toolkit.FlagConfig{WebConfigFile: &path}, dropInfoLines(s.opts.Log))
	if stop() { // the server has failed
		server.Close()
		return fmt.Errorf("http: %v: %w", s.Addr(), err)
	}
	<-stopped
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http: %v: %w", s.Addr(), err)
	}
	return nil
}
