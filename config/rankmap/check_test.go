package rankmap

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	with := func(n int, kind Kind) []Entry {
		entries := software(n)
		entries[n-1].Kind = kind
		return entries
	}
	for _, tt := range []struct {
		name        string
		entries     []Entry
		rules       Rules
		mistake     Mistake // "" if there is none
		rank, other int
		text        string
	}{
		{name: "64 with an FPGA", entries: with(64, FPGA)},
		{"65 with an FPGA", with(65, FPGA), Rules{}, TooManyRanks, 64, NoRank, "65 ranks, but rank 64 is of kind fpga and can address 64"},
		{name: "128 with a CPU", entries: with(128, CPU)},
		{"129 with a CPU", with(129, CPU), Rules{}, TooManyRanks, 128, NoRank, "can address 128"},
		{name: "300 of ours", entries: software(300)},
		{"FPGA on another port", []Entry{entry(0, "10.1.1.1:9000", FPGA)}, Rules{}, FPGAPort, 0, NoRank, "port 2718 only"},
		{name: "stand-in on another port", entries: []Entry{entry(0, "10.1.1.1:9000", FPGA)}, rules: Rules{AllowAnyPort: true}},
		{name: "software on another port", entries: []Entry{entry(0, "10.1.1.1:9000", Software)}},
		{name: "shared IP without an FPGA", entries: []Entry{
			entry(0, "10.1.1.1:2718", CPU), entry(1, "10.1.1.1:2719", CPU)}},
		{"shared IP with an FPGA", []Entry{
			entry(0, "10.1.1.1:2718", Software), entry(1, "10.1.1.2:2718", FPGA),
			entry(2, "10.1.1.3:2718", CPU), entry(3, "10.1.1.4:2718", CPU),
			entry(4, "10.1.1.1:2719", Software), entry(5, "10.1.1.1:2720", Software)},
			Rules{}, SharedIP, 0, 4,
			"ranks 0 and 4 share 10.1.1.1, but rank 1 is an FPGA and distinguishes its peers by IP address only: give each rank its own IP address"},
		{"FPGA's own IP shared", []Entry{entry(0, "10.1.1.1:2719", CPU), entry(1, "10.1.1.1:2718", FPGA)},
			Rules{AllowAnyPort: true}, SharedIP, 0, 1, "rank 1 is an FPGA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := mustNew(t, tt.entries...).Check(tt.rules)
			if tt.mistake == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, tt.mistake, tt.rank, tt.other, tt.text)
			if strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("one mistake is reported more than once: %q", err)
			}
		})
	}
}
