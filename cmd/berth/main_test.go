package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	gguf "github.com/berth-project/berth/internal/estimate/gguf/sample"
	hf "github.com/berth-project/berth/internal/estimate/hf/sample"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"berth": main})
}

// TestScripts runs the scripts in testdata/script. QUICKSTART, RECLAIM and MIGRATE are the
// directories of the examples with these names.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("QUICKSTART", filepath.Join(examples, "quickstart"))
			e.Setenv("RECLAIM", filepath.Join(examples, "reclaim"))
			e.Setenv("MIGRATE", filepath.Join(examples, "migrate"))
			e.Setenv("COLUMNS", "80")
			return nil
		},
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"sample": sample},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// sample implements the commands "sample gguf NAME FILE" and "sample hf NAME
// DIRECTORY" of scripts. They write a model with real headers and no data.
func sample(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: sample gguf|hf NAME PATH")
	}
	path := ts.MkAbs(args[2])
	switch args[0] {
	case "gguf":
		f, err := gguf.Named(args[1])
		ts.Check(err)
		ts.Check(f.Write(path, true))
	case "hf":
		ts.Check(os.MkdirAll(path, 0o755))
		ts.Check(hf.Write(path, args[1]))
	default:
		ts.Fatalf("no sample of %s", args[0])
	}
}
