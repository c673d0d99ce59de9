package hf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

// maxConfig is far more than any configuration takes.
const maxConfig = 16 << 20

// config is the config.json of a model. For a multimodal model, text is the part about
// the language model, which is looked at first: only the language model has a cache. top
// is the whole file, and levels is all parts from the whole file to text.
type config struct {
	text, top map[string]json.RawMessage
	levels    []map[string]json.RawMessage
	// storedIn is the file with the quantisation if that is not config.json.
	storedIn string
}

// textParts lists the fields that hold the configuration of the language model in a
// multimodal model.
var textParts = []string{"text_config", "llm_config", "language_config", "thinker_config"}

func readConfig(dir string) (config, error) {
	path := filepath.Join(dir, configFile)
	f, size, err := open(path)
	if err != nil {
		return config{}, fmt.Errorf("%w; the directory of a model must have a config.json, which is published with the weights", err)
	}
	defer f.Close()
	if size > maxConfig {
		return config{}, fmt.Errorf("%s has %d bytes, which is too large for the configuration of a model", path, size)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return config{}, err
	}
	c, err := decodeConfig(text)
	if err != nil {
		return config{}, fmt.Errorf("%s: %w", path, err)
	}
	err = c.addQuantisation(dir)
	return c, err
}

// configFile is the file with the configuration, and quantisationFile a file to which ModelOpt
// writes the quantisation.
const (
	configFile       = "config.json"
	quantisationFile = "hf_quant_config.json"
)

// addQuantisation adds the quantisation that ModelOpt writes to a file of its own, unless the
// configuration has one.
func (c *config) addQuantisation(dir string) error {
	path := filepath.Join(dir, quantisationFile)
	if _, raw := c.field("quantization_config", "compression_config"); raw != nil {
		return nil
	}
	f, size, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	if size > maxConfig {
		return fmt.Errorf("%s has %d bytes, which is too large for the configuration of a model", path, size)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return err
	}
	var q struct {
		Quantisation json.RawMessage `json:"quantization"`
	}
	if err := decode("", finite(text), &q); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !isNull(q.Quantisation) {
		c.top["quantization_config"], c.storedIn = q.Quantisation, quantisationFile
	}
	return nil
}

func decodeConfig(text []byte) (config, error) {
	var c config
	if err := decode("", finite(text), &c.top); err != nil {
		return config{}, err
	}
	if c.top == nil {
		return config{}, fmt.Errorf("it is null; it must be an object")
	}
	c.text, c.levels = c.top, []map[string]json.RawMessage{c.top}
	for range 2 { // in an omni model the text part is two levels deep
		for _, name := range textParts {
			raw, there := c.text[name]
			if !there || isNull(raw) {
				continue
			}
			var inner map[string]json.RawMessage
			if err := decode(name, raw, &inner); err != nil {
				return config{}, err
			}
			c.text, c.levels = inner, append(c.levels, inner)
			break
		}
	}
	return c, nil
}

// finite returns the text with null in place of Infinity and NaN, which Python writes and
// JSON does not have. No field that is read has such a value.
func finite(text []byte) []byte {
	if !bytes.Contains(text, []byte("Infinity")) && !bytes.Contains(text, []byte("NaN")) {
		return text
	}
	out, quoted := make([]byte, 0, len(text)), false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			out = append(out, c, text[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case !quoted:
			if word := nonFinite.Find(text[i:]); word != nil {
				out = append(out, "null"...)
				i += len(word) - 1
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

var nonFinite = regexp.MustCompile(`^(?:-?Infinity|NaN)`)

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// field returns the first of the names that is set, and its value.
func (c config) field(names ...string) (string, json.RawMessage) {
	for _, from := range []map[string]json.RawMessage{c.text, c.top} {
		for _, name := range names {
			if raw, there := from[name]; there && !isNull(raw) {
				return name, raw
			}
		}
	}
	return "", nil
}

// wholeNumber returns a number that is not negative; 0 if none of the names is set.
func (c config) wholeNumber(names ...string) (int, error) {
	name, raw := c.field(names...)
	if raw == nil {
		return 0, nil
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil || f != math.Trunc(f) || f < 0 || f > 1<<30 {
		return 0, fmt.Errorf("%s is %s: it must be a whole number from 0 to %d", name, shorten(raw), 1<<30)
	}
	return int(f), nil
}

func (c config) flag(name string) (value, there bool, err error) {
	_, raw := c.field(name)
	if raw == nil {
		return false, false, nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return false, false, fmt.Errorf("%s is %s: it must be true or false", name, shorten(raw))
	}
	return value, true, nil
}

// stringList returns a string or a list of strings, made printable; nil if the field is
// not set or is something else.
func (c config) stringList(name string) []string {
	_, raw := c.field(name)
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{printable.Text(one)}
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return nil
	}
	for i := range many {
		many[i] = printable.Text(many[i])
	}
	return many
}

// name returns the name of the architecture in the configuration.
func (c config) name() string {
	var many []string
	if json.Unmarshal(c.top["architectures"], &many) == nil && len(many) > 0 && many[0] != "" {
		return printable.Text(many[0])
	}
	return c.modelType()
}

func (c config) modelType() string {
	if w := c.stringList("model_type"); len(w) == 1 {
		return w[0]
	}
	return ""
}

// shorten returns a value for a message, on one line.
func shorten(raw json.RawMessage) string {
	end := ""
	if len(raw) > 40 {
		raw, end = raw[:40], "…"
	}
	return printable.Text(strings.Join(strings.Fields(string(raw)), " ")) + end
}

// decode reads JSON into a Go value. If a value has another type, the error names the field, what
// it is and what it must be. name is the field that raw is the value of; "": raw is a whole file.
func decode(name string, raw []byte, into any) error {
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return fmt.Errorf("%sit is not JSON: %w", prefix(name), err)
	}
	field := strings.Trim(name+"."+wrong.Field, ".")
	if field == "" {
		field = "it"
	}
	have, isNumber := strings.CutPrefix(wrong.Value, "number ")
	switch {
	case isNumber:
	case wrong.Field == "" && name != "":
		have = shorten(raw)
	default:
		have = typeWords[wrong.Value]
	}
	return fmt.Errorf("%s is %s; it must be %s", printable.Text(field), cmp.Or(have, "something else"), kindWords(wrong.Type.Kind()))
}

func prefix(name string) string {
	if name == "" {
		return ""
	}
	return name + ": "
}

// typeWords are the words for types of JSON.
var typeWords = map[string]string{"array": "a list", "object": "an object", "string": "a text", "bool": "true or false", "number": "a number"}

// kindWords returns what a value of JSON must be for a kind of Go value.
func kindWords(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
