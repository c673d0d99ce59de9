// Package table reads the data files that ship with the program. They are
// decoded strictly; a mistake in one is found by its package's test.
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

// Read decodes one document. The files are part of the program, so one that
// does not decode is a mistake of ours.
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

// GiB is memory written as a decimal number of GiB. It is kept as it was
// written, to the byte: a float would differ from machine to machine.
type GiB struct{ Bytes cluster.Bytes }

var decimal = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6})?$`)

// UnmarshalYAML reads the number from its digits.
func (g *GiB) UnmarshalYAML(n *yaml.Node) error {
	if !decimal.MatchString(n.Value) {
		return fmt.Errorf("line %d: %q is no decimal number of GiB", n.Line, n.Value)
	}
	r, _ := new(big.Rat).SetString(n.Value)
	r.Mul(r, big.NewRat(1<<30, 1))
	r.Add(r, big.NewRat(1, 2)) // to the nearest byte
	g.Bytes = cluster.Bytes(new(big.Int).Quo(r.Num(), r.Denom()).Int64())
	return nil
}
