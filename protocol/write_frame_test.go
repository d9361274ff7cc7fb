package protocol

import (
	"fmt"
	"io"
)

// WriteFrame writes one packet to a stream. If the length of the payload is not h.StreamPayload(), it returns a
// *PayloadError before it writes anything. Any other error comes from w, and the stream is then unusable.
func (p Profile) WriteFrame(w io.Writer, h Header, payload []byte) error {
	if err := h.CheckStreamPayload(len(payload)); err != nil {
		return err
	}
	var header [HeaderLen]byte
	p.Put(header[:], h)
	if _, err := w.Write(header[:]); err != nil {
		return fmt.Errorf("writing the header of %v: %w", h, err)
	}
	if len(payload) == 0 {
		return nil
	}
	if _, err := w.Write(payload); err != nil {
		return fmt.Errorf("writing the payload of %v: %w", h, err)
	}
	return nil
}
