package main

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// TestManual: the handwritten manual page and completions contain all flags.
func TestManual(t *testing.T) {
	for file, form := range map[string]string{
		"zrlmpid.8.md":             "\n**--NAME**",
		"completions/zrlmpid":      "--NAME",
		"completions/_zrlmpid":     "'--NAME[",
		"completions/zrlmpid.fish": " -l NAME -",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		new(flags).newFlagSet().VisitAll(func(f *flag.Flag) {
			if !strings.Contains(string(text), strings.Replace(form, "NAME", f.Name, 1)) {
				t.Errorf("%s lacks --%s", file, f.Name)
			}
		})
	}
}
