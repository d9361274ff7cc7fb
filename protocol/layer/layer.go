// Package layer decodes and writes ZRLMPI headers as a layer of gopacket. It is
// apart from package protocol, so that programs that do not read captures do
// not contain gopacket.
package layer

import (
	"bytes"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Type is the gopacket layer type of a ZRLMPI header. Its number is from
// the range that gopacket leaves to applications.
var Type = gopacket.RegisterLayerType(1718, gopacket.LayerTypeMetadata{
	Name: "ZRLMPI", Decoder: gopacket.DecodeFunc(decodeLayer),
})

var startMark = bytes.Repeat([]byte{protocol.Mark}, 4)

func init() {
	layers.RegisterUDPPortLayerType(layers.UDPPort(protocol.Port), Type)
	layers.RegisterTCPPortLayerType(layers.TCPPort(protocol.Port), Type)
}

// Layer is a ZRLMPI packet as gopacket sees it: a header, and behind it, in a
// DATA packet, the beginning of the payload.
//
// A continuation datagram has no header, and so no Layer: a packet that holds
// one decodes to gopacket's payload layer. Which message it continues is known
// from the state of its pair alone.
type Layer struct {
	layers.BaseLayer
	protocol.Header
	// Profile is the dialect for DecodeFromBytes and SerializeTo. Packets
	// that gopacket decodes by port are CloudFPGA.
	Profile protocol.Profile
	// Extended is the whole header of a packet of the extended profile, which
	// is recognized by its version whatever Profile is; nil for any other.
	// Header is then its frame, and Payload the bytes of the message. Set it
	// for SerializeTo to write such a packet; Header is then ignored.
	Extended *protocol.ExtHeader
}

var (
	_ gopacket.DecodingLayer     = (*Layer)(nil)
	_ gopacket.SerializableLayer = (*Layer)(nil)
	_ gopacket.ApplicationLayer  = (*Layer)(nil)
)

// LayerType returns Type.
func (l *Layer) LayerType() gopacket.LayerType { return Type }

// CanDecode returns Type.
func (l *Layer) CanDecode() gopacket.LayerClass { return Type }

// NextLayerType returns the payload layer: the content of messages is opaque.
func (l *Layer) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// Payload returns the bytes behind the header.
func (l *Layer) Payload() []byte { return l.BaseLayer.Payload }

// DecodeFromBytes decodes the header at the start of data. Its error is a
// *protocol.HeaderError. A packet of the extended profile must be all of data, as it is
// in a datagram, and not corrupt.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if l.Profile == protocol.Extended || protocol.IsExtended(data) {
		return l.decodeExtended(data, df)
	}
	l.Extended = nil
	h, defect := l.Profile.Parse(data)
	if defect.Kind == protocol.DefectShort {
		df.SetTruncated()
	}
	if err := defect.Err(); err != nil {
		return err
	}
	l.Header = h
	l.BaseLayer = layers.BaseLayer{Contents: data[:protocol.HeaderLen], Payload: data[protocol.HeaderLen:]}
	return nil
}

func (l *Layer) decodeExtended(data []byte, df gopacket.DecodeFeedback) error {
	h, payload, defect := protocol.ParseExtended(data)
	if defect.Kind == protocol.DefectShort || defect.Kind == protocol.DefectLength && defect.Want32 < defect.Got32 {
		df.SetTruncated()
	}
	if err := defect.Err(); err != nil {
		return err
	}
	if l.Extended == nil {
		l.Extended = new(protocol.ExtHeader)
	}
	*l.Extended, l.Header = h, h.Frame()
	l.BaseLayer = layers.BaseLayer{Contents: data[:protocol.ExtHeaderLen], Payload: payload}
	return nil
}

// SerializeTo prepends the header to what b holds. Unless Extended is set, with opts.FixLengths, the
// size of a DATA packet is set to the words of the payload behind it, rounded
// up, and that of any other packet to 0.
func (l *Layer) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if l.Extended != nil {
		payload := b.Bytes()
		buf, err := b.PrependBytes(protocol.ExtHeaderLen)
		if err != nil {
			return err
		}
		protocol.PutExtended(buf, l.Extended, payload)
		return nil
	}
	if opts.FixLengths {
		l.Size = 0
		if l.Header.Type == protocol.Data {
			l.Size = uint32((len(b.Bytes()) + protocol.WordLen - 1) / protocol.WordLen)
		}
	}
	buf, err := b.PrependBytes(protocol.HeaderLen)
	if err != nil {
		return err
	}
	l.Profile.Put(buf, l.Header)
	return nil
}

// decodeLayer is gopacket's entry point. Bytes that do not begin with a start
// mark are payload of a continuation datagram, which is not an error.
func decodeLayer(data []byte, p gopacket.PacketBuilder) error {
	if !bytes.HasPrefix(data, startMark) {
		return p.NextDecoder(gopacket.LayerTypePayload)
	}
	l := &Layer{}
	if err := l.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(l)
	p.SetApplicationLayer(l)
	if len(l.BaseLayer.Payload) == 0 {
		return nil
	}
	return p.NextDecoder(gopacket.LayerTypePayload)
}
