package capture_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/capturetest"
)

// benchBytes is the size of the generated recording; ZRLMPI_BENCH_BYTES overrides it.
const benchBytes = 128 << 20

// BenchmarkAnalyze analyzes a generated recording alternately with zrlctl and, if it is installed, with `tshark -T
// fields`. MB is the maximum resident memory of the program.
func BenchmarkAnalyze(b *testing.B) {
	size := int64(benchBytes)
	if s := os.Getenv("ZRLMPI_BENCH_BYTES"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		size = n
	}
	dir := b.TempDir()
	zrlctl := filepath.Join(dir, "zrlctl")
	if out, err := exec.Command("go", "build", "-o", zrlctl, "../cmd/zrlctl").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	file, packets := generate(b, filepath.Join(dir, "big.pcap"), size)
	programs := []struct {
		name string
		args []string
	}{
		{"zrlctl", []string{zrlctl, "analyze", "--messages=false", "--limit=0", file}},
		{"tshark", []string{"tshark", "-n", "-r", file, "-T", "fields", "-e", "frame.number", "-e", "ip.src", "-e",
			"ip.dst", "-e", "udp.length"}},
	}
	for _, p := range programs {
		b.Run(p.name, func(b *testing.B) {
			if _, err := exec.LookPath(p.args[0]); err != nil {
				b.Skipf("NOT MEASURED: %v", err)
			}
			for b.Loop() {
				cmd := exec.Command(p.args[0], p.args[1:]...)
				start := time.Now()
				out, err := cmd.CombinedOutput()
				if err != nil {
					b.Fatalf("%v\n%.2000s", err, out)
				}
				elapsed := time.Since(start).Seconds()
				usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
				b.ReportMetric(float64(packets)/elapsed, "packets/s")
				b.ReportMetric(float64(size)/elapsed/1e6, "MB/s")
				b.ReportMetric(float64(usage.Maxrss)/1024, "MB")
			}
		})
	}
}

func generate(b *testing.B, name string, size int64) (string, int64) {
	b.Helper()
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := capturetest.Generate(w, size, 1); err != nil {
		b.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	src, err := capture.Options{}.OpenFile(name)
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	a := capture.NewAnalysis(name, capture.AnalysisOptions{})
	if err := a.Analyze(src); err != nil && err != io.EOF {
		b.Fatal(err)
	}
	if r := a.Report(); !r.IsClean() || r.Summary.All.Messages == 0 {
		b.Fatalf("the generated recording is not sound: %+v", r.Findings[:min(3, len(r.Findings))])
	}
	return name, src.Stats().Packets
}
