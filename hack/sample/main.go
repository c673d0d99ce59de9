// Command sample writes a directory with the files of a published model, without the
// data of its weights: go run ./hack/sample [-index] MODEL DIRECTORY.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/berth-project/berth/internal/estimate/hf/sample"
)

func main() {
	index := flag.Bool("index", false, "write an index with the size of all weights instead of their headers")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: sample [-index] MODEL DIRECTORY\nmodels: %s\n", strings.Join(sample.Names(), ", "))
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	write := sample.Write
	if *index {
		write = sample.WriteIndex
	}
	err := os.MkdirAll(flag.Arg(1), 0o755)
	if err == nil {
		err = write(flag.Arg(1), flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sample:", err)
		os.Exit(1)
	}
}
