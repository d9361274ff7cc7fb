package node

import (
	"bytes"
	"compress/flate"
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// started starts a rank of a configuration.
func started(t *testing.T, cfg *config.Config, rank int) *Rank {
	t.Helper()
	m, err := RankMap(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Plan(cfg, cfg.Rank(rank))
	if err == nil {
		err = r.Bind(m)
	}
	if err == nil {
		err = r.Start(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.Close(ctx)
	})
	return r
}

// TestAskReports checks, over each transport, that a rank gets the report of another rank, which includes its wait and
// no secrets. FPGAs and ranks with another profile are not asked.
func TestAskReports(t *testing.T) {
	t.Setenv("ZRLMPI_SECRET", "hidden-in-the-environment")
	for _, transport := range []state.Transport{state.TransportUDP, state.TransportTCP, state.TransportSHM} {
		t.Run(string(transport), func(t *testing.T) {
			if transport == state.TransportSHM && runtime.GOOS != "linux" {
				t.Skip("ranks share memory on Linux only")
			}
			fpga, ranks := "  - {rank: 2, address: 127.31.7.3, peer: fpga, link: {profile: cloudfpga, "+
				"transport: udp}}\n", []int{1, 2}
			if transport == state.TransportSHM { // which works with no other profile
				fpga, ranks = "", ranks[:1]
			}
			cfg, err := config.Parse(strings.NewReader(`
control: {socket: /secret-folder/c.sock}
http: {listen: ""}
defaults: {profile: extended, transport: `+string(transport)+`}
ranks:
  - {rank: 0, address: 127.31.7.1, run: host}
  - {rank: 1, address: 127.31.7.2, run: standin, kernel: "exec:/secret-folder/program --password hidden", peer: software}
`+fpga), "secret.yaml")
			if err != nil {
				t.Fatal(err)
			}
			zero, one := started(t, cfg, 0), started(t, cfg, 1)
			if _, err := one.Engine.Irecv(0, []byte("hidden payload.."), mpe.Options{Tag: 77}); err != nil {
				t.Fatal(err)
			}
			asked := zero.AskReports(t.Context(), ranks)
			r := asked[0].Report
			if r == nil || r.Role != state.RoleStandin || r.Kernel != "exec" ||
				r.Address != one.Self.Address.String() || len(r.Programs) != 1 || r.Programs[0].PID != os.Getpid() ||
				r.CutShort {
				t.Fatalf("%+v, %+v", asked[0], r)
			}
			w := r.Engine.Peers[0].Receiving
			if r.Engine.Peers[0].Rank != 0 || r.Engine.Peers[0].Transport != transport || w == nil ||
				*w.Envelope.Tag != 77 || w.Envelope.Bytes != 16 {
				t.Errorf("%+v, %+v", r.Engine.Peers[0], w)
			}
			if len(ranks) > 1 && (asked[1].Report != nil || asked[1].Reason != mpe.ErrNotExtended.Error()) {
				t.Errorf("%+v", asked[1])
			}
			text, err := io.ReadAll(flate.NewReader(bytes.NewReader(one.publicState())))
			if err != nil || !bytes.Contains(text, []byte(`"kernel":"exec"`)) {
				t.Fatalf("%s, %v", text, err)
			}
			for _, secret := range []string{"secret", "hidden"} {
				if bytes.Contains(text, []byte(secret)) {
					t.Errorf("the report has %q:\n%s", secret, text)
				}
			}
		})
	}
}
