package config

import (
	"strings"
	"testing"
)

// TestReplaceFPGAs checks that other FPGAs become stand-ins, which accept any peer if their kernel only answers.
func TestReplaceFPGAs(t *testing.T) {
	for kernel, peer := range map[string]int{KernelEcho: AnyPeer, KernelSink: AnyPeer, KernelSource: 0,
		KernelJacobi: 0} {
		c, err := Parse(strings.NewReader("ranks:\n"+
			"  - {rank: 0, address: 10.0.0.1, run: host}\n"+
			"  - {rank: 1, address: 10.0.0.2, run: standin}\n"+
			"  - {rank: 2, address: 10.0.0.3, peer: fpga}\n"), "f.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c.ReplaceFPGAs(Kernel{Name: kernel})
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", kernel, err)
		}
		if own, made := c.Rank(1),
			c.Rank(2); own.KernelOptions.Peer != 0 || made.Kernel.Name != kernel || made.KernelOptions.Peer != peer {
			t.Errorf("%s: %+v and %+v, want peer %d", kernel, own, made.KernelOptions, peer)
		}
	}
}
