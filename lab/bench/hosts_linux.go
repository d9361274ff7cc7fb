package bench

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/zrlmpi/zrlmpid/internal/netns"
)

// hosts are the hosts of ranks 0 and 1.
type hosts struct{ pair *netns.Pair }

// newHosts makes the hosts. It needs root and the program ip.
func newHosts() (*hosts, error) {
	p, err := netns.NewPair([2]string{"address " + hardwareAddress(0), "address " + hardwareAddress(1)})
	if err != nil {
		return nil, err
	}
	h := &hosts{p}
	for i := range p {
		peer := 1 - i
		err := p[i].RunIP("link set eth0 addrgenmode none", "addr flush dev eth0 scope link", // IPv6 then sends nothing
			fmt.Sprintf("neigh add %v lladdr %s dev eth0", hostAddresses[peer].Addr(), hardwareAddress(peer)))
		if err != nil {
			h.close()
			return nil, err
		}
	}
	return h, nil
}

// hardwareAddress returns the Ethernet address of a host, which the other host knows from the beginning.
func hardwareAddress(host int) string { return fmt.Sprintf("02:00:00:00:00:%02x", host+1) }

// close releases the namespaces. They disappear when the processes in them have exited.
func (h *hosts) close() { h.pair.Close() }

// on returns the field do of a program that runs on a host, or nil without hosts.
func (h *hosts) on(host int) func(func()) {
	if h == nil {
		return nil
	}
	return h.pair[host].Do
}

// openSockets returns a UDP socket of each host, bound to its address. The caller closes them, also after an error.
func (h *hosts) openSockets() (files []*os.File, err error) {
	for i := range h.pair {
		h.pair[i].Do(func() {
			var c *net.UDPConn
			if c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(hostAddresses[i])); err != nil {
				return
			}
			defer c.Close()
			var f *os.File
			if f, err = c.File(); err == nil {
				files = append(files, f)
			}
		})
		if err != nil {
			return files, err
		}
	}
	return files, nil
}

// mpirunArgs returns the arguments with which Open MPI's mpirun, started on host 0, runs one rank on each host. In
// place of ssh, mpirun calls a script, written into dir, that enters the namespace of host 1.
func (h *hosts) mpirunArgs(dir string) ([]string, error) {
	agent := filepath.Join(dir, "mpirun-agent")
	text := fmt.Sprintf("#!/bin/sh\nshift\nexec nsenter --net=/proc/%s/ns/net sh -c \"$*\"\n", h.pair[1].Name())
	if err := os.WriteFile(agent, []byte(text), 0o700); err != nil {
		return nil, err
	}
	return []string{"--host", fmt.Sprintf("%v,%v", hostAddresses[0].Addr(), hostAddresses[1].Addr()),
		"--mca", "plm_rsh_agent", agent}, nil
}
