package main

import "testing"

// TestRulesAreThere: the code of each rule is where its mutation expects it, which takes too long to find out
// by running them.
func TestRulesAreThere(t *testing.T) {
	for i := range mutations {
		if _, err := mutations[i].apply("../../.."); err != nil {
			t.Errorf("%s: %v", mutations[i].rule, err)
		}
	}
}
