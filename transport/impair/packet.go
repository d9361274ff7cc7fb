package impair

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Kind is the type of a packet in a rule: a protocol.Type, or Payload.
type Kind uint8

// Payload is the Kind of data that does not begin with a header: a continuation datagram, or a piece of a
// stream that follows a header.
const Payload Kind = 0

const numKinds = int(protocol.Error) + 1

// KindOf returns the kind of a datagram of any profile.
func KindOf(b []byte) Kind {
	profile := protocol.V09 // also parses cloudfpga
	if protocol.IsExtended(b) {
		profile = protocol.Extended
	}
	h, defect := profile.Parse(b)
	if !defect.OK() {
		return Payload
	}
	return Kind(h.Type)
}

// String returns the name of the packet type, or PAYLOAD.
func (k Kind) String() string {
	if k == Payload {
		return "PAYLOAD"
	}
	return protocol.Type(k).String()
}

// Kinds is a set of kinds. The zero value contains all kinds.
type Kinds uint8

// contains reports whether the set contains k.
func (s Kinds) contains(k Kind) bool { return s == 0 || s&(1<<k) != 0 }

// parseKinds parses names of packet types, separated by commas. Case is ignored.
func parseKinds(text string) (kinds Kinds, err error) {
	for name := range strings.SplitSeq(text, ",") {
		found := false
		for k := range Kind(numKinds) {
			if strings.EqualFold(name, k.String()) {
				kinds, found = kinds|1<<k, true
			}
		}
		if !found {
			return 0, fmt.Errorf("%s is not a packet type%s: the types are %s", strictyaml.Quote(name),
				strictyaml.SuggestName(strings.ToUpper(name), kindNames()), strings.Join(kindNames(), ", "))
		}
	}
	return kinds, nil
}

func kindNames() []string {
	names := make([]string, numKinds)
	for k := range names {
		names[k] = Kind(k).String()
	}
	return names
}

// String is the inverse of parseKinds. It returns "" for all kinds.
func (s Kinds) String() string {
	var names []string
	for k := range Kind(numKinds) {
		if s != 0 && s.contains(k) {
			names = append(names, k.String())
		}
	}
	return strings.Join(names, ",")
}
