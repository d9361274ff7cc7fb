package htmlreport

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/zrlmpi/zrlmpid/capture"
)

//go:embed assets
var assets embed.FS

// scripts are the parts of the page's script, in the order in which they are concatenated. They share the scope of one
// function.
var scripts = []string{
	"format.js", "data.js", "scale.js", "store.js", "canvas.js", "tooltip.js", "ladder_lanes.js", "ladder_marks.js",
	"ladder_arrows.js", "ladder_density.js", "ladder.js", "ladder_input.js", "minimap.js", "findings.js",
	"inspector.js",
	"phase_charts.js", "phases.js", "vtable.js", "tables.js", "main.js",
}

// ErrNoReport is returned by Write for a nil report.
var ErrNoReport = errors.New("htmlreport: there is no report to write")

// page is the argument of the template.
type page struct {
	head
	// Findings lists the findings that the page shows without its script.
	Findings []staticFinding
	Style    template.CSS
	Script   template.JS
	Data     template.JS
	Policy   string
}

// parts holds the content that is the same in all reports.
type parts struct {
	template *template.Template
	style    template.CSS
	script   template.JS
	policy   string
}

// static returns the content common to all reports. Its first call loads this content.
var static = sync.OnceValue(loadParts)

// loadParts reads the embedded files. It panics if one is missing or invalid, which every test of this package checks.
func loadParts() parts {
	read := func(name string) string {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	var js strings.Builder
	js.WriteString("(() => {\n'use strict';\n")
	for _, name := range scripts {
		js.WriteString(read(name))
	}
	js.WriteString("})();\n")
	css := read("style.css")
	// The policy names the script and the style sheet by their hashes. The browser ignores all others, even if text
	// from a recording put one into the page.
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; "+
		"form-action 'none'",
		hash(js.String()), hash(css))
	return parts{
		template: template.Must(template.New("page.html").Parse(read("page.html"))),
		style:    template.CSS(css), script: template.JS(js.String()), policy: policy,
	}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Write writes the report r as an HTML page. The output depends only on r. The error is ErrNoReport or an error from w.
func Write(w io.Writer, report *capture.Report) error {
	if report == nil {
		return ErrNoReport
	}
	// Marshal escapes <, > and &, so that no text can end the script element that holds the data.
	data, err := json.Marshal(newDocument(report))
	if err != nil {
		return fmt.Errorf("htmlreport: encode %q: %w", report.Source, err)
	}
	p := static()
	err = p.template.Execute(w, page{
		head: newHead(report), Findings: newStaticFindings(report), Style: p.style, Script: p.script, Data: template.JS(data),
		Policy: p.policy,
	})
	if err != nil {
		return fmt.Errorf("htmlreport: write the report of %q: %w", report.Source, err)
	}
	return nil
}
