package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes are those of the process of a rank: in a process group of its own, and
// killed when the thread ends that has started it.
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

// bind binds what the calling thread starts to a core.
func bind(core int) error {
	var one unix.CPUSet
	one.Set(core)
	return unix.SchedSetaffinity(0, &one)
}
