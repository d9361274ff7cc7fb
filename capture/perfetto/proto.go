package perfetto

import (
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of Trace and TracePacket.
const (
	tracePacket     = 1
	packetTimestamp = 8
	packetSequence  = 10
	packetEvent     = 11
	packetTrack     = 60
)

// Fields of TrackDescriptor, ProcessDescriptor and CounterDescriptor.
const (
	trackUUID    = 1
	trackName    = 2
	trackProcess = 3
	trackParent  = 5
	trackCounter = 8
	processPID   = 1
	processName  = 6
)

// Fields of TrackEvent and DebugAnnotation.
const (
	eventAnnotation = 4
	eventType       = 9
	eventTrack      = 11
	eventCategory   = 22
	eventName       = 23
	eventCounter    = 30
	eventFlow       = 47
	annotationInt   = 4
	annotationText  = 6
	annotationName  = 10
)

// Values of TrackEvent.Type.
const (
	typeBegin   = 1
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4
)

// sequence is the number of the packet sequence to which all packets of the trace belong.
const sequence = 1

// protoMessage is an encoded protobuf message under construction.
type protoMessage []byte

func (m protoMessage) appendVarint(field protowire.Number, v uint64) protoMessage {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m protoMessage) appendFixed64(field protowire.Number, v uint64) protoMessage {
	return protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), v)
}

func (m protoMessage) appendString(field protowire.Number, s string) protoMessage {
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), s)
}

func (m protoMessage) appendMessage(field protowire.Number, s protoMessage) protoMessage {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), s)
}

// writer writes the packets of a trace. err is the first write error.
type writer struct {
	to  io.Writer
	err error
}

func (w *writer) writePacket(m protoMessage) {
	if w.err == nil {
		_, w.err = w.to.Write(protoMessage(nil).appendMessage(tracePacket, m.appendVarint(packetSequence, sequence)))
	}
}

// writeTrack writes the description of a track. parent is 0 for a top-level track.
func (w *writer) writeTrack(uuid, parent uint64, name string) {
	m := protoMessage(nil).appendVarint(trackUUID, uuid).appendString(trackName, name)
	if parent != 0 {
		m = m.appendVarint(trackParent, parent)
	}
	w.writePacket(protoMessage(nil).appendMessage(packetTrack, m))
}

// writeProcess describes the track of a process.
func (w *writer) writeProcess(uuid uint64, pid int, name string) {
	p := protoMessage(nil).appendVarint(processPID, uint64(pid)).appendString(processName, name)
	w.writePacket(protoMessage(nil).appendMessage(packetTrack,
		protoMessage(nil).appendVarint(trackUUID, uuid).appendMessage(trackProcess, p)))
}

// writeCounter describes the track of a counter.
func (w *writer) writeCounter(uuid, parent uint64, name string) {
	m := protoMessage(nil).appendVarint(trackUUID, uuid).appendString(trackName, name).appendVarint(trackParent,
		parent).appendMessage(trackCounter, nil)
	w.writePacket(protoMessage(nil).appendMessage(packetTrack, m))
}

// event is an entry of a track.
type event struct {
	at    int64 // in ns
	kind  uint64
	track uint64
	name  string
	// flow is the number of the arrow that starts or ends at the slice, or 0.
	flow  uint64
	value int64        // of a counter
	notes []annotation // of a slice
}

// annotation is a value shown with a slice: a number or a text.
type annotation struct {
	name   string
	number int64
	text   string
}

// writeEvent writes an event. The end of a slice has no name: it ends the slice that began last on the track.
func (w *writer) writeEvent(e *event) {
	message := protoMessage(nil).appendVarint(eventType, e.kind).appendVarint(eventTrack, e.track)
	switch e.kind {
	case typeCounter:
		message = message.appendVarint(eventCounter, uint64(e.value))
	case typeBegin, typeInstant:
		message = message.appendString(eventCategory, "zrlmpi").appendString(eventName, e.name)
		if e.flow != 0 {
			message = message.appendFixed64(eventFlow, e.flow)
		}
		for _, n := range e.notes {
			msg := protoMessage(nil).appendString(annotationName, n.name)
			if n.text != "" {
				msg = msg.appendString(annotationText, n.text)
			} else {
				msg = msg.appendVarint(annotationInt, uint64(n.number))
			}
			message = message.appendMessage(eventAnnotation, msg)
		}
	}
	w.writePacket(protoMessage(nil).appendVarint(packetTimestamp, uint64(e.at)).appendMessage(packetEvent, message))
}
