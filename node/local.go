package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxLocalRanks is the maximum size of a cluster of StartLocal: upstream's CPU library supports no more ranks.
const maxLocalRanks = protocol.MaxRanksCPU

// maxPortAttempts is the number of times that StartLocal searches for free ports. In rare cases, another program binds
// a port that StartLocal has found.
const maxPortAttempts = 10

// StartLocal starts a cluster of n ranks in this process, at the addresses 127.0.0.1, 127.0.0.2 and so on, with free
// ports. The ranks are hosts and use the given profile: the extended profile through shared memory on Linux, and any
// other combination over UDP. The devices are in rank order; the caller must close each of them.
func StartLocal(n int, profile protocol.Profile) ([]mpe.Device, error) {
	if n < 1 || n > maxLocalRanks {
		return nil, fmt.Errorf("a cluster of %d ranks: it has 1 to %d", n, maxLocalRanks)
	}
	return retryPortInUse(func() ([]mpe.Device, error) { return startLocal(n, profile) })
}

// retryPortInUse calls start, and calls it again if a port was in use.
func retryPortInUse(start func() ([]mpe.Device, error)) (devices []mpe.Device, err error) {
	for range maxPortAttempts {
		devices, err = start()
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return devices, err
}

// startLocal is one attempt of StartLocal.
func startLocal(n int, profile protocol.Profile) ([]mpe.Device, error) {
	addrs, err := freeAddresses(n)
	if err != nil {
		return nil, err
	}
	ranks := make([]config.Rank, n)
	for i, addr := range addrs {
		ranks[i] = config.Rank{Rank: i, Address: config.Address{AddrPort: addr}, Run: config.RunHost}
	}
	cfg := config.New(ranks...)
	cfg.Control.Socket = new("")
	cfg.Defaults.Profile = (*config.Profile)(&profile)
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	devices := make([]mpe.Device, n)
	for i := range devices {
		if devices[i], err = Open(cfg, i, nil); err != nil {
			return nil, errors.Join(err, closeAll(devices[:i]))
		}
	}
	return devices, nil
}

// closeAll closes unused devices.
func closeAll(devices []mpe.Device) error {
	var errs []error
	for _, d := range devices {
		errs = append(errs, d.Close(context.Background()))
	}
	return errors.Join(errs...)
}

// freeAddresses returns an address with a currently free UDP port for each of n ranks.
func freeAddresses(n int) ([]netip.AddrPort, error) {
	const perByte = 250
	addrs := make([]netip.AddrPort, n)
	for i := range addrs {
		ip := netip.AddrFrom4([4]byte{127, 0, byte(i / perByte), byte(i%perByte + 1)})
		conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
		if err != nil {
			return nil, fmt.Errorf("looking for a free port for rank %d of a local cluster: %w", i, err)
		}
		conn.Close()
		addrs[i] = netip.AddrPortFrom(ip, conn.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	}
	return addrs, nil
}
