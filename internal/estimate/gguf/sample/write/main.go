// Write writes the headers of published models, for scenarios:
//
//	go run ./internal/estimate/gguf/sample/write FOLDER NAME...
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-project/berth/internal/estimate/gguf/sample"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintf(os.Stderr, "usage: write FOLDER NAME...; names are %q\n", sample.Names)
		os.Exit(2)
	}
	for _, name := range os.Args[2:] {
		f, err := sample.Named(name)
		if err == nil {
			err = f.Write(filepath.Join(os.Args[1], name+".gguf"), false)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
