package collective

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Config says how collective calls are carried out. It has to be the same on
// all ranks of a cluster, but for Oversubscribed: they choose apart from each other.
type Config struct {
	// Table chooses the algorithm of calls that name none; nil is choice.Default, which
	// is computed when it is first needed.
	Table *choice.Table
	// Oversubscribed: the rank's host has more ranks than cores.
	Oversubscribed bool
	// Force has choices that take precedence over the table.
	Force choice.Forced
	// Order is how the order of a chain changes with the status of its ranks.
	Order coll.OrderForm
	// Tree: upstream's FPGAs were built with com_opt 1 or more, so calls with them
	// go as the tree that upstream's compiler makes. FPGAs has them in the order of
	// its cluster file, by their ranks of the world.
	Tree  bool
	FPGAs []int
}
