package hostile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func init() {
	attacks = append(attacks,
		attack{name: "records directory replaced by a link", run: recordsLink},
		attack{name: "records directory of another user", run: recordsOwned},
		attack{name: "record names planted", run: recordNames},
		attack{name: "records directory replaced while the daemon runs", run: recordsReplaced},
		attack{name: "spool with files of root", run: spoolOfRoot},
		attack{name: "control socket where others write", run: socketInWide},
		attack{name: "bundle and capture where others write", run: outputs},
		attack{name: "records of a job", run: recordsOfJob},
	)
}

// recordOf returns the name of the record of a failure at a time.
func recordOf(at time.Time) string {
	return at.UTC().Format("20060102T150405.000Z") + "-rank0-peer1.pcapng.gz"
}

// fail makes a send fail, so that the daemon writes a record.
func (h *host) fail(socket string) {
	h.Helper()
	if code, out := h.zrlctl("--socket", socket, "send", "1", "--words", "4"); code == 0 {
		h.Fatalf("nobody receives, and yet: %s", out)
	}
}

// settled waits until the daemon has written, or refused to write, the record of a failure.
func (d *daemon) settled() {
	d.h.Helper()
	if !d.ended() && !strings.Contains(d.log.String(), "failure records are disabled") {
		d.await("failure record")
	}
}

// recordsLink plants a link as the records directory of a socket in /tmp. The link refers to a directory of root that
// contains captures.
func recordsLink(h *host) {
	for _, dir := range []string{h.open, h.wide} {
		captures := filepath.Join(h.private, "captures of "+filepath.Base(dir))
		mine := filepath.Join(captures, recordOf(time.Now().Add(-time.Hour)))
		check := h.precious(mine)
		big := filepath.Join(captures, "old.pcapng.gz")
		must(h.T, os.WriteFile(big, nil, 0o600), os.Truncate(big, 64<<20)) // larger than the spool
		h.attacker(func() error { return os.Symlink(captures, dir+"/z-records") })
		d := h.start("--config", h.config(""), "--control", dir+"/z.sock")
		if !d.ended() {
			h.fail(dir + "/z.sock")
			d.settled()
		}
		d.stop()
		check()
		if list, err := os.ReadDir(captures); err != nil || len(list) != 2 {
			h.Errorf("%s: root's directory of captures has %d files: %v", dir, len(list), err)
		}
	}
}

// recordsOwned creates the records directory as the other user.
func recordsOwned(h *host) {
	for _, dir := range []string{h.open, h.wide} {
		records := dir + "/z-records"
		h.attacker(func() error { return errors.Join(os.Mkdir(records, 0o700), os.Chmod(records, 0o777)) })
		d := h.start("--config", h.config(""), "--control", dir+"/z.sock")
		if !d.ended() {
			h.fail(dir + "/z.sock")
			d.settled()
		}
		d.stop()
		if list, err := os.ReadDir(records); err != nil || len(list) > 0 {
			h.Errorf("records are in a directory of the other user: %v, %v", list, err)
		}
	}
}

// recordNames plants links to a file of root, with the names of the records of the next seconds.
func recordNames(h *host) {
	check := h.precious(h.private + "/precious")
	records := filepath.Join(h.wide, "records")
	must(h.T, os.Mkdir(records, 0o700), os.Chmod(records, 0o777)) // as created with a umask of 0
	// end of the planted names
	end := time.Now()
	h.attacker(func() error {
		for ; time.Until(end) < 10*time.Second; end = end.Add(time.Millisecond) {
			if err := os.Symlink(h.private+"/precious", filepath.Join(records, recordOf(end)+".partial")); err != nil {
				return err
			}
		}
		return nil
	})
	d := h.start("--config", h.config(fmt.Sprintf("record: {spool: {directory: %q}}", records)), "--control",
		h.private+"/z.sock")
	h.fail(h.private + "/z.sock")
	d.settled()
	if time.Now().After(end) {
		h.Error("the record is later than its planted names")
	}
	d.stop()
	check()
}

// recordsReplaced renames the records directory after the daemon has started, and replaces it by a link.
func recordsReplaced(h *host) {
	check := h.precious(h.private + "/captures/" + recordOf(time.Now()))
	d := h.start("--config", h.config(fmt.Sprintf("record: {spool: {directory: %q}}", h.wide+"/records")), "--control",
		h.private+"/z.sock")
	h.attacker(func() error {
		_ = os.Rename(h.wide+"/records", h.wide+"/old") // fails if the daemon rejected the directory
		return os.Symlink(h.private+"/captures", h.wide+"/records")
	})
	h.fail(h.private + "/z.sock")
	d.settled()
	d.stop()
	check()
	if list, err := os.ReadDir(h.private + "/captures"); err != nil || len(list) != 1 {
		h.Errorf("root's directory of captures has %d files: %v", len(list), err)
	}
}

// spoolOfRoot uses a directory of root that contains other captures as the spool. Only records may be deleted.
func spoolOfRoot(h *host) {
	records := h.private + "/captures"
	check := h.precious(records + "/0-mine.pcapng.gz")
	old := records + "/" + recordOf(time.Now().Add(-time.Hour))
	must(h.T, os.WriteFile(old, nil, 0o600), os.Truncate(old, 64<<20))
	d := h.start("--config", h.config(fmt.Sprintf("record: {spool: {directory: %q}}", records)), "--control",
		h.private+"/z.sock")
	h.fail(h.private + "/z.sock")
	d.settled()
	d.stop()
	check()
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		h.Errorf("a record beyond the size of the spool is still there: %v", err)
	}
	h.belongsToRoot(records)
}

// socketInWide checks that the daemon creates no socket in a directory in which another user could replace it.
func socketInWide(h *host) {
	h.attacker(func() error { return os.Symlink(h.private, h.wide+"/link") })
	for _, path := range []string{h.wide + "/z.sock", h.wide + "/link/z.sock", h.wide + "/new/z.sock"} {
		d := h.start("--config", h.config(""), "--control", path)
		if !d.ended() || !strings.Contains(d.log.String(), "may be written to by other users") {
			h.Errorf("%s: the daemon runs, or says nothing of it: %s", path, d.log)
		}
		d.stop()
	}
}

// outputs plants a link to a file of root, or a file of the other user, at the path of a tool's output file, in
// directories to which every user can write.
func outputs(h *host) {
	check := h.precious(h.private + "/precious")
	d := h.start("--config", h.config(""), "--control", h.private+"/z.sock")
	defer d.stop()
	for _, dir := range []string{h.open, h.wide} {
		for _, command := range [][]string{{"capture", "-o"}, {"trace", "--for", "1ms", "-o"},
			{"bundle", "--packets=false", "-o"}} {
			for name, lay := range map[string]func(path string) error{
				"link": func(path string) error { return os.Symlink(h.private+"/precious", path) },
				"file": func(path string) error {
					return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666))
				},
				"chain": func(path string) error {
					return errors.Join(os.Symlink(h.private+"/precious", path+"2"), os.Symlink(path+"2", path))
				},
			} {
				path := filepath.Join(dir, command[0]+name)
				h.attacker(func() error { return lay(path) })
				code, out := h.zrlctl(append([]string{command[0], "--socket", h.private + "/z.sock"},
					append(command[1:], path)...)...)
				if code == 0 {
					h.Errorf("%v %s: %s", command, path, out)
				}
				check()
			}
		}
	}
}

// recordsOfJob takes the names for a job's records in /tmp.
func recordsOfJob(h *host) {
	check := h.precious(h.private + "/captures/" + recordOf(time.Now().Add(-time.Hour)))
	name := fmt.Sprintf("%s/zrlmpi-records-%d", h.open, os.Geteuid())
	h.attacker(func() error { return os.Symlink(h.private+"/captures", name) })
	_, out := h.run(func(ctx context.Context) *exec.Cmd {
		cmd := h.command(ctx, "zrlctl", []string{"run", "--config", h.config(""), os.Args[0]})
		cmd.Env = append(cmd.Env, envProgram+"=1", "TMPDIR="+h.open)
		return cmd
	})
	check()
	if list, err := os.ReadDir(h.private + "/captures"); err != nil || len(list) != 1 {
		h.Errorf("root's directory of captures has %d files: %v\n%s", len(list), err, out)
	}
	if !strings.Contains(out, ".local/state/zrlmpi/records/") {
		h.Errorf("the job's record is not in the state directory:\n%s", out)
	}
}
