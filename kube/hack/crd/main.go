// Command crd writes the CustomResourceDefinitions of Queue and Model to config/crd. The
// schemas are derived from the Go types of package v1alpha1 and their comments, so that a
// manifest and an object of Kubernetes have the same fields. Limits and validation rules are
// listed in this package. Run it in the directory of the module kube/, or with `make crd`.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	source = "../api/v1alpha1" // the Go types and their comments
	output = "config/crd"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	for _, k := range kinds {
		text, err := k.generate(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(output, k.file()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
