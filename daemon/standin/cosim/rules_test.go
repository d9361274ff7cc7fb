package cosim

import (
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestPortRules(t *testing.T) {
	sending := []Record{call(protocol.SendInt, 6, 0), message(6)[0]}
	for name, tt := range map[string]struct {
		before []Record
		record Record
		signal string
		text   string
	}{
		"line withdrawn": {sending, Record{Kind: KindOut, Rule: RuleKeepValid, Data: 2}, "soMPI_data_tvalid",
			"withdrawn before tready, after it was set since cycle 2, on line 2 of 3 of SEND_INT of 6 words to rank " +
				"0 (cycle 1)"},
		"data changed": {sending, Record{Kind: KindOut, Rule: RuleStable, Data: 0x80, Keep: 1, Last: true},
			"soMPI_data_tdata", "changed before tready, in bits 0x0000000000000080, on line 2 of 3"},
		"keep changed": {sending, Record{Kind: KindOut, Rule: RuleStable, Keep: 0xf0, Last: true},
			"soMPI_data_tkeep", "changed before tready, in bits 0xf0, on line 2 of 3"},
		"last changed": {sending, Record{Kind: KindOut, Rule: RuleStable, Last: true}, "soMPI_data_tlast",
			"changed before tready, on line 2 of 3"},
		"valid undefined": {sending, Record{Kind: KindOut, Rule: RuleDefined}, "soMPI_data_tvalid",
			"neither 0 nor 1, on line 2 of 3"},
		"data undefined": {sending, Record{Kind: KindOut, Rule: RuleDefined, Data: 1}, "soMPI_data_tdata",
			"neither 0 nor 1 while tvalid is 1, in bits 0x0000000000000001, on line 2 of 3"},
		"call withdrawn": {nil, Record{Kind: KindCall, Rule: RuleKeepValid, Data: 1}, "soMPIif_tvalid",
			"withdrawn before tready, after it was set since cycle 1"},
		"number changed": {nil, Record{Kind: KindCall, Rule: RuleStable, Keep: 1}, "soMPIif_tdata",
			"changed before tready, in mpi_call"},
		"count changed": {nil, Record{Kind: KindCall, Rule: RuleStable, Data: 1}, "soMPIif_tdata",
			"changed before tready, in count"},
		"rank undefined": {sending, Record{Kind: KindCall, Rule: RuleDefined, Data: 1 << 32}, "soMPIif_tdata",
			"neither 0 nor 1 while tvalid is 1, in rank, in SEND_INT of 6 words to rank 0 (cycle 1)"},
		"ready undefined": {nil, Record{Kind: KindIn, Rule: RuleDefined}, "siMPI_data_tready",
			"neither 0 nor 1 while tvalid is 1"},
		"ready of the end": {nil, Record{Kind: KindFeedback, Rule: RuleDefined}, "siMPIFeB_tready",
			"neither 0 nor 1 while tvalid is 1"},
	} {
		b := newBench(t, 6)
		if err := b.step(0, 0, tt.before...); err != nil {
			t.Fatal(err)
		}
		f, ok := errors.AsType[*FaultError](b.step(0, 0, tt.record))
		if !ok || f.Signal != tt.signal || f.Cycle != uint64(len(tt.before)+2) ||
			!strings.HasPrefix(f.Problem, tt.text) {
			t.Errorf("%s: %v", name, f)
		}
		if !b.port.IsFaulty() || len(b.port.TakeFindings()) != 0 {
			t.Errorf("%s: the exchange continues", name)
		}
	}
}

// TestPortIndependentValid checks that a role whose valid waits for ready can exchange messages, and is
// reported once.
func TestPortIndependentValid(t *testing.T) {
	b := newBench(t, 6)
	records := append([]Record{call(protocol.SendInt, 2, 0), {Kind: KindOut, Rule: RuleIndependent, Data: 1}},
		message(2)...)
	if err := b.step(0, 0, records...); err != nil {
		t.Fatal(err)
	}
	found := b.port.TakeFindings()
	if len(found) != 1 || found[0].Signal != "soMPI_data_tvalid" || found[0].Cycle != 2 ||
		!strings.Contains(found[0].Problem, "set within 16 cycles of tready (cycle 1)") {
		t.Errorf("findings %v", found)
	}
	if _, _, ok := b.port.NextCall(); !ok || b.port.IsFaulty() || len(b.port.TakeFindings()) != 0 {
		t.Error("the exchange does not go on")
	}
}

func TestNetworkRules(t *testing.T) {
	for name, tt := range map[string]struct {
		record Record
		signal string
	}{
		"line withdrawn":     {Record{Kind: KindOutData, Rule: RuleKeepValid}, "soNRC_Udp_Data_tvalid"},
		"metadata undefined": {Record{Kind: KindOutMeta, Rule: RuleDefined, Data: 1}, "soROLE_Nrc_Udp_Meta_TDATA"},
		"metadata withdrawn": {Record{Kind: KindTCP + KindOutMeta, Rule: RuleKeepValid}, "soROLE_Nrc_Tcp_Meta_TVALID"},
		"chunk changed": {Record{Kind: KindTCP + KindOutData, Rule: RuleStable, Last: true},
			"soNRC_Tcp_Data_tlast"},
		"ready undefined": {Record{Kind: KindInMeta, Rule: RuleDefined}, "siNRC_Role_Udp_Meta_TREADY"},
	} {
		b := newNetBench(t)
		f, ok := errors.AsType[*FaultError](b.step(tt.record))
		if !ok || f.Signal != tt.signal || !b.network.IsFaulty() {
			t.Errorf("%s: %v", name, f)
		}
	}
	b := newNetBench(t)
	if err := b.step(metaTo(0, 0), linesFrom(payloadOf(16))[0],
		Record{Kind: KindOutData, Rule: RuleKeepValid, Data: 4}); err == nil ||
		!strings.Contains(err.Error(), "since cycle 4, after 8 bytes of the datagram to rank 0") {
		t.Errorf("in a datagram: %v", err)
	}
	b = newNetBench(t)
	if err := b.step(Record{Kind: KindOutMeta, Rule: RuleIndependent}); err != nil || b.network.IsFaulty() ||
		len(b.network.TakeFindings()) != 1 {
		t.Errorf("valid waits for ready: %v", err)
	}
}
