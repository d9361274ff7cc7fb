package capturetest

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// MaxOffload is the maximum number of datagrams that Linux combines into one packet for segmentation offload, and that
// it coalesces on receipt.
const MaxOffload = 45

// Message is a message sent by rank Src at address From to rank Dst at address To.
type Message struct {
	Src, Dst uint32
	From, To netip.AddrPort
	Words    uint32
	Shape    protocol.Shape
	// MaxCoalesced is the maximum number of DATA datagrams that are recorded as a single packet.
	MaxCoalesced int
}

// AddMessage appends the packets of a message with a complete handshake, 10 µs apart. The payload consists of the words
// 0, 1, 2 and so on.
func (c *Capture) AddMessage(t time.Time, message Message) *Capture {
	send := func(from, to netip.AddrPort, payload []byte) {
		c.AddUDP(t, from, to, payload)
		t = t.Add(10 * time.Microsecond)
	}
	head := func(typ protocol.Type, call protocol.Call, src, dst, size uint32) []byte {
		return protocol.CloudFPGA.Append(nil, protocol.Header{Src: src, Dst: dst, Size: size, Call: call, Type: typ})
	}
	send(message.From, message.To, head(protocol.SendRequest, protocol.SendInt, message.Src, message.Dst, 0))
	send(message.To, message.From, head(protocol.ClearToSend, protocol.RecvInt, message.Dst, message.Src, 0))
	payload := make([]byte, message.Shape.PayloadBytes(message.Words))
	for i := range message.Words {
		binary.LittleEndian.PutUint32(payload[i*protocol.WordLen:], i)
	}
	packet, datagrams := head(protocol.Data, protocol.SendInt, message.Src, message.Dst, message.Words), 0
	for off, total := int64(0), int64(len(payload)); off < total; {
		n := message.Shape.PayloadAt(off, total)
		packet = append(packet, payload[off:off+n]...)
		if datagrams++; datagrams == max(message.MaxCoalesced, 1) || off+n == total {
			send(message.From, message.To, packet)
			packet, datagrams = nil, 0
		}
		off += n
	}
	send(message.To, message.From, head(protocol.Ack, protocol.RecvInt, message.Dst, message.Src, 0))
	return c
}
