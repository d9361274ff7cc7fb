package capture_test

import (
	"fmt"
	"log"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Analyze a recording: list its messages and findings.
func ExampleAnalysis() {
	source, err := capture.Options{}.OpenFile("testdata/captures/loss_mid_to_fpga_corrupts.pcap")
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	analysis := capture.NewAnalysis("loss_mid_to_fpga_corrupts.pcap", capture.AnalysisOptions{
		Profile: protocol.CloudFPGA, KeepMessages: 100,
	})
	if err := analysis.Analyze(source); err != nil {
		log.Fatal(err)
	}
	report := analysis.Report()
	for _, m := range report.Messages {
		fmt.Printf("rank %d to rank %d: %d words, retransmissions: %d\n", m.Src, m.Dst, m.Words, m.Retransmissions)
	}
	for _, f := range report.Findings {
		fmt.Println(f.Kind, "in packets", f.Packets)
	}
	// Output:
	// rank 0 to rank 1: 1000 words, retransmissions: 1
	// rank 0 to rank 1: 1000 words, retransmissions: 0
	// lost_packet in packets [1 6]
}
