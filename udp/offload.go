package udp

import (
	"fmt"
	"os"
)

// EnvOffload is the name of an environment variable. If its value is "off", offload is disabled for every socket that
// the process opens, as by Config.NoOffload. If it is "auto" or "", Config.NoOffload decides. With any other value,
// Listen returns an error. The variable serves tests without offload, and shows whether offload causes a problem.
const EnvOffload = "ZRLMPI_OFFLOAD"

// Offload reports the offload features in use by a Conn.
type Offload struct {
	// Batches is set if one system call sends or receives many datagrams.
	Batches bool
	// Segments is set if the kernel segments long pieces into datagrams, and Coalesces if it can coalesce received
	// datagrams.
	Segments, Coalesces bool
	// Off is set if Config.NoOffload, EnvOffload or Config.Impair has disabled segmentation and coalescing.
	Off bool
	// Refused lists the peers for which the kernel has refused to segment, in rank order. The Conn sends single
	// datagrams to these peers.
	Refused []Refusal
}

// Refusal reports a peer for which the kernel has refused to segment.
type Refusal struct {
	Peer int
	Err  error
}

// Offload returns the offload features currently in use. It may be called at any time.
func (c *Conn) Offload() Offload {
	return Offload{
		Batches: c.caps.sendBatch > 1, Segments: c.caps.canSegment, Coalesces: c.caps.canCoalesce,
		Off: c.cfg.NoOffload || c.cfg.Impair != nil, Refused: c.sock.refusals(),
	}
}

// applyEnv sets NoOffload if EnvOffload is "off". It returns an error if the value is invalid.
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
