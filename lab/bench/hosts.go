package bench

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
)

// hostAddresses are the addresses of ranks on two hosts.
var hostAddresses = [2]netip.AddrPort{
	netip.MustParseAddrPort("10.9.0.1:2718"), netip.MustParseAddrPort("10.9.0.2:2718"),
}

// hostWorkloads are the workloads of two ranks that are measured between two hosts.
var hostWorkloads = []string{"pingpong", "rate", "stream"}

// hostsFamily returns the sides between two hosts.
func hostsFamily() family {
	members := []family{familyOfRaws([]raw{vethRaw}), familyOfLinks(hostLinks), vethMPI.family()}
	var f family
	for _, m := range members {
		f.keys = append(f.keys, m.keys...)
	}
	f.find = func(ctx context.Context, dir string, wanted func(string) bool) (found []side, missing []string, err error) {
		h, err := newHosts()
		if err != nil {
			return nil, []string{fmt.Sprintf("the sides between two hosts are missing: %v. They are not measured", err)}, nil
		}
		h.close()
		for _, m := range members {
			if !slices.ContainsFunc(m.keys, wanted) {
				continue
			}
			sides, gone, err := m.find(ctx, dir, wanted)
			if err != nil {
				return nil, nil, err
			}
			for _, s := range sides {
				found = append(found, betweenHosts(s))
			}
			missing = append(missing, gone...)
		}
		return found, missing, nil
	}
	return f
}

// betweenHosts returns a side that is measured between two hosts, which each run makes anew.
func betweenHosts(s side) side {
	inner := s
	s.steps = func(w *workload, steps []step) []step {
		if !slices.Contains(hostWorkloads, w.name) {
			return nil
		}
		return inner.supportedSteps(w, steps)
	}
	s.run = func(ctx context.Context, j job, out io.Writer) error {
		h, err := newHosts()
		if err != nil {
			return err
		}
		defer h.close()
		j.hosts = h
		return inner.run(ctx, j, out)
	}
	return s
}
