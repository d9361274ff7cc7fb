package predict

import "github.com/zrlmpi/zrlmpid/lab/sim/network"

// The maximum lengths of eager messages.
const (
	memoryEager  = 8 << 10
	networkEager = 64 << 10
)

// SoftwareParameters returns the parameters of ranks in software for which there are no measurements. Empty messages
// and publications take as long as in the formulas of the built-in table, and a byte on a network as long as at 10
// Gb/s. Switch is about the mean of the values that Fits finds for lab/tune/shipped.yaml.
func SoftwareParameters() network.Parameters {
	return network.Parameters{
		Host:    network.Host{Call: 300, Copy: 0.1, Reduce: 0.3, Publish: 100, Visible: 300, Switch: 2700},
		Memory:  network.Link{Latency: 200, Overhead: 400, OverheadByte: 0.1, Eager: memoryEager, Pulls: true},
		Network: network.Link{Latency: 10000, Overhead: 2500, OverheadByte: 0.1, GapByte: 0.8, Eager: networkEager},
	}
}

// FPGAParameters returns the parameters of FPGAs with the profile cloudfpga, where every message waits until its
// receive is posted. The overhead is an assumption, not a measurement.
func FPGAParameters() network.Parameters {
	p := SoftwareParameters()
	p.Host = network.Host{Call: 500, Copy: 0.8, Reduce: 0.8}
	p.Network.Overhead, p.Network.OverheadByte, p.Network.Eager = 500, 0, -1
	return p
}
