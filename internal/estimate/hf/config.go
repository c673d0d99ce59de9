package hf

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

// maxConfig is far more than any configuration takes.
const maxConfig = 16 << 20

// config is a model's config.json. Of a model that sees or hears, the part on text
// comes first: it is what is cached and generated.
type config struct {
	text, top map[string]json.RawMessage
}

// parts hold the configuration of the language model in those that have more to them.
var parts = []string{"text_config", "llm_config", "language_config", "thinker_config"}

func readConfig(dir string) (config, error) {
	path := filepath.Join(dir, "config.json")
	f, size, err := open(path)
	if err != nil {
		return config{}, fmt.Errorf("%w: a model's directory has a config.json; download it beside the weights", err)
	}
	defer f.Close()
	if size > maxConfig {
		return config{}, fmt.Errorf("%s has %d bytes: that is no model's configuration", path, size)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return config{}, err
	}
	c, err := decodeConfig(text)
	if err != nil {
		return config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func decodeConfig(text []byte) (config, error) {
	var c config
	if err := json.Unmarshal(text, &c.top); err != nil {
		return config{}, err
	}
	if c.top == nil {
		return config{}, fmt.Errorf("it is null: it must be a JSON object")
	}
	c.text = c.top
	for range 2 { // an omni model's text is two levels down
		for _, name := range parts {
			raw, there := c.text[name]
			if !there || isNull(raw) {
				continue
			}
			var inner map[string]json.RawMessage
			if err := json.Unmarshal(raw, &inner); err != nil {
				return config{}, fmt.Errorf("%s: %w", name, err)
			}
			c.text = inner
			break
		}
	}
	return c, nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// field is the first of the names that is set.
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

// whole is a number that counts something; 0: it is not there.
func (c config) whole(names ...string) (int, error) {
	name, raw := c.field(names...)
	if raw == nil {
		return 0, nil
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil || f != math.Trunc(f) || f < 0 || f > 1<<30 {
		return 0, fmt.Errorf("%s is %s: it must be a whole number from 0 to %d", name, short(raw), 1<<30)
	}
	return int(f), nil
}

func (c config) flag(name string) (value, there bool, err error) {
	_, raw := c.field(name)
	if raw == nil {
		return false, false, nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return false, false, fmt.Errorf("%s is %s: it must be true or false", name, short(raw))
	}
	return value, true, nil
}

// words is a string or a list of them, made printable; nil: it is not there, or
// something else.
func (c config) words(name string) []string {
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

// name is what the model calls its architecture.
func (c config) name() string {
	var many []string
	if json.Unmarshal(c.top["architectures"], &many) == nil && len(many) > 0 && many[0] != "" {
		return printable.Text(many[0])
	}
	return c.kind()
}

func (c config) kind() string {
	if w := c.words("model_type"); len(w) == 1 {
		return w[0]
	}
	return ""
}

// short is a value for a message, on one line.
func short(raw json.RawMessage) string {
	end := ""
	if len(raw) > 40 {
		raw, end = raw[:40], "…"
	}
	return printable.Text(strings.Join(strings.Fields(string(raw)), " ")) + end
}
