package udp

import (
	"fmt"
	"os"
)

// EnvOffload is the name of an environment variable that, if "off", disables offload for every socket that the process
// opens, as Config.NoOffload does. "auto" and "" leave it to the Config; any other value is an error of Listen. It is
// for finding out whether offload causes a problem, and for tests without offload.
const EnvOffload = "ZRLMPI_OFFLOAD"

// Offload reports the offload features in use by a Conn.
type Offload struct {
	// Batches: one system call moves many datagrams.
	Batches bool
	// Segments: the kernel segments long pieces into datagrams. Coalesces: it joins received datagrams.
	Segments, Coalesces bool
	// Off: both are disabled by Config.NoOffload, EnvOffload or Config.Impair.
	Off bool
	// Refused are the peers for which the kernel has refused to segment, in rank order. The Conn sends single datagrams
	// to them.
	Refused []Refusal
}

// Refusal is a peer to which no long pieces are sent, and the error with which the kernel refused the first one.
type Refusal struct {
	Peer int
	Err  error
}

// Offload returns the offload features in use now. It may be called at any time.
func (c *Conn) Offload() Offload {
	return Offload{
		Batches: c.caps.sendBatch > 1, Segments: c.caps.segments, Coalesces: c.caps.coalesces,
		Off: c.cfg.NoOffload || c.cfg.Impair != nil, Refused: c.sock.refusals(),
	}
}

// applyEnv applies EnvOffload.
func (c *Config) applyEnv() error {
	switch v := os.Getenv(EnvOffload); v {
	case "", "auto":
	case "off":
		c.NoOffload = true
	default:
		return fmt.Errorf("udp: %s: %q is not known: use auto or off", EnvOffload, v)
	}
	return nil
}
