package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"berth": main})
}

// TestScripts runs the command line as people do: testdata/script/*.txtar, one
// file for each command. QUICKSTART is the example that newcomers see first, and
// RECLAIM the one of an eviction.
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
			e.Setenv("COLUMNS", "80")
			return nil
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}
