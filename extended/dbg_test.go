package extended
import ("testing";"os")
func TestDbg(t *testing.T) {
	dbgLog = os.Stdout
	t.Log(runForged(noise(1495, 600)))
}
