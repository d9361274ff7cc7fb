package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
)

func mustPool(t testing.TB, s string) Pool {
	t.Helper()
	p, err := ParsePool(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// summary returns a line for each rank, such as "0 host 127.0.0.1:2718 software".
func summary(c *config.Config) string {
	var b strings.Builder
	for _, r := range c.Ranks {
		fmt.Fprintln(&b, strings.Join(strings.Fields(fmt.Sprint(r.Rank, " ", r.Run, " ", r.Address, " ", r.Peer, " ",
			r.Kernel)), " "))
	}
	return b.String()
}

func TestConfig(t *testing.T) {
	pool := mustPool(t, "127.0.0.1-127.0.0.9")
	for _, tc := range []struct {
		name, file string
		options    Options
		want       string
	}{
		{"first CPU is the host, FPGAs are remote", clusterFile, Options{Addresses: pool},
			"0 host 127.0.0.1:2718 software\n1 127.0.0.2:2718 fpga\n2 127.0.0.3:2718 fpga\n3 127.0.0.4:2718 fpga\n"},
		{"all FPGAs are stand-ins", clusterFile, Options{Addresses: pool, StandIns: true, Kernel: "ring"},
			"0 host 127.0.0.1:2718 software\n1 standin 127.0.0.2:2718 fpga ring\n2 standin 127.0.0.3:2718 fpga " +
				"ring\n3 standin 127.0.0.4:2718 fpga ring\n"},
		{"a host in an FPGA's place", clusterFile, Options{Addresses: pool, Host: []int{0, 2}, StandIns: true},
			"0 host 127.0.0.1:2718 software\n1 standin 127.0.0.2:2718 fpga echo\n2 host 127.0.0.3:2718 software\n3 " +
				"standin 127.0.0.4:2718 fpga echo\n"},
		{"both kinds: CPU", bothFile, Options{Addresses: pool},
			"0 host 127.0.0.1:2718 software\n1 127.0.0.2:2718 cpu\n"},
		{"both kinds: given FPGA", bothFile, Options{Addresses: pool, FPGA: []int{1}},
			"0 host 127.0.0.1:2718 software\n1 127.0.0.2:2718 fpga\n"},
		{"both kinds: FPGA here", bothFile, Options{Addresses: pool, FPGA: []int{1}, StandIns: true},
			"0 host 127.0.0.1:2718 software\n1 standin 127.0.0.2:2718 fpga echo\n"},
		{"both kinds: the first is an FPGA", bothFile, Options{Addresses: pool, FPGA: []int{0}},
			"0 127.0.0.1:2718 fpga\n1 host 127.0.0.2:2718 software\n"},
		{"both kinds: stand-ins do not take CPUs", bothFile, Options{Addresses: pool, StandIns: true},
			"0 host 127.0.0.1:2718 software\n1 127.0.0.2:2718 cpu\n"},
		{"manager's answer", answer, Options{},
			"0 host 10.12.0.1:2718 software\n1 10.12.200.7:2718 fpga\n2 10.12.200.4:2718 fpga\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := mustParse(t, tc.file).Config(tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(cfg); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
			printed, err := cfg.YAML()
			if err != nil {
				t.Fatal(err)
			}
			again, err := config.Parse(bytes.NewReader(printed), "printed.yaml")
			if err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			if twice, err := again.YAML(); err != nil || !bytes.Equal(printed, twice) {
				t.Errorf("printed\n%s\nand printed again\n%s%v", printed, twice, err)
			}
		})
	}
}

func TestConfigErrors(t *testing.T) {
	pool := mustPool(t, "127.0.0.1-127.0.0.9")
	for _, tc := range []struct {
		name, file string
		options    Options
		want       string
	}{
		{"no pool", clusterFile, Options{}, "f.json:1: a cluster file has no addresses: give the addresses of its 4 " +
			"ranks with --addresses, as in 127.0.0.1-127.0.0.4"},
		{"small pool", clusterFile, Options{Addresses: mustPool(t, "10.0.0.1-10.0.0.3")},
			`pool: "10.0.0.1-10.0.0.3" has 3 addresses for 4 ranks: add more`},
		{"pool for an answer", answer, Options{Addresses: pool},
			"pool: the resource manager's answer already has addresses: remove --addresses"},
		{"no such host", clusterFile, Options{Addresses: pool, Host: []int{4}},
			"host: there is no rank 4: the cluster has 0 to 3"},
		{"CPU as an FPGA", clusterFile, Options{Addresses: pool, FPGA: []int{0}},
			"fpga: rank 0 is a CPU rank: list it as fpga in the file, or make it a host"},
		{"host and FPGA", bothFile, Options{Addresses: pool, Host: []int{1}, FPGA: []int{1}},
			"host: rank 1 is to be an FPGA as well: choose one"},
		{"kernel", clusterFile, Options{Addresses: pool, StandIns: true, Kernel: "jazz"},
			`kernel: unknown kernel "jazz": the kernels are echo, ring, sink, source, jacobi, kmeans, matvec, backsub, "exec:/path/prog args", "rtl:/path/simulator args" and "rtl-net:/path/simulator args"`},
		{"kernel for nobody", clusterFile, Options{Addresses: pool, Kernel: "echo"},
			"kernel: no rank runs as a stand-in here: name one, or give no kernel"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := mustParse(t, tc.file).Config(tc.options)
			if got := text(err); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			var e *Error
			if cfg != nil || !errors.As(err, &e) {
				t.Errorf("config %v, error of type %T", cfg, err)
			}
		})
	}
}

// TestConfigIsChecked imports a file that only the checks of the configuration reject.
func TestConfigIsChecked(t *testing.T) {
	c := mustParse(t, `{"nodes": {"fpga": [0, 1]}}`)
	_, err := c.Config(Options{Addresses: mustPool(t, "10.0.0.0/24")})
	var e *config.Error
	if !errors.As(err, &e) || e.Key != "ranks" || !strings.HasPrefix(err.Error(), "f.json: ranks: no rank runs here") {
		t.Errorf("%v", err)
	}
}

func TestPool(t *testing.T) {
	for _, tc := range []struct {
		pool string
		n    int
		want string
	}{
		{"127.0.0.1-127.0.0.4", 4, "127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4"},
		{"10.1.0.0/24", 2, "10.1.0.1 10.1.0.2"},
		{"10.1.0.5/29", 6, "10.1.0.1 10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5 10.1.0.6"},
		{"10.1.0.4/31", 2, "10.1.0.4 10.1.0.5"},
		{"10.1.0.4/32,10.0.0.7", 2, "10.1.0.4 10.0.0.7"},
		{"10.0.0.255-10.0.1.1", 3, "10.0.0.255 10.0.1.0 10.0.1.1"},
		{"255.255.255.254-255.255.255.255", 2, "255.255.255.254 255.255.255.255"},
		{"fd00::/64", 3, "fd00:: fd00::1 fd00::2"},
		{" 10.0.0.3 , ::ffff:10.0.0.1 - 10.0.0.2 ", 3, "10.0.0.3 10.0.0.1 10.0.0.2"},
		{"10.0.0.1,10.0.0.1", 1, "10.0.0.1"},
		{"0.0.0.0/0", 1, "0.0.0.1"},
	} {
		addrs, err := mustPool(t, tc.pool).Take(tc.n)
		got := strings.Trim(fmt.Sprint(addrs), "[]")
		if err != nil || got != tc.want {
			t.Errorf("%s: %s, %v, want %s", tc.pool, got, err, tc.want)
		}
	}
}

func TestPoolErrors(t *testing.T) {
	for pool, want := range map[string]string{
		"":                  `pool: "" is not an address, range or network: write 10.0.0.1, 10.0.0.1-10.0.0.4 or 10.0.0.0/24`,
		"10.0.0.1,":         `pool: "" is not an address, range or network: write 10.0.0.1, 10.0.0.1-10.0.0.4 or 10.0.0.0/24`,
		"10.0.0.1-4":        `pool: "10.0.0.1-4" is not an address, range or network: write 10.0.0.1, 10.0.0.1-10.0.0.4 or 10.0.0.0/24`,
		"10.0.0.0/33":       `pool: "10.0.0.0/33" is not an address, range or network: write 10.0.0.1, 10.0.0.1-10.0.0.4 or 10.0.0.0/24`,
		"10.0.0.4-10.0.0.1": `pool: the range "10.0.0.4-10.0.0.1" is in descending order: write the lower address first`,
		"10.0.0.1-fd00::1":  `pool: the range "10.0.0.1-fd00::1" is in descending order: write the lower address first`,
		"10.0.0.1:2718":     `pool: "10.0.0.1:2718" is not an address, range or network: write 10.0.0.1, 10.0.0.1-10.0.0.4 or 10.0.0.0/24`,
	} {
		if _, err := ParsePool(pool); text(err) != want {
			t.Errorf("%q: %v, want %s", pool, err, want)
		}
	}
	_, err := mustPool(t, "10.0.0.1,10.0.0.0/24").Take(2)
	if want := "pool: 10.0.0.1 is listed twice: give each rank its own address"; text(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// FuzzImport checks that no file makes the importer panic, and that the result is a valid configuration or an error.
func FuzzImport(f *testing.F) {
	for _, file := range []string{clusterFile, bothFile, answer} {
		f.Add([]byte(file), "127.0.0.1-127.0.0.4")
	}
	paths, _ := filepath.Glob("../../deploy/*.yaml")
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file, "10.0.0.0/8")
	}
	f.Fuzz(func(t *testing.T, file []byte, addresses string) {
		pool, poolErr := ParsePool(addresses)
		c, err := Parse(bytes.NewReader(file), "fuzz.json")
		if err != nil {
			return
		}
		for i, node := range c.Nodes {
			if node.Rank != i || node.CPU == node.FPGA && !node.CPU {
				t.Fatalf("node %d is %+v", i, node)
			}
			if node.FPGA != slices.Contains(c.FPGAs, i) {
				t.Fatalf("rank %d: FPGA %v, FPGAs %v", i, node.FPGA, c.FPGAs)
			}
		}
		if poolErr != nil || c.Format == ManagerAnswer {
			pool = Pool{}
		}
		for _, standIns := range []bool{false, true} {
			cfg, err := c.Config(Options{Addresses: pool, StandIns: standIns})
			if err != nil {
				continue
			}
			if printed, err := cfg.YAML(); err != nil {
				t.Fatal(err)
			} else if _, err := config.Parse(bytes.NewReader(printed), "printed.yaml"); err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
		}
	})
}

// TestConfigCollectives checks that the variant of upstream's collectives follows from com_opt in the file.
func TestConfigCollectives(t *testing.T) {
	for _, tc := range []struct {
		file     string
		upstream config.Upstream
		fpgas    []int
	}{
		{`{"nodes": {"cpu": [0], "fpga": [3, 1, 2]}, "config": {"com_opt": 1}}`, config.UpstreamTree, []int{3, 1, 2}},
		{`{"nodes": {"cpu": [0], "fpga": [3, 1, 2]}, "config": {"com_opt": 0}}`, config.UpstreamFlat, nil},
		{`{"nodes": {"cpu": [0], "fpga": [3, 1, 2]}}`, config.UpstreamTree, []int{3, 1, 2}},
		{`{"nodes": {"cpu": [0, 1]}, "config": {"com_opt": 1}}`, config.UpstreamFlat, nil},
	} {
		// A host in place of an FPGA keeps its place in the tree.
		cfg, err := mustParse(t, tc.file).Config(Options{Addresses: mustPool(t, "10.0.0.0/24"), Host: []int{0, 1}})
		if err != nil {
			t.Fatal(err)
		}
		if x := cfg.Collectives; x.Upstream != tc.upstream || !slices.Equal(cfg.UpstreamFPGAs(), tc.fpgas) {
			t.Errorf("%s: %+v", tc.file, x)
		}
	}
}
