package predict

import "github.com/zrlmpi/zrlmpid/lab/sim/network"

// Maximum length of eager messages.
const (
	memoryEager  = 8 << 10
	networkEager = 64 << 10
)

// Software returns the parameters of ranks in software without measurements. Empty messages and publications take the
// times of the built-in table's formulas, and a byte on a network takes the time of 10 Gb/s. Switch is about the mean
// of the values that Fits finds for lab/tune/shipped.yaml.
func Software() network.Parameters {
	return network.Parameters{
		Host:    network.Host{Call: 300, Copy: 0.1, Reduce: 0.3, Publish: 100, Visible: 300, Switch: 2700},
		Memory:  network.Link{Latency: 200, Overhead: 400, OverheadByte: 0.1, Eager: memoryEager, Pulls: true},
		Network: network.Link{Latency: 10000, Overhead: 2500, OverheadByte: 0.1, GapByte: 0.8, Eager: networkEager},
	}
}

// FPGA returns the parameters of FPGAs with the profile cloudfpga, where all messages wait for their receive. The
// overhead is assumed, not measured.
func FPGA() network.Parameters {
	p := Software()
	p.Host = network.Host{Call: 500, Copy: 0.8, Reduce: 0.8}
	p.Network.Overhead, p.Network.OverheadByte, p.Network.Eager = 500, 0, -1
	return p
}
