package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// job is a launcher in memory.
type job struct {
	size   int
	mu     sync.Mutex
	values map[string]string
	// waiting is the number of processes in a barrier, which return when passed is closed.
	waiting int
	passed  chan struct{}
	ended   int
	// processors, if not nil, overrides the processors in the places, by process.
	processors []string
}

func newJob(size int) *job {
	return &job{size: size, values: map[string]string{}, passed: make(chan struct{})}
}

type exchange struct {
	*job
	rank int
}

func (x exchange) Name() string { return fmt.Sprintf("test_%d_%p", os.Getpid(), x.job) }

func (x exchange) Rank() int { return x.rank }

func (x exchange) Size() int { return x.size }

func (x exchange) Put(_ context.Context, key, value string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.processors != nil && key == locationKey(x.rank) {
		p, err := parseLocation(value)
		if err != nil {
			return err
		}
		p.processorList = x.processors[x.rank]
		value = p.String()
	}
	x.values[key] = value
	return nil
}

func (x exchange) Get(_ context.Context, key string) (string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	value, found := x.values[key]
	if !found {
		return "", errors.New("there is no such key")
	}
	return value, nil
}

func (x exchange) Barrier(ctx context.Context) error {
	x.mu.Lock()
	passed := x.passed
	if x.waiting++; x.waiting == x.size {
		x.waiting, x.passed = 0, make(chan struct{})
		close(passed)
	}
	x.mu.Unlock()
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x exchange) Finalize(context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended++
	return nil
}

// TestJoin checks that the ranks of a job can communicate, and that simultaneous jobs do not mix.
func TestJoin(t *testing.T) {
	t.Setenv(EnvAddress, "127.0.0.0/8")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var all sync.WaitGroup
	for _, n := range []int{1, 2, 5, 5} {
		j := newJob(n)
		devices := make([]mpe.Device, n)
		var joined sync.WaitGroup
		for rank := range n {
			joined.Go(func() {
				var err error
				if devices[rank], err = Join(ctx, exchange{j, rank}, ""); err != nil {
					t.Error(err)
				}
			})
		}
		joined.Wait()
		if t.Failed() {
			return
		}
		all.Go(func() {
			var greeted sync.WaitGroup
			for _, d := range devices {
				greeted.Go(func() { greet(ctx, t, d, protocol.Extended) })
			}
			greeted.Wait()
			if err := closeAll(devices); err != nil || j.ended != n {
				t.Errorf("%v, %d ranks of %d have finalized", err, j.ended, n)
			}
		})
	}
	all.Wait()
}

// TestBound checks that ranks that a launcher has bound to one processor each do not share it, and that ranks that are
// all bound to the same processor do, with and without a configuration.
func TestBound(t *testing.T) {
	t.Setenv(EnvAddress, "127.0.0.0/8")
	addrs, err := freeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "job.yaml")
	text := fmt.Sprintf("ranks:\n  - {rank: 0, address: \"%v\", run: host}\n  - {rank: 1, address: \"%v\", run: host}\n",
		addrs[0], addrs[1])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", path} {
		for _, tt := range []struct {
			processors []string
			shared     bool
		}{
			{[]string{"0", "1"}, false},
			{[]string{"1", "1"}, true},
		} {
			j := newJob(2)
			j.processors = tt.processors
			devices := make([]mpe.Device, 2)
			var all sync.WaitGroup
			for rank := range devices {
				all.Go(func() {
					var err error
					if devices[rank], err = Join(t.Context(), exchange{j, rank}, path); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if t.Failed() {
				return
			}
			for rank, d := range devices {
				if have := d.(*jobDevice).rank.Oversubscribed(); have != tt.shared {
					t.Errorf("configuration %q, processors %v: rank %d is oversubscribed: %t", path, tt.processors,
						rank, have)
				}
			}
			if err := closeAll(devices); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPlaces checks the error for ranks that cannot reach each other.
func TestPlaces(t *testing.T) {
	const a, b, c = "10.0.0.1:1000", "10.0.0.2:1000", "127.0.0.1:1000"
	for _, tt := range []struct{ places, want string }{
		{a + "/x", ""},
		{a + "/x 10.0.0.1:1001/x", ""},
		{a + "/x " + b + "/y", ""},
		{c + "/x 127.0.0.1:1001/x", ""},
		{a + "/x " + b + "/y 10.0.0.1:1001/z", "ranks 0 and 2 of the job are on two hosts, x and z, and cannot reach " +
			"each other at 10.0.0.1 and 10.0.0.1: set ZRLMPI_ADDRESS"},
		{c + "/x 127.0.0.1:1001/x " + b + "/y", "ranks 0 and 2 of the job are on two hosts, x and y"},
		{a + "/x " + c + "/y", "ranks 0 and 1"},
	} {
		var places []location
		for text := range strings.FieldsSeq(tt.places) {
			addr, host, _ := strings.Cut(text, "/")
			p, err := parseLocation(location{addr: netip.MustParseAddrPort(addr), host: host}.String())
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, p)
		}
		if err := checkLocations(places); (err == nil) != (tt.want == "") ||
			err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.places, err, tt.want)
		}
	}
	for _, text := range []string{"", "zrlmpi2;127.0.0.1:1;x;0;/d", "zrlmpi3;127.0.0.1;x;0;/d",
		"zrlmpi3;127.0.0.1:1;x;0", "zrlmpi3;127.0.0.1:1;x;0;%"} {
		if p, err := parseLocation(text); err == nil {
			t.Errorf("%q is %v", text, p)
		}
	}
}

func TestOwnAddress(t *testing.T) {
	for _, tt := range []struct{ text, want, err string }{
		{"10.1.2.3", "10.1.2.3", ""},
		{"127.0.0.0/8", "127.0.0.1", ""},
		{"240.0.0.0/4", "", "ZRLMPI_ADDRESS=240.0.0.0/4: this host has no address in it: it has "},
		{"eth0", "", "ZRLMPI_ADDRESS=eth0 is neither an IP address nor a prefix"},
	} {
		ip, err := localAddress(tt.text)
		if tt.err == "" && (err != nil || ip.String() != tt.want) ||
			tt.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.err)) {
			t.Errorf("%s: %v, %v", tt.text, ip, err)
		}
	}
	if ip, err := localAddress(""); err != nil || !ip.Is4() {
		t.Errorf("%v, %v", ip, err)
	}
	if name := hostIdentity(); name == "" || strings.ContainsAny(name, " ;=\n") {
		t.Errorf("%q", name)
	}
}

// TestJoinConfigured checks that the processes of a job become the ranks for programs in a configuration. They use the
// extended profile among themselves, and the profile of the FPGAs with these.
func TestJoinConfigured(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	write := func(last string) string {
		addrs, err := freeAddresses(4)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "job.yaml")
		text := fmt.Sprintf(`
ranks:
  - {rank: 3, address: "%v", run: host, link: {deadlines: {ack: 3s}%s}}
  - {rank: 0, address: "%v", run: host}
  - {rank: 1, address: 127.0.100.1:2718, peer: fpga}
  - {rank: 2, address: 127.0.100.2:2718, run: standin}
`, addrs[3], last, addrs[0])
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	start := func(paths ...string) (devices []mpe.Device, errs []error) {
		j := newJob(len(paths))
		devices, errs = make([]mpe.Device, len(paths)), make([]error, len(paths))
		var joined sync.WaitGroup
		for i, path := range paths {
			joined.Go(func() { devices[i], errs[i] = Join(ctx, exchange{j, i}, path) })
		}
		joined.Wait()
		return devices, errs
	}
	for _, tt := range []struct{ last, profile string }{{"", "extended"}, {", profile: extended", "extended"}} {
		path := write(tt.last)
		devices, errs := start(path, path)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for i, rank := range []int{0, 3} {
			d := devices[i]
			if d.Rank() != rank || d.Size() != 4 {
				t.Errorf("process %d is rank %d of %d", i, d.Rank(), d.Size())
			}
			for peer, want := range []string{tt.profile, "cloudfpga", "cloudfpga", tt.profile} {
				if info, err := d.Peer(peer); peer != rank && (err != nil || info.Profile != want) {
					t.Errorf("rank %d to %d: %+v, %v", rank, peer, info, err)
				}
			}
		}
		if err := closeAll(devices); err != nil {
			t.Error(err)
		}
	}

	if _, errs := start(write("")); errs[0] == nil ||
		!strings.Contains(errs[0].Error(), "has 2 ranks for programs [0 3], and the job has 1 processes") {
		t.Error(errs)
	}
	devices, errs := start(write(""), write(""))
	if errs[0] != nil || errs[1] == nil ||
		!strings.Contains(errs[1].Error(), "has other ranks or addresses for rank 3") {
		t.Error(errs)
	}
	if err := devices[0].Close(ctx); err != nil {
		t.Error(err)
	}
	if _, errs := start("no-such.yaml"); !errors.Is(errs[0], os.ErrNotExist) {
		t.Error(errs)
	}
}

// TestCheckAddresses checks that an address of another host and a port in use are reported before the start.
func TestCheckAddresses(t *testing.T) {
	addrs, err := freeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := mustParse(t, fmt.Sprintf(`
ranks:
  - {rank: 0, address: "%v", run: host}
  - {rank: 1, address: 192.0.2.77, run: host}
`, addrs[0]))
	if err := CheckAddresses(cfg, []int{0}); err != nil {
		t.Error(err)
	}
	if err := CheckAddresses(cfg, []int{0, 1}); err == nil ||
		!strings.Contains(err.Error(),
			"rank 1 cannot listen on udp 192.0.2.77:2718: this machine does not have that address") {
		t.Error(err)
	}
	taken, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addrs[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := CheckAddresses(cfg, []int{0}); err == nil ||
		!strings.Contains(err.Error(), "this process holds the port already") {
		t.Error(err)
	}
}
