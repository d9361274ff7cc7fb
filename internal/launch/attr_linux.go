package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes returns the attributes with which a rank's process is started. They put the process into a separate
// process group, and make the kernel kill it when the thread that started it exits.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// cores returns the numbers of the cores that this process may use.
func cores() (list []int, err error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, err
	}
	for core := 0; len(list) < allowed.Count(); core++ {
		if allowed.IsSet(core) {
			list = append(list, core)
		}
	}
	return list, nil
}

// bind makes all processes that the calling thread starts afterwards run on the given core.
func bind(core int) error {
	var one unix.CPUSet
	one.Set(core)
	return unix.SchedSetaffinity(0, &one)
}
