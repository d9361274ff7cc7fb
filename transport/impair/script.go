package impair

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Script is a list of rules, and the seed of their random decisions. As a file it is YAML:
//
//	seed: 7
//	rules:
//	  - loss 5% duplicate 1%
//	  - from 2 to 0 packet ACK nth 3 loss 100%
type Script struct {
	Seed  int    `yaml:"seed"`
	Rules []Rule `yaml:"rules,omitempty"`
}

// Parse reads a script. name is the file name to use in errors. The error joins values of type
// *strictyaml.Error, or wraps the reader's error.
func Parse(r io.Reader, name string) (Script, error) {
	var s Script
	if _, err := strictyaml.Decode(r, name, &s); err != nil {
		return Script{}, err
	}
	return s, nil
}

// Check returns an error if any rule cannot be applied to medium m between ranks with the given addresses. It
// joins the errors of all such rules.
func (s *Script) Check(m Medium, ranks []netip.Addr) error {
	var errs []error
	for i := range s.Rules {
		if err := s.Rules[i].Check(m, ranks); err != nil {
			errs = append(errs, fmt.Errorf("rule %q: %w", s.Rules[i], err))
		}
	}
	return errors.Join(errs...)
}
