package daemon

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// TestDescribe checks that a full state reports stopped programs, and that a scrape does not make a system call
// for each program.
func TestDescribe(t *testing.T) {
	program := exec.CommandContext(t.Context(), "sleep", "60")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer program.Wait()
	defer program.Process.Kill()
	pid := program.Process.Pid
	var status unix.WaitStatus
	if err := program.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatal(status, err)
	}
	r := &localRank{cfg: &config.Rank{Rank: 1}}
	own, other := wire.Credentials{PID: pid}, wire.Credentials{PID: 1}
	attached := []attach.AttachedProgram{{Rank: 0, Credentials: other},
		{Rank: 1, Credentials: own, AttachedAt: time.Now()}}
	for depth, want := range map[state.Detail]bool{state.DetailFull: true, state.DetailScrape: false} {
		var s state.RankInfo
		r.addDetails(&s, depth, attached)
		if len(s.Attached) != 1 || s.Attached[0].PID != pid || s.Attached[0].Stopped != want {
			t.Errorf("depth %v: %+v", depth, s.Attached)
		}
	}
}
