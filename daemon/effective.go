package daemon

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
)

// EffectiveDefaults returns the values of those defaults that depend on the host or on both ranks of a link, as YAML
// comments: the text of config.Config.YAML does not contain these defaults.
func (d *Daemon) EffectiveDefaults() (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "# limits.attached_bytes on this host: %v\n", config.Size(d.attachedBytes))
	for _, rank := range d.ranks {
		for remote, link := range rank.Links() {
			if remote == rank.cfg.Rank {
				continue
			}
			options, err := link.YAML()
			if err != nil {
				return "", fmt.Errorf("link of rank %d to rank %d: %w", rank.cfg.Rank, remote, err)
			}
			fmt.Fprintf(&text, "# link of rank %d to rank %d: %s\n", rank.cfg.Rank, remote, options)
		}
	}
	return text.String(), nil
}
