package architecture

// Upper bounds for the source. They are equal to the current figures. A change that lowers a figure updates it here. A
// figure is raised only by a decision that explains why (docs/adr).

// methods maps the largest types to their numbers of methods.
var methods = map[string]int{
	"mpe.Engine": 43, "mpe/core.Core": 71, "mpe/core.link": 16, "extended.Conn": 97, "daemon/attach.session": 30,
	"mpe/core.Effects": 10, "mpe.Transport": 5,
}

const (
	folders  = 18 // at the top level, with packages of the product
	packages = 97 // of the product
	// transports is the number of transport interfaces: mpe.Transport and the optional ones.
	transports = 5
	// fileTens and functionTens are the lengths of the longest file and of the longest function, in tens of lines.
	fileTens, functionTens = 60, 9
)

// waits lists the types that describe a wait: in both state machines and the engine, in a state, in a recording, in a
// diagnosis, and in rows of documents.
var waits = []string{
	"handshake.Wait", "extended.Wait", "mpe/core.Waiting", "mpe/state.Wait", "mpe/state.OldestWait", "capture.Wait",
	"capture/htmlreport.openWait", "diagnosis.edge", "diagnosis.Finding", "daemon/statuspage/digest.Wait",
}

// closures lists packages. The dependencies of each outside the standard library are listed in testdata.
var closures = []string{"mpi", "mpi/job", "lib/capi", "examples/hello"}
