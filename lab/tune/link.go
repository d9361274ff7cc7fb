package tune

import (
	"context"
	"math"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// linkLengths lists the message lengths in bytes at which the link is measured. They cover the range of segment sizes.
var linkLengths = []int{8, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10}

// measureLink determines alpha and beta of a transport. It measures broadcasts between two ranks: such a broadcast is a
// single message.
func (t *tuner) measureLink(ctx context.Context, transport string) (collectives.Link, error) {
	m, err := t.launch(ctx, transport, 2)
	if err != nil {
		return collectives.Link{}, err
	}
	defer m.close()
	var x, y []float64
	for _, n := range linkLengths {
		c := &cell{collective: coll.Bcast, bytes: n, by: choice.Choice{Algorithm: "binomial"}}
		us, err := t.measureCell(ctx, m, c)
		if err != nil {
			return collectives.Link{}, err
		}
		x, y = append(x, float64(n)), append(y, us*1000)
	}
	return fitLine(x, y), nil
}

// fitLine returns the straight line that minimizes the sum of the squared relative deviations of the points. Both
// coefficients have a lower bound.
func fitLine(x, y []float64) collectives.Link {
	var sw, sx, sy, sxx, sxy float64
	for i := range x {
		w := 1 / (y[i] * y[i])
		sw += w
		sx += w * x[i]
		sy += w * y[i]
		sxx += w * x[i] * x[i]
		sxy += w * x[i] * y[i]
	}
	beta := (sw*sxy - sx*sy) / (sw*sxx - sx*sx)
	l := collectives.Link{Alpha: (sy - beta*sx) / sw, Beta: beta}
	return collectives.Link{Alpha: rounded(max(l.Alpha, 1)), Beta: rounded(max(l.Beta, 1e-3))}
}

// rounded rounds v to four significant digits; further digits are noise.
func rounded(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	return math.Round(math.Round(v/unit)*unit*1e6) / 1e6
}
