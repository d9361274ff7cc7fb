package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// In a DNS rebinding attack, a page from another site makes its own name resolve to this server's address, so that the
// browser lets the page read the server's answers. The server therefore answers a request only if its Host is a name
// that such a site cannot have: an IP address, a name without a dot, localhost, this host's own name, or a configured
// name. With TLS, no such check is needed, because the certificate does not match the other site's name.

// serverNames returns the names by which requests may address the server.
func serverNames(listen string, configured []string) []string {
	names := append([]string{"localhost", "*.localhost"}, configured...)
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" {
		names = append(names, host)
	}
	if own, err := os.Hostname(); err == nil {
		names = append(names, own)
	}
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	return names
}

// isHostAllowed reports whether the server may answer a request with this Host header. It allows a missing header,
// because only HTTP/1.0 requests may omit it, and browsers always send one.
func (s *Server) isHostAllowed(r *http.Request) bool {
	if r.TLS != nil || r.Host == "" {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if !strings.Contains(host, ".") {
		return true
	}
	for _, name := range s.names {
		if suffix, any := strings.CutPrefix(name, "*"); host == name || any && strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// rejectHost rejects a request whose Host header is not a name of this server.
func rejectHost(w http.ResponseWriter, r *http.Request) {
	http.Error(w, fmt.Sprintf("%.200q is not a name of this server: use its address, or add the name to http.hosts "+
		"of the configuration", r.Host), http.StatusMisdirectedRequest)
}
