package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// abiName is the name of a binary interface for which shims are generated.
type abiName string

const (
	mpich    abiName = "mpich"
	standard abiName = "standard"
)

// typeSpec is a type in the tables. It consists of array dimensions, pointers and a name, in this order.
type typeSpec struct {
	arrays   []string // "" or a number, outermost first
	pointers int
	constant bool
	base     string
}

// A param is a parameter of a function. The name is empty for "...".
type param struct {
	name string
	typ  typeSpec
}

// A function is a line of functions.txt. Its index is its call number.
type function struct {
	name   string
	params []param
	result string // type name, or empty for an error code
	abi    abiName
}

// isInABI reports whether an ABI has the function.
func (f function) isInABI(abi abiName) bool { return f.abi == "" || f.abi == abi }

// A lineError is an error in a line of a table.
type lineError struct {
	file string
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.file, e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// forEachLine calls f for each line that is neither empty nor a comment.
func forEachLine(file string, text []byte, f func(line string) error) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := f(line); err != nil {
			return &lineError{file, n, err}
		}
	}
	return lines.Err()
}

// parseFunctions parses functions.txt. The first lines of that file describe its format.
func parseFunctions(file string, text []byte) ([]function, error) {
	var table []function
	err := forEachLine(file, text, func(line string) error {
		f, err := parseFunction(line)
		if err != nil {
			return err
		}
		if n := len(table); n > 0 {
			switch c := cmp.Compare(table[n-1].name, f.name); {
			case c == 0:
				return fmt.Errorf("%s is listed twice", f.name)
			case c > 0:
				return fmt.Errorf("%s has to be before %s: functions are sorted by name", f.name, table[n-1].name)
			}
		}
		table = append(table, f)
		return nil
	})
	return table, err
}

// parseFunction parses a line of functions.txt, whose format the file itself describes.
func parseFunction(line string) (function, error) {
	name, rest, ok := strings.Cut(line, "(")
	if !ok || !isName(name) {
		return function{}, fmt.Errorf("%q is not a function: want Name(name type, ...) result @abi", line)
	}
	inside, rest, ok := strings.Cut(rest, ")")
	if !ok {
		return function{}, fmt.Errorf("%s has no closing parenthesis", name)
	}
	f := function{name: name}
	for field := range strings.FieldsSeq(rest) {
		abi, isABI := strings.CutPrefix(field, "@")
		switch {
		case isABI && f.abi == "" && (abiName(abi) == mpich || abiName(abi) == standard):
			f.abi = abiName(abi)
		case isABI:
			return function{}, fmt.Errorf("%s: %q: an ABI is %s or %s, once", name, field, mpich, standard)
		case f.result == "" && f.abi == "" && isName(field):
			f.result = field
		default:
			return function{}, fmt.Errorf("%s: %q follows the result", name, field)
		}
	}
	if inside == "" {
		return f, nil
	}
	for text := range strings.SplitSeq(inside, ", ") {
		if len(f.params) > 0 && f.params[len(f.params)-1].name == "" {
			return function{}, fmt.Errorf("%s: \"...\" has to be last", name)
		}
		if text == "..." {
			f.params = append(f.params, param{})
			continue
		}
		pname, typ, ok := strings.Cut(text, " ")
		if !ok || !isName(pname) {
			return function{}, fmt.Errorf("%s: parameter %q: want name and type", name, text)
		}
		if slices.ContainsFunc(f.params, func(p param) bool { return p.name == pname }) {
			return function{}, fmt.Errorf("%s: two parameters %s", name, pname)
		}
		t, err := parseType(typ)
		if err != nil {
			return function{}, fmt.Errorf("%s: parameter %s: %w", name, pname, err)
		}
		f.params = append(f.params, param{pname, t})
	}
	return f, nil
}

// parseType parses the text of a type, such as [][3]int or **const char.
func parseType(text string) (typeSpec, error) {
	var spec typeSpec
	rest := text
	for strings.HasPrefix(rest, "[") {
		size, after, ok := strings.Cut(rest[1:], "]")
		if !ok || strings.Trim(size, "0123456789") != "" {
			return spec, fmt.Errorf("type %q: array without size or bracket", text)
		}
		spec.arrays, rest = append(spec.arrays, size), after
	}
	for strings.HasPrefix(rest, "*") {
		spec.pointers, rest = spec.pointers+1, rest[1:]
	}
	rest, spec.constant = strings.CutPrefix(rest, "const ")
	if !isName(rest) {
		return spec, fmt.Errorf("type %q: %q is not a name", text, rest)
	}
	spec.base = rest
	return spec, nil
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}

// A constant is a name from the standard, with its value in an ABI.
type constant struct {
	name  string
	typ   typeSpec
	value int64
	text  string // the value as written in the file: a number or a function
}

// An abi holds the contents of a file in the folder abi.
type abi struct {
	name        abiName
	handles     map[string]string // struct tags; empty for int
	handleNames []string          // names of the handles, in order
	integers    [][2]string       // name and C type
	status      []string
	constants   []constant
}

// parseABI parses a file in the folder abi. The first lines of the file describe its format.
func parseABI(name abiName, file string, text []byte) (*abi, error) {
	a := &abi{name: name, handles: map[string]string{}}
	seen := map[string]bool{}
	err := forEachLine(file, text, func(line string) error {
		fields := strings.Fields(line)
		switch {
		case fields[0] == "status" && len(fields) > 1:
			a.status = fields[1:]
			return nil
		case len(fields) != 3:
			return fmt.Errorf("%q: want 3 words", line)
		case seen[fields[1]]:
			return fmt.Errorf("%s is listed twice", fields[1])
		}
		seen[fields[1]] = true
		switch fields[0] {
		case "handle":
			tag, pointer := strings.CutPrefix(fields[2], "*")
			if fields[2] != "int" && (!pointer || !isName(tag)) {
				return fmt.Errorf("handle %s: %q: want int or *TAG", fields[1], fields[2])
			}
			if pointer {
				a.handles[fields[1]] = tag
			} else {
				a.handles[fields[1]] = ""
			}
			a.handleNames = append(a.handleNames, fields[1])
			return nil
		case "integer":
			a.integers = append(a.integers, [2]string{fields[1], fields[2]})
			return nil
		}
		typ, err := parseType(fields[0])
		if err != nil {
			return err
		}
		value, err := strconv.ParseInt(fields[2], 0, 64)
		if err != nil && !isName(fields[2]) {
			return fmt.Errorf("%s: %q is neither a number nor a function", fields[1], fields[2])
		}
		if tag, ok := a.handles[typ.base]; ok && tag == "" {
			value = int64(int32(value)) // in the same way as the shims pass handles
		}
		a.constants = append(a.constants, constant{fields[1], typ, value, fields[2]})
		return nil
	})
	return a, err
}
