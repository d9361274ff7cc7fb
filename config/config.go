package config

import (
	"os"
	"path/filepath"
	"time"
)

// Config is a whole configuration. Parse, Load and New return it with defaults
// filled in.
type Config struct {
	Log     Log     `yaml:"log"`
	Control Control `yaml:"control"`
	Attach  Attach  `yaml:"attach,omitempty"`
	HTTP    HTTP    `yaml:"http"`
	Metrics Metrics `yaml:"metrics"`
	Record  Record  `yaml:"record"`
	// StopTimeout is how long pending messages may take to complete when the daemon
	// stops. 0: they are aborted at once.
	StopTimeout time.Duration `yaml:"stop_timeout"`
	// TLS secures the links over TCP; nil leaves them plain.
	TLS *TLS `yaml:"tls,omitempty"`
	// Ranks are all ranks of the cluster, in the order of the file.
	Ranks []Rank `yaml:"ranks"`
	// Defaults are the options of the links to all ranks. A rank's Link overrides
	// them.
	Defaults LinkOptions `yaml:"defaults,omitempty"`
	Limits   Limits      `yaml:"limits"`
	// Collectives is how collective calls are carried out.
	Collectives Collectives `yaml:"collectives"`

	source source
	// warnings are those of the file from which the configuration was made.
	warnings []string
}

// AddWarning adds a line to Warnings.
func (c *Config) AddWarning(text string) { c.warnings = append(c.warnings, text) }

// Log is the level and format of the log.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `yaml:"level"`
	// Format is console or json.
	Format string `yaml:"format"`
}

// Control is the Unix socket by which zrlctl reaches the daemon.
type Control struct {
	// Socket is an absolute path, or empty for no socket.
	Socket string `yaml:"socket"`
	// Mode is the permission bits of the socket's file.
	Mode Mode `yaml:"mode"`
	// Allow are those who may do more than read the status. Nil: all that Mode lets connect.
	Allow *Allow `yaml:"allow,omitempty"`
}

// Limits are limits of what the daemon takes of the machine.
type Limits struct {
	// ReceiveBuffer is the receive buffer in bytes that each rank's UDP socket
	// requests.
	ReceiveBuffer Size `yaml:"receive_buffer"`
	// Offload selects UDP segmentation and receive offload: OffloadAuto or
	// OffloadOff.
	Offload string `yaml:"offload"`
	// Unexpected is how many messages of the extended profile may wait for a
	// receive at a rank: of all peers together, and of the rank's own in each communicator.
	Unexpected int `yaml:"unexpected"`
	// Posted is how many receives may wait for a message at such a rank, in
	// each communicator.
	Posted int `yaml:"posted"`
	// AttachedBytes is how many bytes the operations of all attached programs may
	// take. 0: half of the memory that the daemon may take.
	AttachedBytes Size `yaml:"attached_bytes"`
}

// The values that Log takes.
const (
	LevelDebug = "debug"
	LevelInfo  = "info"
	LevelWarn  = "warn"
	LevelError = "error"

	FormatConsole = "console"
	FormatJSON    = "json"
)

// The values that Limits.Offload takes.
const (
	// OffloadAuto enables the offload features that the kernel has.
	OffloadAuto = "auto"
	// OffloadOff disables UDP segmentation and receive offload.
	OffloadOff = "off"
)

const (
	defaultMode          = 0o660
	defaultReceiveBuffer = 16 << 20
	defaultUnexpected    = 1 << 21
	defaultPosted        = 1 << 20
	// defaultStopTimeout allows for several retransmissions of a lost packet.
	defaultStopTimeout = 2 * time.Second
)

// serviceSocket is the control socket of a system service.
const serviceSocket = "/run/zrlmpid/control.sock"

// DefaultSocket is the control socket of a configuration that names none:
// zrlmpid.sock in $XDG_RUNTIME_DIR, or /run/zrlmpid/control.sock where that
// variable is not an absolute path, as in a system service.
func DefaultSocket() string {
	// The XDG base directory rules say to ignore a path that is not absolute.
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "zrlmpid.sock")
	}
	return serviceSocket
}

// FindSocket returns the control socket of a daemon that was not named: DefaultSocket, or
// that of the system service if only that exists, as in a user session.
func FindSocket() string { return firstSocket(DefaultSocket(), serviceSocket) }

// firstSocket returns the first path that exists, or the first of all.
func firstSocket(paths ...string) string {
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return paths[0]
}

// New returns a configuration of the given ranks with every default filled in,
// as Parse does for a file. It is not checked: call Validate.
func New(ranks ...Rank) *Config {
	c := &Config{Ranks: ranks}
	c.setDefaults()
	c.complete()
	return c
}

// setDefaults gives the values that do not depend on other keys, before the
// file is read.
func (c *Config) setDefaults() {
	c.Log = Log{Level: LevelInfo, Format: FormatConsole}
	c.Control = Control{Socket: DefaultSocket(), Mode: defaultMode}
	c.HTTP = HTTP{Listen: DefaultHTTP}
	c.Metrics = Metrics{Peers: defaultMetricsPeers}
	c.Record = Record{Memory: defaultRecordMemory, Spool: Spool{Size: defaultSpoolSize}}
	c.StopTimeout = defaultStopTimeout
	c.Collectives = Collectives{Order: OrderFixed, Upstream: UpstreamFlat}
	c.Limits = Limits{ReceiveBuffer: defaultReceiveBuffer, Offload: OffloadAuto, Unexpected: defaultUnexpected, Posted: defaultPosted}
}

// Rank returns the entry of rank n, or nil if there is none. After Validate
// there is one for each n in 0 … len(c.Ranks)-1.
func (c *Config) Rank(n int) *Rank {
	for i := range c.Ranks {
		if c.Ranks[i].Rank == n {
			return &c.Ranks[i]
		}
	}
	return nil
}

// Local returns the ranks that this daemon runs, in the order of the file.
func (c *Config) Local() []*Rank {
	var local []*Rank
	for i := range c.Ranks {
		if c.Ranks[i].Local() {
			local = append(local, &c.Ranks[i])
		}
	}
	return local
}
