package architecture

// What the source may be at most: figures of today, which a change lowers. One that has to be raised is explained in
// the decision that raises it (docs/adr).

// floor is a floor of the house: a package imports its own floor and those below.
type floor int

const (
	pure     floor = iota // no input, output, clock, goroutine or lock
	rank                  // what a rank consists of, and what programs link with
	evidence              // what reads states, packets and the system
	service               // the daemon, and what it measures
	tools                 // programs, and what is deployed
	outside               // test kits and integration tests: no rule
)

var floorNames = [...]string{"pure", "rank", "evidence", "daemon", "tools", "outside"}

// floors are the floors of folders, with all below them but for those that are named themselves.
var floors = map[string]floor{
	"protocol": pure, "handshake": pure, "extended": pure, "mpe/match": pure, "mpe/coll": pure, "mpe/collective": pure,
	"internal/bytesize": pure, "internal/version": pure,

	"mpe": rank, "udp": rank, "transport": rank, "mpi": rank, "config": rank, "node": rank, "metrics/phases": rank,
	"lib": rank, "examples": rank, "internal": rank,

	"capture": evidence, "diagnosis": evidence, "protocol/layer": evidence,

	"daemon": service, "metrics": service,

	"cmd": tools, "deploy": tools, "internal/sim": tools, "lib/gen": tools, "lib/manual": tools, "internal/manual": tools,

	// Test kits are beside what they test.
	"capture/capturetest": outside, "capture/reporttest": outside, "daemon/daemontest": outside,
	"daemon/standin/wedgetest": outside, "deploy/cosim/simulators": outside, "handshake/cpumodel": outside,
	"handshake/modeltest": outside, "handshake/mpemodel": outside, "handshake/schedule": outside,
	"mpe/coll/collcheck": outside, "mpe/colltest": outside, "mpi/mpitest": outside, "node/statetest": outside,
	"transport/memnet": outside, "transport/transporttest": outside,
	"internal/testkit": outside, "internal/integration": outside,
}

// upward lists the imports that go up.
var upward = []string{
	"diagnosis imports daemon/control",
	"diagnosis imports daemon/statuspage/digest",
	"diagnosis/doctor imports daemon/control",
	"diagnosis/doctor imports daemon/statuspage/digest",
	"node imports capture",
	"node/recorder imports capture",
}

// mutual lists the folders at the top that import each other.
var mutual = []string{"config internal", "daemon diagnosis", "internal mpe"}

// methods counts the methods of the largest types.
var methods = map[string]int{
	"mpe.Engine": 66, "mpe.core": 115, "mpe.link": 35, "extended.Conn": 163, "mpe/attach.session": 58,
}

const (
	folders  = 18 // at the top, with packages of the product
	packages = 98 // of the product
)

// closures lists the packages whose dependencies, except the standard library's, are in testdata.
var closures = []string{"mpi", "lib/capi", "examples/hello"}
