package loopback_test

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"
)

func TestNetwork(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		network := loopback.Network(t)
		if seen[network] {
			t.Fatalf("%s was given out twice", network)
		}
		seen[network] = true
	}
}
