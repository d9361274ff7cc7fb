package control

import (
	"context"
	"net"
	"net/http"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// caller is the process at the other end of a connection.
type caller struct {
	wire.Credentials
	// credentialsErr is the reason why the credentials are unknown, or nil if they are known.
	credentialsErr error
}

// callerKey is the context key of a connection's caller.
type callerKey struct{}

// withCaller adds the caller of a connection to the connection's context.
func withCaller(ctx context.Context, conn net.Conn) context.Context {
	c := caller{credentialsErr: wire.ErrNoCredentials}
	if unix, ok := conn.(*net.UnixConn); ok {
		c.Credentials, c.credentialsErr = wire.CredentialsOf(unix)
	}
	return context.WithValue(ctx, callerKey{}, c)
}

// authorized passes a request to next if its caller may do more than read the status. It rejects other requests before
// reading their messages.
func (s *Server) authorized(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		c, ok := r.Context().Value(callerKey{}).(caller)
		if !ok {
			c.credentialsErr = wire.ErrNoCredentials
		}
		if err := s.backend.Authorize(r.URL.Path, c.Credentials, c.credentialsErr); err != nil {
			return err
		}
		return next(w, r)
	}
}
