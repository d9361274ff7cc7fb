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

// Checking a password takes about 60 ms of CPU time. Credentials not known to be right are therefore checked at
// a limited rate, for each address and in total: guesses must not slow the ranks down.
const (
	// guessEvery and guessBurst limit the checks for one address, allEvery and allBurst all checks.
	guessEvery, guessBurst = time.Second, 5
	allEvery, allBurst     = 500 * time.Millisecond, 10
	// maxKnown limits the credentials, and the addresses, that are remembered.
	maxKnown = 1024
)

// attempts limits the rate at which passwords are checked.
type attempts struct {
	next http.Handler // checks passwords, and calls grant for right ones

	mu      sync.Mutex
	known   map[[sha256.Size]byte]bool // right before
	clients map[string]*rate.Limiter
	all     *rate.Limiter
}

func newAttempts(next http.Handler) *attempts {
	return &attempts{
		next: next, known: map[[sha256.Size]byte]bool{}, clients: map[string]*rate.Limiter{},
		all: rate.NewLimiter(rate.Every(allEvery), allBurst),
	}
}

// attempt is a request with a password.
type attempt struct {
	limits  *attempts
	id      [sha256.Size]byte
	granted bool
}

// attemptKey is the context key of a request's attempt.
type attemptKey struct{}

// grant records that the password of a request is right.
func grant(r *http.Request) {
	if a, ok := r.Context().Value(attemptKey{}).(*attempt); ok {
		a.granted = true
		a.limits.note(a.id, true)
	}
}

// ServeHTTP passes a request on for its password to be checked, unless the rate limit is exceeded.
func (l *attempts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, ok := r.BasicAuth()
	if !ok {
		l.next.ServeHTTP(w, r)
		return
	}
	id := sha256.Sum256([]byte(user + "\x00" + password))
	if !l.mayTry(id, r.RemoteAddr, time.Now()) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many passwords were tried: wait a second", http.StatusTooManyRequests)
		return
	}
	a := attempt{limits: l, id: id}
	l.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, &a)))
	if !a.granted {
		l.note(id, false)
	}
}

// mayTry reports whether a password may be checked now. Credentials known to be right do not count against the
// limits.
func (l *attempts) mayTry(id [sha256.Size]byte, address string, now time.Time) bool {
	client, _, err := net.SplitHostPort(address)
	if err != nil {
		client = address
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[id] {
		return true
	}
	limit := l.clients[client]
	if limit == nil {
		if len(l.clients) >= maxKnown {
			clear(l.clients) // the limit on all checks still applies
		}
		limit = rate.NewLimiter(rate.Every(guessEvery), guessBurst)
		l.clients[client] = limit
	}
	return limit.AllowN(now, 1) && l.all.AllowN(now, 1)
}

// note records whether a password was right.
func (l *attempts) note(id [sha256.Size]byte, granted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !granted {
		delete(l.known, id)
		return
	}
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[id] = true
}

// guarded is the listener of a server. Before the first connection, the toolkit has replaced the server's
// handler by one that checks passwords. guarded wraps that handler, so that attempts comes first.
type guarded struct {
	net.Listener
	server *http.Server
	once   sync.Once
}

// Accept implements net.Listener.
func (g *guarded) Accept() (net.Conn, error) {
	g.once.Do(func() { g.server.Handler = newAttempts(g.server.Handler) })
	return g.Listener.Accept()
}
