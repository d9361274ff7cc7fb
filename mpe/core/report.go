package core

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Drop describes a dropped packet.
type Drop struct {
	Reason state.DropReason
	// Packet is nil if a timeout caused the drop. Its bytes are valid during the call only.
	Packet *RxPacket
	// Header is the packet's header, or zero if it is not readable. For a peer of the extended profile, Extended is set
	// instead; it is valid during the call only.
	Header   protocol.Header
	Extended *protocol.ExtHeader
	// At is the time of the drop on the engine's clock, which started at Engine.StartTime.
	At handshake.Instant
}

// Note describes an event with a peer that the engine counts.
type Note struct {
	Event state.Event
	// Header, Extended and At are as in Drop.
	Header   protocol.Header
	Extended *protocol.ExtHeader
	At       handshake.Instant
	Err      error
}

// These tables map the reasons and events of the state machines to the engine's reasons and events with the same names.
var (
	handshakeDrops = [handshake.NumReasons]state.DropReason(translate[handshake.Reason,
		state.DropReason](handshake.NumReasons, state.NumDropReasons))
	extendedDrops = [extended.NumReasons]state.DropReason(translate[extended.Reason,
		state.DropReason](extended.NumReasons, state.NumDropReasons))
	handshakeEvents = [handshake.NumEvents]state.Event(translate[handshake.Event, state.Event](handshake.NumEvents,
		state.NumEvents))
	extendedEvents = [extended.NumEvents]state.Event(translate[extended.Event, state.Event](extended.NumEvents,
		state.NumEvents))
)

// translate returns a table that maps each value of From to the value of To with the same name. It panics when the
// program starts if To lacks a name, so that a new reason cannot be forgotten.
func translate[From interface {
	~uint8
	fmt.Stringer
}, To interface {
	~uint8
	fmt.Stringer
}](from, to int) []To {
	names := make([]string, to)
	for i := range names {
		names[i] = To(i).String()
	}
	table := make([]To, from)
	for i := range table {
		at := slices.Index(names, From(i).String())
		if at < 0 {
			panic(fmt.Sprintf("core: %T %v has no counterpart", From(i), From(i)))
		}
		table[i] = To(at)
	}
	return table
}
