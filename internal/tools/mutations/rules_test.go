package main

import "testing"

// TestRulesAreThere checks that each mutation finds the code of its rule. It does not run the mutations, which would
// take too long.
func TestRulesAreThere(t *testing.T) {
	for i := range mutations {
		if _, err := mutations[i].apply("../../.."); err != nil {
			t.Errorf("%s: %v", mutations[i].rule, err)
		}
	}
}
