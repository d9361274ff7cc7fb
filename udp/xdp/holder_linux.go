package xdp

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// describeHolder describes the program that is attached to a device, and the process that holds it, as far as this
// process may know. It returns "another program" if it finds nothing.
func describeHolder(device int) string {
	const unknown = "another program"
	l, err := netlink.LinkByIndex(device)
	if err != nil || l.Attrs().Xdp == nil || !l.Attrs().Xdp.Attached {
		return unknown
	}
	id := l.Attrs().Xdp.ProgId
	text := fmt.Sprintf("the BPF program %d", id)
	if p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id)); err == nil {
		if info, err := p.Info(); err == nil && info.Name != "" {
			text += " (" + info.Name + ")"
		}
		p.Close()
	}
	if pid := findHolder(id); pid != 0 {
		name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")) // the process may just have ended
		text += fmt.Sprintf(" of process %d (%s)", pid, strings.TrimSpace(string(name)))
	}
	return text
}

// findHolder returns a process that has a BPF program open, or 0.
func findHolder(id uint32) int {
	const field = "prog_id:"
	files, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*") // fails only for an invalid pattern
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // of another user, or already closed
		}
		for line := range strings.Lines(string(text)) {
			value, found := strings.CutPrefix(line, field)
			if found && strings.TrimSpace(value) == strconv.FormatUint(uint64(id), 10) {
				pid, _ := strconv.Atoi(strings.Split(file, "/")[2]) // a number by the pattern
				if pid != os.Getpid() {
					return pid
				}
			}
		}
	}
	return 0
}
