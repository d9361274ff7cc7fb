package config

import (
	"os"
	"path/filepath"
	"time"
)

// Config is a complete configuration. Parse, Load and New fill in its defaults.
type Config struct {
	Log     Log     `yaml:"log"`
	Control Control `yaml:"control"`
	Attach  Attach  `yaml:"attach,omitempty"`
	HTTP    HTTP    `yaml:"http"`
	Metrics Metrics `yaml:"metrics"`
	Record  Record  `yaml:"record"`
	// StopTimeout is the maximum time for which a stopping daemon waits for pending messages. If it is 0, the daemon
	// aborts them at once.
	StopTimeout time.Duration `yaml:"stop_timeout"`
	// TLS secures the links over TCP. If it is nil, they are not encrypted.
	TLS *TLS `yaml:"tls,omitempty"`
	// Ranks lists all ranks of the cluster, in file order.
	Ranks []Rank `yaml:"ranks"`
	// Defaults are the default options of the links to all ranks. A rank's Link overrides them.
	Defaults LinkOptions `yaml:"defaults,omitempty"`
	Limits   Limits      `yaml:"limits"`
	// Collectives selects the algorithms of collective calls.
	Collectives Collectives `yaml:"collectives"`

	source source
	// warnings are the warnings about the file that the configuration comes from.
	warnings []string
}

// AddWarning adds a line to Warnings.
func (c *Config) AddWarning(text string) { c.warnings = append(c.warnings, text) }

// Log configures the level and format of the log.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `yaml:"level"`
	// Format is console or json.
	Format string `yaml:"format"`
}

// Control configures the Unix socket through which zrlctl reaches the daemon.
type Control struct {
	// Socket is an absolute path, or empty for no socket. If it is nil, the default applies (see Config.ControlSocket).
	Socket *string `yaml:"socket,omitempty"`
	// Mode is the permission bits of the socket's file.
	Mode Mode `yaml:"mode"`
	// Allow lists the users who may do more than read the status. If it is nil, every user whom Mode allows to connect
	// may do so.
	Allow *AccessList `yaml:"allow,omitempty"`
}

// Limits limits how much of the machine's resources the daemon uses.
type Limits struct {
	// ReceiveBuffer is the size in bytes of the receive buffer requested for each rank's UDP socket.
	ReceiveBuffer Size `yaml:"receive_buffer"`
	// Offload selects UDP segmentation and receive offload: OffloadAuto or OffloadOff.
	Offload string `yaml:"offload"`
	// Unexpected is the maximum number of messages that may wait at a rank of the extended profile until a receive
	// matches. The limit applies to all peers together and, for messages that the rank sends to itself, to each
	// communicator.
	Unexpected int `yaml:"unexpected"`
	// Posted is the maximum number of receives that may wait for a message in each communicator, at a rank of the
	// extended profile.
	Posted int `yaml:"posted"`
	// AttachedBytes limits the memory, in bytes, that the operations of all attached programs may use together. 0 means
	// half of the memory available to the daemon.
	AttachedBytes Size `yaml:"attached_bytes,omitempty"`
}

// Values of Log.
const (
	LevelDebug = "debug"
	LevelInfo  = "info"
	LevelWarn  = "warn"
	LevelError = "error"

	FormatConsole = "console"
	FormatJSON    = "json"
)

// Values of Limits.Offload.
const (
	// OffloadAuto enables the offload features of the kernel.
	OffloadAuto = "auto"
	// OffloadOff disables UDP segmentation and receive offload.
	OffloadOff = "off"
)

const (
	// defaultMode permits the socket's owner and group to connect.
	defaultMode = 0o660
	// defaultReceiveBuffer is in bytes. defaultUnexpected and defaultPosted are in messages and receives per communicator.
	defaultReceiveBuffer = 16 << 20
	defaultUnexpected    = 1 << 21
	defaultPosted        = 1 << 20
	// defaultStopTimeout is long enough for several retransmissions of a lost packet.
	defaultStopTimeout = 2 * time.Second
)

// serviceSocket is the control socket of a system service.
const serviceSocket = "/run/zrlmpid/control.sock"

// DefaultSocket returns the default control socket: zrlmpid.sock in $XDG_RUNTIME_DIR, or /run/zrlmpid/control.sock if
// that variable is not an absolute path, as in a system service.
func DefaultSocket() string {
	// The XDG base directory specification requires that a relative path be ignored.
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "zrlmpid.sock")
	}
	return serviceSocket
}

// ControlSocket returns the path of the control socket, or "" without such a socket. The default is DefaultSocket.
func (c *Config) ControlSocket() string {
	if c.Control.Socket != nil {
		return *c.Control.Socket
	}
	return DefaultSocket()
}

// FindSocket returns the control socket to use by default: DefaultSocket, or the socket of the system service if only
// the latter exists, as in a user session.
func FindSocket() string { return firstSocket(DefaultSocket(), serviceSocket) }

// firstSocket returns the first existing path, or paths[0] if none exists.
func firstSocket(paths ...string) string {
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return paths[0]
}

// New returns a configuration of the given ranks, with defaults filled in as by Parse. It does not validate the
// configuration; call Validate.
func New(ranks ...Rank) *Config {
	c := &Config{Ranks: ranks}
	c.setDefaults()
	c.setDerived()
	return c
}

// setDefaults sets the values that do not depend on other keys, before the file is read.
func (c *Config) setDefaults() {
	c.Log = Log{Level: LevelInfo, Format: FormatConsole}
	c.Control = Control{Mode: defaultMode}
	c.HTTP = HTTP{Listen: DefaultHTTP}
	c.Metrics = Metrics{Peers: defaultMetricsPeers}
	c.Record = Record{Memory: defaultRecordMemory, Spool: Spool{Size: defaultSpoolSize}}
	c.StopTimeout = defaultStopTimeout
	c.Collectives = Collectives{Order: OrderFixed, Upstream: UpstreamFlat}
	c.Limits = Limits{ReceiveBuffer: defaultReceiveBuffer, Offload: OffloadAuto, Unexpected: defaultUnexpected,
		Posted: defaultPosted}
}

// Rank returns the entry of rank n, or nil if there is no such entry. After Validate, each n in 0 … len(c.Ranks)-1 has
// an entry.
func (c *Config) Rank(n int) *Rank {
	for i := range c.Ranks {
		if c.Ranks[i].Rank == n {
			return &c.Ranks[i]
		}
	}
	return nil
}

// LocalRanks returns the ranks that this daemon runs, in file order.
func (c *Config) LocalRanks() []*Rank {
	var local []*Rank
	for i := range c.Ranks {
		if c.Ranks[i].IsLocal() {
			local = append(local, &c.Ranks[i])
		}
	}
	return local
}
