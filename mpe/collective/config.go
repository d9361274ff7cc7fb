package collective

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Config configures collective calls. Except for Oversubscribed, it must be equal on all ranks of a cluster, because
// each rank chooses algorithms by itself.
type Config struct {
	// Table chooses the algorithms of calls that do not name one. Nil means choice.Default, which is computed on first
	// use.
	Table *choice.Table
	// Oversubscribed means that the rank's host runs more ranks than it has processor cores.
	Oversubscribed bool
	// Force holds choices that override the table.
	Force choice.Forced
	// Order determines how the status of the ranks affects their order in a broadcast's chain.
	Order coll.OrderForm
	// Tree means that the FPGAs were built with upstream's com_opt 1 or more, so that calls with them use the tree of
	// upstream's compiler. FPGAs lists their world ranks in the order of upstream's cluster file.
	Tree  bool
	FPGAs []int
}
