package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// stages is the file beside the binaries that describes to kwok how nodes and pods change.
const stages = "kwok-stages.yaml"

// Binaries returns the directory of the programs that `make kube-tools` builds: bin/kube of
// the repository that contains the working directory.
func Binaries() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		// hack/kube exists in the root of the repository only.
		if _, err := os.Stat(filepath.Join(dir, "hack", "kube", "go.mod")); err == nil {
			return filepath.Join(dir, "bin", "kube"), nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not inside the repository of Berth")
		}
		dir = parent
	}
}

// binaries returns the directory of the programs after it has checked that those of the
// given components exist.
func binaries(selected []Component) (string, error) {
	dir, err := Binaries()
	if err != nil {
		return "", err
	}
	for _, c := range selected {
		names := []string{string(c)}
		if c == Kwok {
			names = append(names, stages)
		}
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				return "", fmt.Errorf("%s is missing; `make kube-tools` builds it: %w", name, err)
			}
		}
	}
	return dir, nil
}
