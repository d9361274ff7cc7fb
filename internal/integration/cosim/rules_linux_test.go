package cosim_test

import (
	"bytes"
	_ "embed"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// Roles that break rule N of their streams after a message of N lines. The role in Verilog is part of verilogGaps and
// activated by an argument, because building another role takes long.
var (
	//go:embed testdata/broken.v
	brokenVerilog string
	//go:embed testdata/broken.vhdl
	brokenVHDL string
	//go:embed testdata/broken.cpp
	brokenHLS string
)

// brokenRole builds such a role and returns the command line of its simulator.
func brokenRole(t *testing.T, language string) []string {
	t.Helper()
	switch language {
	case "verilog":
		return []string{build(t, language, verilogGaps...), "+broken"}
	case "vhdl":
		return []string{build(t, language, change{"entity role is", "entity echo_role is"},
			change{"of role is", "of echo_role is"},
			change{"      end if;\n    end if;\n  end process;\nend architecture;\n",
				"      end if;\n    end if;\n  end process;\nend architecture;\n" + brokenVHDL})}
	}
	return []string{build(t, language, change{1: brokenHLS})}
}

// alone runs a simulator without zrlmpid and returns its findings.
func alone(t *testing.T, simulator []string, messages, words, stall int) (findings string, err error) {
	t.Helper()
	cmd := exec.CommandContext(within(t, time.Minute), simulator[0], simulator[1:]...)
	cmd.Env = append(os.Environ(), "ZRLMPI_COSIM_ALONE="+strconv.Itoa(messages),
		"ZRLMPI_COSIM_WORDS="+strconv.Itoa(words), "ZRLMPI_COSIM_STALL="+strconv.Itoa(stall))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	return stderr.String(), err
}

// streamRule describes the finding for a rule that a role in testdata breaks: the signal, the problem, and the cycle in
// VHDL without stalls.
type streamRule struct {
	cycle           int
	signal, problem string
}

// streamRules maps the numbers of rules.
var streamRules = map[int]streamRule{
	1: {27, "soMPI_data_tvalid", "withdrawn before tready"},
	2: {28, "soMPI_data_tdata", "changed before tready"},
	3: {29, "soMPI_data_tkeep", "changed before tready"},
	4: {30, "soMPI_data_tlast", "changed before tready"},
	5: {1874, "soMPI_data_tvalid", "follows tready"},
	6: {29, "soMPIif_tvalid", "withdrawn before tready"},
	7: {30, "soMPIif_tdata", "changed before tready"},
	8: {1865, "soMPIif_tvalid", "follows tready"},
	// Only VHDL has signal values other than 0 and 1.
	9:  {29, "soMPI_data_tvalid", "neither 0 nor 1"},
	10: {35, "soMPI_data_tdata", "neither 0 nor 1"},
	11: {36, "soMPI_data_tkeep", "neither 0 nor 1"},
	12: {37, "soMPI_data_tlast", "neither 0 nor 1"},
	13: {33, "soMPIif_tvalid", "neither 0 nor 1"},
	14: {36, "soMPIif_tdata", "neither 0 nor 1"},
	15: {74, "siMPI_data_tready", "neither 0 nor 1"},
	16: {36, "siMPIFeB_tready", "neither 0 nor 1"},
}

// TestStreamRules checks that each broken rule is reported with signal and cycle, with and without stalls.
func TestStreamRules(t *testing.T) {
	found := regexp.MustCompile(`^zrlmpi_cosim: (\S+) at cycle (\d+): (.*)\n$`)
	for _, language := range []string{"verilog", "vhdl", "hls"} {
		t.Run(language, func(t *testing.T) {
			simulator := brokenRole(t, language)
			for number, rule := range streamRules {
				if number > 8 && language != "vhdl" {
					continue
				}
				for _, stall := range []int{0, 30} {
					said, err := alone(t, simulator, 10, 2*number, stall)
					if follows := rule.problem == "follows tready"; follows != (err == nil) {
						t.Errorf("rule %d, stalls %d: it ends with %v", number, stall, err)
					}
					m := found.FindStringSubmatch(said)
					if m == nil || m[1] != rule.signal || m[3] != rule.problem {
						t.Fatalf("rule %d, stalls %d: %q, want %+v", number, stall, said, rule)
					}
					if stall == 0 && language == "vhdl" && m[2] != strconv.Itoa(rule.cycle) {
						t.Errorf("rule %d: cycle %s, want %d", number, m[2], rule.cycle)
					}
				}
			}
		})
	}
}

// TestSoundRoles checks that no finding is reported for correct roles in a million transfers.
func TestSoundRoles(t *testing.T) {
	simulators := map[string]string{
		"verilog": build(t, "verilog", verilogGaps...),
		"vhdl":    build(t, "vhdl"),
		"hls":     build(t, "hls"),
	}
	for language, simulator := range simulators {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if got, err := alone(t, []string{simulator}, 1000, 1000, 30); err != nil || got != "" {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}
