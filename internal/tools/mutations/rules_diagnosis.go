package main

var ownCauses = test{"its own test", []string{"./diagnosis", "./diagnosis/infer"}}

// Rules by which `zrlctl why` excludes causes.
func init() {
	mutations = append(mutations, []mutation{
		{"why: a peer that asks for DATA again was running, and lacked it", "diagnosis/infer/infer.go",
			"\tcase o.asksForData() != \"\":\n", "\tcase false:\n", []test{ownCauses}},
		{"why: packets of a host that cleared at once are not late", "diagnosis/infer/infer.go",
			"\t\tcase o.ClearedAtOnce:\n", "\t\tcase false:\n", []test{ownCauses}},
		{"why: a host's CLEAR_TO_SEND is dropped as stale when it comes again", "diagnosis/unknown.go",
			"(talks || clearsAgain)", "(talks || clearsAgain && false)", []test{ownCauses}},
	}...)
}
