package architecture

// What the source may be at most: figures of today, which a change lowers. One that has to be raised is explained in
// the decision that raises it (docs/adr).

// methods counts the methods of the largest types.
var methods = map[string]int{
	"mpe.Engine": 41, "mpe/core.Core": 71, "mpe/core.link": 16, "extended.Conn": 94, "daemon/attach.session": 31,
	"mpe/core.Effects": 10, "mpe.Transport": 5,
}

const (
	folders  = 18 // at the top, with packages of the product
	packages = 94 // of the product
	// transports counts the interfaces of transports: mpe.Transport and the optional ones.
	transports = 5
)

// closures lists the packages whose dependencies, except the standard library's, are in testdata.
var closures = []string{"mpi", "mpi/job", "lib/capi", "examples/hello"}
