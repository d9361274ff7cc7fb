package protocol

import (
	"encoding/binary"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// LayerTypeZRLMPI is the gopacket layer of a ZRLMPI header. Its number is from
// the range that gopacket leaves to applications.
var LayerTypeZRLMPI = gopacket.RegisterLayerType(1718, gopacket.LayerTypeMetadata{
	Name: "ZRLMPI", Decoder: gopacket.DecodeFunc(decodeLayer),
})

func init() {
	layers.RegisterUDPPortLayerType(layers.UDPPort(Port), LayerTypeZRLMPI)
	layers.RegisterTCPPortLayerType(layers.TCPPort(Port), LayerTypeZRLMPI)
}

// Layer is a ZRLMPI packet as gopacket sees it: a header, and behind it, in a
// DATA packet, the beginning of the payload.
//
// A bare continuation datagram has no header, and so no Layer: a packet that
// holds one decodes to gopacket's payload layer. Only the state of its pair
// tells which message it continues.
type Layer struct {
	layers.BaseLayer
	Header
	// Profile is the dialect for DecodeFromBytes and SerializeTo. Packets
	// that gopacket decodes by port are CloudFPGA.
	Profile Profile
	// Extended is the whole header of a packet of the extended profile, which
	// is known by its version whatever Profile says; nil for any other.
	// Header is then its frame, and Payload the bytes of the message. Set it
	// for SerializeTo to write such a packet; Header is then not looked at.
	Extended *ExtHeader
}

var (
	_ gopacket.DecodingLayer     = (*Layer)(nil)
	_ gopacket.SerializableLayer = (*Layer)(nil)
	_ gopacket.ApplicationLayer  = (*Layer)(nil)
)

// LayerType returns LayerTypeZRLMPI.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeZRLMPI }

// CanDecode returns LayerTypeZRLMPI.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeZRLMPI }

// NextLayerType is the payload: nothing is known about what programs exchange.
func (l *Layer) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// Payload returns the bytes behind the header.
func (l *Layer) Payload() []byte { return l.BaseLayer.Payload }

// DecodeFromBytes decodes the header at the start of data. Its error is a
// *HeaderError. A packet of the extended profile must be all of data, as it is
// in a datagram, and undamaged; for streams there is the ExtFrameReader.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if l.Profile == Extended || IsExtended(data) {
		return l.decodeExtended(data, df)
	}
	l.Extended = nil
	h, defect := l.Profile.Parse(data)
	if defect.Kind == DefectShort {
		df.SetTruncated()
	}
	if err := defect.Err(); err != nil {
		return err
	}
	l.Header = h
	l.BaseLayer = layers.BaseLayer{Contents: data[:HeaderLen], Payload: data[HeaderLen:]}
	return nil
}

func (l *Layer) decodeExtended(data []byte, df gopacket.DecodeFeedback) error {
	h, payload, defect := ParseExtended(data)
	if defect.Kind == DefectShort || defect.Kind == DefectLength && defect.Want32 < defect.Got32 {
		df.SetTruncated()
	}
	if err := defect.Err(); err != nil {
		return err
	}
	if l.Extended == nil {
		l.Extended = new(ExtHeader)
	}
	*l.Extended, l.Header = h, h.Frame()
	l.BaseLayer = layers.BaseLayer{Contents: data[:ExtHeaderLen], Payload: payload}
	return nil
}

// SerializeTo prepends the header to what b holds. Unless Extended is set, with opts.FixLengths, the
// size of a DATA packet is set to the words of the payload behind it, rounded
// up, and that of any other packet to 0.
func (l *Layer) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if l.Extended != nil {
		payload := b.Bytes()
		buf, err := b.PrependBytes(ExtHeaderLen)
		if err != nil {
			return err
		}
		PutExtended(buf, l.Extended, payload)
		return nil
	}
	if opts.FixLengths {
		l.Size = 0
		if l.Type == Data {
			l.Size = uint32((len(b.Bytes()) + WordLen - 1) / WordLen)
		}
	}
	buf, err := b.PrependBytes(HeaderLen)
	if err != nil {
		return err
	}
	l.Profile.Put(buf, l.Header)
	return nil
}

// decodeLayer is gopacket's entry. What does not begin with a mark is bare
// payload, which is no error.
func decodeLayer(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < offDst || binary.LittleEndian.Uint32(data) != markWord {
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
