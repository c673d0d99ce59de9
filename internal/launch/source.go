package launch

import (
	"path"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/estimate/preset"
)

// DefaultMountPath is where the cache of models is mounted unless the model says otherwise.
const DefaultMountPath = "/models"

// Source returns what the server loads: a repository on the Hugging Face Hub, or a path in the
// container. An error is a *Problem.
func Source(o *v1alpha1.Model) (string, error) { return sourceOf(o, &o.Spec.Source, "source") }

func sourceOf(o *v1alpha1.Model, s *v1alpha1.ModelSource, name string) (string, error) {
	for _, file := range []string{s.GGUF, s.HuggingFace} {
		if file != "" && s.Repository == "" {
			return inContainer(o, file, "spec", name)
		}
	}
	switch {
	case s.LocalPath != "":
		return s.LocalPath, nil
	case s.Repository != "":
		return s.Repository, nil
	case s.Preset != "":
		p, err := preset.Find(s.Preset)
		if err != nil {
			return s.Preset, nil // a speech model, which its server knows by name
		}
		return p.Repository, nil
	}
	return "", problem("name the repository from which the server loads the model", "spec", name, "repository")
}

// inContainer returns the path of a file in the container: as it is written, or relative to the
// cache.
func inContainer(o *v1alpha1.Model, file string, at ...any) (string, error) {
	switch s := o.Spec.Server; {
	case path.IsAbs(file):
		return file, nil
	case s == nil || s.Cache == nil:
		remedy := "or name the repository from which the server loads them"
		if at[1] == "adapters" {
			remedy = "or write an absolute path"
		}
		return "", problem("say on which volume the files are under server.cache, "+remedy, at...)
	default:
		return path.Join(MountPath(s.Cache), file), nil
	}
}

// MountPath returns where the cache is mounted.
func MountPath(c *v1alpha1.ModelCache) string {
	if c.MountPath != "" {
		return c.MountPath
	}
	return DefaultMountPath
}

// isGGUF reports whether the source is a GGUF file.
func isGGUF(s *v1alpha1.ModelSource) bool {
	return s.GGUF != "" || strings.EqualFold(path.Ext(s.LocalPath), ".gguf")
}

// literal returns the text such that Kubernetes, which expands $(NAME) and $$ in commands and
// variables, leaves it as it is.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// Literal returns the value such that Kubernetes does not expand it.
func Literal(value string) string { return literal(value) }
