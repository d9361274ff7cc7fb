package rankmap

import "fmt"

// Kind is what runs at a rank, which decides what its peers must expect.
type Kind uint8

// The kinds of rank. The zero Kind is none of them, so that a forgotten kind is
// an error and not a guess.
const (
	// FPGA is a deployed FPGA with upstream's Message Passing Engine.
	FPGA Kind = 1 + iota
	// CPU is a program on upstream's C++ library.
	CPU
	// Software is a rank of zrlmpid.
	Software
	numKinds
)

var kindNames = [numKinds]string{"", "fpga", "cpu", "software"}

// String returns the kind as configuration files spell it.
func (k Kind) String() string {
	if k > 0 && k < numKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind is the inverse of String.
func ParseKind(s string) (Kind, error) {
	for k := FPGA; k < numKinds; k++ {
		if s == kindNames[k] {
			return k, nil
		}
	}
	return 0, fmt.Errorf("unknown kind of rank %q: the kinds are %q, %q and %q", s, FPGA, CPU, Software)
}
