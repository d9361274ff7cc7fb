package cosim_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// BenchmarkRoles measures echo roles with messages of 1000 words. It reports the simulated cycles per second without
// zrlmpid (alone) and with zrlmpid (loop), and the messages per second.
func BenchmarkRoles(b *testing.B) {
	const words = 1000
	for _, language := range []string{"verilog", "vhdl"} {
		b.Run(language+"/alone", func(b *testing.B) {
			cmd := exec.Command(build(b, language))
			cmd.Env = append(os.Environ(), "ZRLMPI_COSIM_ALONE="+strconv.Itoa(b.N))
			out, err := cmd.Output()
			m := regexp.MustCompile(`(\d+) cycles in .* s: (\d+) cycles/s`).FindSubmatch(out)
			if err != nil || m == nil {
				b.Fatalf("%v, %s", err, out)
			}
			cycles, _ := strconv.ParseFloat(string(m[1]), 64)
			rate, _ := strconv.ParseFloat(string(m[2]), 64)
			b.ReportMetric(rate, "cycles/s")
			b.ReportMetric(float64(b.N)*rate/cycles, "messages/s")
		})
		b.Run(language+"/loop", func(b *testing.B) {
			c := start(b, build(b, language), "", "")
			c.ping(b, words, 1, "int")
			cycle := func() uint64 {
				s, err := c.Client.Status(within(b, time.Minute))
				if err != nil {
					b.Fatal(err)
				}
				return s.Ranks[1].KernelStats.Simulation.Cycle
			}
			from := cycle()
			b.ResetTimer()
			c.ping(b, words, b.N, "int")
			b.StopTimer()
			seconds := b.Elapsed().Seconds()
			b.ReportMetric(float64(cycle()-from)/seconds, "cycles/s")
			b.ReportMetric(float64(b.N)/seconds, "messages/s")
		})
	}
}
