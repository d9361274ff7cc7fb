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
	"mpe/coll": pure, "mpe/collective": pure,
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
	"mpe/colltest": outside, "mpi/mpitest": outside,
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

// never lists the prohibitions of each package. Its doc comment describes the package.
var never = map[string]string{
	"protocol":    "keep state between packets, import another package of this module",
	"handshake":   "have a goroutine, clock, socket, randomness, or a payload",
	"extended":    "have a goroutine, clock, socket or randomness of its own",
	"mpe/match":   "lock, or read what it stores",
	"mpe/coll":    "have a goroutine, clock or socket; send anything",
	"mpe/coll/op": "depend on more than the order of operands",
	"mpe/coll/choice": "read a file, measure, learn from calls, choose differently on different ranks; " +
		"allocate for a choice",
	"mpe/collective": "import `mpe`; have a goroutine, clock, lock or randomness",
	"mpe":            "decide what becomes of a message, log",
	"mpe/core": "have a goroutine, clock, lock, channel or randomness; interpret a packet, log, " +
		"allocate by what the wire claims",
	"mpe/state": "know how a state is gathered; hold a lock or a socket",
	"internal/progress": "allocate or read the clock for a wait that ends while its caller polls; know what is " +
		"polled; read a descriptor, hold a thread",
	"udp":           "know the handshake",
	"transport/tcp": "know the handshake",
	"transport/shm": "wait for a peer, or trust what it writes",
	"mpi":           "know a wire, or what a device is made of; start a goroutine",
	"mpi/job":       "be needed by a program that has a device",
	"mpi/caching":   "know what an object is; call a function under its lock",
	"mpi/datatype": "take time or memory in proportion to the number of elements, but to copy them; " +
		"interpret an element",
	"mpe/attach":              "be linked with the daemon's end",
	"mpe/attach/wire":         "allocate by what a frame claims; read shared memory twice",
	"daemon/attach":           "trust a program, wait for one while another waits",
	"internal/query":          "know who answers, or how a request is carried",
	"internal/words":          "know what a number is of",
	"internal/version":        "import anything of this module",
	"node":                    "decide anything about the protocol",
	"daemon/standin":          "import anything below the engine and `mpi/`",
	"daemon/standin/cosim":    "trust a simulator; have a goroutine, clock or socket",
	"lib":                     "convert a handle in C",
	"lib/gen":                 "know what a call does",
	"config":                  "open a socket",
	"config/collectives":      "decide what a table says",
	"internal/bytesize":       "know YAML",
	"metrics":                 "cost the packet path more than an increment; allocate by what peers do",
	"metrics/phases":          "know Prometheus; allocate for a message",
	"daemon":                  "decide anything about the protocol",
	"daemon/control":          "use an engine but by its API",
	"daemon/web":              "change what the daemon does, delay its end",
	"daemon/statuspage":       "ask the daemon more often because it has many viewers; need other hosts",
	"diagnosis":               "ask anybody, read a clock; guess at a state that is not known",
	"diagnosis/doctor":        "have a socket, run a program, read a file; guess at what is unknown",
	"diagnosis/doctor/system": "send a rank a datagram; change anything",
	"diagnosis/doctor/bundle": "have a secret in it",
	"transport/impair":        "have a goroutine, clock, socket, or randomness without a seed",
	"cmd/zrlctl/relay":        "interpret more of a packet than its type",
	"capture":                 "store more than it needs to continue; trust a length in a file",
	"node/recorder": "allocate or read the clock for a packet; take more memory than it was given, " +
		"whatever peers send",
	"capture/pcapng":      "trust a length in a file; read the clock; do I/O but through its caller's reader or writer",
	"capture/vcd":         "need memory that grows with the waves",
	"capture/htmlreport":  "load anything from elsewhere; send what is not in the capture",
	"capture/perfetto":    "load anything from elsewhere; send what is not in the capture",
	"capture/replay":      "load anything from elsewhere; send what is not in the capture",
	"cmd/zrlmpid":         "have logic that another package could test",
	"cmd/zrlctl":          "have logic that another package could test",
	"deploy/cosim":        "change a file that exists",
	"internal/anonmem":    "unmap an address that may still be used by mistake",
	"internal/ctxerr":     "hide the cause or `ctx.Err`",
	"internal/sharedmem":  "map memory that another process can make shorter",
	"daemon/connlimit":    "keep a new connection waiting",
	"transport/bindfault": "search unless a bind has failed",
	"internal/rlimit":     "change a limit; blame one that was not reached",
	"internal/pmi":        "believe the length of what the other side sends; start a process",
	"internal/launch":     "leave a process behind; take a job for a success of which a rank has failed",
	"internal/rendezvous": "wait for a process; remove a socket that a process listens on",
	"internal/jobs": "keep a rank waiting; believe a socket of another user; read more of an answer than its " +
		"caller allows; act on what a tool sends, but to reset a peer",
	"internal/privatedir": "follow a link that another user can have made; trust what was not checked by a descriptor",
	"node/kept":           "make a system call to keep something; believe a file before it is checked",
	"internal/spool":      "have more bytes than that at any time; delete what is not its own",
	"internal/netns":      "change the namespace of the process",
	"internal/strictyaml": "know what a file is about; open one",
	"internal/manual":     "be part of a program that is shipped",
}

// mutual lists the pairs of top-level folders that import each other. There must be none.
var mutual []string
