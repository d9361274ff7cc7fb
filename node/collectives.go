package node

import (
	"fmt"
	"os"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Collectives returns the engine's collective configuration for a valid configuration. The error reports that the table
// cannot be opened or read, and names the table's key.
func Collectives(cfg *config.Config) (collective.Config, error) {
	c := collective.Config{
		Force: cfg.Collectives.ParseForce(), Order: cfg.Collectives.Order.Form(),
		Tree: cfg.Collectives.Upstream == config.UpstreamTree, FPGAs: cfg.UpstreamFPGAs(),
	}
	path := cfg.Collectives.Table
	if path == "" {
		return c, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return c, fmt.Errorf("collectives.table: %w", err)
	}
	defer f.Close()
	table, err := collectives.Load(f, path)
	if err != nil {
		return c, fmt.Errorf("collectives.table: %w", err)
	}
	c.Table = table.Table
	return c, nil
}
