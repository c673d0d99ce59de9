package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// TooLarge is the message about a file of more than MaxSize bytes.
var TooLarge = fmt.Sprintf("larger than %d MiB; split it", MaxSize>>20)

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// Documents parses data and calls visit with the root of each document that is not
// empty. The next document is parsed after visit has returned, so that only one tree
// is in memory: a tree takes many times the memory of its text.
func Documents(name string, data []byte, visit func(root *yaml.Node)) (errs Errors) {
	if len(data) > MaxSize {
		return Errors{{File: name, Message: TooLarge}}
	}
	if err := checkEncoding(data); err != nil {
		err.File = name
		return Errors{*err}
	}
	fail := func(problem string) {
		at := yamlLine.FindStringSubmatch(problem)
		line, _ := strconv.Atoi(at[1])
		if line == 0 && !strings.Contains(problem, "unknown anchor") {
			line = 1 // the library names no line for an error in the first
		}
		errs = append(errs, Error{File: name, Line: line, Message: "this is not YAML: " + strings.TrimPrefix(problem, at[0])})
	}
	in := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := decodeNext(in, &doc)
		if errors.Is(err, io.EOF) {
			return errs
		}
		if err != nil {
			fail(err.Error())
			return errs
		}
		if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 || IsNull(Resolve(doc.Content[0])) {
			continue
		}
		var g guard
		if err := g.check(doc.Content[0]); err != nil {
			err.File = name
			errs = append(errs, *err)
			continue
		}
		visit(doc.Content[0])
	}
}

// decodeNext parses one document. A panic of the library becomes an error: the cause
// is a broken file.
func decodeNext(in *yaml.Decoder, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return in.Decode(doc)
}

// isControl reports whether r is a control character that YAML forbids.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f || r > 0x7f && r < 0xa0 && r != 0x85
}

// firstControl returns the index of the first control character that YAML forbids, or -1.
func firstControl(data []byte) int {
	for i, c := range data {
		if c >= ' ' && c < 0x7f || c == '\n' {
			continue
		}
		if r, _ := utf8.DecodeRune(data[i:]); utf8.RuneStart(c) && isControl(r) {
			return i
		}
	}
	return -1
}

// checkEncoding reports the first byte that cannot be part of a text. The library
// would report it without a position.
func checkEncoding(data []byte) *Error {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil // UTF-16, which PowerShell writes when it redirects output; the library decodes it
	}
	bad, problem := firstControl(data), "a control character: is this a text file?"
	if bad >= 0 && data[bad] == 0 {
		problem = "a NUL byte: is this a text file?"
	}
	if !utf8.Valid(data) {
		for i := 0; i < len(data); {
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				if bad < 0 || i < bad {
					bad, problem = i, "a byte that is not UTF-8: save the file as UTF-8"
				}
				break
			}
			i += size
		}
	}
	if bad < 0 {
		return nil
	}
	before := data[:bad]
	return &Error{Line: bytes.Count(before, []byte("\n")) + 1, Column: bad - bytes.LastIndexByte(before, '\n'), Message: problem}
}
