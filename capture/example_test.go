package capture_test

import (
	"fmt"
	"log"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// A recording is analysed: its messages, and what went wrong.
func ExampleAnalysis() {
	source, err := capture.OpenFile("testdata/captures/loss_mid_to_fpga_corrupts.pcap")
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	analysis := capture.NewAnalysis("loss_mid_to_fpga_corrupts.pcap", capture.AnalysisOptions{
		Profile: protocol.CloudFPGA,
		OnMessage: func(m *capture.Message) {
			fmt.Printf("rank %d to rank %d: %d words, retransmissions: %d\n", m.Src, m.Dst, m.Words, m.Retransmissions)
		},
		OnFinding: func(f *capture.Finding) { fmt.Println(f.Kind, "in packets", f.Packets) },
	})
	if err := analysis.Follow(source); err != nil {
		log.Fatal(err)
	}
	// Output:
	// rank 0 to rank 1: 1000 words, retransmissions: 1
	// lost_packet in packets [1 6]
	// rank 0 to rank 1: 1000 words, retransmissions: 0
}
