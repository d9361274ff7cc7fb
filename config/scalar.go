package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Size is a number of bytes, written as "4096", "64KiB", "16MiB" or "1GiB".
type Size = bytesize.Size

// Mode is the permission bits of a file, written in octal as in "0660".
type Mode uint32

// UnmarshalText parses octal permission bits.
func (m *Mode) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(text), "0o"), 8, 32)
	if err != nil || n > 0o777 {
		return fmt.Errorf("%s is not a file mode: give octal digits up to 0777, as in \"0660\"",
			strictyaml.Quote(string(text)))
	}
	*m = Mode(n)
	return nil
}

// String returns four octal digits.
func (m Mode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// MarshalText returns String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Profile is a protocol.Profile with a text form.
type Profile protocol.Profile

// UnmarshalText implements encoding.TextUnmarshaler with protocol.ParseProfile.
func (p *Profile) UnmarshalText(text []byte) error {
	v, err := protocol.ParseProfile(string(text))
	*p = Profile(v)
	return err
}

// MarshalText returns the profile's name.
func (p Profile) MarshalText() ([]byte, error) { return []byte(protocol.Profile(p).String()), nil }

// Datatype is a protocol.Datatype with a text form.
type Datatype protocol.Datatype

// UnmarshalText implements encoding.TextUnmarshaler with protocol.ParseDatatype.
func (d *Datatype) UnmarshalText(text []byte) error {
	v, err := protocol.ParseDatatype(string(text))
	*d = Datatype(v)
	return err
}

// MarshalText returns the datatype's name.
func (d Datatype) MarshalText() ([]byte, error) { return []byte(protocol.Datatype(d).String()), nil }
