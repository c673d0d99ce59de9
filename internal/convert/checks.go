package convert

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/phrase"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	maxName = 253
	maxKey  = 253 + 1 + 63 // characters of a label key: a domain, a slash and a name
)

var namePath = path{"metadata", "name"}

// checkName checks the name of an object and reports whether it is valid. Kind is the
// kind of the object, as in "a node needs a name".
func checkName(name, kind string, r reporter) bool {
	return checkNameAt(name, kind, namePath, r)
}

func checkNameAt(name, kind string, at path, r reporter) bool {
	switch {
	case name == "":
		r.errorf(at, "a %s needs a name", kind)
	case len(name) > maxName:
		r.errorf(at, "the name has %d characters; %d are the most", len(name), maxName)
	case !isName(name):
		r.errorf(at, "%s is not a valid name: use lower-case letters, digits, - and ., and begin and end with a letter or digit", phrase.Quote(name))
	default:
		return true
	}
	return false
}

// isName reports whether s, which is not empty, has only characters that names may
// have.
func isName(s string) bool {
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	for i := range len(s) {
		if c := s[i]; !letter(c) && c != '-' && c != '.' {
			return false
		}
	}
	return letter(s[0]) && letter(s[len(s)-1])
}

// checkNamespace reports whether the namespace is valid. It may be left out.
func checkNamespace(namespace string, r reporter) bool {
	return namespace == "" || checkNameAt(namespace, "namespace", path{"metadata", "namespace"}, r)
}

// checkLabels reports labels that Kubernetes does not accept.
func checkLabels(labels map[string]string, at path, r reporter) {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if checkKey(k, at.Add(k), r) {
			checkLabelValue(labels[k], at.Add(k), r)
		}
	}
}

func checkLabelValue(value string, at path, r reporter) {
	// The length is checked first: the pattern of a long text takes much time.
	if len(value) > validation.LabelValueMaxLength || len(validation.IsValidLabelValue(value)) > 0 {
		r.errorf(at, "%s is not a valid label value: use at most 63 letters, digits, -, _ and ., and begin and end with a letter or digit", phrase.Quote(value))
	}
}

func checkKey(key string, at path, r reporter) bool {
	if key == "" {
		r.errorf(at, "a label needs a key")
		return false
	}
	if len(key) > maxKey || len(validation.IsQualifiedName(key)) > 0 {
		r.errorf(at, "%s is not a valid label key: write name or domain/name", phrase.Quote(key))
		return false
	}
	return true
}

// checkEnum reports whether the value is one of those allowed. An empty value means
// the default and is always allowed.
func checkEnum[T ~string](value string, allowed []T, at path, r reporter) bool {
	if value == "" || slices.Contains(allowed, T(value)) {
		return true
	}
	names := make([]string, len(allowed))
	for i, v := range allowed {
		names[i] = string(v)
	}
	if n, ok := nearest.Find(value, names); ok {
		r.errorf(at, "unknown value %s; did you mean %s?", phrase.Quote(value), n)
	} else {
		r.errorf(at, "unknown value %s; write %s", phrase.Quote(value), phrase.Either(names))
	}
	return false
}

// checkDistinct reports entries of a list that are empty or occur twice.
func checkDistinct(values []string, what string, at path, r reporter) {
	seen := make(map[string]int, len(values))
	for i, v := range values {
		if strings.TrimSpace(v) == "" {
			r.errorf(at.Add(i), "a %s is missing", what)
		} else if j, twice := seen[v]; twice {
			r.errorf(at.Add(i), "%s %s is already entry %d", what, phrase.Quote(v), j)
		} else {
			seen[v] = i
		}
	}
}
