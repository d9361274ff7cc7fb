package hangs_test

import (
	"testing"
)

// TestFPGA diagnoses hangs between a host and an FPGA, which cannot be asked.
func TestFPGA(t *testing.T) {
	const sends = "s5000" // 15 datagrams
	for _, tt := range []struct {
		name, host string
		fault      fault
		want       want
	}{
		{"lost ACK of a fragmented message", sends, fault{dir: in, kind: ack}, lostAck},
		{"lost datagram", sends, fault{dir: out, nth: 4, times: 1}, lostAck},
		{"posts no receive", sends, fault{dir: out, kind: request}, neverHeard},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &nodeHang{row: &row{host: tt.host, faults: []fault{tt.fault}}, partner: &modelMPE}
			h.setUp(t)
			h.runHost()
			h.explained(tt.want)
		})
	}
}
