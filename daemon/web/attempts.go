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

// Checking a password takes about 60 ms of CPU time. The rate of checks is therefore limited, for each client
// address and in total, so that guesses cannot slow the ranks down. Credentials that were accepted before are
// exempt.
const (
	// guessEvery and guessBurst limit the checks for one address; allEvery and allBurst limit all checks
	// together.
	guessEvery, guessBurst = time.Second, 5
	allEvery, allBurst     = 500 * time.Millisecond, 10
	// maxKnown limits the number of remembered credentials and the number of remembered addresses.
	maxKnown = 1024
)

// attempts limits the rate at which passwords are checked.
type attempts struct {
	next http.Handler // checks passwords and calls grant if they are correct

	mu      sync.Mutex
	known   map[[sha256.Size]byte]bool // credentials that were accepted before
	clients map[string]*rate.Limiter
	all     *rate.Limiter
}

func newAttempts(next http.Handler) *attempts {
	return &attempts{
		next: next, known: map[[sha256.Size]byte]bool{}, clients: map[string]*rate.Limiter{},
		all: rate.NewLimiter(rate.Every(allEvery), allBurst),
	}
}

// attempt is a request that contains a password.
type attempt struct {
	limits  *attempts
	id      [sha256.Size]byte
	granted bool
}

// attemptKey is the context key of a request's attempt.
type attemptKey struct{}

// grant records that the password in a request is correct.
func grant(r *http.Request) {
	if a, ok := r.Context().Value(attemptKey{}).(*attempt); ok {
		a.granted = true
		a.limits.note(a.id, true)
	}
}

// ServeHTTP passes a request to the handler that checks its password, unless the rate limit is exceeded.
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

// mayTry reports whether a password may be checked now. Credentials that were accepted before do not count
// against the limits.
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
			clear(l.clients) // the limit for all checks together still applies
		}
		limit = rate.NewLimiter(rate.Every(guessEvery), guessBurst)
		l.clients[client] = limit
	}
	return limit.AllowN(now, 1) && l.all.AllowN(now, 1)
}

// note records whether a password was correct.
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

// guarded is a server's listener. The exporter toolkit replaces the server's handler with one that checks
// passwords before it accepts the first connection; at that point, guarded wraps the new handler in attempts.
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
