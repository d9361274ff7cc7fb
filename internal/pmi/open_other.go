//go:build !unix

package pmi

import "errors"

func open(int) (Conn, error) { return nil, errors.ErrUnsupported }
