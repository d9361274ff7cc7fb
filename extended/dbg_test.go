package extended
import ("testing";"os";"path/filepath";"strings";"strconv";"time")
func TestDbg(t *testing.T) {
	fs,_ := filepath.Glob(os.Getenv("D")+"/*")
	for _, f := range fs {
		b,_ := os.ReadFile(f)
		l := strings.Split(string(b),"\n")[1]
		l = strings.TrimSuffix(strings.TrimPrefix(l,"[]byte("),")")
		s,_ := strconv.Unquote(l)
		t0 := time.Now()
		err := runForged([]byte(s))
		t.Log(filepath.Base(f), len(s), time.Since(t0), err)
	}
}
