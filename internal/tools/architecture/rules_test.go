package architecture

// Rules for packages: their floors, the imports that are allowed on each floor, and prohibitions for single packages.
// TestImports enforces the rules, and TestPage generates the list in docs/architecture.md from them.

// floor is a layer of the architecture. A package may import packages on its own floor and on the floors below it.
type floor int

const (
	pure     floor = iota // no I/O, clock, goroutine or lock
	rank                  // the parts of a rank, which programs link with
	evidence              // readers of states, packets and the system
	service               // the daemon and its metrics
	tools                 // programs and deployment
	outside               // test kits and integration tests, without rules
)

var floorNames = [...]string{"pure", "rank", "evidence", "daemon", "tools", "outside"}

// floors maps folders to floors. A floor applies to all folders below, except folders with a separate entry.
var floors = map[string]floor{
	"protocol": pure, "handshake": pure, "extended": pure, "mpe/match": pure, "mpe/core": pure, "mpe/state": pure,
	"mpe/coll": pure, "mpe/collective": pure, "mpe/lease": pure,
	"capture/pcapng": pure, "internal/bytesize": pure, "internal/version": pure, "internal/words": pure,

	"mpe": rank, "udp": rank, "transport": rank, "mpi": rank, "config": rank, "node": rank, "metrics/phases": rank,
	"lib": rank, "examples": rank, "internal": rank,

	"capture": evidence, "diagnosis": evidence,

	"daemon": service, "metrics": service,

	"cmd": tools, "deploy": tools, "lib/gen": tools, "internal/manual": tools,

	// Test kits are in folders next to the packages that they test.
	"capture/capturetest": outside, "capture/reporttest": outside, "daemon/daemontest": outside,
	"daemon/standin/wedgetest": outside, "deploy/cosim/simulators": outside, "handshake/cpumodel": outside,
	"handshake/modeltest": outside, "handshake/mpemodel": outside, "handshake/schedule": outside,
	"examples/apps/appstest": outside, "mpe/attach/attachtest": outside, "mpe/coll/collcheck": outside,
	"internal/netns/netnstest": outside, "mpe/colltest": outside, "mpe/lease/leasetest": outside, "mpi/mpitest": outside,
	"node/statetest": outside, "transport/memnet": outside, "transport/transporttest": outside,
	"internal/testkit": outside, "internal/integration": outside,
}

// barred lists the packages that a floor and the floors below it must not import. An entry includes all packages below
// it.
var barred = map[floor][]string{
	pure: {
		"context", "crypto", "io/fs", "log", "math/rand", "net/url", "os", "runtime", "sync", "syscall",
		"go.yaml.in/yaml",
	},
	rank:     {"net/http", "go.uber.org/zap", "github.com/google/gopacket", "github.com/spf13"},
	evidence: {"github.com/prometheus"},
}

// excepted lists imports that are allowed although the floor bars them.
var excepted = []string{
	"internal/version imports runtime/debug", // to read the build information
	"mpe/coll/choice imports sync",           // to prepare a table only once
	"mpe/core imports context",               // to use the errors of contexts as causes
}

// readsYAML lists the packages on the floor rank that may import the YAML library.
var readsYAML = []string{"config", "config/collectives", "internal/strictyaml"}

// never lists prohibitions of packages beyond the rules of imports. The doc comment of a package describes it.
var never = map[string]string{
	"protocol":        "keep state between packets",
	"mpe/coll":        "send a message",
	"mpe/coll/choice": "choose differently on different ranks; learn from calls; allocate for a choice",
	"mpe/core":        "interpret a packet; log; allocate by a length from the wire",
	"mpe/lease":       "contain a pointer that Go manages",
	"mpe/state":       "depend on how a state is gathered",
	"mpe/match":       "read the values that it stores",
	"mpe":             "decide the fate of a message; log",
	"internal/progress": "allocate or read the clock for a wait that ends while its caller polls; read a descriptor; " +
		"block a thread",
	"udp":                     "depend on the handshake",
	"transport/tcp":           "depend on the handshake",
	"transport/shm":           "wait for a peer; trust data written by a peer",
	"mpi":                     "depend on a wire or on the kind of a device; start a goroutine",
	"mpi/caching":             "call a function under its lock",
	"mpi/datatype":            "take time or memory in proportion to the number of elements, except to copy them",
	"mpe/attach":              "import the daemon's side",
	"mpe/attach/wire":         "allocate by a length from a frame; read shared memory twice",
	"daemon/attach":           "trust a program; wait for one while another waits",
	"node":                    "make a decision about the protocol",
	"daemon/standin":          "import packages below the engine and `mpi/`",
	"daemon/standin/cosim":    "trust a simulator; have a goroutine, clock or socket",
	"lib":                     "convert a handle in C",
	"config":                  "open a socket",
	"metrics":                 "cost the packet path more than an increment; allocate in proportion to peers' actions",
	"metrics/phases":          "allocate for a message",
	"daemon":                  "make a decision about the protocol",
	"daemon/control":          "use an engine other than by its API",
	"daemon/web":              "delay the end of the daemon",
	"daemon/statuspage":       "query the daemon more often for more viewers; need other hosts",
	"diagnosis":               "query a rank; read a clock; guess an unknown state",
	"diagnosis/doctor":        "have a socket; run a program; read a file; guess an unknown fact",
	"diagnosis/doctor/system": "send a rank a datagram; change the host",
	"transport/impair":        "have a goroutine, clock, socket, or randomness without a seed",
	"cmd/zrlctl/relay":        "interpret more of a packet than its type",
	"capture":                 "store more than it needs to continue; trust a length in a file",
	"node/recorder":           "allocate or read the clock for a packet; exceed its memory, whatever peers send",
	"capture/pcapng":          "trust a length in a file; read the clock; do I/O except through its caller's reader or writer",
	"capture/vcd":             "need memory in proportion to the waves",
	"capture/htmlreport":      "load anything from elsewhere",
	"capture/replay":          "send packets that are not in the capture",
	"cmd/zrlmpid":             "have logic that another package could test",
	"cmd/zrlctl":              "have logic that another package could test",
	"deploy/cosim":            "change an existing file",
	"internal/anonmem":        "unmap an address that may still be used by mistake",
	"internal/sharedmem":      "map memory that another process can shrink",
	"internal/rlimit":         "change a limit; blame one that was not reached",
	"internal/pmi":            "trust a length from the other side; start a process",
	"internal/launch":         "leave a process behind; report success if a rank failed",
	"internal/rendezvous":     "wait for a process; remove a socket that a process listens on",
	"internal/jobs": "block a rank; trust a socket of another user; read more of an answer than its caller permits; " +
		"change a rank, except to reset a peer",
	"internal/privatedir": "follow a link that another user can have made; trust a path without its descriptor",
	"node/kept":           "make a system call to store an entry; trust a file before it is checked",
	"internal/spool":      "exceed its size at any time; delete another program's file",
	"internal/netns":      "change the namespace of the process",
}

// mutual lists the pairs of top-level folders that import each other. There must be none.
var mutual []string
