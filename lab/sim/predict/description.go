package predict

import (
	"errors"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/lab/sim/network"
)

// Values of Description.Engine.
const (
	engineSoftware = "software"
	engineFPGA     = "fpga"
)

// Description describes a cluster. It is read from a file.
type Description struct {
	// Ranks is the number of ranks. Hosts is the number of hosts; 0 means one per rank. The ranks on a host have
	// consecutive numbers.
	Ranks int `yaml:"ranks"`
	Hosts int `yaml:"hosts"`
	// Cores is the number of cores per host. 0 means one per rank.
	Cores int `yaml:"cores"`
	// Switches is the number of switches that connect the hosts. 0 means one.
	Switches int `yaml:"switches"`
	// Engine is "software" or "fpga". With "fpga", all ranks except rank 0 are FPGAs with the profile cloudfpga.
	Engine string `yaml:"engine"`
	// Link is the link of each host, and Uplink the link of each switch.
	Link   Speed `yaml:"link"`
	Uplink Speed `yaml:"uplink"`
	// Overhead is the processor time per message at each end. If it is 0, the value from the parameters is used.
	Overhead time.Duration `yaml:"overhead"`
}

// Speed is the end-to-end latency of a link, and its bandwidth in gigabits per second. 0 means a default.
type Speed struct {
	Latency time.Duration `yaml:"latency"`
	Gbps    float64       `yaml:"gbps"`
}

// gapByte returns the time that a byte occupies the link, in nanoseconds.
func (s *Speed) gapByte() float64 { return 8 / s.Gbps }

// Links used by default.
var (
	defaultLink   = Speed{10 * time.Microsecond, 10}
	defaultUplink = Speed{time.Microsecond, 100}
)

// DefaultDescription describes a cluster with one rank on each host, and links of 10 Gb/s.
func DefaultDescription(ranks int) *Description { return (&Description{Ranks: ranks}).withDefaults() }

func (d *Description) withDefaults() *Description {
	if d.Hosts == 0 {
		d.Hosts = d.Ranks
	}
	if d.Switches == 0 {
		d.Switches = 1
	}
	if d.Engine == "" {
		d.Engine = engineSoftware
	}
	d.Link.setDefaults(defaultLink)
	d.Uplink.setDefaults(defaultUplink)
	return d
}

func (s *Speed) setDefaults(by Speed) {
	if s.Latency == 0 {
		s.Latency = by.Latency
	}
	if s.Gbps == 0 {
		s.Gbps = by.Gbps
	}
}

// Load reads a description. Errors contain the file's name. They are joined *strictyaml.Error, wrap
// strictyaml.ErrTooLarge, or come from the reader.
func Load(r io.Reader, name string) (*Description, error) {
	var description Description
	source, err := strictyaml.Decode(r, name, &description)
	if err != nil {
		return nil, err
	}
	description.withDefaults()
	problems := strictyaml.NewProblems(&source)
	within := func(key string, n, least, most int) {
		if n < least || n > most {
			problems.Add(key, "%d is outside %d to %d", n, least, most)
		}
	}
	within("ranks", description.Ranks, 2, network.MaxRanks)
	within("hosts", description.Hosts, 1, max(description.Ranks, 1))
	within("cores", description.Cores, 0, network.MaxRanks)
	within("switches", description.Switches, 1, max(description.Hosts, 1))
	if description.Engine != engineSoftware && description.Engine != engineFPGA {
		problems.Add("engine", "%s is not known%s: there are %s, %s", strictyaml.Quote(description.Engine),
			strictyaml.SuggestName(description.Engine, []string{engineSoftware, engineFPGA}), engineSoftware, engineFPGA)
	}
	if description.HasFPGAs() && description.Hosts != description.Ranks {
		problems.Add("hosts", "each FPGA is a host of its own: leave it out")
	}
	if description.HasFPGAs() && description.Ranks < 3 {
		problems.Add("ranks", "%d ranks: with FPGAs, there are at least two of them and rank 0", description.Ranks)
	}
	for i, key := range [...]string{"link", "uplink"} {
		s := [...]Speed{description.Link, description.Uplink}[i]
		if s.Latency < 0 || s.Latency > time.Second {
			problems.Add(key+".latency", "%v is outside 0 to 1s", s.Latency)
		}
		if !(s.Gbps >= 0.001 && s.Gbps <= 1e5) {
			problems.Add(key+".gbps", "%v is outside 0.001 to 100000", s.Gbps)
		}
	}
	if description.Overhead < 0 || description.Overhead > time.Second {
		problems.Add("overhead", "%v is outside 0 to 1s", description.Overhead)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return &description, nil
}

// HasFPGAs reports whether all ranks except rank 0 are FPGAs.
func (d *Description) HasFPGAs() bool { return d.Engine == engineFPGA }

// Cluster returns a cluster of the given number of ranks, with as many ranks per host and hosts per switch as d
// describes. The parameters come from fits. Without fits, or if there are FPGAs, they come from SoftwareParameters or
// FPGAParameters.
func (d *Description) Cluster(ranks int, fits []*Fit) network.Cluster {
	perHost := ceilDiv(d.Ranks, d.Hosts)
	cluster := network.Cluster{Ranks: ranks, PerHost: perHost, Cores: d.Cores, Parameters: SoftwareParameters()}
	if d.Switches > 1 {
		cluster.PerSwitch = ceilDiv(d.Hosts, d.Switches)
		cluster.Uplink = network.Link{Latency: float64(d.Uplink.Latency), GapByte: d.Uplink.gapByte()}
	}
	if d.HasFPGAs() {
		cluster.Parameters, cluster.Blocking = FPGAParameters(), true
	} else {
		applyFits(&cluster, fits)
	}
	cluster.Network.Latency, cluster.Network.GapByte = float64(d.Link.Latency), d.Link.gapByte()
	if d.Overhead > 0 {
		cluster.Network.Overhead = float64(d.Overhead)
	}
	return cluster
}

// applyFits copies parameters from fits. If ranks share cores in the cluster, it prefers fits in which they did so too.
// It does not change the parameters of the network link, because the fits were measured on a single host.
func applyFits(cluster *network.Cluster, fits []*Fit) {
	shares := cluster.Cores > 0 && cluster.PerHost > cluster.Cores
	for _, right := range [...]bool{false, true} { // the matching kind is last and therefore wins
		for _, fit := range fits {
			if (oversubscribed(fit.Class) == shares) != right {
				continue
			}
			change := cluster.Host.Switch
			if sharesMemory(fit.Class) {
				cluster.Memory, cluster.Host = fit.Parameters.Memory, fit.Parameters.Host
			} else {
				cluster.Network.Overhead, cluster.Network.OverheadByte = fit.Parameters.Network.Overhead,
					fit.Parameters.Network.OverheadByte
				if cluster.PerHost == 1 {
					cluster.Host = fit.Parameters.Host
				}
			}
			if !oversubscribed(fit.Class) {
				cluster.Host.Switch = change // the class has no time slice
			}
		}
	}
}

func ceilDiv(n, by int) int { return (n + by - 1) / by }

// ErrFPGA is returned when a table is requested for ranks on FPGAs, which do not use one.
var ErrFPGA = errors.New("ranks with FPGAs read no table: set collectives.upstream")

// communicator returns a cluster of the given number of ranks, which form a communicator. The ranks are on one host if
// they fit there, and otherwise spread over all hosts.
func (d *Description) communicator(ranks int, fits []*Fit) network.Cluster {
	c := d.Cluster(ranks, fits)
	if ranks > c.PerHost {
		c.PerHost = ceilDiv(ranks, d.Hosts)
	}
	return c
}
