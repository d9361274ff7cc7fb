package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// HTTP configures the daemon's HTTP server for metrics, health and the status page.
type HTTP struct {
	// Listen is an address with a port. The address is an IP address, "localhost", or empty for all addresses; port 0
	// selects a free port. If Listen is empty, the daemon runs no server.
	Listen string `yaml:"listen"`
	// WebConfig is the path of a web configuration file of Prometheus' exporter toolkit, for TLS and passwords. It is
	// optional.
	WebConfig string `yaml:"web_config"`
	// Hosts lists names by which requests may address the server, in addition to IP addresses, names without a dot,
	// localhost and the host's own name. *.name matches all names that end in .name. The server rejects requests for
	// other names, because a page of another site may have sent them.
	Hosts []string `yaml:"hosts,omitempty"`
	// Pprof enables the profiles of the Go runtime.
	Pprof bool `yaml:"pprof"`
}

// Metrics limits the series of /metrics.
type Metrics struct {
	// Peers is the maximum number of peers per local rank with separate series.
	Peers int `yaml:"peers"`
}

// DefaultHTTP is the default of HTTP.Listen.
const DefaultHTTP = "127.0.0.1:9627"

const (
	defaultMetricsPeers = 64
	// maxMetricsPeers times some 100 series per peer is about as much as a Prometheus server accepts from one target.
	maxMetricsPeers = 1024
)

// SetHTTPListen sets HTTP.Listen explicitly, as IsHTTPExplicit then reports.
func (c *Config) SetHTTPListen(listen string) { c.HTTP.Listen, c.source.httpExplicit = listen, true }

// IsHTTPExplicit reports whether the file, the environment, a flag or the program set HTTP.Listen. Otherwise, daemons
// on one host share the default address, on which only one of them can listen.
func (c *Config) IsHTTPExplicit() bool {
	return c.source.httpExplicit || c.source.Has("http.listen") || c.HTTP.Listen != DefaultHTTP
}

func (c *Config) validateHTTP(problems *strictyaml.Problems) {
	if problem := listenProblem(c.HTTP.Listen); problem != "" {
		problems.Add("http.listen", "%s", problem)
	}
	if problem := pathProblem(c.HTTP.WebConfig); problem != "" {
		problems.Add("http.web_config", "%s", problem)
	}
	for i, name := range c.HTTP.Hosts {
		if name = strings.TrimPrefix(name, "*."); name == "" || strings.ContainsAny(name, "*:/ ") {
			problems.Add(fmt.Sprintf("http.hosts[%d]", i),
				"%q is not the name of a host without a port, such as zrlmpid.example.org or *.svc.cluster.local",
				c.HTTP.Hosts[i])
		}
	}
	checkRange(problems, "metrics.peers", c.Metrics.Peers, 0, maxMetricsPeers)
}

// listenProblem describes why an address to listen on is invalid, or returns "" if it is valid.
func listenProblem(listen string) string {
	if listen == "" {
		return ""
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Sprintf("%s is not an address with a port: write it as in %s or [::1]:9627, or write \"\" to "+
			"disable HTTP", strictyaml.Quote(listen), DefaultHTTP)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("%s is not a port: it is 0 to 65535", strictyaml.Quote(port))
	} else if strconv.FormatUint(n, 10) != port {
		return fmt.Sprintf("%s is not a port: write %d", strictyaml.Quote(port), n)
	}
	if host != "" && host != "localhost" {
		if _, err := netip.ParseAddr(host); err != nil {
			return fmt.Sprintf("%s is not an IP address, and not localhost: names of hosts are not looked up",
				strictyaml.Quote(host))
		}
	}
	return ""
}
