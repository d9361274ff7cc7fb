package choice
import ("testing";"bytes";"regexp";"encoding/json")
func BenchmarkLoad(b *testing.B){ b.ReportAllocs(); for b.Loop(){ Load(bytes.NewReader(defaultTable),"x") } }
func BenchmarkLoadSlim(b *testing.B){ b.ReportAllocs();
 slim := regexp.MustCompile(`(?m)^ +(bytes:|medians:|- \{by: .*us:).*\n`).ReplaceAll(defaultTable,nil)
 b.Log(len(slim))
 for b.Loop(){ if _,err:=Load(bytes.NewReader(slim),"x"); err!=nil {b.Fatal(err)} } }
func BenchmarkJSON(b *testing.B){ t,_:=json.Marshal(Default().Document()); b.Log(len(t)); for b.Loop(){ var d Document; if err:=json.Unmarshal(t,&d);err!=nil{b.Fatal(err)}; New(&d) } }
