// Package table reads the data files that are embedded in the program. It rejects
// unknown fields; the test of each package that has a file finds such mistakes.
package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/berth-project/berth/cluster"
)

// Read decodes one YAML document. It panics if the document does not decode, because the
// files are part of the program.
func Read[T any](name string, text []byte) T {
	var out T
	if err := decode(text, &out); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return out
}

func decode(text []byte, out any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(out); err != nil {
		return err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

// GiB is memory that is written as a decimal number of GiB. It is converted to bytes
// without a float, so the result is the same on every machine.
type GiB struct{ Bytes cluster.Bytes }

var decimal = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6})?$`)

// UnmarshalYAML converts the digits of the number, rounded to the nearest byte.
func (g *GiB) UnmarshalYAML(n *yaml.Node) error {
	if !decimal.MatchString(n.Value) {
		return fmt.Errorf("line %d: %q is not a decimal number of GiB", n.Line, n.Value)
	}
	r, _ := new(big.Rat).SetString(n.Value)
	r.Mul(r, big.NewRat(1<<30, 1))
	r.Add(r, big.NewRat(1, 2)) // rounds to the nearest byte
	g.Bytes = cluster.Bytes(new(big.Int).Quo(r.Num(), r.Denom()).Int64())
	return nil
}
