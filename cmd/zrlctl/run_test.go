//go:build unix

package main

import (
	"os"
	"regexp"
	"testing"
)

func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args           []string
		stdin          string
		code           int
		stdout, stderr string // regular expressions
	}{
		{args: []string{"-n", "2", "-l", "sh", "-c", "echo $PMI_RANK of $PMI_SIZE"}, stdout: `^\[\d\] \d of 2\n\[\d\] \d of 2\n$`},
		{args: []string{"-n", "1", "sh", "-c", "echo a $PMI_SIZE", ":", "-n", "1", "sh", "-c", "true", ":", "--ranks=2", "true"}, stdout: `^a 4\n$`},
		{args: []string{"-n1", "cat", ":", "-n2", "cat"}, stdin: "for rank 0", stdout: `^for rank 0$`},
		{args: []string{"-n", "3", "sh", "-c", "exit $((PMI_RANK == 1 ? 21 : 0))"}, code: 21, stderr: `^zrlctl: rank 1 \(sh\) has ended with exit code 21`},
		{args: []string{"-n", "1", "sh", "-c", "kill -9 $$"}, code: 137, stderr: `^zrlctl: rank 0 \(sh\) was ended by a signal: killed\n$`},
		{args: []string{"-n", "1", "./none"}, code: 127, stderr: `rank 0 \(./none\) could not be started: .*no such file`},
		{args: []string{"-n", "1", "/"}, code: 126, stderr: `rank 0 \(/\) could not be started: .*is a directory`},
		{args: []string{"--json", "-n", "1", "false"}, code: 1, stdout: `"exit":1`, stderr: "has ended with exit code 1"},
		{args: []string{self}, code: 2, stderr: `how many ranks\? Give -n N`},
		{args: []string{"-n", "2"}, code: 2, stderr: "there is no program"},
		{args: []string{"-n", "-1", self}, code: 2, stderr: "at least 1"},
		{args: []string{"-n", "9999", self}, code: 2, stderr: "at most 4096"},
		{args: []string{"-n", "1", "true", ":", "true"}, code: 2, stderr: "after a colon: -n N PROGRAM"},
		{args: []string{"-n", "1", "true", ":"}, code: 2, stderr: "after a colon"},
		{args: []string{"-n", "1", "true", ":", "-n"}, code: 2, stderr: "after a colon"},
		{args: []string{"-n", "1", "true", ":", "-n", "x", "true"}, code: 2, stderr: "-n: invalid syntax"},
		{args: []string{"-n", "1", "true", ":", "-n", "1"}, code: 2, stderr: "there is no program"},
		{args: []string{"-n", "1", "--bind-to", "socket", "true"}, code: 2, stderr: "--bind-to socket: it is core or none"},
	} {
		code, stdout, stderr := zrlctl(t, tt.stdin, append([]string{"run"}, tt.args...)...)
		if code != tt.code || !regexp.MustCompile(tt.stdout).MatchString(stdout) || !regexp.MustCompile(tt.stderr).MatchString(stderr) {
			t.Errorf("%q: exit code %d, %q, %q", tt.args, code, stdout, stderr)
		}
	}
}
