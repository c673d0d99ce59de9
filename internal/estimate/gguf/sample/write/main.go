// Write writes the headers of published models, for scenarios:
//
//	go run ./internal/estimate/gguf/sample/write FOLDER NAME...
//
// With -whole, the files have a complete tokenizer and their true size, as sparse files
// without data. llama.cpp loads them and takes as much memory as with the published
// weights. The name "all" stands for all models.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-project/berth/internal/estimate/gguf/sample"
)

func main() {
	whole := flag.Bool("whole", false, "write files of the true size that llama.cpp can load; they take little space on the disk")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: write [-whole] FOLDER NAME...; names are %q, or all\n", sample.Names)
	}
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	names := flag.Args()[1:]
	if len(names) == 1 && names[0] == "all" {
		names = sample.Names
	}
	if err := write(flag.Arg(0), names, *whole); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(folder string, names []string, whole bool) error {
	for _, name := range names {
		f, err := sample.Named(name)
		if err != nil {
			return err
		}
		if whole {
			f = f.Loadable()
		}
		if err := f.Write(filepath.Join(folder, name+".gguf"), whole); err != nil {
			return err
		}
	}
	return nil
}
