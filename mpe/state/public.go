// Package waitreport is what ranks answer each other that ask what they wait for (E53 of docs/ZRLMPI_protocol.md): a report that
// Encode writes and Decode reads, and what tools get that have ranks asked.
//
// A report is a JSON document, compressed by DEFLATE (RFC 1951). Fields that a reader does not know are ignored, so that versions
// can differ. It has what package diagnosis goes by, and nothing else: no payload, no path, no environment, no error of a program.
//
// It is pure. A report of another rank is bounded before it is read, and what is read is bounded as well: a rank believes of another one no
// more than what it says of itself.
package waitreport

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Bounds of a report.
const (
	// MaxPeers is the most peers of which a report says something, and MaxCalls the most collective calls that are under way.
	MaxPeers = 64
	MaxCalls = 16
	// MaxPrograms is the most processes that it names.
	MaxPrograms = 8
	// MaxText is the most bytes of a string.
	MaxText = 512
	// maxDocument is the most bytes of the JSON document. One of MaxPeers peers has about 64 KiB.
	maxDocument = 256 << 10
)

// Report is what a rank says of itself.
type Report struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
	// Role is host or standin; Kernel is what a stand-in runs, and KernelState how that is, as in the status of a daemon.
	Role        string `json:"role"`
	Kernel      string `json:"kernel,omitempty"`
	KernelState string `json:"kernel_state,omitempty"`
	// KernelHolds is what the role of a stand-in's kernel holds its messages up with, or empty.
	KernelHolds string `json:"kernel_holds,omitempty"`
	// Programs are the processes that use the rank.
	Programs []Program `json:"programs,omitempty"`
	// Engine has of the engine's state what concerns waits.
	Engine mpe.Snapshot `json:"engine"`
	// CutShort: there is more than a report has room for. Peers and calls are missing of which the fewest wait.
	CutShort bool `json:"cut_short,omitempty"`
}

// Program is a process that uses a rank.
type Program struct {
	PID     int  `json:"pid"`
	Stopped bool `json:"stopped,omitempty"`
}

// Asked is a rank that was asked over a link: Report is nil if there is none because of Reason.
type Asked struct {
	Rank   int     `json:"rank"`
	Report *Report `json:"report,omitempty"`
	Reason string  `json:"reason,omitempty"`
}

// Encode returns a report of at most mpe.MaxReport bytes, and of no more peers, calls and programs than the bounds. It changes r: what concerns no wait is
// removed, and if something else has to be, CutShort is set. The peers that are waited for stay the longest.
func Encode(r *Report) []byte {
	r.reduce()
	for peers := min(len(r.Engine.Peers), MaxPeers); ; peers /= 2 {
		if peers < len(r.Engine.Peers) {
			r.Engine.Peers, r.CutShort = r.Engine.Peers[:peers], true
		}
		text := r.compress()
		if len(text) <= mpe.MaxReport {
			return text
		}
		if peers == 0 {
			s := &r.Engine // of which calls can be the longest: their members are not bounded
			s.Calls, s.EndedCalls, r.CutShort = s.Calls[:len(s.Calls)/2], nil, true
		}
	}
}

func (r *Report) compress() []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed) // the level is valid
	if err := json.NewEncoder(w).Encode(r); err != nil {
		panic(fmt.Sprintf("a report is no JSON: %v", err)) // it has no type that could be
	}
	_ = w.Close() // a Buffer returns no errors
	return b.Bytes()
}

// reduce removes what concerns no wait, and has the peers first that matter the most.
func (r *Report) reduce() {
	s := &r.Engine
	s.Collectives, s.Disagreements, s.Dropped = nil, 0, mpe.DropCounts{}
	if len(s.Calls) > MaxCalls {
		s.Calls, r.CutShort = s.Calls[:MaxCalls], true
	}
	for i := range s.Calls {
		c := &s.Calls[i]
		c.Text = ""
		if len(c.WaitsFor) > MaxPeers {
			c.WaitsFor, r.CutShort = c.WaitsFor[:MaxPeers], true
		}
	}
	if len(r.Programs) > MaxPrograms {
		r.Programs, r.CutShort = r.Programs[:MaxPrograms], true
	}
	for i := range s.Peers {
		p := &s.Peers[i]
		p.Sent, p.Failed, p.BytesIn, p.BytesOut, p.Events, p.TakenOver, p.TakenOverBytes = 0, 0, 0, 0, mpe.EventCounts{}, 0, 0
		p.QueuedSends, p.QueuedReceives, p.Retransmissions = 0, 0, 0
		if x := p.Extended; x != nil {
			// Sessions are what packets are believed by.
			x.Session, x.PeerSession = 0, min(x.PeerSession, 1)
			x.RoundTrip, x.TimeOut, x.Payload, x.Window, x.Losses, x.OutOfOrder, x.Probes = 0, 0, 0, 0, 0, 0, 0
		}
	}
	slices.SortStableFunc(s.Peers, func(a, b mpe.PeerSnapshot) int { return weight(&b) - weight(&a) })
	clip(reflect.ValueOf(r))
}

// weight is how much a peer matters.
func weight(p *mpe.PeerSnapshot) int {
	switch {
	case p.Sending != nil || p.Receiving != nil:
		return 3
	case p.Deferred != nil || p.UnansweredClear != nil || p.Unexpected > 0:
		return 2
	case p.PacketsIn > 0 || p.LastDrop != nil || p.NetworkError != "":
		return 1
	}
	return 0
}

// clip cuts all strings to MaxText bytes, and replaces what is no printable character.
func clip(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clip(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			clip(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			clip(v.Index(i))
		}
	case reflect.String:
		v.SetString(clean(v.String()))
	}
}

func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s[:min(len(s), MaxText)])
	return strings.ToValidUTF8(s[:min(len(s), MaxText)], "")
}

// ErrInvalid: what a rank has answered is no report of it.
var ErrInvalid = errors.New("what it has answered is no report")

// Decode reads the report of a rank of a cluster of so many ranks. It reads no more than mpe.MaxReport bytes. The error matches ErrInvalid.
func Decode(text []byte, rank, ranks int) (*Report, error) {
	if len(text) > mpe.MaxReport {
		return nil, fmt.Errorf("%w: %d bytes, and a report has %d at most", ErrInvalid, len(text), mpe.MaxReport)
	}
	document := flate.NewReader(bytes.NewReader(text))
	r := new(Report)
	if err := json.NewDecoder(io.LimitReader(document, maxDocument)).Decode(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := r.check(rank, ranks); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	clip(reflect.ValueOf(r))
	return r, nil
}

// check refuses what is beyond the bounds, or contradicts itself.
func (r *Report) check(rank, ranks int) error {
	s := &r.Engine
	foreign := func(rank int) bool { return rank < 0 || rank >= ranks }
	switch {
	case r.Rank != rank || s.Rank != rank:
		return fmt.Errorf("it is of rank %d", r.Rank)
	case len(s.Peers) > MaxPeers, len(s.Calls) > MaxCalls, len(r.Programs) > MaxPrograms:
		return fmt.Errorf("it has %d peers, %d calls and %d programs", len(s.Peers), len(s.Calls), len(r.Programs))
	}
	for i := range s.Peers {
		if p := &s.Peers[i]; foreign(p.Rank) || p.Rank == rank {
			return fmt.Errorf("it has a peer %d", p.Rank)
		}
	}
	for i := range s.Calls {
		if c := &s.Calls[i]; slices.ContainsFunc(append(slices.Clone(c.Members), c.WaitsFor...), foreign) || rootless(c, foreign) {
			return fmt.Errorf("its call %d has ranks that there are not", c.Number)
		}
	}
	return nil
}

func rootless(c *collective.Snapshot, foreign func(int) bool) bool {
	return c.Root != nil && foreign(*c.Root)
}
