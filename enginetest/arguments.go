package enginetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/berth-project/berth/engine"
)

// Arguments returns arguments of a plugin from JSON text, such as {"grace": "30s"}, to be
// passed to the plugin's builder. Decoding is as strict as that of a configuration file: an
// unknown field is an error.
func Arguments(text string) engine.Arguments { return jsonArguments(text) }

type jsonArguments string

func (a jsonArguments) Decode(into any) error {
	d := json.NewDecoder(bytes.NewReader([]byte(a)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("more than one value in %q", string(a))
	}
	return nil
}
