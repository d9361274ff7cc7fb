package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"github.com/zrlmpi/zrlmpid/internal/connlimit"
)

// The limits for clients of the server.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	// maxConnections bounds the connections. A new one is always accepted: at the limit
	// an older one is closed, idle ones first.
	maxConnections = 128
	// maxRequests bounds the concurrent requests of an HTTP/2 connection.
	maxRequests = 16
	// answerTimeout bounds the time to write the answer to a short request.
	answerTimeout = 30 * time.Second
	// stopTimeout is how long requests may take to end when the server stops. Their
	// contexts are cancelled first; then their connections are closed.
	stopTimeout = time.Second
)

// Options configure a server.
type Options struct {
	// Listen is an address as of http.listen in the configuration.
	Listen string
	// Config is the path of a web configuration file, or empty.
	Config string
	// Pprof serves the profiles of the Go runtime.
	Pprof bool
	// Ready returns why the daemon is not ready, or nil. It is called concurrently.
	Ready func() error
	// Log is the log of the server.
	Log *slog.Logger
}

// Server is an HTTP server whose address is bound.
type Server struct {
	opts     Options
	listener net.Listener
	mux      *http.ServeMux
	tls      bool
}

// Listen binds the address, and reads the web configuration. Nothing is answered
// before Serve. It returns a *ListenError or a *ConfigError.
func Listen(opts Options) (*Server, error) {
	s := &Server{opts: opts, mux: http.NewServeMux()}
	if opts.Config != "" {
		if err := toolkit.Validate(opts.Config); err != nil {
			return nil, &ConfigError{opts.Config, err}
		}
		var err error
		if s.tls, err = wantsTLS(opts.Config); err != nil {
			return nil, &ConfigError{opts.Config, err}
		}
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", opts.Listen)
	if err != nil {
		return nil, &ListenError{opts.Listen, err}
	}
	s.listener = l
	s.mux.HandleFunc("GET /-/healthy", s.healthy)
	s.mux.HandleFunc("GET /-/ready", s.ready)
	if opts.Pprof {
		s.handleProfiles()
	}
	return s, nil
}

// wantsTLS reports whether a web configuration asks for TLS.
func wantsTLS(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	var c struct {
		TLS yaml.Node `yaml:"tls_server_config"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return false, err
	}
	return len(c.TLS.Content) > 0, nil
}

// Addr is the address that the server is bound to.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL is where the server's pages are.
func (s *Server) URL() string {
	scheme := "http"
	if s.tls {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%v/", scheme, s.Addr())
}

// Handle mounts a handler for short requests, by a pattern of http.ServeMux. It must
// be called before Serve.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// HandleStreams mounts a handler of unlimited answers. The request's context ends when the
// client disconnects or the server stops.
func (s *Server) HandleStreams(pattern string, h http.Handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		// The deadlines of the request would end the answer. An error here occurs
		// again at the next write.
		rc := http.NewResponseController(w)
		_, _ = rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})
		h.ServeHTTP(w, r)
	})
}

// ServeHTTP sets the deadline of every answer. The connection keeps that of the previous
// request otherwise.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
	s.mux.ServeHTTP(w, r)
}

// Close releases the address, unless Serve has been called, which does so.
func (s *Server) Close() error { return s.listener.Close() }

// Serve answers requests until ctx is done, then ends open ones, and returns nil.
func (s *Server) Serve(ctx context.Context) error {
	streams, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ConnState: connlimit.New(maxConnections).ConnState, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxRequests},
		BaseContext: func(net.Listener) context.Context { return streams },
		// Any client can cause these lines, by an invalid TLS handshake.
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
	err := toolkit.Serve(s.listener, server,
		&toolkit.FlagConfig{WebConfigFile: &s.opts.Config}, quiet(s.opts.Log))
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
