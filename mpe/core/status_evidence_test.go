package core

import (
	"net/netip"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestLastDrop checks that a dropped packet shows the rank that it claims to come from, and its profile.
func TestLastDrop(t *testing.T) {
	packet := func(p protocol.Profile) []byte {
		return p.Append(nil, protocol.Header{Dst: 3, Src: 2, Type: protocol.Data, Size: 1, Tag: 9})
	}
	from := netip.MustParseAddrPort("10.0.0.2:2718")
	for name, tt := range map[string]struct {
		of      protocol.Profile
		bytes   []byte
		profile state.Profile
		ranks   bool
	}{
		"of its profile": {protocol.CloudFPGA, packet(protocol.CloudFPGA), "", true},
		"of another":     {protocol.CloudFPGA, packet(protocol.Extended), "extended", true},
		"with a tag":     {protocol.CloudFPGA, packet(protocol.V09), "v0.9", true},
		"of cloudfpga":   {protocol.Extended, packet(protocol.CloudFPGA), "cloudfpga", true},
		"of none":        {protocol.CloudFPGA, make([]byte, 64), "", false},
		"short":          {protocol.CloudFPGA, packet(protocol.CloudFPGA)[:31], "", false},
	} {
		l := new(lastDrop)
		l.set(time.Second, tt.of, &RxPacket{Bytes: tt.bytes, SourceAddr: from}, &Drop{Reason: state.DropReserved})
		s := l.snapshot(3 * time.Second)
		if s.Reason != state.DropReserved || s.Seconds != 2 || s.From != "10.0.0.2:2718" || s.Profile != tt.profile ||
			(s.Source != nil) != tt.ranks ||
			tt.ranks && (*s.Source != 2 || *s.Destination != 3) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := (*lastDrop)(nil).snapshot(time.Second); s != nil {
		t.Errorf("%+v", s)
	}
}
