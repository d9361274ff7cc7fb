package hangs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/deploy/cosim/simulators"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// TestPathToDeployedNodes sends messages of one datagram from a daemon with AF_XDP to upstream's nodes, which send them
// back, also if every twentieth datagram to the node is lost.
func TestPathToDeployedNodes(t *testing.T) {
	const ranks = "ranks: [{rank: 0, address: 10.9.0.1, %s}, {rank: 1, address: 10.9.1.2, %s}]"
	const count = 30
	message := func(number int) (words []int32) {
		for i := range []int{1, 346, 2, 345}[number%4] {
			words = append(words, int32(1000*number+i))
		}
		return words
	}
	for kind, start := range map[string]func(t *testing.T, h *hosts) (check func()){
		"cpu": func(t *testing.T, h *hosts) func() {
			var input, output strings.Builder
			var want []string
			for number := range count {
				words := message(number)
				text := ""
				for _, w := range words {
					text += fmt.Sprintf("%08x", w)
				}
				fmt.Fprintf(&input, "recv 0 %d\nsend 0 %s\n", len(words), text)
				want = append(want, "received "+text)
			}
			cmd := exec.Command(buildCalls(t), "udp", "10.9.1.2", "2", "1", "10.9.0.1")
			cmd.Stdin, cmd.Stdout = strings.NewReader(input.String()), &output
			var err error
			if h.host[1].Do(func() { err = cmd.Start() }); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			return func() {
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
				for number, line := range want {
					if !strings.Contains(output.String(), "\n"+line+"\n") {
						t.Errorf("the node has not received message %d", number)
					}
				}
			}
		},
		"fpga": func(t *testing.T, h *hosts) func() {
			mpe := simulators.BuildMPE(t, "peer", simulators.EchoEdit, simulators.TimeoutEdit(simulatedClock/10))
			kernel := fmt.Sprintf("rtl-net:cycles_per_second=%d %s 0 0", simulatedClock, mpe)
			for number := range count {
				kernel += fmt.Sprint(" ", len(message(number)))
			}
			startDaemon(t, h.host[1], "profile: cloudfpga", fmt.Sprintf(ranks, "peer: software",
				fmt.Sprintf("run: standin, kernel: %q", kernel)))
			return func() {}
		},
	} {
		for _, lossy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lossy %v", kind, lossy), func(t *testing.T) {
				h := newHosts(t)
				if lossy {
					h.host[1].Run(needs.Program(t, "lost datagrams", "nft", "nftables"), "table ip loss { chain in { type "+
						"filter hook input priority 0; udp dport 2718 numgen inc mod 20 == 0 drop; }; }")
				}
				check := start(t, h)
				host := startDaemon(t, h.host[0], "profile: cloudfpga, path: xdp", fmt.Sprintf(ranks, "run: host",
					"peer: "+kind))
				for number := range count {
					words := message(number)
					data, _ := binary.Append(nil, binary.LittleEndian, words) // has a fixed size
					_, err := host.Send(t.Context(), control.SendRequest{To: 1, Timeout: causeTime}, bytes.NewReader(data))
					if err != nil {
						t.Fatalf("message %d: %v", number, err)
					}
					_, got, err := host.Recv(t.Context(), control.RecvRequest{From: 1, Words: len(words), Timeout: causeTime})
					if err != nil || !bytes.Equal(got, data) {
						t.Fatalf("message %d: %v, received %x, want %x", number, err, got, data)
					}
				}
				check()
				if p := pathOf(t, host); p.Sent < 3*count || p.Received < 3*count || len(p.ByKernel) > 0 {
					t.Errorf("%+v", p)
				}
			})
		}
	}
}
