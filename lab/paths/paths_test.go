package main

import (
	"bytes"
	"testing"
)

// The checksums protect every byte after the Ethernet header.
func TestFrame(t *testing.T) {
	f := make([]byte, frameLen)
	payload := bytes.Repeat([]byte{0xfe, 7}, payloadLen/2)
	host, peer := &endpoints[0], &endpoints[1]
	writeFrame(f, host, peer, payload)
	if got, err := readFrame(f, host, peer); err != nil || !bytes.Equal(got, payload) {
		t.Fatalf("payload %x, want %x: %v", got, payload, err)
	}
	if _, err := readFrame(f, peer, host); err == nil {
		t.Error("accepted a frame from another address")
	}
	for i := ethernetLen; i < frameLen; i++ {
		f[i] ^= 0x10
		if _, err := readFrame(f, host, peer); err == nil {
			t.Errorf("accepted a frame whose byte %d is wrong", i)
		}
		f[i] ^= 0x10
	}
}
