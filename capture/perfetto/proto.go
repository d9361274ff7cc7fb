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

// sequence is the number of the trace's only packet sequence.
const sequence = 1

// message is an encoded protobuf message under construction.
type message []byte

func (m message) number(field protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m message) fixed(field protowire.Number, v uint64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), v)
}

func (m message) text(field protowire.Number, s string) message {
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), s)
}

func (m message) sub(field protowire.Number, s message) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), s)
}

// writer writes the packets of a trace. err is the first write error.
type writer struct {
	to  io.Writer
	err error
}

func (w *writer) packet(m message) {
	if w.err == nil {
		_, w.err = w.to.Write(message(nil).sub(tracePacket, m.number(packetSequence, sequence)))
	}
}

// track describes a track. parent is 0 for a top-level track.
func (w *writer) track(uuid, parent uint64, name string) {
	m := message(nil).number(trackUUID, uuid).text(trackName, name)
	if parent != 0 {
		m = m.number(trackParent, parent)
	}
	w.packet(message(nil).sub(packetTrack, m))
}

// process describes the track of a process.
func (w *writer) process(uuid uint64, pid int, name string) {
	p := message(nil).number(processPID, uint64(pid)).text(processName, name)
	w.packet(message(nil).sub(packetTrack, message(nil).number(trackUUID, uuid).sub(trackProcess, p)))
}

// counter describes the track of a counter.
func (w *writer) counter(uuid, parent uint64, name string) {
	m := message(nil).number(trackUUID, uuid).text(trackName, name).number(trackParent, parent).sub(trackCounter, nil)
	w.packet(message(nil).sub(packetTrack, m))
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

func (w *writer) event(e *event) {
	m := message(nil).number(eventType, e.kind).number(eventTrack, e.track)
	switch e.kind {
	case typeCounter:
		m = m.number(eventCounter, uint64(e.value))
	case typeBegin, typeInstant:
		m = m.text(eventCategory, "zrlmpi").text(eventName, e.name)
		if e.flow != 0 {
			m = m.fixed(eventFlow, e.flow)
		}
		for _, n := range e.notes {
			a := message(nil).text(annotationName, n.name)
			if n.text != "" {
				a = a.text(annotationText, n.text)
			} else {
				a = a.number(annotationInt, uint64(n.number))
			}
			m = m.sub(eventAnnotation, a)
		}
	}
	w.packet(message(nil).number(packetTimestamp, uint64(e.at)).sub(packetEvent, m))
}
