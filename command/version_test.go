package command

import (
	"runtime/debug"
	"testing"
)

func TestVersionFromBuild(t *testing.T) {
	stamped := &debug.BuildInfo{Main: debug.Module{Version: "v0.3.1"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}}}
	tests := map[string]struct {
		info            *debug.BuildInfo
		version, commit string
		want            string
	}{
		"nothing is known":         {&debug.BuildInfo{}, "", "", "(devel) "},
		"recorded by go build":     {stamped, "", "", "v0.3.1 commit 0123456789ab "},
		"a release has precedence": {stamped, "v0.4.0", "fedcba98765432", "v0.4.0 commit fedcba987654 "},
		"a short commit":           {&debug.BuildInfo{}, "v0.4.0", "fed", "v0.4.0 commit fed "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			version, commit := fromBuild(tt.info, tt.version, tt.commit)
			if got := version + " " + commit; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
