package config

import (
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Collectives selects the algorithms of collective calls. It must be the same for all ranks of a cluster.
type Collectives struct {
	// Table is the path of a table of choices. If it is empty, the built-in table applies.
	Table string `yaml:"table"`
	// Force lists algorithms that override the table, in the syntax of collectives.ParseForced: "bcast=atomic:64KiB,
	// allreduce=ring".
	Force string `yaml:"force,omitempty"`
	// Order is the order in which a chain sorts its ranks by the number of bytes that they have to send.
	Order Order `yaml:"order"`
	// Upstream selects the form of the collectives in the programs that run on the FPGAs.
	Upstream Upstream `yaml:"upstream"`
	// FPGAs lists ranks in the order of upstream's cluster file; see Config.UpstreamFPGAs.
	FPGAs []int `yaml:"fpgas,flow,omitempty"`
}

// Order is the name of a coll.OrderForm.
type Order string

// The orders of a chain.
const (
	// OrderFixed sorts by rank number.
	OrderFixed Order = "fixed"
	// OrderFreeFirst puts ranks with nothing to send first.
	OrderFreeFirst Order = "free-first"
	// OrderByLeft puts ranks that have less left to send first.
	OrderByLeft Order = "by-left"
)

// chainOrders is indexed by coll.OrderForm.
var chainOrders = []Order{OrderFixed, OrderFreeFirst, OrderByLeft}

// Form returns the coll.OrderForm. The configuration must be valid.
func (o Order) Form() coll.OrderForm { return coll.OrderForm(max(slices.Index(chainOrders, o), 0)) }

// Upstream selects a form of the collectives that upstream's compiler generates.
type Upstream string

// The forms.
const (
	// UpstreamFlat is the form for com_opt 0.
	UpstreamFlat Upstream = "flat"
	// UpstreamTree is the form that upstream's compiler generates for com_opt 1 and higher.
	UpstreamTree Upstream = "tree"
)

var upstreams = []Upstream{UpstreamFlat, UpstreamTree}

// ParseForce returns the parsed Force. The configuration must be valid.
func (c *Collectives) ParseForce() choice.Forced {
	forced, _ := collectives.ParseForced(c.Force) // Validate has checked it
	return forced
}

// UpstreamFPGAs returns the FPGA ranks in the order of upstream's cluster file, in which its tree groups them. By
// default, they are all ranks with peer: fpga in file order. It returns nil if the collectives form no tree.
func (c *Config) UpstreamFPGAs() []int {
	if c.Collectives.Upstream != UpstreamTree || c.Collectives.FPGAs != nil {
		return c.Collectives.FPGAs
	}
	var fpgas []int
	for i := range c.Ranks {
		if c.Ranks[i].Peer == PeerFPGA {
			fpgas = append(fpgas, c.Ranks[i].Rank)
		}
	}
	return fpgas
}

// ApplyEnv overrides Force and Table by their environment variables, unless these are empty. lookup is os.LookupEnv.
func (c *Collectives) ApplyEnv(lookup func(string) (string, bool)) error {
	if text, _ := lookup(EnvCollectives); text != "" {
		if _, err := collectives.ParseForced(text); err != nil {
			return &Error{Key: EnvCollectives, Problem: err.Error()}
		}
		c.Force = text
	}
	if path, _ := lookup(EnvCollectivesTable); path != "" {
		if problem := pathProblem(path); problem != "" {
			return &Error{Key: EnvCollectivesTable, Problem: problem}
		}
		c.Table = path
	}
	return nil
}

// pathProblem describes why a path is impossible, or returns "" if it is possible.
func pathProblem(path string) string {
	if strings.ContainsRune(path, 0) {
		return "a path cannot contain a zero byte"
	}
	return ""
}

func (c *Config) validateCollectives(problems *strictyaml.Problems) {
	const key = "collectives"
	x := &c.Collectives
	if problem := pathProblem(x.Table); problem != "" {
		problems.Add(key+".table", "%s", problem)
	}
	if _, err := collectives.ParseForced(x.Force); err != nil {
		problems.Add(key+".force", "%v", err)
	}
	checkOneOf(problems, key+".order", x.Order, chainOrders...)
	checkOneOf(problems, key+".upstream", x.Upstream, upstreams...)
	if x.FPGAs != nil && x.Upstream == UpstreamFlat {
		problems.Add(key+".fpgas", "it is used with upstream: tree only: add that, or remove the key")
	}
	for i, rank := range x.FPGAs {
		switch {
		case c.Rank(rank) == nil:
			problems.Add(key+".fpgas", "there is no rank %d", rank)
		case slices.Contains(x.FPGAs[:i], rank):
			problems.Add(key+".fpgas", "rank %d is listed twice: remove one of them", rank)
		}
	}
}
