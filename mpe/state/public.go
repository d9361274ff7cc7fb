package state

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

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// MaxReport is the maximum length, in bytes, of a PublicRank in encoded form.
const MaxReport = extended.MaxReport

// Bounds of a PublicRank.
const (
	// MaxPeers is the maximum number of peers, and MaxCalls the maximum number of pending collective calls.
	MaxPeers = 64
	MaxCalls = 16
	// MaxPrograms is the maximum number of processes.
	MaxPrograms = 8
	// MaxText is the maximum length of a string in bytes.
	MaxText = 512
	// maxDocument is the maximum length of the JSON document in bytes. A document with MaxPeers peers takes about 64
	// KiB.
	maxDocument = 256 << 10
)

// PublicRank is the report that a rank gives other ranks about its state (E53 of docs/ZRLMPI_protocol.md). On the wire,
// it is a JSON document compressed with DEFLATE (RFC 1951). Readers ignore unknown fields, so that versions can differ.
//
// PublicRank lists the fields that may leave the process explicitly, so that a new field of a state cannot leak by
// accident. It contains no payload, path, environment, session number, or error of a program.
type PublicRank struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
	// As in RankInfo.
	Role              Role            `json:"role"`
	Kernel            string          `json:"kernel,omitempty"`
	KernelState       KernelState     `json:"kernel_state,omitempty"`
	KernelBlockReason string          `json:"kernel_holds,omitempty"`
	Programs          []PublicProgram `json:"programs,omitempty"`
	Engine            PublicEngine    `json:"engine"`
	// CutShort means that some peers, calls or programs were omitted to keep the report within its bounds. Peers that
	// matter least for explaining waits are omitted first.
	CutShort bool `json:"cut_short,omitempty"`
}

// PublicProgram is a process that uses a rank.
type PublicProgram struct {
	PID     int     `json:"pid"`
	Seconds float64 `json:"attached_seconds,omitempty"`
	Stopped bool    `json:"stopped,omitempty"`
}

// PublicEngine is the part of an engine's state that helps to explain waits. Its fields are as in Engine.
type PublicEngine struct {
	Rank         int                    `json:"rank"`
	Size         int                    `json:"size"`
	Peers        []PublicPeer           `json:"peers"`
	Posted       int                    `json:"posted"`
	Unexpected   int                    `json:"unexpected"`
	AnySource    *Wait                  `json:"any_source,omitempty"`
	Calls        []collective.Snapshot  `json:"calls,omitempty"`
	EndedCalls   []collective.EndedCall `json:"ended_calls,omitempty"`
	LastDrop     *Drop                  `json:"last_drop,omitempty"`
	SinceLastEnd *float64               `json:"ended_seconds"`
	LastFailed   bool                   `json:"last_failed,omitempty"`
	Uptime       float64                `json:"engine_uptime_seconds,omitempty"`
}

// PublicPeer is the part of a peer's state that helps to explain waits. Its fields are as in Peer.
type PublicPeer struct {
	Rank            int             `json:"rank"`
	Kind            Kind            `json:"kind"`
	Address         string          `json:"address"`
	Profile         Profile         `json:"profile"`
	Transport       Transport       `json:"transport,omitempty"`
	Sending         *Wait           `json:"sending,omitempty"`
	Receiving       *Wait           `json:"receiving,omitempty"`
	Deferred        *Deferred       `json:"deferred,omitempty"`
	UnansweredClear *Deferred       `json:"unanswered_clear,omitempty"`
	LostAcks        *LostAcks       `json:"lost_acks,omitempty"`
	Sent            uint64          `json:"sent"`
	Received        uint64          `json:"received"`
	PacketsOut      PacketCounts    `json:"packets_out,omitzero"`
	PacketsIn       uint64          `json:"packets_in"`
	SinceLastPacket *float64        `json:"heard_seconds"`
	Dropped         DropCounts      `json:"dropped,omitzero"`
	LastDrop        *Drop           `json:"last_drop,omitempty"`
	Unreachable     *float64        `json:"unreachable_seconds,omitempty"`
	Events          EventCounts     `json:"events,omitzero"`
	Unexpected      int             `json:"unexpected"`
	Unmatched       []Envelope      `json:"unmatched,omitempty"`
	Extended        *PublicExtended `json:"extended,omitempty"`
	UnfinishedText  string          `json:"left,omitempty"`
	Refuses         string          `json:"refuses,omitempty"`
	NetworkError    string          `json:"network_error,omitempty"`
}

// PublicExtended is the part of a link's state that helps to explain waits. Its fields are as in Extended.
type PublicExtended struct {
	// PeerSession is 1 if a packet from the peer was received, and 0 otherwise. The session number itself is withheld,
	// because ranks accept packets by session number.
	PeerSession     protocol.Session `json:"peer_session"`
	InFlight        int              `json:"in_flight"`
	Queued          int              `json:"queued"`
	Begun           int              `json:"begun"`
	MessageCredit   uint32           `json:"message_credit"`
	EagerCredit     uint32           `json:"eager_credit"`
	CreditScarce    bool             `json:"credit_scarce,omitempty"`
	Retransmissions uint64           `json:"retransmissions"`
	Timeouts        uint64           `json:"time_outs"`
	Hellos          uint64           `json:"hellos"`
	Stalled         float64          `json:"stalled_seconds,omitempty"`
}

// AskResult is the result of asking a rank for its report over a link. If Report is nil, Reason explains why.
type AskResult struct {
	Rank   int         `json:"rank"`
	Report *PublicRank `json:"report,omitempty"`
	Reason string      `json:"reason,omitempty"`
	// Unanswered means that Rank did not answer when it was asked by rank AskedBy: one engine did not answer the other.
	Unanswered bool `json:"unanswered,omitempty"`
	AskedBy    int  `json:"by"`
}

// Reports holds the reports that a rank or a daemon requested from other ranks on behalf of a tool.
type Reports struct {
	Results []AskResult `json:"asked"`
}

// PublicOf returns the part of a state that other ranks may know, within the bounds of a report. The peers that matter
// most for explaining waits come first.
func PublicOf(rank *Rank) *PublicRank {
	engine := rank.Engine
	engine.Calls = engine.Calls[:min(len(engine.Calls), MaxCalls)]
	engine.Peers = slices.Clone(engine.Peers)
	slices.SortStableFunc(engine.Peers, func(a, b Peer) int { return relevance(&b) - relevance(&a) })
	engine.Peers = engine.Peers[:min(len(engine.Peers), MaxPeers)]
	publicRank := &PublicRank{
		Rank: rank.Rank, Address: rank.Address, Role: rank.Role, Kernel: rank.Kernel, KernelState: rank.KernelState,
		KernelBlockReason: rank.KernelBlockReason, Engine: convertByJSON[PublicEngine](engine),
		CutShort: len(rank.Attached) > MaxPrograms || len(rank.Engine.Calls) > MaxCalls || len(rank.Engine.Peers) > MaxPeers,
	}
	for _, a := range rank.Attached[:min(len(rank.Attached), MaxPrograms)] {
		publicRank.Programs = append(publicRank.Programs, PublicProgram{PID: a.PID, Seconds: a.Seconds, Stopped: a.Stopped})
	}
	for i := range publicRank.Engine.Calls {
		c := &publicRank.Engine.Calls[i]
		c.Text = ""
		if len(c.WaitsFor) > MaxPeers {
			c.WaitsFor, publicRank.CutShort = c.WaitsFor[:MaxPeers], true
		}
	}
	for i := range publicRank.Engine.Peers {
		if x := publicRank.Engine.Peers[i].Extended; x != nil {
			x.PeerSession = min(x.PeerSession, 1)
		}
	}
	clipStrings(reflect.ValueOf(publicRank))
	return publicRank
}

// State converts p to a Rank. Fields missing in p are zero.
func (p *PublicRank) State() *Rank {
	rank := &Rank{
		RankInfo: RankInfo{
			Rank: p.Rank, Role: p.Role, Address: p.Address, Kernel: p.Kernel, KernelState: p.KernelState,
			KernelBlockReason: p.KernelBlockReason,
		},
		Engine: convertByJSON[Engine](p.Engine),
	}
	for _, a := range p.Programs {
		rank.Attached = append(rank.Attached, Program{PID: a.PID, Seconds: a.Seconds, Stopped: a.Stopped})
	}
	return rank
}

// convertByJSON converts a value to the type To, by copying the fields that have the same JSON names.
func convertByJSON[To, From any](from From) (to To) {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, &to)
	}
	if err != nil {
		panic(fmt.Sprintf("%T is not a %T: %v", from, to, err)) // impossible: fields with equal names have equal types
	}
	return to
}

// Encode encodes p in at most MaxReport bytes. If p is too long, Encode removes peers and then calls from p, and sets
// CutShort.
func (p *PublicRank) Encode() []byte {
	for {
		text := p.compress()
		engine := &p.Engine
		switch {
		case len(text) <= MaxReport:
			return text
		case len(engine.Peers) > 0:
			engine.Peers, p.CutShort = engine.Peers[:len(engine.Peers)/2], true
		default: // the number of members of a call is not bounded
			engine.Calls, engine.EndedCalls, p.CutShort = engine.Calls[:len(engine.Calls)/2], nil, true
		}
	}
}

func (p *PublicRank) compress() []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed) // the level is valid
	if err := json.NewEncoder(w).Encode(p); err != nil {
		panic(fmt.Sprintf("a report is not JSON: %v", err)) // impossible for these types
	}
	_ = w.Close() // a Buffer returns no errors
	return b.Bytes()
}

// relevance returns a number from 0 to 3 that expresses how much a peer matters for explaining waits.
func relevance(peer *Peer) int {
	switch {
	case peer.Sending != nil || peer.Receiving != nil:
		return 3
	case peer.Deferred != nil || peer.UnansweredClear != nil || peer.Unexpected > 0:
		return 2
	case peer.PacketsIn > 0 || peer.LastDrop != nil || peer.NetworkError != "":
		return 1
	}
	return 0
}

// clipStrings truncates all strings to MaxText bytes, and replaces unprintable characters.
func clipStrings(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clipStrings(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			clipStrings(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			clipStrings(v.Index(i))
		}
	case reflect.String:
		v.SetString(sanitize(v.String()))
	}
}

func sanitize(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s[:min(len(s), MaxText)])
	return strings.ToValidUTF8(s[:min(len(s), MaxText)], "")
}

// ErrInvalid is returned when a rank's answer is not a valid report about that rank.
var ErrInvalid = errors.New("its answer is not a report")

// DecodePublic decodes and checks the report of a rank, of at most MaxReport bytes. The parameter ranks is the number
// of ranks in the cluster. The error matches ErrInvalid.
func DecodePublic(text []byte, rank, ranks int) (*PublicRank, error) {
	if len(text) > MaxReport {
		return nil, fmt.Errorf("%w: %d bytes, and a report has %d at most", ErrInvalid, len(text), MaxReport)
	}
	document := flate.NewReader(bytes.NewReader(text))
	publicRank := new(PublicRank)
	if err := json.NewDecoder(io.LimitReader(document, maxDocument)).Decode(publicRank); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := publicRank.check(rank, ranks); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	clipStrings(reflect.ValueOf(publicRank))
	return publicRank, nil
}

// check returns an error if p is not a report of rank, exceeds the bounds, or names ranks that do not exist.
func (p *PublicRank) check(rank, ranks int) error {
	engine := &p.Engine
	foreign := func(rank int) bool { return rank < 0 || rank >= ranks }
	switch {
	case p.Rank != rank || engine.Rank != rank:
		return fmt.Errorf("it is of rank %d", p.Rank)
	case len(engine.Peers) > MaxPeers, len(engine.Calls) > MaxCalls, len(p.Programs) > MaxPrograms:
		return fmt.Errorf("it has %d peers, %d calls and %d programs", len(engine.Peers), len(engine.Calls), len(p.Programs))
	}
	for i := range engine.Peers {
		if peer := engine.Peers[i].Rank; foreign(peer) || peer == rank {
			return fmt.Errorf("it has a peer %d", peer)
		}
	}
	for i := range engine.Calls {
		snapshot := &engine.Calls[i]
		named := slices.Concat(snapshot.Members, snapshot.WaitsFor)
		if snapshot.Root != nil {
			named = append(named, *snapshot.Root)
		}
		if slices.ContainsFunc(named, foreign) {
			return fmt.Errorf("its call %d names ranks that do not exist", snapshot.Number)
		}
	}
	return nil
}
