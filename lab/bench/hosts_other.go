//go:build !linux

package bench

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"

	"github.com/zrlmpi/zrlmpid/udp"
)

// hosts are two network namespaces, which only Linux has.
type hosts struct{}

var errHosts = errors.New("network namespaces and AF_XDP are features of Linux")

func newHosts() (*hosts, error) { return nil, errHosts }

func (*hosts) close() {}

func (*hosts) on(int) func(func()) { return nil }

func (*hosts) openSockets() ([]*os.File, error) { return nil, errHosts }

func (*hosts) mpirunArgs(string) ([]string, error) { return nil, errHosts }

func openXDP(netip.AddrPort, []netip.AddrPort) (udp.Path, error) { return nil, errHosts }

func runRawPath(context.Context, *rankFlags, []step, io.Writer) error { return errHosts }
