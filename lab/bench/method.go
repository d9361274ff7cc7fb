package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// method specifies how broadcasts are made. With the zero value, zrlmpid chooses.
type method struct {
	by choice.Choice
	// order determines how the ranks in a chain are reordered depending on the data that each still has to send.
	order config.Order
}

// String returns the method's name, such as "chain:32KiB" or "atomic:32KiB/by-left".
func (m method) String() string {
	text := m.by.String()
	if m.order != "" {
		text += "/" + string(m.order)
	}
	return text
}

// title returns a name for readers, such as "chain, 32 KiB segments".
func (m method) title() string {
	text := m.by.Algorithm
	if m.by.Segment > 0 {
		text += ", " + formatSize(m.by.Segment) + " segments"
	}
	switch m.order {
	case "free-first":
		text += ", idle ranks first"
	case "by-left":
		text += ", by backlog"
	}
	return text
}

// parseMethod parses a text returned by String. The empty text is the zero method.
func parseMethod(text string) (m method, err error) {
	if text == "" {
		return m, nil
	}
	by, order, _ := strings.Cut(text, "/")
	if m.order = config.Order(order); m.order != "" && m.order.Form() == coll.OrderFixed {
		return m, fmt.Errorf("there is no order %q that changes", order)
	}
	m.by, err = collectives.ParseChoice(coll.Bcast, by)
	return m, err
}

// options returns the method as options for package mpi.
func (m *method) options() (all []mpi.Option) {
	if m.by.Algorithm != "" {
		all = append(all, mpi.WithAlgorithm(m.by.Algorithm))
	}
	if m.by.Segment > 0 {
		all = append(all, mpi.WithSegment(m.by.Segment))
	}
	return all
}

// orderer wraps a device so that its broadcast order can be changed between calls, regardless of its configuration.
type orderer struct {
	mpe.Device
	form coll.OrderForm
}

func (d *orderer) StartCollective(c *collective.Operation) (mpe.Op, error) {
	c.Call.OrderForm = d.form
	return d.Device.StartCollective(c)
}

// namedMethod combines a broadcast method with the key of the side that represents it in the report.
type namedMethod struct {
	key string
	method
}

// methodNames lists the names of the broadcast methods that can be compared.
var methodNames = []string{"binomial", "flat", "scatter", "chain", "atomic", "free-first", "by-left"}

// methods returns the methods with the given names, or all methods if no names are given. Their keys begin with prefix.
// segment is the segment size of a chain, and piece the piece size of a flow, both in bytes.
func methods(prefix string, segment, piece int, names ...string) (some []namedMethod) {
	for _, name := range methodNames {
		m := method{by: choice.Choice{Algorithm: name}}
		switch name {
		case "scatter":
			m.by.Algorithm = "scatter-allgather"
		case "chain":
			m.by.Segment = segment
		case "atomic":
			m.by.Segment = piece
		case "free-first", "by-left":
			m = method{choice.Choice{Algorithm: "atomic", Segment: piece}, config.Order(name)}
		}
		if len(names) == 0 || slices.Contains(names, name) {
			some = append(some, namedMethod{prefix + "-" + name, m})
		}
	}
	return some
}

// methodVariant returns the chart variant of a method. It is the same for all links.
func methodVariant(key string) int {
	_, name, _ := strings.Cut(key, "-")
	return max(slices.Index(methodNames, name), 0)
}
