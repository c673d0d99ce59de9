// Command crd writes the CustomResourceDefinition of Queue to config/crd. The schema is
// derived from the Go types of package v1alpha1 and their comments, so that a manifest and
// an object of Kubernetes have the same fields. Limits and validation rules are listed in
// this package. Run it in the directory of the module kube/, or with `make crd`.
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
	text, err := generate(source)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(output, fileName), text, 0o644)
}
