package mpemodel

import "github.com/zrlmpi/zrlmpid/protocol"

// expectation describes the header that the MPE is waiting for.
type expectation struct {
	src  uint32
	typ  protocol.Type
	call protocol.Call
}

// verdict is the result with which the MPE's check of a header ends.
type verdict uint8

const (
	awaited    verdict = iota // 0 in the source
	unexpected                // 1: a header that is not the expected one; it is deferred
	invalid                   // 2: not a header; the bytes are discarded
)

// parse decodes a header as the MPE does: it accepts undefined calls and types, but only source ranks that have a cache
// line.
func parse(b []byte) (protocol.Header, bool) {
	h, d := protocol.CloudFPGA.Parse(b)
	switch d.Kind {
	case protocol.DefectNone, protocol.DefectCall, protocol.DefectType:
		return h, h.Src < protocol.MaxRanksFPGA
	}
	return h, false
}

// check compares a header with the expected one. It ignores the destination rank and the size (trap 11).
func (e expectation) check(h protocol.Header) verdict {
	if h.Src != e.src || h.Type != e.typ || h.Call != e.call {
		return unexpected
	}
	return awaited
}

// cache holds one deferred header per source rank. A newer header overwrites it (trap 1).
type cache struct {
	lines [protocol.MaxRanksFPGA]protocol.Header
	valid [protocol.MaxRanksFPGA]bool
}

// deferHeader stores h under the source rank in h, which may differ from the rank that sent it.
func (c *cache) deferHeader(h protocol.Header) {
	c.lines[h.Src] = h
	c.valid[h.Src] = true
}

func (c *cache) lookup(rank uint32) (protocol.Header, bool) {
	return c.lines[rank], c.valid[rank]
}

func (c *cache) drop(rank uint32) { c.valid[rank] = false }
