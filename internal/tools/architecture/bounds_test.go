package architecture

// What the source may be at most: figures of today, which a change lowers. One that has to be raised is explained in
// the decision that raises it (docs/adr).

// methods counts the methods of the largest types.
var methods = map[string]int{
	"mpe.Engine": 41, "mpe/core.Core": 71, "mpe/core.link": 16, "extended.Conn": 94, "daemon/attach.session": 30,
	"mpe/core.Effects": 10, "mpe.Transport": 5,
}

const (
	folders  = 18 // at the top, with packages of the product
	packages = 95 // of the product
	// transports counts the interfaces of transports: mpe.Transport and the optional ones.
	transports = 5
	// fileTens and functionTens are the lines of the longest file and function, in tens.
	fileTens, functionTens = 60, 9
)

// waits lists the types that describe a wait: of the two state machines and the engine, of a state, of a recording and of
// a diagnosis, and rows of documents.
var waits = []string{
	"handshake.Wait", "extended.Wait", "mpe/core.Waiting", "mpe/state.Wait", "mpe/state.OldestWait", "capture.Wait",
	"capture/htmlreport.openWait", "diagnosis.edge", "diagnosis.Finding", "daemon/statuspage/digest.Wait",
}

// closures lists the packages whose dependencies, except the standard library's, are in testdata.
var closures = []string{"mpi", "mpi/job", "lib/capi", "examples/hello"}
