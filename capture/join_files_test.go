package capture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/capturetest"
)

// TestJoinRotated: rotated files from two vantage points are grouped correctly, whatever their order.
func TestJoinRotated(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		testJoinRotated(t, anonymous)
	}
}

func testJoinRotated(t *testing.T, anonymous bool) {
	t.Helper()
	p := places{c: exchange(40), delay: 20 * time.Microsecond, jitter: 10 * time.Microsecond, offset: 300 * ms}
	p.anonymous = anonymous
	want := p.join(t)
	here, there := p.split(t)
	recordings := map[string][]byte{}
	var names []string
	rotate := func(name string, c *capturetest.Capture, n int) {
		for i, part := range slices.Collect(slices.Chunk(c.Packets, n)) {
			one := capturetest.New(capturetest.Ethernet)
			one.Packets = part
			file := fmt.Sprintf("%s%d", name, i)
			names = append(names, file)
			recordings[file] = one.Pcap(capturetest.Format{Nano: true})
			if i == 1 {
				recordings[file] = capturetest.Gzip(recordings[file])
			}
		}
	}
	rotate("here", here, 77)
	rotate("there", there, 91)
	dir := files(t, recordings)
	random := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var paths []string
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		r := joined(t, paths...)
		if v := r.Joined.Vantages; len(v) != 2 || len(v[0].Files)+len(v[1].Files) != len(names) ||
			r.Joined.Common != int64(len(p.c.Packets)) {
			t.Fatalf("%v: %+v", names, r.Joined)
		}
		if len(r.Findings) > 0 || len(r.Messages) != len(want.Messages) {
			t.Errorf("%v: %d messages, %+v", names, len(r.Messages), r.Findings)
		}
	}
	slices.Sort(names)
	var paths []string
	for _, name := range names[:3] {
		paths = append(paths, filepath.Join(dir, name))
	}
	if r := joined(t, paths...); len(r.Joined.Vantages) != 1 || len(r.Messages) != 40 || len(r.Findings) > 0 {
		t.Errorf("of one place: %+v, %d messages, %+v", r.Joined, len(r.Messages), r.Findings)
	}
}

// TestJoinTruncated: a truncated or corrupt file is joined up to the damage, and the other files completely. No packet
// after the damage is reported as lost.
func TestJoinTruncated(t *testing.T) {
	here, there := places{c: exchange(10), delay: 3 * time.Microsecond, offset: 300 * ms}.split(t)
	b := there.Pcap(capturetest.Format{Nano: true})
	dir := files(t, map[string][]byte{
		"a": here.Pcap(capturetest.Format{Nano: true}), "b": b[:len(b)/2], "c": []byte("something else"),
	})
	a, cut := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	r := joined(t, a, cut)
	if len(r.Findings) > 0 || r.Summary.All.Complete != 10 ||
		!strings.Contains(r.Summary.Truncated, "b: recording is cut off at byte") ||
		r.Joined.Vantages[0].Only == 0 || r.IsClean() {
		t.Errorf("%+v, %+v, %q", r.Joined, r.Findings, r.Summary.Truncated)
	}
	for _, paths := range [][]string{{a, filepath.Join(dir, "c")}, {a, filepath.Join(dir, "d")}, {a, "-"}} {
		if _, err := (capture.Options{}).OpenFiles(context.Background(), paths); err == nil {
			t.Errorf("%v was opened", paths)
		}
	}
}
