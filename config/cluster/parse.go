package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"strconv"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// NonFPGA is the image_id by which the resource manager marks a CPU rank.
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

// Parse reads either of the two files, which differ in nodes: a cluster
// file has an object there, the resource manager's answer a list. name is the
// file's name in errors, which are of type *Error, or wrap strictyaml.ErrTooLarge or the
// reader's error.
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
	c := &Cluster{File: name}
	if level := file.Config.ComOpt; level != nil {
		c.ComOpt = *level
	} else if bytes.HasPrefix(bytes.TrimSpace(file.Nodes), []byte("{")) {
		c.ComOpt = 1 // what upstream's compiler does where nothing is said
	}
	if c.ComOpt < 0 {
		return nil, c.errorf("config", "com_opt is %d: levels start at 0", c.ComOpt)
	}
	switch nodes := bytes.TrimSpace(file.Nodes); {
	case bytes.HasPrefix(nodes, []byte("{")):
		c.Format = ClusterFile
		err = c.parseClusterFile(nodes)
	case bytes.HasPrefix(nodes, []byte("[")):
		c.Format = ManagerAnswer
		err = c.parseManagerAnswer(nodes)
	default:
		err = c.errorf("nodes", `missing: a cluster file has {"cpu": [ranks], "fpga": [ranks]} there, the resource manager's answer a list of nodes`)
	}
	if err == nil {
		err = c.number()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// parseClusterFile reads the two lists of ranks.
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
			rank, err := c.rank(key, number)
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

// parseManagerAnswer reads the list of nodes.
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
		rank, err := c.rank(key+".node_id", n.ID)
		if err != nil {
			return err
		}
		if n.IP == "" {
			return c.errorf(key+".node_ip", "missing: rank %d has no address yet; ask the resource manager again when the cluster is up", rank)
		}
		ip, err := netip.ParseAddr(n.IP)
		if err != nil {
			return c.errorf(key+".node_ip", "%s is not an IP address", strictyaml.Quote(n.IP))
		}
		image := unquoted(n.Image)
		if image == "" {
			return c.errorf(key+".image_id", "missing: it is %s for a CPU rank, and an image's name for an FPGA", NonFPGA)
		}
		node := Node{Rank: rank, CPU: image == NonFPGA, FPGA: image != NonFPGA, Addr: ip.Unmap()}
		c.Nodes = append(c.Nodes, node)
		if node.FPGA {
			c.FPGAs = append(c.FPGAs, rank)
		}
	}
	return nil
}

// rank reads a rank number. Which of them there may be, number checks.
func (c *Cluster) rank(key string, number json.Number) (int, error) {
	if number == "" {
		return 0, c.errorf(key, "missing: give the rank")
	}
	rank, err := strconv.ParseUint(number.String(), 10, 31)
	if err != nil {
		return 0, c.errorf(key, "%s is not a rank: it is a whole number, 0 to %d", strictyaml.Cut(number.String()), math.MaxInt32)
	}
	return int(rank), nil
}

// nodesError is a type error within nodes, whose offset says nothing about the
// line in the file.
func (c *Cluster) nodesError(err error) error {
	key := "nodes"
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		if t.Field != "" {
			key += "." + t.Field
		}
		return c.errorf(key, "want %s here, not %s", jsonKind(t), strictyaml.Cut(t.Value))
	}
	// What is left is text where json.Number wants digits.
	return c.errorf(key, "a rank in it is not a number: ranks are whole numbers from 0")
}

func jsonError(name string, text []byte, err error) error {
	e := &Error{File: name, Problem: "not valid JSON: " + strictyaml.Cut(err.Error())}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		e.Line = lineAt(text, syntax.Offset)
	case errors.As(err, &kind):
		e.Line, e.Key = lineAt(text, kind.Offset), kind.Field
		e.Problem = fmt.Sprintf("want %s here, not %s", jsonKind(kind), strictyaml.Cut(kind.Value))
	}
	return e
}

// lineAt returns the line of the byte before offset, counted from 1.
func lineAt(text []byte, offset int64) int {
	end := min(max(int(offset)-1, 0), len(text))
	return 1 + bytes.Count(text[:end], []byte("\n"))
}
