package check

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filteredArg makes the test binary act as a wrapper. The wrapper installs a filter that rejects all system calls
// except the given ones, and then executes a program.
const filteredArg = "run-with-system-calls"

// filteredArgs returns the arguments for the wrapper. The wrapper enters the root folder itself, as the libraries that
// it needs do not exist there.
func filteredArgs(root string, who account, calls string, command []string) []string {
	return append([]string{filteredArg, root, fmt.Sprint(who.uid), fmt.Sprint(who.gid), calls}, command...)
}

// runFiltered replaces the process by a command. args are a root folder, a user, a group, the numbers of the allowed
// system calls separated by commas, and the command. It returns only if it fails.
func runFiltered(args []string) error {
	if len(args) < 5 {
		return errors.New("arguments are missing")
	}
	uid, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if err := errors.Join(syscall.Chroot(args[0]), syscall.Chdir("/"), syscall.Setgroups(nil), syscall.Setgid(gid),
		syscall.Setuid(uid)); err != nil {
		return err
	}
	return filtered(args[3], args[4:])
}

// filtered installs the system call filter and executes the command.
func filtered(numbers string, command []string) error {
	runtime.LockOSThread()
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // load the system call number
	for word := range strings.SplitSeq(numbers, ",") {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return err
		}
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(n)},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K,
		K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0,
		0); err != nil {
		return fmt.Errorf("the filter: %w", err)
	}
	return syscall.Exec(command[0], command, os.Environ())
}

// allowed returns the numbers of the system calls that the unit allows. systemd-analyze lists the sets of calls.
func allowed(t *testing.T, analyze string, u unit) string {
	t.Helper()
	known := systemCalls(t)
	calls := make(map[string]bool)
	expand(t, analyze, calls, "@default", true)
	for _, line := range u["Service"]["SystemCallFilter"] {
		rest, refused := strings.CutPrefix(line, "~")
		for word := range strings.FieldsSeq(rest) {
			expand(t, analyze, calls, word, !refused)
		}
	}
	var numbers []string
	for name, pass := range calls {
		if n, ok := known[name]; ok && pass {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) < 100 || calls["mount"] || calls["ptrace"] {
		t.Fatalf("the unit lets %d system calls pass, mount %v, ptrace %v", len(numbers), calls["mount"],
			calls["ptrace"])
	}
	return strings.Join(numbers, ",")
}

// expand records whether the filter passes a system call, or each call of a set.
func expand(t *testing.T, analyze string, calls map[string]bool, name string, pass bool) {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		calls[name] = pass
		return
	}
	out, err := exec.Command(analyze, "syscall-filter", "--no-pager", name).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line != "" && line != name && !strings.HasPrefix(line, "#") {
			expand(t, analyze, calls, line, pass)
		}
	}
}

var constant = regexp.MustCompile(`(?m)^\s+SYS_([A-Z0-9_]+)\s+= (\d+)$`)

// systemCalls maps the name of every system call on this machine to its number, according to package unix.
func systemCalls(t *testing.T) map[string]string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(strings.TrimSpace(string(dir)) + "/zsysnum_linux_" + runtime.GOARCH + ".go")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]string)
	for _, m := range constant.FindAllStringSubmatch(string(source), -1) {
		known[strings.ToLower(m[1])] = m[2]
	}
	if len(known) < 300 {
		t.Fatalf("only %d system calls are known", len(known))
	}
	return known
}
