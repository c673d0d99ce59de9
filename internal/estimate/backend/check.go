package backend

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/phrase"
)

// SettingError is an error about one setting of how a model is served. Field is its path in a
// manifest, below spec. Remedy says what to write instead in a manifest; it may be "".
type SettingError struct {
	Field           []any
	Message, Remedy string
}

func (e *SettingError) Error() string { return e.Message }

// WithRemedy returns the message for a reader of a manifest.
func (e *SettingError) WithRemedy() string {
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + "; " + e.Remedy
}

// CheckServing returns an error for each setting that the backend does not have. It does not
// look at the model.
func (b *Backend) CheckServing(s estimate.Serving) []*SettingError {
	var out []*SettingError
	add := func(remedy, message string, field ...any) {
		out = append(out, &SettingError{field, message, remedy})
	}
	if bits := s.KVBits; bits != 0 && len(b.CacheBits) > 0 && !slices.Contains(b.CacheBits, bits) {
		add("", fmt.Sprintf("the cache of %s has %s bits, not %d", b.Name, phrase.Either(b.CacheBits), bits), "kvCacheBits")
	}
	if s.Rows > 0 && s.Rows < s.Sequences {
		add("raise it, or set fewer sequences", fmt.Sprintf("a server that processes at most %d at once does not hold %d sequences", s.Rows, s.Sequences), "maxSequences")
	}
	if b.hasRanks() {
		return out
	}
	if s.Data > 1 {
		add(fmt.Sprintf("for more copies of the model write replicas: %d", s.Data), b.Name+" has no data-parallel ranks", "parallelism", "data")
	}
	if s.Expert {
		add("leave it out", b.Name+" does not divide experts", "parallelism", "expert")
	}
	return out
}

// hasRanks reports whether the backend has data-parallel ranks and divides experts over them.
func (b *Backend) hasRanks() bool { return b.Name == "vllm" || b.Name == "sglang" }

// formatNames are the names in messages of the formats of models.
var formatNames = map[string]string{"safetensors": "safetensors", "preset": "presets", "gguf": "GGUF files", "table": "its own speech models"}

// CheckFormat returns an error if the backend does not serve models of this format.
func (b *Backend) CheckFormat(m *estimate.Model) error {
	if len(b.Formats) == 0 || slices.Contains(b.Formats, m.Format) {
		return nil
	}
	var serves []string
	for _, f := range b.Formats {
		serves = append(serves, formatNames[f])
	}
	return fmt.Errorf("%s serves %s, and %s is not one of these", b.Name, phrase.Either(serves), m.Name)
}

// CheckType returns an error if this version of the backend does not run on a type of device. An
// empty type is not known, and accepted.
func (b *Backend) CheckType(version, on string) error {
	if on == "" {
		return nil
	}
	ok, err := b.RunsOn(version, on)
	if err != nil || ok {
		return err
	}
	types, err := b.Types(version)
	if err != nil {
		return err
	}
	name := b.Name
	if newest, err := b.RunsOn("", on); err == nil && newest {
		name += " " + version
	}
	return fmt.Errorf("%s runs on %s, not on %s", name, phrase.Either(types), on)
}
