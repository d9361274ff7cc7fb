package web

import (
	"context"
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Checking a password takes about 60 ms of CPU time. The server therefore limits the rate of checks, for each client
// address and in total, so that guesses cannot slow the ranks down. Credentials accepted before are exempt.
const (
	// clientInterval and clientBurst limit the checks for one address; totalInterval and totalBurst limit all checks
	// together.
	clientInterval, clientBurst = time.Second, 5
	totalInterval, totalBurst   = 500 * time.Millisecond, 10
	// maxRemembered is the maximum number of remembered credentials, and of remembered addresses.
	maxRemembered = 1024
)

// loginLimiter limits the rate at which passwords are checked.
type loginLimiter struct {
	next http.Handler // checks passwords and calls markGranted for correct ones

	mu        sync.Mutex
	accepted  map[[sha256.Size]byte]bool // credentials accepted before
	perClient map[string]*rate.Limiter
	overall   *rate.Limiter
}

func newLoginLimiter(next http.Handler) *loginLimiter {
	return &loginLimiter{
		next: next, accepted: map[[sha256.Size]byte]bool{}, perClient: map[string]*rate.Limiter{},
		overall: rate.NewLimiter(rate.Every(totalInterval), totalBurst),
	}
}

// loginAttempt describes a request that contains a password.
type loginAttempt struct {
	limiter *loginLimiter
	id      [sha256.Size]byte
	granted bool
}

// attemptKey is the context key for the loginAttempt of a request.
type attemptKey struct{}

// markGranted records that the password in a request is correct.
func markGranted(r *http.Request) {
	if a, ok := r.Context().Value(attemptKey{}).(*loginAttempt); ok {
		a.granted = true
		a.limiter.recordResult(a.id, true)
	}
}

// ServeHTTP passes a request on unless checking its password would exceed a rate limit.
func (l *loginLimiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, ok := r.BasicAuth()
	if !ok {
		l.next.ServeHTTP(w, r)
		return
	}
	id := sha256.Sum256([]byte(user + "\x00" + password))
	if !l.allow(id, r.RemoteAddr, time.Now()) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many passwords were tried: wait a second", http.StatusTooManyRequests)
		return
	}
	a := loginAttempt{limiter: l, id: id}
	l.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, &a)))
	if !a.granted {
		l.recordResult(id, false)
	}
}

// allow reports whether a password may be checked now. Credentials accepted before do not count toward the limits.
func (l *loginLimiter) allow(id [sha256.Size]byte, address string, now time.Time) bool {
	client, _, err := net.SplitHostPort(address)
	if err != nil {
		client = address
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accepted[id] {
		return true
	}
	limit := l.perClient[client]
	if limit == nil {
		if len(l.perClient) >= maxRemembered {
			clear(l.perClient) // the limit on all checks together still applies
		}
		limit = rate.NewLimiter(rate.Every(clientInterval), clientBurst)
		l.perClient[client] = limit
	}
	return limit.AllowN(now, 1) && l.overall.AllowN(now, 1)
}

// recordResult records whether a password was correct.
func (l *loginLimiter) recordResult(id [sha256.Size]byte, granted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !granted {
		delete(l.accepted, id)
		return
	}
	if len(l.accepted) >= maxRemembered {
		clear(l.accepted)
	}
	l.accepted[id] = true
}

// guardedListener is a server's listener. Before the server accepts its first connection, the exporter toolkit replaces
// its handler with one that checks passwords; the first Accept then wraps that handler in a loginLimiter.
type guardedListener struct {
	net.Listener
	server *http.Server
	once   sync.Once
}

// Accept implements net.Listener.
func (g *guardedListener) Accept() (net.Conn, error) {
	g.once.Do(func() { g.server.Handler = newLoginLimiter(g.server.Handler) })
	return g.Listener.Accept()
}
