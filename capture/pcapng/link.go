package pcapng

// LinkType is a LINKTYPE number of the pcap formats: the type of a packet's first header.
type LinkType uint32

// Link types decoded by package capture.
const (
	LinkNull     LinkType = 0 // BSD loopback: an address family in host order
	LinkEthernet LinkType = 1
	LinkRawBSD   LinkType = 12
	LinkRawOpen  LinkType = 14
	LinkRaw      LinkType = 101
	LinkLoop     LinkType = 108 // OpenBSD loopback: in network order
	LinkSLL      LinkType = 113 // Linux "any" interface
	LinkIPv4     LinkType = 228
	LinkIPv6     LinkType = 229
	LinkSLL2     LinkType = 276
)

// IsSupported reports whether package capture decodes packets of this type.
func (t LinkType) IsSupported() bool {
	switch t {
	case LinkNull, LinkEthernet, LinkRawBSD, LinkRawOpen, LinkRaw, LinkLoop, LinkSLL, LinkIPv4, LinkIPv6, LinkSLL2:
		return true
	}
	return false
}
