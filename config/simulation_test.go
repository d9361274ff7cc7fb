package config

import (
	"slices"
	"strings"
	"testing"
)

func TestSimulation(t *testing.T) {
	const spec = "rtl:cycles_per_second=200000 stall_percent=30 seed=7 time_scale=5 ./role +x=1"
	k, err := ParseKernel(strings.Replace(spec, ":", ":  ", 1))
	if want := (Simulation{200000, 30, 7, 5}); err != nil || k.Simulation != want ||
		!slices.Equal(k.Command, []string{"./role", "+x=1"}) {
		t.Errorf("%+v, %v", k, err)
	}
	if k.Spec() != spec || k.String() != "rtl:./role" {
		t.Errorf("%q, %q", k.Spec(), k)
	}
	const net = "rtl-net:seed=7 ./role +x=1"
	if k, err := ParseKernel(net); err != nil || k.Spec() != net || k.String() != "rtl-net:./role" ||
		!k.BypassesEngine() ||
		k.Simulation.Seed != 7 {
		t.Errorf("%+v, %v", k, err)
	}
	for text, want := range map[string]string{
		"rtl:":                           "rtl: no program: write rtl:/path/prog",
		"rtl:seed=1":                     "rtl: no program",
		"rtl-net:":                       "rtl-net: no program: write rtl-net:/path/prog",
		"rtl-net:sed=1 ./role":           `rtl-net: unknown option "sed"`,
		"rtl:sed=1 ./role":               `rtl: unknown option "sed" (did you mean "seed"?): the options are cycles_per_second, stall_percent, seed, time_scale`,
		"rtl:stall_percent=96 ./role":    `rtl: stall_percent is "96": must be a number from 0 to 95`,
		"rtl:time_scale=-1 ./role":       `rtl: time_scale is "-1"`,
		"rtl:cycles_per_second=1e6 role": `rtl: cycles_per_second is "1e6"`,
	} {
		if _, err := ParseKernel(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	// Everything after exec: is the command, even with an equals sign in it.
	if k, err := ParseKernel("exec:a=b c"); err != nil || k.Command[0] != "a=b" {
		t.Errorf("%+v, %v", k, err)
	}
}
