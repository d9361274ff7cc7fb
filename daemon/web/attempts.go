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

// To check a password takes some 60 ms of a processor. So passwords that have not been found right before are checked
// at a bounded rate, for each address and for all: guesses must not slow the ranks down.
const (
	// guessEvery and guessBurst bound the checks for one address, allEvery and allBurst those for all.
	guessEvery, guessBurst = time.Second, 5
	allEvery, allBurst     = 500 * time.Millisecond, 10
	// maxKnown bounds the credentials, and the addresses, that are remembered.
	maxKnown = 1024
)

// attempts bounds the rate at which passwords are checked.
type attempts struct {
	next http.Handler // checks passwords, and calls granted of those that are right

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

// attemptKey is the key of the attempt in the context of a request.
type attemptKey struct{}

// grant notes that the password of a request is right.
func grant(r *http.Request) {
	if a, ok := r.Context().Value(attemptKey{}).(*attempt); ok {
		a.granted = true
		a.limits.note(a.id, true)
	}
}

// ServeHTTP has a password checked, unless that was done too often.
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

// mayTry reports whether a password may be checked now. Those that were right before are not checked anew.
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
			clear(l.clients) // the limit of all still holds
		}
		limit = rate.NewLimiter(rate.Every(guessEvery), guessBurst)
		l.clients[client] = limit
	}
	return limit.AllowN(now, 1) && l.all.AllowN(now, 1)
}

// note remembers whether a password was right.
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

// guarded is the listener of a server. Before its first connection, package toolkit has set the server's handler to its
// own, which checks passwords: attempts come before that.
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
