package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// NonFPGA is the image_id of a CPU rank in the resource manager's answer.
const NonFPGA = "NON_FPGA"

// Load parses the file at path.
func Load(path string) (*Cluster, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cluster file: %w", err)
	}
	defer f.Close()
	return Parse(f, path)
}

// Parse parses either of the two files. It distinguishes them by nodes: an object in a cluster file, and a list in the
// resource manager's answer. name is the file name for errors. Errors are of type *Error, or wrap
// strictyaml.ErrTooLarge or the reader's error.
func Parse(r io.Reader, name string) (*Cluster, error) {
	text, err := strictyaml.Read(r, name)
	if err != nil {
		return nil, err
	}
	var file struct {
		Nodes  json.RawMessage `json:"nodes"`
		Config struct {
			ComOpt *int `json:"com_opt"`
		} `json:"config"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, jsonError(name, text, err)
	}
	cluster := &Cluster{File: name, source: strictyaml.NewSource(name, keyLines(text))}
	if level := file.Config.ComOpt; level != nil {
		cluster.ComOpt = *level
	} else if bytes.HasPrefix(bytes.TrimSpace(file.Nodes), []byte("{")) {
		cluster.ComOpt = 1 // the default of upstream's compiler
	}
	if cluster.ComOpt < 0 {
		return nil, cluster.errorf("config", "com_opt is %d: levels start at 0", cluster.ComOpt)
	}
	switch nodes := bytes.TrimSpace(file.Nodes); {
	case bytes.HasPrefix(nodes, []byte("{")):
		cluster.Format = ClusterFile
		cluster.unknownKeyErrs = cluster.unknownKeys()
		err = cluster.parseClusterFile(nodes)
	case bytes.HasPrefix(nodes, []byte("[")):
		cluster.Format = ManagerAnswer
		err = cluster.parseManagerAnswer(nodes)
	default:
		cluster.unknownKeyErrs = slices.DeleteFunc(cluster.unknownKeys(),
			func(err error) bool { return !strings.Contains(err.Error(), "did you mean") })
		err = cluster.errorf("nodes",
			`missing: a cluster file has {"cpu": [ranks], "fpga": [ranks]} there, the resource manager's answer a list of nodes`)
	}
	if err == nil {
		err = cluster.sortNodes()
	}
	if err != nil {
		return nil, errors.Join(append([]error{err}, cluster.unknownKeyErrs...)...)
	}
	return cluster, nil
}

// knownKeys lists the keys of a cluster file by section.
var knownKeys = map[string][]string{"": {"nodes", "config"}, "nodes": {"cpu", "fpga"}, "config": {"com_opt", "mem_opt"}}

// maxUnknown is the maximum number of unknown keys reported.
const maxUnknown = 20

// unknownKeys returns an error for each unknown key, because it may be a misspelt known one.
func (c *Cluster) unknownKeys() (errs []error) {
	for _, path := range slices.Sorted(maps.Keys(c.source.Lines())) {
		at := max(0, strings.LastIndexByte(path, '.'))
		section, name := path[:at], strings.TrimPrefix(path[at:], ".")
		known := knownKeys[section]
		if name == "" || known == nil || slices.Contains(known, name) || strings.HasSuffix(name, "]") {
			continue
		}
		if len(errs) == maxUnknown {
			return errs
		}
		errs = append(errs, &Error{
			File: c.File, Line: c.source.Line(path), Key: section,
			Problem: fmt.Sprintf("unknown key %s%s: the keys here are %s",
				strictyaml.Quote(name), strictyaml.SuggestName(name, known), strings.Join(known, ", ")),
		})
	}
	return errs
}

// parseClusterFile parses the two lists of ranks.
func (c *Cluster) parseClusterFile(text []byte) error {
	var nodes struct {
		CPU  []json.Number `json:"cpu"`
		FPGA []json.Number `json:"fpga"`
	}
	if err := json.Unmarshal(text, &nodes); err != nil {
		return c.nodesError(err)
	}
	byRank := make(map[int]*Node)
	add := func(list []json.Number, key string, is func(*Node) *bool) error {
		for i, number := range list {
			key := fmt.Sprintf("nodes.%s[%d]", key, i)
			rank, err := c.parseRank(key, number)
			if err != nil {
				return err
			}
			node := byRank[rank]
			if node == nil {
				node = &Node{Rank: rank}
				byRank[rank] = node
			}
			if *is(node) {
				return c.errorf(key, "rank %d is listed twice: remove one of them", rank)
			}
			*is(node) = true
		}
		return nil
	}
	if err := add(nodes.CPU, "cpu", func(n *Node) *bool { return &n.CPU }); err != nil {
		return err
	}
	if err := add(nodes.FPGA, "fpga", func(n *Node) *bool { return &n.FPGA }); err != nil {
		return err
	}
	for _, node := range byRank {
		c.Nodes = append(c.Nodes, *node)
	}
	for _, number := range nodes.FPGA {
		rank, _ := strconv.Atoi(number.String())
		c.FPGAs = append(c.FPGAs, rank)
	}
	return nil
}

// parseManagerAnswer parses the list of nodes.
func (c *Cluster) parseManagerAnswer(text []byte) error {
	var nodes []struct {
		ID    json.Number     `json:"node_id"`
		IP    string          `json:"node_ip"`
		Image json.RawMessage `json:"image_id"`
	}
	if err := json.Unmarshal(text, &nodes); err != nil {
		return c.nodesError(err)
	}
	for i, n := range nodes {
		key := fmt.Sprintf("nodes[%d]", i)
		rank, err := c.parseRank(key+".node_id", n.ID)
		if err != nil {
			return err
		}
		if n.IP == "" {
			return c.errorf(key+".node_ip",
				"missing: rank %d has no address yet; ask the resource manager again when the cluster is up", rank)
		}
		ip, err := netip.ParseAddr(n.IP)
		if err != nil {
			return c.errorf(key+".node_ip", "%s is not an IP address", strictyaml.Quote(n.IP))
		}
		image := stringOrNumber(n.Image)
		if image == "" {
			return c.errorf(key+".image_id", "missing: it is %s for a CPU rank, and an image's name for an FPGA",
				NonFPGA)
		}
		node := Node{Rank: rank, CPU: image == NonFPGA, FPGA: image != NonFPGA, Addr: ip.Unmap()}
		c.Nodes = append(c.Nodes, node)
		if node.FPGA {
			c.FPGAs = append(c.FPGAs, rank)
		}
	}
	return nil
}

// parseRank parses a rank number. sortNodes checks its range.
func (c *Cluster) parseRank(key string, number json.Number) (int, error) {
	if number == "" {
		return 0, c.errorf(key, "missing: give the rank")
	}
	rank, err := strconv.ParseUint(number.String(), 10, 31)
	if err != nil {
		return 0, c.errorf(key, "%s is not a rank: it is a whole number, 0 to %d", strictyaml.Shorten(number.String()),
			math.MaxInt32)
	}
	return int(rank), nil
}

// nodesError describes a type error within nodes. It reports no line, because the offset in such an error does not
// refer to the whole file.
func (c *Cluster) nodesError(err error) error {
	key := "nodes"
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		if t.Field != "" {
			key += "." + t.Field
		}
		return c.errorf(key, "want %s here, not %s", jsonTypeName(t), strictyaml.Shorten(t.Value))
	}
	// Any other error means that a rank is not a json.Number.
	return c.errorf(key, "a rank in it is not a number: ranks are whole numbers from 0")
}

func jsonError(name string, text []byte, err error) error {
	e := &Error{File: name, Line: 1, Problem: "not valid JSON: " + err.Error()}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		e.Line = lineOfOffset(text, syntax.Offset)
		if line, problem := strictyaml.Unclosed(text); line > 0 && syntax.Offset >= int64(len(text)) {
			e.Line, e.Problem = line, "not valid JSON: "+problem
			break
		}
		e.Problem += ": " + jsonRemedy(err.Error())
	case errors.As(err, &kind):
		e.Line, e.Key = lineOfOffset(text, kind.Offset), kind.Field
		e.Problem = fmt.Sprintf("want %s here, not %s", jsonTypeName(kind), strictyaml.Shorten(kind.Value))
	}
	return e
}

// jsonRemedy suggests a remedy for a syntax error that the JSON library has reported.
func jsonRemedy(problem string) string {
	for _, r := range []struct{ problem, remedy string }{
		{"unexpected end", `write {"nodes": {"cpu": [ranks], "fpga": [ranks]}}`},
		{"after top-level value", "the file is one object: remove the text after it"},
		{"after object key:value pair", "write a comma before the next key, or } at the end"},
		{"after object key", "write a colon after the key"},
		{"after array element", "write a comma before the next entry, or ] at the end"},
		{"looking for beginning of object key", `write the key in double quotes, and no comma after the last one`},
		{"looking for beginning of value", "write a value there, and no comma after the last one"},
		{"in string", `close the string with " on its line`},
	} {
		if strings.Contains(problem, r.problem) {
			return r.remedy
		}
	}
	return "correct this line"
}

// lineFinder finds the lines of the keys and entries of a JSON text.
type lineFinder struct {
	text    []byte
	decoder *json.Decoder
	lines   map[string]int
	// counted is the offset up to which lines have been counted, and line is the number of the line at that offset.
	counted, line int
}

// keyLines returns the line of each key and entry of a valid JSON text, down to maxDepth.
func keyLines(text []byte) map[string]int {
	w := &lineFinder{text: text, decoder: json.NewDecoder(bytes.NewReader(text)), lines: make(map[string]int), line: 1}
	_ = w.walkValue("", 0) // the lines found before an error remain valid
	return w.lines
}

// currentLine returns the line of the last token.
func (w *lineFinder) currentLine() int {
	end := int(w.decoder.InputOffset())
	w.line += bytes.Count(w.text[w.counted:end], []byte("\n"))
	w.counted = end
	return w.line
}

// maxDepth is the depth of the deepest key used, nodes[0].node_ip.
const maxDepth = 3

func (w *lineFinder) walkValue(path string, depth int) error {
	if depth > maxDepth {
		var skipped json.RawMessage
		return w.decoder.Decode(&skipped)
	}
	t, err := w.decoder.Token()
	if err != nil {
		return err
	}
	if w.lines[path] == 0 {
		w.lines[path] = w.currentLine()
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	for i := 0; w.decoder.More(); i++ {
		next := fmt.Sprintf("%s[%d]", path, i)
		if delim == '{' {
			key, err := w.decoder.Token()
			if err != nil {
				return err
			}
			next = strings.TrimPrefix(fmt.Sprintf("%s.%v", path, key), ".")
			w.lines[next] = w.currentLine()
		}
		if err := w.walkValue(next, depth+1); err != nil {
			return err
		}
	}
	_, err = w.decoder.Token()
	return err
}

// lineOfOffset returns the line of the byte before offset, counted from 1.
func lineOfOffset(text []byte, offset int64) int {
	end := min(max(int(offset)-1, 0), len(text))
	return 1 + bytes.Count(text[:end], []byte("\n"))
}
