package collective

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Config configures collective calls. Except for Oversubscribed, it must be the same on all ranks of a cluster,
// because each rank chooses separately.
type Config struct {
	// Table chooses the algorithms of calls that name none. nil means choice.Default, which is computed when it is
	// first needed.
	Table *choice.Table
	// Oversubscribed means that the rank's host has more ranks than cores.
	Oversubscribed bool
	// Force holds choices that override the table.
	Force choice.Forced
	// Order determines how the order of a chain depends on the status of its ranks.
	Order coll.OrderForm
	// Tree means that upstream's FPGAs were built with com_opt 1 or more, so that calls with them use the tree of
	// upstream's compiler. FPGAs lists the world ranks of these FPGAs in the order of upstream's cluster file.
	Tree  bool
	FPGAs []int
}
