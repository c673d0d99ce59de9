package backend

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// version is the version of a release, a pre-release or a post-release: 0.9.1, 0.10.1.1,
// 2.1.rc2, 0.5.1.post3, b4567.
type version struct {
	numbers [4]int
	phase   int // -1: pre-release, 0: release, 1: post-release
	serial  int // of the pre-release or post-release
}

var (
	versionPattern = regexp.MustCompile(`^[vb]?([0-9]{1,9}(?:\.[0-9]{1,9}){0,3})(?:[.-]?(a|alpha|b|beta|rc|dev|post)\.?([0-9]{0,9}))?(?:\+[a-z0-9.]{1,40})?$`)
	boundPattern   = regexp.MustCompile(`^(>=|<=|>|<|==)(.+)$`)
)

func parseVersion(text string) (version, error) {
	m := versionPattern.FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return version{}, fmt.Errorf("%q is not a version; write it as in 0.8.5, 2.1.rc2 or 0.5.1.post3", text)
	}
	var v version
	for i, n := range strings.Split(m[1], ".") {
		v.numbers[i], _ = strconv.Atoi(n) // nine digits cannot overflow
	}
	switch m[2] {
	case "":
	case "post":
		v.phase = 1
	default:
		v.phase = -1
	}
	v.serial, _ = strconv.Atoi(m[3])
	return v, nil
}

func (v version) compare(o version) int {
	for i := range v.numbers {
		if c := cmp.Compare(v.numbers[i], o.numbers[i]); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(v.phase, o.phase), cmp.Compare(v.serial, o.serial))
}

// bounds is a conjunction of comparisons. Without any, every version is contained.
type bounds []bound

type bound struct {
	op      string
	version version
}

func parseBounds(text string) (bounds, error) {
	if text == "" {
		return nil, nil
	}
	var out bounds
	for part := range strings.SplitSeq(text, ",") {
		m := boundPattern.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return nil, fmt.Errorf("%q is not a range of versions; write it as in >=0.8.0 or >=0.8.0,<1", text)
		}
		v, err := parseVersion(strings.TrimSpace(m[2]))
		if err != nil {
			return nil, err
		}
		out = append(out, bound{m[1], v})
	}
	return out, nil
}

func (b bounds) contains(v version) bool {
	for _, x := range b {
		c := v.compare(x.version)
		ok := false
		switch x.op {
		case ">=":
			ok = c >= 0
		case "<=":
			ok = c <= 0
		case ">":
			ok = c > 0
		case "<":
			ok = c < 0
		case "==":
			ok = c == 0
		}
		if !ok {
			return false
		}
	}
	return true
}

// Within reports whether the version is in the range, such as ">=0.8,<0.10". An empty version is in
// no range. An error is about the text of the range or of the version.
func Within(version, versions string) (bool, error) {
	b, err := parseBounds(versions)
	if err != nil || version == "" {
		return false, err
	}
	v, err := parseVersion(version)
	return err == nil && b.contains(v), err
}
