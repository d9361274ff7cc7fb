package udp

import (
	"fmt"
	"os"
)

// EnvOffload names an environment variable that switches offload off for every
// socket that the process opens, as Config.NoOffload does, if it is "off". "auto"
// and "" leave it to the Config; anything else is an error of Listen. It is for
// finding out whether offload is at fault, and for testing what happens without.
const EnvOffload = "ZRLMPI_OFFLOAD"

// Offload is how much of its work a Conn has the system do.
type Offload struct {
	// Batches: a system call moves many datagrams, and not one.
	Batches bool
	// Segments: the kernel segments long pieces into datagrams. Coalesces: it puts
	// datagrams together again where they arrive.
	Segments, Coalesces bool
	// Off says that both were not asked for: because of Config.NoOffload, of
	// EnvOffload, or of Config.Impair.
	Off bool
	// Refused are the peers for which the kernel has refused to segment, in rank
	// order. What goes to them is segmented here since.
	Refused []Refusal
}

// Refusal is a peer to which long pieces do not go, and the error number that the
// kernel has refused the first with.
type Refusal struct {
	Peer int
	Err  error
}

// Offload returns what the system does at this moment. It may be called at any
// time.
func (c *Conn) Offload() Offload {
	return Offload{
		Batches: c.caps.sendBatch > 1, Segments: c.caps.segments, Coalesces: c.caps.coalesces,
		Off: c.cfg.NoOffload || c.cfg.Impair != nil, Refused: c.sock.refusals(),
	}
}

// applyEnv lets the environment switch offload off.
func (c *Config) applyEnv() error {
	switch v := os.Getenv(EnvOffload); v {
	case "", "auto":
	case "off":
		c.NoOffload = true
	default:
		return fmt.Errorf("udp: %s: %q is not known: it is auto or off", EnvOffload, v)
	}
	return nil
}
