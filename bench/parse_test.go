package main

import (
	"reflect"
	"strings"
	"testing"
)

// noMessages is a workload whose steps have as many messages as their n.
var noMessages = &workload{unit: "things", messages: func(s step) int { return s.n }}

func TestParseOutput(t *testing.T) {
	steps := []step{{10, 1}, {20, 1}}
	const good = "point 10 p50 1.5 p99 2.25 unload 0\npoint 20 p50 3 p99 4 unload 5.5\nverified 30\n"
	want := []point{{10, 1.5, 2.25, 0}, {20, 3, 4, 5.5}}
	for _, text := range []string{good, strings.ReplaceAll(good, "\n", "\r\n"), "a launcher's banner\n" + good + "\nand its end\n"} {
		got, err := parseOutput([]byte(text), noMessages, steps)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, x := range []struct{ text, says string }{
		{"", "0 figures for 2 steps"},
		{strings.Replace(good, "verified 30", "", 1), "0 messages were verified of 30"},
		{strings.Replace(good, "30", "29", 1), "29 messages were verified of 30"},
		{strings.Replace(good, "point 20", "point 21", 1), "figure 2 is of 21 things and not of 20"},
		{strings.Replace(good, "1.5", "x", 1), `line "point 10 p50 x`},
		{strings.Replace(good, "1.5", "0", 1), "takes no time"},
		{strings.Replace(good, "1.5", "-1", 1), "a time is 0 or more"},
		{strings.Replace(good, "2.25", "NaN", 1), "a time is 0 or more"},
		{strings.Replace(good, "5.5", "+Inf", 1), "a time is 0 or more"},
		{good + "point 30 p50 1 p99 1 unload 0\n", "3 figures for 2 steps"},
		{good + "verified many\n", `line "verified many`},
	} {
		if got, err := parseOutput([]byte(x.text), noMessages, steps); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%q: %v, %v", x.text, got, err)
		}
	}
}

// TestWrite: what a rank prints is what is read.
func TestWrite(t *testing.T) {
	var b strings.Builder
	want := point{N: 3, P50: 1.25, P99: 17, Unload: 0.5}
	want.write(&b)
	got, err := parseOutput([]byte(b.String()+"verified 3\n"), noMessages, []step{{3, 1}})
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzParseOutput(f *testing.F) {
	f.Add([]byte("point 10 p50 1.5 p99 2.25 unload 0\nverified 10\n"))
	f.Add([]byte("point 10 p50 1e999 p99 nan unload -0\nverified 99999999999999999999\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		points, err := parseOutput(out, noMessages, []step{{10, 1}})
		if err == nil && (len(points) != 1 || points[0].N != 10 || !(points[0].P50 > 0)) {
			t.Errorf("%q: %v", out, points)
		}
	})
}
