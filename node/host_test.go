package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/shm"
	"github.com/zrlmpi/zrlmpid/udp"
)

// bound binds rank 0 of a cluster with two hosts, after more has changed the configuration.
func bound(t *testing.T, profile protocol.Profile, more func(*config.Config)) *Rank {
	t.Helper()
	addrs, err := freeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	ranks := make([]config.Rank, len(addrs))
	for i, addr := range addrs {
		ranks[i] = config.Rank{Rank: i, Address: config.Address{AddrPort: addr}, Run: config.RunHost}
	}
	cfg := config.New(ranks...)
	cfg.Defaults.Profile = (*config.Profile)(&profile)
	more(cfg)
	r, err := Plan(cfg, cfg.Rank(0))
	if err != nil {
		t.Fatal(err)
	}
	m, err := RankMap(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Bind(m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestOffloadOfTheConfiguration(t *testing.T) {
	for _, tt := range []struct {
		env, key string
		off      bool
	}{
		{"auto", config.OffloadAuto, false},
		{"auto", config.OffloadOff, true},
		{"off", config.OffloadAuto, true},
	} {
		t.Setenv(udp.EnvOffload, tt.env)
		r := bound(t, protocol.CloudFPGA, func(cfg *config.Config) { cfg.Limits.Offload = tt.key })
		s := r.Info(state.DetailFull)
		if o := s.Offload; o == nil || o.Disabled != tt.off || tt.off && (o.Segmentation || o.Coalescing) {
			t.Errorf("limits.offload: %s, and %s in the environment: %+v", tt.key, tt.env, o)
		}
		if s.Ring != 0 {
			t.Errorf("a ring of %d bytes without shared memory", s.Ring)
		}
		if _, known := r.sockets.udp.Drops(); known != (s.SocketDrops != nil) {
			t.Errorf("whether the kernel counts drops: %v, and %v", known, s.SocketDrops)
		}
	}
}

func TestOffloadState(t *testing.T) {
	got := offloadState(udp.Offload{
		Batches: true, Segments: true,
		Refused: []udp.Refusal{{Peer: 3, Err: syscall.EIO}, {Peer: 5, Err: errors.New("no")}},
	})
	want := &state.Offload{
		Batches: true, Segmentation: true,
		Refused: []state.OffloadRefused{{Peer: 3, Error: syscall.EIO.Error()}, {Peer: 5, Error: "no"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := offloadState(udp.Offload{Coalesces: true, Off: true}); !reflect.DeepEqual(got,
		&state.Offload{Coalescing: true, Disabled: true}) {
		t.Errorf("%+v", got)
	}
}

// TestOneVariableForOffload checks that the variable that overrides the file is the one that every socket reads.
func TestOneVariableForOffload(t *testing.T) {
	if config.EnvOffload != udp.EnvOffload {
		t.Errorf("%s and %s", config.EnvOffload, udp.EnvOffload)
	}
}

func TestRing(t *testing.T) {
	if localTransport != config.TransportSHM {
		t.Skip("ranks do not share memory on this system")
	}
	r := bound(t, protocol.Extended, func(*config.Config) {})
	s := r.Info(state.DetailFull)
	if s.Ring != shm.DefaultRing(2) {
		t.Errorf("a ring of %d bytes, want %d", s.Ring, shm.DefaultRing(2))
	}
	if s.Shared != 0 || s.SingleCopy != 0 {
		t.Errorf("%d links to nobody, %d with single copies", s.Shared, s.SingleCopy)
	}
	if s.Offload != nil {
		t.Errorf("offload without a UDP socket: %+v", s.Offload)
	}
}

func TestOversubscribed(t *testing.T) {
	cores := runtime.NumCPU()
	for _, tt := range []struct {
		name       string
		here, more int
		rest       string
		want       bool
	}{
		{"a core for each", cores, 0, "", false},
		{"one too many", cores + 1, 0, "", true},
		{"elsewhere", cores, 5, "peer: software", false},
		{"FPGAs", cores, 5, "peer: fpga", false},
	} {
		text := "ranks:\n"
		for i := range tt.here {
			text += fmt.Sprintf("  - {rank: %d, address: 127.0.%d.%d, run: host}\n", i, i/250, i%250+1)
		}
		for i := tt.here; i < tt.here+tt.more; i++ {
			text += fmt.Sprintf("  - {rank: %d, address: 10.0.%d.%d, %s}\n", i, i/250, i%250+1, tt.rest)
		}
		cfg := mustParse(t, text)
		if got := (&Rank{Config: cfg, Self: cfg.Rank(0)}).Oversubscribed(); got != tt.want {
			t.Errorf("%s: %d ranks here and %d elsewhere, with %d cores: %v", tt.name, tt.here, tt.more, cores, got)
		}
	}
}

func TestBusy(t *testing.T) {
	cfg := mustParse(t, `
ranks:
  - {rank: 0, address: "127.0.0.1:4000", run: host}
  - {rank: 1, address: "127.0.0.2:4000", run: host}
  - {rank: 2, address: "127.0.0.3:4000", run: standin}
  - {rank: 3, address: 10.0.0.1, run: host}
  - {rank: 4, address: 10.0.0.2, peer: fpga}
`)
	for _, tt := range []struct {
		rank     int
		attached bool
		want     int
	}{{0, false, 3}, {0, true, 5}, {2, true, 5}, {3, false, 1}, {3, true, 2}} {
		if n := busyRanks(cfg, cfg.Rank(tt.rank), tt.attached); n != tt.want {
			t.Errorf("rank %d, attached %v: %d, want %d", tt.rank, tt.attached, n, tt.want)
		}
	}
}
